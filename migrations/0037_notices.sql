-- What concerns a member and happened while they did not look. What happened is kept, not its words. A notice about
-- what its member may not see any more is not shown, and comes back with their role.
create table notices (
    id         uuid primary key,
    user_id    uuid not null references users on delete cascade,
    -- What happened: nobody is told of it twice.
    event      text not null,
    news       jsonb not null check (jsonb_typeof(news) = 'object'),
    -- Whose members may see it, if it is about a project, and whether only operators may.
    project_id uuid references projects on delete cascade,
    for_ops    boolean not null default false,
    -- The claim that waits for the member: it ends by itself, and the notice with it.
    claim_id   uuid,
    created_at timestamptz not null default now(),
    read_at    timestamptz,
    unique (user_id, event),
    check (not for_ops or project_id is null)
);
create index notices_of_user on notices (user_id, id desc);
-- What every page counts.
create index notices_unread on notices (user_id) where read_at is null;
create index notices_age on notices (created_at);
create index notices_of_project on notices (project_id) where project_id is not null;
