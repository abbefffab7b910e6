-- Guests on some backings lie in a pool of their own and not in the file system that the others share. A node tells which,
-- and how much their sizes come to at most; so what is promised is summed up by backing.
create function pools(facts jsonb) returns jsonb immutable parallel safe language sql as $$
    select coalesce(jsonb_object_agg(b ->> 'backing', b -> 'room'), '{}')
    from jsonb_path_query(facts, '$.drivers[*].backings[*] ? (exists (@.room))') b
$$;
alter table nodes add column pools jsonb not null generated always as (pools(facts)) stored;

-- What these count for may go after their guest: so they know themselves what it lies on.
alter table snapshots add column backing text;
alter table guest_moves add column backing text;
alter table backup_proofs add column backing text;
update snapshots s set backing = g.backing from guests g where g.id = s.guest_id;
update guest_moves m set backing = g.backing from guests g where g.id = m.guest_id;
update backup_proofs p set backing = g.backing
from guest_backups b join guests g on g.id = b.guest_id where b.id = p.backup_id;
update backup_proofs set backing = 'overlayfs' where backing is null;
alter table snapshots alter column backing set not null;
alter table guest_moves alter column backing set not null;
alter table backup_proofs alter column backing set not null;

alter table node_tallies add column backing text;
delete from node_tallies;
insert into node_tallies (node_id, guests, memory, cpu_millis, storage, backing)
select node_id, sum(guests), sum(memory), sum(cpu_millis), sum(storage), backing from (
    select node_id, 1 as guests, memory, cpu_millis, storage, backing from guests
    union all
    select node_id, 0, 0, 0, storage, backing from snapshots
    union all
    select node_id, 1, memory, cpu_millis, storage, backing from guest_moves where memory > 0
    union all
    select node_id, 1, memory, cpu_millis, storage, backing from backup_proofs where node_id is not null
) one group by node_id, backing;
alter table node_tallies alter column backing set not null;

create or replace function tally_guest_on_node(g guests, sign int) returns void language sql as $$
    insert into node_tallies (node_id, guests, memory, cpu_millis, storage, backing)
    values (g.node_id, sign, sign * g.memory, sign * g.cpu_millis, sign * g.storage, g.backing)
$$;
drop trigger guest_moves_on_node on guests;
create trigger guest_moves_on_node after update of node_id, memory, cpu_millis, storage, backing on guests
    for each row when ((old.node_id, old.memory, old.cpu_millis, old.storage, old.backing)
        is distinct from (new.node_id, new.memory, new.cpu_millis, new.storage, new.backing))
    execute function guest_is_tallied_on_node();

create or replace function snapshot_is_tallied() returns trigger language plpgsql as $$
begin
    if tg_op <> 'INSERT' then
        insert into project_tallies (project_id, storage) values (old.project_id, -old.storage);
        insert into node_tallies values (old.node_id, 0, 0, 0, -old.storage, old.backing);
    end if;
    if tg_op <> 'DELETE' then
        insert into project_tallies (project_id, storage) values (new.project_id, new.storage);
        insert into node_tallies values (new.node_id, 0, 0, 0, new.storage, new.backing);
    end if;
    return null;
end $$;

create or replace function guest_move_is_tallied() returns trigger language plpgsql as $$
begin
    if tg_op <> 'INSERT' and old.memory > 0 then
        insert into node_tallies values (old.node_id, -1, -old.memory, -old.cpu_millis, -old.storage, old.backing);
    end if;
    if tg_op <> 'DELETE' and new.memory > 0 then
        insert into node_tallies values (new.node_id, 1, new.memory, new.cpu_millis, new.storage, new.backing);
    end if;
    return null;
end $$;

create or replace function backup_proof_is_tallied() returns trigger language plpgsql as $$
begin
    if tg_op <> 'INSERT' and old.node_id is not null then
        insert into node_tallies values (old.node_id, -1, -old.memory, -old.cpu_millis, -old.storage, old.backing);
    end if;
    if tg_op <> 'DELETE' and new.node_id is not null then
        insert into node_tallies values (new.node_id, 1, new.memory, new.cpu_millis, new.storage, new.backing);
    end if;
    return null;
end $$;

create or replace function fold_tallies() returns void language sql as $$
    with gone as (
        delete from project_tallies
        where project_id in (select project_id from project_tallies group by project_id having count(*) > 1)
        returning *)
    insert into project_tallies (project_id, guests, running, failed, stopped, names, attached, memory, cpu_millis,
        storage, ports)
    select project_id, sum(guests), sum(running), sum(failed), sum(stopped), sum(names), sum(attached), sum(memory),
        sum(cpu_millis), sum(storage), sum(ports)
    from gone group by project_id
    having (sum(guests), sum(running), sum(failed), sum(stopped), sum(names), sum(attached), sum(memory),
        sum(cpu_millis), sum(storage), sum(ports)) <> (0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    with gone as (
        delete from node_tallies
        where (node_id, backing) in (
            select node_id, backing from node_tallies group by node_id, backing having count(*) > 1)
        returning *)
    insert into node_tallies (node_id, guests, memory, cpu_millis, storage, backing)
    select node_id, sum(guests), sum(memory), sum(cpu_millis), sum(storage), backing
    from gone group by node_id, backing
    having (sum(guests), sum(memory), sum(cpu_millis), sum(storage)) <> (0, 0, 0, 0);
    with gone as (
        delete from zone_tallies
        where (zone_id, project_id) in (
            select zone_id, project_id from zone_tallies group by zone_id, project_id having count(*) > 1)
        returning *)
    insert into zone_tallies select zone_id, project_id, sum(names) from gone
    group by zone_id, project_id having sum(names) <> 0
$$;

-- What each node has promised of what its guests share: of storage, that of the file system.
create view node_promises as
select t.node_id, sum(t.guests) as guests, sum(t.memory)::bigint as memory, sum(t.cpu_millis)::bigint as cpu_millis,
    coalesce(sum(t.storage) filter (where not n.pools ? t.backing), 0)::bigint as storage
from node_tallies t join nodes n on n.id = t.node_id group by t.node_id;
