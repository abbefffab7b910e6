-- Guests that are to leave a node, one after the other: moved while it answers, or brought elsewhere from their latest
-- backups when it is lost. One that has left is gone from here, one that could not tells why.
create table leaving_guests (
    guest_id uuid primary key references guests on delete cascade,
    -- The node that it leaves.
    node_id  uuid not null references nodes on delete cascade,
    how      text not null check (how in ('move', 'backup')),
    asked_at timestamptz not null default now(),
    -- The job that does it; no reference, since history is forgotten on its own.
    job_id   uuid,
    problem  text check (length(problem) between 1 and 1000)
);
create index leaving_guests_of_node on leaving_guests (node_id);

-- What a lost node has of guests that went on elsewhere. When it comes back they are stopped there and do not start by
-- themselves; their files lie there until somebody has them removed. The guest may be gone by then.
create table left_behind (
    node_id    uuid not null references nodes on delete cascade,
    guest_id   uuid not null,
    name       text not null,
    left_at    timestamptz not null default now(),
    -- The moment that the backup is of by which it went on.
    backup_of  timestamptz,
    -- When the node told that it does not run there.
    stopped_at timestamptz,
    removing   boolean not null default false,
    -- When it is tried next to stop or remove it: a node that can't is not asked all the time.
    try_at     timestamptz not null default now(),
    primary key (node_id, guest_id)
);
