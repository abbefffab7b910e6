-- Jobs: durable operations, what they wait for, what they did, what they said.
--
-- `jobs.feed_seq` counts everything a reader can see change: log lines, steps, states. It only
-- moves under the row's lock, so the order of the numbers is the order of the commits, and
-- "everything after number n" is exact for a reader that comes back.

create table jobs (
    id uuid primary key,
    -- The order of the queue; ids of several servers are not strictly ordered.
    queue_order bigint generated always as identity unique,
    kind text not null,
    title text not null,
    -- Never a secret: a job's parameters are shown to operators.
    params jsonb not null,
    dag jsonb not null,
    state text not null default 'waiting' check (
        state in ('waiting', 'running', 'undoing', 'done', 'undone', 'stuck', 'abandoned')
    ),
    -- What it is about, for filters. No foreign keys: history outlives its subject.
    node_id uuid,
    guest_id uuid,
    project_id uuid,
    created_by uuid,
    idempotency_key text unique,
    created_at timestamptz not null default now(),
    started_at timestamptz,
    ended_at timestamptz,
    -- The lease. A write of a server that is not (owner, generation) any more finds no row.
    owner uuid,
    generation bigint not null default 0,
    lease_until timestamptz,
    cancel_requested_at timestamptz,
    cancel_requested_by uuid,
    error text,
    waiting_for text,
    waiting_since timestamptz,
    blocked_by uuid,
    abandoned_by uuid,
    comment text,
    feed_seq bigint not null default 0,
    state_seq bigint not null default 0,
    check ((state in ('done', 'undone', 'abandoned')) = (ended_at is not null)),
    check ((state = 'abandoned') = (comment is not null))
);

create index jobs_active on jobs (queue_order) where state in ('waiting', 'running', 'undoing', 'stuck');
create index jobs_of_node on jobs (node_id, queue_order desc) where node_id is not null;
create index jobs_of_guest on jobs (guest_id, queue_order desc) where guest_id is not null;
create index jobs_of_user on jobs (created_by, queue_order desc) where created_by is not null;

-- The saga's log, from which a job is resumed. The key makes a repeated write harmless.
create table job_events (
    job_id uuid not null references jobs (id) on delete cascade,
    node_id bigint not null,
    kind text not null check (
        kind in ('started', 'succeeded', 'failed', 'undo_started', 'undo_finished', 'undo_failed')
    ),
    event jsonb not null,
    generation bigint not null,
    recorded_at timestamptz not null default now(),
    primary key (job_id, node_id, kind)
);

-- The steps as the pages show them.
create table job_steps (
    job_id uuid not null references jobs (id) on delete cascade,
    index integer not null check (index >= 0),
    name text not null,
    title text not null,
    state text not null default 'pending' check (
        state in ('pending', 'running', 'done', 'failed', 'undoing', 'undone', 'undo_failed')
    ),
    started_at timestamptz,
    ended_at timestamptz,
    attempts integer not null default 0,
    error text,
    undo_error text,
    progress_done bigint,
    progress_total bigint,
    -- The job's feed_seq at the last change of this row.
    seq bigint not null default 0,
    primary key (job_id, index),
    unique (job_id, name)
);

create table job_log (
    job_id uuid not null references jobs (id) on delete cascade,
    seq bigint not null,
    at timestamptz not null,
    step integer,
    stream text not null check (stream in ('out', 'err', 'note')),
    text text not null,
    primary key (job_id, seq)
);

-- What a job needs for itself (exclusive) or together with others (shared), from its
-- submission on. `held_since` is null while it queues. Gone when the job is over.
create table job_locks (
    resource text not null,
    job_id uuid not null references jobs (id) on delete cascade,
    mode text not null check (mode in ('shared', 'exclusive')),
    held_since timestamptz,
    primary key (resource, job_id)
);

create index job_locks_of_job on job_locks (job_id);
create unique index job_locks_one_exclusive on job_locks (resource) where mode = 'exclusive' and held_since is not null;
