-- Guests that share the names of an environment may be on several nodes: each of these nodes takes visitors of the names,
-- and brings them to the guests of all.

-- What a node is known by to the others, signed by our own authority.
create table node_links (
    node_id        uuid primary key references nodes on delete cascade,
    certificate_id uuid not null unique,
    chain          text not null,
    key_sealed     bytea not null,
    digest         text not null,
    not_after      timestamptz not null,
    renew_at       timestamptz not null
);

-- The newest plan that a node should have and was not told, since it did not answer: it is told when it is back.
alter table nodes add column plan_missed bigint;

-- Those that share names, wherever they are. One takes part when nothing keeps it out, and what is live on the leader is
-- live there too.
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
    and exists (select from dns_names n where n.guest_id = l.guest_id and n.environment = l.environment and n.routed);

-- The nodes that take visitors of a name: that of its guest, and those of all guests that share it. Of those that leave
-- nobody is told any more (they are not open), but who comes is served.
create view name_nodes as
select n.id as name_id, g.node_id, true as open
from dns_names n join guests g on g.id = n.guest_id
union
select n.id, g.node_id, bool_or(eg.state = 'ready')
from dns_names n
join environment_guests eg on eg.project_id = n.project_id and eg.environment = n.environment
join guests g on g.id = eg.guest_id
join guests l on l.id = n.guest_id
where eg.state in ('ready', 'leaving') and g.routed and g.ip is not null and g.node_id <> l.node_id
group by n.id, g.node_id;

-- Where a name was last said to lead to, while that is more than its guest's node.
alter table dns_names add column spread_to text[];
create index dns_names_that_are_spread on dns_names (id) where spread_to is not null;

-- Where a name is to lead to: the addresses of its open nodes. One that did not answer for a while is left out, as long as
-- another is there.
create function name_addresses(id uuid) returns text[] language sql stable as $$
    with places as (
        select distinct a.address,
            n.reachability <> 'reachable' and n.reachability_since < now() - interval '30 seconds' as lost
        from name_nodes s join nodes n on n.id = s.node_id
        cross join lateral unnest(array[n.public_ip, n.public_ipv6]) a (address)
        where s.name_id = $1 and s.open and a.address is not null)
    select array(select address from places
                 where not lost or not exists (select from places where not lost) order by address)
$$;
