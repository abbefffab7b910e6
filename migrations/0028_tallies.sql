-- What every page counts, and what a node has promised, is kept beside the guests and names: each change
-- adds a row, and a reader sums them up. Rows are only ever added, so two changes of one project or node
-- never wait for each other. fold_tallies() makes one row of many now and then.

create table project_tallies (
    project_id uuid not null,
    guests     int  not null default 0,
    running    int  not null default 0,
    failed     int  not null default 0,
    stopped    int  not null default 0,
    names      int  not null default 0,
    attached   int  not null default 0
);
create index project_tallies_of_project on project_tallies (project_id);

create table node_tallies (
    node_id    uuid   not null,
    guests     int    not null,
    memory     bigint not null,
    cpu_millis bigint not null,
    storage    bigint not null
);
create index node_tallies_of_node on node_tallies (node_id);

create table zone_tallies (
    zone_id    uuid not null,
    project_id uuid not null,
    names      int  not null
);
create index zone_tallies_of_zone on zone_tallies (zone_id, project_id);

-- A name is its guest's project's, so whoever asks for those of a project need not look at guests.
alter table dns_names add column project_id uuid references projects;
update dns_names n set project_id = g.project_id from guests g where g.id = n.guest_id;
alter table dns_names alter column project_id set not null;
create index dns_names_of_project on dns_names (project_id, name);

create function name_is_of_its_guests_project() returns trigger language plpgsql as $$
begin
    new.project_id := (select project_id from guests where id = new.guest_id);
    return new;
end $$;
create trigger name_is_of_its_guests_project before insert or update of guest_id, project_id on dns_names
    for each row execute function name_is_of_its_guests_project();

-- One trigger for what is new and one for what was, so that a change is both.

create function tally_guest_in_project(g guests, sign int) returns void language sql as $$
    insert into project_tallies (project_id, guests, running, failed, stopped)
    values (g.project_id, sign, sign * (g.state = 'running')::int, sign * (g.state = 'failed')::int,
        sign * (g.state = 'stopped')::int)
$$;
create function tally_guest_on_node(g guests, sign int) returns void language sql as $$
    insert into node_tallies (node_id, guests, memory, cpu_millis, storage)
    values (g.node_id, sign, sign * g.memory, sign * g.cpu_millis, sign * g.storage)
$$;
create function guest_is_tallied_in_project() returns trigger language plpgsql as $$
begin
    if tg_op <> 'INSERT' then perform tally_guest_in_project(old, -1); end if;
    if tg_op <> 'DELETE' then perform tally_guest_in_project(new, 1); end if;
    return null;
end $$;
create function guest_is_tallied_on_node() returns trigger language plpgsql as $$
begin
    if tg_op <> 'INSERT' then perform tally_guest_on_node(old, -1); end if;
    if tg_op <> 'DELETE' then perform tally_guest_on_node(new, 1); end if;
    return null;
end $$;
create trigger guest_is_tallied_in_project after insert or delete on guests
    for each row execute function guest_is_tallied_in_project();
create trigger guest_moves_in_project after update of state, project_id on guests
    for each row when ((old.state, old.project_id) is distinct from (new.state, new.project_id))
    execute function guest_is_tallied_in_project();
create trigger guest_is_tallied_on_node after insert or delete on guests
    for each row execute function guest_is_tallied_on_node();
create trigger guest_moves_on_node after update of node_id, memory, cpu_millis, storage on guests
    for each row when ((old.node_id, old.memory, old.cpu_millis, old.storage)
        is distinct from (new.node_id, new.memory, new.cpu_millis, new.storage))
    execute function guest_is_tallied_on_node();

create function tally_name(n dns_names, sign int) returns void language sql as $$
    insert into project_tallies (project_id, names, attached)
    values (n.project_id, sign, sign * (n.state = 'attached')::int);
    insert into zone_tallies (zone_id, project_id, names) values (n.zone_id, n.project_id, sign)
$$;
create function name_is_tallied() returns trigger language plpgsql as $$
begin
    if tg_op <> 'INSERT' then perform tally_name(old, -1); end if;
    if tg_op <> 'DELETE' then perform tally_name(new, 1); end if;
    return null;
end $$;
create trigger name_is_tallied after insert or delete on dns_names
    for each row execute function name_is_tallied();
create trigger name_moves after update of state, project_id, zone_id on dns_names
    for each row when ((old.state, old.project_id, old.zone_id) is distinct from (new.state, new.project_id, new.zone_id))
    execute function name_is_tallied();

-- Rows that somebody else folds at the same time are theirs: a row is deleted by one alone.
create function fold_tallies() returns void language sql as $$
    with gone as (
        delete from project_tallies
        where project_id in (select project_id from project_tallies group by project_id having count(*) > 1)
        returning *)
    insert into project_tallies
    select project_id, sum(guests), sum(running), sum(failed), sum(stopped), sum(names), sum(attached)
    from gone group by project_id
    having (sum(guests), sum(running), sum(failed), sum(stopped), sum(names), sum(attached)) <> (0, 0, 0, 0, 0, 0);
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

insert into project_tallies (project_id, guests, running, failed, stopped)
select project_id, count(*), count(*) filter (where state = 'running'), count(*) filter (where state = 'failed'),
    count(*) filter (where state = 'stopped') from guests group by project_id;
insert into project_tallies (project_id, names, attached)
select project_id, count(*), count(*) filter (where state = 'attached') from dns_names group by project_id;
insert into node_tallies
select node_id, count(*), sum(memory), sum(cpu_millis), sum(storage) from guests group by node_id;
insert into zone_tallies select zone_id, project_id, count(*) from dns_names group by zone_id, project_id;

-- How many more guests that need so much a node takes: what is not known of a node limits nothing.
create function guests_that_fit(
    slots int, memory bigint, cpu_millis bigint, storage bigint,
    memory_overcommit int, cpu_overcommit int, storage_overcommit int,
    guests bigint, memory_promised bigint, cpu_promised bigint, storage_promised bigint,
    memory_each bigint, cpu_each bigint, storage_each bigint
) returns bigint immutable language sql return least(
    slots - guests,
    (memory / 100 * memory_overcommit + memory % 100 * memory_overcommit / 100 - memory_promised) / memory_each,
    (cpu_millis * cpu_overcommit / 100 - cpu_promised) / cpu_each,
    (storage / 100 * storage_overcommit + storage % 100 * storage_overcommit / 100 - storage_promised) / storage_each);

-- Lists of deployments in a state, of a project or of all, and by somebody; jobs of a project.
create index deployments_in_state on deployments (state, ordered_at desc, id desc) where leader_id is null;
create index deployments_of_project_in_state on deployments (project_id, state, ordered_at desc, id desc)
    where leader_id is null;
create index deployments_by on deployments (by, ordered_at desc, id desc) where leader_id is null;
create index jobs_of_project on jobs (project_id, queue_order desc) where project_id is not null;
