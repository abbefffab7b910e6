-- Backups of guests: each is all files of a guest of one moment, kept in a repository of restic's format, one a project.
-- What is in them is there; here is which there are, and what opens each repository.
create table backup_repositories (
    project_id      uuid primary key references projects on delete cascade,
    -- What opens it, sealed.
    password_sealed bytea not null,
    created_at      timestamptz not null default now()
);

create table guest_backups (
    id          uuid primary key,
    project_id  uuid not null references projects on delete cascade,
    -- The guest may be gone: what it was called then stands beside.
    guest_id    uuid not null,
    guest_name  text not null,
    environment text not null,
    comment     text check (length(comment) between 1 and 100),
    state       text not null default 'taking' check (state in ('taking', 'ready', 'removing')),
    -- The moment that it is of.
    taken_at    timestamptz,
    -- Its name in the repository.
    snapshot    text check (snapshot ~ '^[0-9a-f]{64}$'),
    bytes       bigint check (bytes >= 0),
    files       bigint check (files >= 0),
    -- How much of it the repository did not hold before, as it lies there.
    added_bytes bigint check (added_bytes >= 0),
    -- How long it took, in milliseconds.
    took_ms     bigint check (took_ms >= 0),
    -- Nobody, where a schedule has it taken.
    created_by  uuid references users,
    created_at  timestamptz not null default now(),
    check ((state = 'taking') = (snapshot is null)),
    check ((snapshot is null) = (taken_at is null) and (snapshot is null) = (bytes is null)
        and (snapshot is null) = (files is null) and (snapshot is null) = (added_bytes is null)
        and (snapshot is null) = (took_ms is null))
);
create index guest_backups_of_guest on guest_backups (guest_id, created_at desc);
create index guest_backups_of_project on guest_backups (project_id);

-- How often a backup of a guest is taken by itself, and how many of these are kept.
create table backup_schedules (
    guest_id uuid primary key references guests on delete cascade,
    every    text not null check (every in ('day', 'week')),
    keep     int not null check (keep between 1 and 90),
    next_at  timestamptz not null default now(),
    -- Why none was taken when it was time.
    problem  text check (length(problem) between 1 and 1000)
);
create index backup_schedules_by_time on backup_schedules (next_at);
