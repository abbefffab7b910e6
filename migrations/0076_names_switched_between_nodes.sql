-- A name is switched between guests or environments whatever nodes these are on. While it is, it has two ends: what it
-- leads to now (guest_id, environment), and the other one: what it is to lead to, and once it does what it led to before.
-- The nodes of both take its visitors, and bring them to what it leads to now. Nobody is told of the other's nodes; those
-- who were told before come there until resolvers have forgotten it (former_until), which is set when the job is over.
alter table dns_names
    add column former_environment text check (former_environment in ('dev', 'staging', 'prod')),
    add column former_until timestamptz;
create index dns_names_of_former_ends on dns_names (former_until) where former_until is not null;

-- Those that share names, or did until a switch which is not over.
create or replace view balance_members as
select eg.guest_id, eg.project_id, eg.environment, eg.role, eg.out_since, eg.out_reason, eg.out_job,
    g.node_id, g.name, g.ip, g.state as guest_state, l.guest_id as leader_id,
    eg.state = 'ready' and (eg.live is not null or l.live is null)
        and (eg.out_since is null
             or (eg.out_job is not null
                 and not exists (
                     select from jobs j
                     where j.id = eg.out_job and j.state in ('waiting', 'running', 'undoing')))) as active
from environment_guests eg
join guests g on g.id = eg.guest_id
join environment_guests l on l.project_id = eg.project_id and l.environment = eg.environment and l.role = 'leader'
where eg.state in ('ready', 'leaving') and g.routed and g.ip is not null
    and (exists (select from dns_names n where n.guest_id = l.guest_id and n.environment = l.environment and n.routed)
         or exists (select from dns_names n
                    where n.former_guest_id = l.guest_id and n.former_environment = l.environment and n.routed));

-- The guests at both ends of the names that are being switched. A guest that is an end by itself is of no environment.
create view switch_members as
with ends as (
    select n.id as name_id, false as former, n.guest_id, n.environment from dns_names n
    where n.former_guest_id is not null and n.routed
    union all
    select n.id, true, n.former_guest_id, n.former_environment from dns_names n
    where n.former_guest_id is not null and n.routed)
select e.name_id, e.former, m.guest_id, m.node_id, m.project_id, m.environment
from ends e join balance_members m on m.leader_id = e.guest_id and m.environment = e.environment
union all
select e.name_id, e.former, g.id, g.node_id, g.project_id, null
from ends e join guests g on g.id = e.guest_id
where e.environment is null and g.routed and g.ip is not null;

-- Which guests are open to which other nodes: to those where others of their environment are, and to those of the other
-- end of a switch.
create view lent_guests as
select m.guest_id, m.node_id, o.node_id as to_node_id
from balance_members m
join balance_members o on o.project_id = m.project_id and o.environment = m.environment and o.node_id <> m.node_id
union
select m.guest_id, m.node_id, o.node_id
from switch_members m join switch_members o on o.name_id = m.name_id and o.former <> m.former and o.node_id <> m.node_id;

-- The nodes that take visitors of a name: that of its guest, and those of all guests that share it. Of those that leave,
-- and of those at the other end of a switch, nobody is told (they are not open), but who comes is served.
create or replace view name_nodes as
select name_id, node_id, bool_or(open) as open from (
    select n.id as name_id, g.node_id, true as open
    from dns_names n join guests g on g.id = n.guest_id
    union all
    select n.id, g.node_id, eg.state = 'ready'
    from dns_names n
    join environment_guests eg on eg.project_id = n.project_id and eg.environment = n.environment
    join guests g on g.id = eg.guest_id
    where eg.state in ('ready', 'leaving') and g.routed and g.ip is not null
    union all
    select n.id, g.node_id, false
    from dns_names n join guests g on g.id = n.former_guest_id
    union all
    select n.id, g.node_id, false
    from dns_names n
    join environment_guests l on l.guest_id = n.former_guest_id and l.environment = n.former_environment
    join environment_guests eg on eg.project_id = l.project_id and eg.environment = l.environment
    join guests g on g.id = eg.guest_id
    where eg.state in ('ready', 'leaving') and g.routed and g.ip is not null) nodes
group by name_id, node_id;

-- Which names a node serves, and for which environment: that of what takes their requests.
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
from dns_names n join guests g on g.id = n.guest_id join switch_members s on s.name_id = n.id and s.former;

-- Names whose addresses may be others than they were last said to have: what changes them notes them here, so that nobody
-- has to compare all of them. A node that stops answering is left out of its names after 30 s, and they are due then. There
-- is no reference to the name: who notes one waits for nobody who holds it.
create table names_to_spread (
    id      bigint generated always as identity primary key,
    name_id uuid not null,
    due_at  timestamptz not null default now()
);
create index names_to_spread_by_time on names_to_spread (due_at);
insert into names_to_spread (name_id) select id from dns_names where environment is not null or spread_to is not null;

create function note_guest_of_names() returns trigger language plpgsql as $$
begin
    if tg_op <> 'INSERT' then
        insert into names_to_spread (name_id)
        select n.id from dns_names n where n.project_id = old.project_id and n.environment = old.environment;
    end if;
    if tg_op <> 'DELETE' then
        insert into names_to_spread (name_id)
        select n.id from dns_names n where n.project_id = new.project_id and n.environment = new.environment;
    end if;
    return null;
end $$;
create trigger note_guest_of_names after insert or delete or update of state on environment_guests
    for each row execute function note_guest_of_names();

create function note_names_of_guest() returns trigger language plpgsql as $$
begin
    insert into names_to_spread (name_id)
    select n.id from environment_guests eg
    join dns_names n on n.project_id = eg.project_id and n.environment = eg.environment
    where eg.guest_id = new.id;
    return null;
end $$;
create trigger note_names_of_guest after update of node_id, routed, ip on guests for each row
    when ((old.node_id, old.routed, old.ip is null) is distinct from (new.node_id, new.routed, new.ip is null))
    execute function note_names_of_guest();

create function note_names_of_node() returns trigger language plpgsql as $$
begin
    insert into names_to_spread (name_id, due_at)
    select distinct n.id,
        case when new.reachability = 'reachable' then now() else new.reachability_since + interval '31 seconds' end
    from guests g
    join environment_guests eg on eg.guest_id = g.id
    join dns_names n on n.project_id = eg.project_id and n.environment = eg.environment
    where g.node_id = new.id;
    return null;
end $$;
create trigger note_names_of_node after update of reachability, reachability_since, public_ip, public_ipv6 on nodes
    for each row
    when ((old.reachability, old.reachability_since, old.public_ip, old.public_ipv6)
          is distinct from (new.reachability, new.reachability_since, new.public_ip, new.public_ipv6))
    execute function note_names_of_node();

create function note_name() returns trigger language plpgsql as $$
begin
    insert into names_to_spread (name_id) values (new.id);
    return null;
end $$;
create trigger note_new_name after insert on dns_names for each row
    when (new.environment is not null) execute function note_name();
create trigger note_changed_name after update of guest_id, environment, state, spread_to on dns_names for each row
    when ((old.guest_id, old.environment, old.state, old.spread_to)
          is distinct from (new.guest_id, new.environment, new.state, new.spread_to)
          and (new.environment is not null or new.spread_to is not null or old.spread_to is not null))
    execute function note_name();
