-- What a member has taken away or changed and can still undo, for ten minutes. What is kept is what the reverse needs;
-- none of it is a secret. It is judged anew when it is undone.
create table undoes (
    id          uuid primary key,
    user_id     uuid not null references users on delete cascade,
    kind        text not null check (kind in ('key', 'member', 'name', 'settings')),
    -- What it was about: an environment's, its project; a name's, its guest.
    project_id  uuid references projects on delete cascade,
    environment text check (environment in ('dev', 'staging', 'prod')),
    guest_id    uuid references guests on delete cascade,
    -- The one thing of it, by its own name.
    subject     text not null,
    reverse     jsonb not null check (jsonb_typeof(reverse) = 'object'),
    -- For the member: what was done, and the page where it was.
    said        text not null,
    path        text not null check (path like '/%'),
    created_at  timestamptz not null default now(),
    expires_at  timestamptz not null default now() + interval '10 minutes'
);
create index undoes_of_user on undoes (user_id, id desc);
create index undoes_expiry on undoes (expires_at);
create index undoes_of_project on undoes (project_id) where project_id is not null;
create index undoes_of_guest on undoes (guest_id) where guest_id is not null;
