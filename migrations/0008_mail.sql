-- Mail that is to be sent, and who wants which. What a letter is about is kept, not its text:
-- it is written when it is sent, by the server that sends it.
create table mail_queue (
    id         uuid primary key,
    -- What it is about and for whom: nothing is enqueued twice.
    key        text not null unique,
    user_id    uuid not null references users on delete cascade,
    letter     jsonb not null,
    created_at timestamptz not null default now(),
    attempts   integer not null default 0,
    next_try   timestamptz not null default now(),
    error      text,
    sent_at    timestamptz,
    given_up_at timestamptz,
    check (sent_at is null or given_up_at is null)
);
create index mail_queue_due on mail_queue (next_try) where sent_at is null and given_up_at is null;
create index mail_queue_age on mail_queue (created_at);

create table mail_preferences (
    user_id uuid primary key references users on delete cascade,
    wants   text not null check (wants in ('none', 'own', 'all'))
);
