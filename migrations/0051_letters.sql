-- What comes within a short time for one member is one letter: what is queued is an item, and a letter has items. An
-- item says who may see it, and that is asked when its letter is written.

create table mail_letters (
    id         uuid primary key,
    user_id    uuid not null references users on delete cascade,
    -- 'empty': when it was to be sent there was nothing in it any more that its reader may see and wants.
    state      text not null default 'waiting' check (state in ('waiting', 'sent', 'given_up', 'empty')),
    created_at timestamptz not null default now(),
    ended_at   timestamptz,
    attempts   integer not null default 0,
    next_try   timestamptz not null default now(),
    error      text,
    check ((state = 'waiting') = (ended_at is null))
);
create index mail_letters_due on mail_letters (next_try) where state = 'waiting';
create index mail_letters_of_user on mail_letters (user_id, created_at);
create index mail_letters_ended on mail_letters (state, ended_at) where ended_at is not null;
create index mail_letters_age on mail_letters (created_at);

-- What is over has a letter of its own; what waits finds one.
insert into mail_letters (id, user_id, state, created_at, ended_at, attempts, error)
    select id, user_id, case when sent_at is null then 'given_up' else 'sent' end, created_at,
        coalesce(sent_at, given_up_at), attempts, error
    from mail_queue where sent_at is not null or given_up_at is not null;

alter table mail_queue
    -- The member's choice that it falls under; null: it is told always.
    add column kind       text,
    -- Whose members may see it, if it is about a project, and whether only operators may.
    add column project_id uuid references projects on delete cascade,
    add column for_ops    boolean not null default false,
    -- It waits for nothing else.
    add column urgent     boolean not null default false,
    -- It waits for the letter of the day.
    add column digest     boolean not null default false,
    add column due_at     timestamptz not null default now(),
    add column letter_id  uuid references mail_letters on delete cascade,
    -- Its reader may not see it any more, or does not want it.
    add column dropped_at timestamptz;
update mail_queue set letter_id = id where sent_at is not null or given_up_at is not null;
update mail_queue q set project_id = p.id from projects p where p.name = q.letter ->> 'project';
update mail_queue set kind = case letter ->> 'type'
    when 'failed' then 'deployment' when 'recovered' then 'deployment' when 'platform_ready' then 'environment_ready' end;
drop index mail_queue_due;
alter table mail_queue
    drop column attempts, drop column next_try, drop column error, drop column sent_at, drop column given_up_at;
create index mail_queue_due on mail_queue (due_at) where letter_id is null and dropped_at is null;
create index mail_queue_waiting on mail_queue (user_id) where letter_id is null and dropped_at is null;
create index mail_queue_of_letter on mail_queue (letter_id) where letter_id is not null;
create index mail_queue_of_project on mail_queue (project_id) where project_id is not null;

-- When a member wants to be told of what; what is not in it is by default.
alter table mail_preferences
    add column kinds jsonb not null default '{}' check (jsonb_typeof(kinds) = 'object');

-- What was told once is not told again: that a node is away, since when and when last; that a job goes on no more;
-- that a token is near its end.
alter table nodes add column away_told text check (away_told in ('unreachable', 'host_key_changed')),
    add column away_told_at timestamptz;
alter table jobs add column stalled_told_at timestamptz;
alter table tokens add column end_told_at timestamptz;
create index tokens_end on tokens (expires_at) where revoked_at is null and end_told_at is null;
