-- What operators call some defaults for guests, and where one is usual.
create table guest_profiles (
    id         uuid primary key,
    name       text not null unique check (length(name) <= 40),
    comment    text check (length(comment) <= 200),
    -- What it says, as the API has it.
    defaults   jsonb not null default '{}',
    created_by uuid references users on delete set null,
    created_at timestamptz not null default now()
);
-- What a request has that names none.
create table usual_profiles (
    environment text primary key check (environment in ('dev', 'staging', 'prod')),
    profile_id  uuid not null references guest_profiles on delete cascade
);
create index on usual_profiles (profile_id);
-- By which a guest was made: its name then.
alter table guests add column profile text check (length(profile) <= 40);
