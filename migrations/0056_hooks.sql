-- What the operator's hooks did: the last runs of each, and what of them is to be undone when their step is.
-- `facts` are what the hook got, so that its undo gets the same. The guests and nodes of a run may be gone by now.

create table hook_runs (
    id bigint generated always as identity primary key,
    job_id uuid not null references jobs (id) on delete cascade,
    step text not null,
    -- The path of its file below the folder of hooks: guest/guest.ping.after/10-monitoring
    hook text not null,
    side text not null check (side in ('before', 'after')),
    -- The machine it ran on, by name.
    host text not null,
    attempt integer not null check (attempt > 0),
    facts jsonb not null,
    state text not null default 'running'
        check (state in ('running', 'done', 'failed', 'warned', 'cancelled', 'lost')),
    undo text check (undo in ('wanted', 'undone', 'failed')),
    reason text,
    tail text[] not null default '{}',
    began_at timestamptz not null default now(),
    ended_at timestamptz,
    check ((state = 'running') = (ended_at is null))
);
create index hook_runs_of_hook on hook_runs (hook, id desc);
create index hook_runs_of_step on hook_runs (job_id, step, id desc);
