-- A guest that is moved to another node has two places for a while. The other one is here: where it goes to, and once it
-- is there (moved) the one that it left, where visitors may come until resolvers have forgotten it (until_at), which is
-- set when the job is over. The two are exchanged as a whole, there and back.
create table guest_moves (
    guest_id   uuid primary key references guests on delete cascade,
    node_id    uuid not null references nodes on delete cascade,
    moved      boolean not null default false,
    ip         text,
    mac        text,
    ssh_port   int check (ssh_port between 40000 and 50000),
    id_range   bigint check (id_range between 1073741824 and 1878982656 and id_range % 65536 = 0),
    -- What it is a clone of there: all its files are brought, so a newer version will do.
    image      text not null,
    -- What it counts for there, as long as its files are.
    memory     bigint not null check (memory >= 0),
    cpu_millis int not null check (cpu_millis >= 0),
    storage    bigint not null check (storage >= 0),
    until_at   timestamptz,
    unique (node_id, ip),
    unique (node_id, mac),
    unique (node_id, ssh_port),
    unique (node_id, id_range)
);
create index guest_moves_that_are_over on guest_moves (until_at) where until_at is not null;

-- A guest at its other place, as the tallies see it: none where nothing of it is there any more.
create function guest_move_is_tallied() returns trigger language plpgsql as $$
begin
    if tg_op <> 'INSERT' and old.memory > 0 then
        insert into node_tallies values (old.node_id, -1, -old.memory, -old.cpu_millis, -old.storage);
    end if;
    if tg_op <> 'DELETE' and new.memory > 0 then
        insert into node_tallies values (new.node_id, 1, new.memory, new.cpu_millis, new.storage);
    end if;
    return null;
end $$;
create trigger guest_move_is_tallied after insert or delete on guest_moves
    for each row execute function guest_move_is_tallied();
create trigger guest_move_changes after update of node_id, memory, cpu_millis, storage on guest_moves for each row
    when ((old.node_id, old.memory, old.cpu_millis, old.storage)
          is distinct from (new.node_id, new.memory, new.cpu_millis, new.storage))
    execute function guest_move_is_tallied();

-- Nobody takes there what it comes to, or may have to go back to.
create function guest_place_is_free() returns trigger language plpgsql as $$
declare
    taken text;
begin
    select case when m.ip = new.ip then 'ip' when m.mac = new.mac then 'mac' when m.ssh_port = new.ssh_port then 'ssh_port'
                else 'id_range' end into taken
    from guest_moves m
    where m.node_id = new.node_id and m.guest_id <> new.id
        and (m.ip = new.ip or m.mac = new.mac or m.ssh_port = new.ssh_port or m.id_range = new.id_range)
    limit 1;
    if found then
        raise exception 'a guest that is moved has that %', taken
            using errcode = 'unique_violation', constraint = 'guests_node_id_' || taken || '_key';
    end if;
    return new;
end $$;
create trigger guest_place_is_free before insert or update of node_id, ip, mac, ssh_port, id_range on guests
    for each row execute function guest_place_is_free();

-- Who is moved is no longer told at its old node, and who comes there is brought to it.
create view left_places as
select m.guest_id, m.node_id, m.ip from guest_moves m join guests g on g.id = m.guest_id
where m.moved and m.ip is not null and g.routed and g.ip is not null;

-- As long as a job says so, no other one is accepted that needs the same thing.
alter table job_locks add column closed text check (length(closed) between 1 and 500);
create index job_locks_closed on job_locks (resource) where closed is not null;

-- The names whose visitors may still come to a node that a guest has left, where nobody else takes them: they are brought
-- to the guest. A wildcard is not: names of pools are looked up as they are.
create view names_left as
select distinct on (name_id, node_id) name_id, node_id, guest_id, ip from (
    select n.id as name_id, l.node_id, l.guest_id, l.ip, n.project_id, n.environment, n.guest_id as leads_to
    from left_places l join dns_names n on n.guest_id = l.guest_id
    where n.routed and not n.wildcard
    union all
    select n.id, l.node_id, l.guest_id, l.ip, n.project_id, n.environment, n.guest_id
    from left_places l
    join environment_guests eg on eg.guest_id = l.guest_id and eg.state in ('ready', 'leaving')
    join dns_names n on n.project_id = eg.project_id and n.environment = eg.environment
    where n.routed) one
where not exists (select from guests g where g.id = one.leads_to and g.node_id = one.node_id)
    and not exists (select from balance_members m
                    where m.project_id = one.project_id and m.environment = one.environment and m.node_id = one.node_id)
order by name_id, node_id, guest_id;

create or replace view lent_guests as
select m.guest_id, m.node_id, o.node_id as to_node_id
from balance_members m
join balance_members o on o.project_id = m.project_id and o.environment = m.environment and o.node_id <> m.node_id
union
select m.guest_id, m.node_id, o.node_id
from switch_members m join switch_members o on o.name_id = m.name_id and o.former <> m.former and o.node_id <> m.node_id
union
select l.guest_id, g.node_id, l.node_id
from names_left l join guests g on g.id = l.guest_id where g.node_id <> l.node_id;

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
    where eg.state in ('ready', 'leaving') and g.routed and g.ip is not null
    union all
    select name_id, node_id, false from names_left) nodes
group by name_id, node_id;

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
select l.node_id, n.name, n.wildcard, n.project_id, coalesce(n.environment, g.environment)
from names_left l join dns_names n on n.id = l.name_id join guests g on g.id = n.guest_id;

create or replace view needless_images as
    select i.node_id, i.label from node_images i
    where not exists (select from guests g where g.node_id = i.node_id and g.image = i.label)
        and not exists (select from guest_moves m where m.node_id = i.node_id and m.image = i.label and m.memory > 0)
        and (exists (select from image_versions v where v.name = i.label)
            or exists (select from image_versions v join image_versions w
                on w.name = v.name and (w.made_at, w.found_at) > (v.made_at, v.found_at)
                where v.label = i.label and w.found_at < now() - interval '1 hour'));
