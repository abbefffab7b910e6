-- Backups of the controller itself: each that was wanted, and what became of it. What they hold is in their repository.
create table controller_backups (
    id          uuid primary key,
    -- Nobody, where it was time for one, or a shell of the controller asked.
    wanted_by   uuid references users on delete set null,
    wanted_at   timestamptz not null default now(),
    began_at    timestamptz,
    ended_at    timestamptz,
    -- Its name in the repository.
    snapshot    text check (length(snapshot) = 64),
    bytes       bigint check (bytes >= 0),
    added_bytes bigint check (added_bytes >= 0),
    error       text check (length(error) between 1 and 1000),
    check (ended_at is null or began_at is not null),
    check ((snapshot is null) = (bytes is null) and (snapshot is null) = (added_bytes is null)),
    check ((ended_at is null) = (snapshot is null and error is null)),
    check (snapshot is null or error is null)
);
create index controller_backups_by_time on controller_backups (wanted_at desc);
-- One waits or is taken at a time.
create unique index controller_backups_open on controller_backups ((true)) where ended_at is null;

-- When this controller was brought back from a backup.
create table controller_restores (
    restored_at timestamptz primary key default now(),
    -- When that was taken.
    taken_at    timestamptz not null,
    snapshot    text not null check (length(snapshot) = 64)
);
