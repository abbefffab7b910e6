-- What of a node was last found not as it should be, and whether a guest should run: its
-- state says only what is.

alter table nodes add column drift jsonb not null default '[]';
alter table nodes add column checked_at timestamptz;
alter table nodes add column check_due_at timestamptz not null default now();

alter table guests add column should_run boolean not null default true;
update guests set should_run = state not in ('stopping', 'stopped');
