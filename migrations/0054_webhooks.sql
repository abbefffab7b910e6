-- Webhooks of projects, and what is sent to them. A delivery is enqueued in the transaction of the event that it tells
-- of, once for each webhook; it is sent by any server, tried again with growing pauses, and given up after a while.

create table webhooks (
    id            uuid primary key,
    project_id    uuid not null references projects on delete cascade,
    name          text not null check (length(name) between 1 and 60),
    url           text not null check (length(url) <= 500),
    events        text[] not null check (cardinality(events) > 0),
    -- What deliveries are signed with, sealed.
    secret        bytea not null,
    created_by    uuid references users on delete set null,
    created_at    timestamptz not null default now(),
    failing_since timestamptz,
    off_at        timestamptz,
    constraint webhooks_name unique (project_id, name)
);

create table webhook_deliveries (
    id         uuid primary key,
    webhook_id uuid not null references webhooks on delete cascade,
    project_id uuid not null,
    -- What happened: a webhook is told of it once.
    key        text not null,
    event      text not null,
    payload    jsonb not null,
    state      text not null default 'waiting' check (state in ('waiting', 'delivered', 'failed')),
    attempts   integer not null default 0,
    next_try   timestamptz not null default now(),
    status     integer,
    elapsed_ms bigint,
    error      text,
    response   text,
    created_at timestamptz not null default now(),
    tried_at   timestamptz,
    constraint webhook_deliveries_once unique (webhook_id, key)
);
create index webhook_deliveries_due on webhook_deliveries (next_try) where state = 'waiting';
create index webhook_deliveries_waiting on webhook_deliveries (webhook_id) where state = 'waiting';
create index webhook_deliveries_listed on webhook_deliveries (webhook_id, created_at desc, id desc);
