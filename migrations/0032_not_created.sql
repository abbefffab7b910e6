-- A guest or node that could not be made leaves nothing but the job that was undone. That job stands where the
-- thing would be, with why, until somebody dismisses it.

alter table jobs add column dismissed_at timestamptz;
alter table jobs add column dismissed_by uuid;
alter table jobs add check (dismissed_at is null or state = 'undone');

-- What failed before there was this is no news any more.
update jobs set dismissed_at = now() where state = 'undone' and kind in ('guest_create', 'node_link');

create index jobs_not_created on jobs (project_id, queue_order desc)
    where state = 'undone' and dismissed_at is null and kind in ('guest_create', 'node_link');
