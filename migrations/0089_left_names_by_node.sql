-- Who is moved is looked up for one node or one name, hundreds of times a minute: so the views give the node and the project
-- before they compare, and PostgreSQL reads no table whole to find that nobody has moved.
create or replace view left_places as
select m.guest_id, m.node_id, m.ip, g.node_id as at_node_id, g.environment
from guest_moves m join guests g on g.id = m.guest_id
where m.moved and m.ip is not null and g.routed and g.ip is not null;

-- The names whose visitors may still come to a node that a guest has left, where nobody else takes them: they are brought
-- to the guest. A wildcard is not: names of pools are looked up as they are. One of a guest is left by that guest alone;
-- of several that left a node with names of their environment it is the first.
create or replace view names_left as
select n.id as name_id, l.node_id, l.guest_id, l.ip, l.at_node_id, n.name, n.wildcard, n.project_id, l.environment
from left_places l join dns_names n on n.guest_id = l.guest_id
where n.routed and not n.wildcard and n.environment is null and l.at_node_id <> l.node_id
union all
select n.id, l.node_id, l.guest_id, l.ip, l.at_node_id, n.name, n.wildcard, n.project_id, n.environment
from left_places l
join environment_guests eg on eg.guest_id = l.guest_id
join dns_names n on n.project_id = eg.project_id and n.environment = eg.environment
where n.routed and (eg.state in ('ready', 'leaving') or eg.guest_id = n.guest_id)
    and not exists (select from guests g where g.id = n.guest_id and g.node_id = l.node_id)
    -- No join: it would read all guests of the node.
    and l.node_id not in (select m.node_id from balance_members m
                          where m.project_id = n.project_id and m.environment = n.environment)
    and not exists (select from environment_guests oeg join left_places o on o.guest_id = oeg.guest_id
                    where oeg.project_id = n.project_id and oeg.environment = n.environment
                        and (oeg.state in ('ready', 'leaving') or oeg.guest_id = n.guest_id)
                        and o.node_id = l.node_id and o.guest_id < l.guest_id);

create or replace view lent_guests as
select m.guest_id, m.node_id, o.node_id as to_node_id
from balance_members m
join balance_members o on o.project_id = m.project_id and o.environment = m.environment and o.node_id <> m.node_id
union
select m.guest_id, m.node_id, o.node_id
from switch_members m join switch_members o on o.name_id = m.name_id and o.former <> m.former and o.node_id <> m.node_id
union
select guest_id, at_node_id, node_id from names_left where at_node_id <> node_id;

create or replace view names_on_nodes as
select g.node_id, n.name, n.wildcard, n.project_id, coalesce(n.environment, g.environment) as environment
from dns_names n join guests g on g.id = n.guest_id
union
select o.node_id, n.name, n.wildcard, n.project_id, n.environment
from dns_names n
join environment_guests eg on eg.project_id = n.project_id and eg.environment = n.environment
join guests o on o.id = eg.guest_id
union
select s.node_id, n.name, n.wildcard, n.project_id, coalesce(n.environment, g.environment)
from dns_names n join guests g on g.id = n.guest_id join switch_members s on s.name_id = n.id and s.former
union
select node_id, name, wildcard, project_id, environment from names_left;

-- A function in SQL is planned each time that it is called by a statement, which takes longer than all that it does.
create or replace function name_addresses(id uuid) returns text[] language plpgsql stable as $$
begin
    return (with places as (
        select distinct a.address,
            n.reachability <> 'reachable' and n.reachability_since < now() - interval '30 seconds' as lost
        from name_nodes s join nodes n on n.id = s.node_id
        cross join lateral unnest(array[n.public_ip, n.public_ipv6]) a (address)
        where s.name_id = $1 and s.open and a.address is not null)
    select array(select address from places
                 where not lost or not exists (select from places where not lost) order by address));
end $$;
