-- How much a project may take: guests, memory, processor time, storage and DNS names. A quota that is not there
-- limits nothing, so whoever had no quotas before has none now.

-- What every project may take that has no quota of its own. There is one row, always.
create table quota_policy (
    is_the_only boolean primary key default true check (is_the_only),
    guests      bigint check (guests between 0 and 1000000),
    memory      bigint check (memory between 0 and 1125899906842624),
    cpu_millis  bigint check (cpu_millis between 0 and 1000000000),
    storage     bigint check (storage between 0 and 1000000000000000),
    names       bigint check (names between 0 and 1000000)
);
insert into quota_policy default values;

-- What a project has of its own: an amount, or no limit; what is neither is as the policy says.
create table project_quotas (
    project_id uuid primary key references projects on delete cascade,
    guests     bigint check (guests between 0 and 1000000),
    memory     bigint check (memory between 0 and 1125899906842624),
    cpu_millis bigint check (cpu_millis between 0 and 1000000000),
    storage    bigint check (storage between 0 and 1000000000000000),
    names      bigint check (names between 0 and 1000000),
    unlimited  text[] not null default '{}'
        check (unlimited <@ array['guests', 'memory', 'cpu', 'storage', 'names'])
);

-- What a project has taken is kept beside its guests and names, as what a node has promised is: from the request of
-- a guest until its row is gone.
alter table project_tallies
    add column memory     bigint not null default 0,
    add column cpu_millis bigint not null default 0,
    add column storage    bigint not null default 0;

create or replace function tally_guest_in_project(g guests, sign int) returns void language sql as $$
    insert into project_tallies (project_id, guests, running, failed, stopped, memory, cpu_millis, storage)
    values (g.project_id, sign, sign * (g.state = 'running')::int, sign * (g.state = 'failed')::int,
        sign * (g.state = 'stopped')::int, sign * g.memory, sign * g.cpu_millis, sign * g.storage)
$$;
drop trigger guest_moves_in_project on guests;
create trigger guest_moves_in_project after update of state, project_id, memory, cpu_millis, storage on guests
    for each row when ((old.state, old.project_id, old.memory, old.cpu_millis, old.storage)
        is distinct from (new.state, new.project_id, new.memory, new.cpu_millis, new.storage))
    execute function guest_is_tallied_in_project();

create or replace function fold_tallies() returns void language sql as $$
    with gone as (
        delete from project_tallies
        where project_id in (select project_id from project_tallies group by project_id having count(*) > 1)
        returning *)
    insert into project_tallies (project_id, guests, running, failed, stopped, names, attached, memory, cpu_millis,
        storage)
    select project_id, sum(guests), sum(running), sum(failed), sum(stopped), sum(names), sum(attached), sum(memory),
        sum(cpu_millis), sum(storage)
    from gone group by project_id
    having (sum(guests), sum(running), sum(failed), sum(stopped), sum(names), sum(attached), sum(memory),
        sum(cpu_millis), sum(storage)) <> (0, 0, 0, 0, 0, 0, 0, 0, 0);
    with gone as (
        delete from node_tallies
        where node_id in (select node_id from node_tallies group by node_id having count(*) > 1)
        returning *)
    insert into node_tallies
    select node_id, sum(guests), sum(memory), sum(cpu_millis), sum(storage)
    from gone group by node_id
    having (sum(guests), sum(memory), sum(cpu_millis), sum(storage)) <> (0, 0, 0, 0);
    with gone as (
        delete from zone_tallies
        where (zone_id, project_id) in (
            select zone_id, project_id from zone_tallies group by zone_id, project_id having count(*) > 1)
        returning *)
    insert into zone_tallies select zone_id, project_id, sum(names) from gone
    group by zone_id, project_id having sum(names) <> 0
$$;

-- What the guests that are there have taken already.
insert into project_tallies (project_id, memory, cpu_millis, storage)
select project_id, sum(memory), sum(cpu_millis), sum(storage) from guests group by project_id;
