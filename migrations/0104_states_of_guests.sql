-- What the states of a guest came to, when Corpus applied or tried them last.
create table guest_states (
    guest_id uuid primary key references guests on delete cascade,
    at       timestamptz not null default now(),
    mode     text not null check (mode in ('masterless', 'salt', 'mastersalt')),
    test     boolean not null,
    ran      bigint not null check (ran >= 0),
    failed   bigint not null check (failed >= 0),
    changed  bigint not null check (changed >= 0),
    states   jsonb not null
);
