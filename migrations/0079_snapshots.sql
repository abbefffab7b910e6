-- Snapshots of guests: each is a copy of the guest's files of one moment, kept on the guest's node.
create table snapshots (
    id         uuid primary key,
    guest_id   uuid not null references guests on delete cascade,
    comment    text check (length(comment) between 1 and 100),
    state      text not null default 'taking' check (state in ('taking', 'ready', 'restoring', 'removing')),
    -- How much was in it when it was taken.
    bytes      bigint check (bytes >= 0),
    taken_at   timestamptz,
    created_by uuid not null references users,
    created_at timestamptz not null default now(),
    check ((state = 'taking') = (taken_at is null) and (taken_at is null) = (bytes is null))
);
create index snapshots_of_guest on snapshots (guest_id, created_at desc);
