-- An environment or a name that could not be made leaves nothing but the job that was undone, either.

-- What failed before there was this is no news any more.
update jobs set dismissed_at = now()
where state = 'undone' and dismissed_at is null and kind in ('environment_set_up', 'name_attach');

drop index jobs_not_created;
create index jobs_not_created on jobs (project_id, queue_order desc)
    where state = 'undone' and dismissed_at is null
        and kind in ('guest_create', 'node_link', 'environment_set_up', 'name_attach');
