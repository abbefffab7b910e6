-- Snapshots of guests: each is a copy of the guest's files of one moment, kept on the guest's node.
create table snapshots (
    id         uuid primary key,
    guest_id   uuid not null references guests on delete cascade,
    project_id uuid not null,
    node_id    uuid not null,
    comment    text check (length(comment) between 1 and 100),
    state      text not null default 'taking' check (state in ('taking', 'ready', 'restoring', 'removing')),
    -- How much was in it when it was taken.
    bytes      bigint check (bytes >= 0),
    -- What it counts for, in its project's quota and of its node's storage: all it may come to take.
    storage    bigint not null check (storage >= 0),
    taken_at   timestamptz,
    -- Nobody, where a schedule has it taken.
    created_by uuid references users,
    created_at timestamptz not null default now(),
    check ((state = 'taking') = (taken_at is null) and (taken_at is null) = (bytes is null))
);
create index snapshots_of_guest on snapshots (guest_id, created_at desc);

-- What snapshots take is summed up beside what guests are promised. When a snapshot goes with its guest, that is gone
-- already: so its row knows project and node itself.
create function snapshot_is_tallied() returns trigger language plpgsql as $$
begin
    if tg_op <> 'INSERT' then
        insert into project_tallies (project_id, storage) values (old.project_id, -old.storage);
        insert into node_tallies values (old.node_id, 0, 0, 0, -old.storage);
    end if;
    if tg_op <> 'DELETE' then
        insert into project_tallies (project_id, storage) values (new.project_id, new.storage);
        insert into node_tallies values (new.node_id, 0, 0, 0, new.storage);
    end if;
    return null;
end $$;
create trigger snapshot_is_tallied after insert or delete on snapshots
    for each row execute function snapshot_is_tallied();
create trigger snapshot_grows after update of storage on snapshots
    for each row when (old.storage <> new.storage) execute function snapshot_is_tallied();

-- How often a snapshot of a guest is taken by itself, and how many of these are kept.
create table snapshot_schedules (
    guest_id uuid primary key references guests on delete cascade,
    every    text not null check (every in ('hour', 'day', 'week')),
    keep     int not null check (keep between 1 and 12),
    next_at  timestamptz not null default now(),
    -- Why none was taken when it was time.
    problem  text check (length(problem) between 1 and 1000)
);
create index snapshot_schedules_by_time on snapshot_schedules (next_at);
