-- A project that is being destroyed: by which job, since when, and since when there is no way back. While a job is
-- named here the project is not written to; the job may be over, and have left the project half destroyed. Jobs are
-- history, so it is no foreign key.
alter table projects add column leaving_job uuid;
alter table projects add column leaving_since timestamptz;
alter table projects add column destroying_since timestamptz;
alter table projects add check ((leaving_job is null) = (leaving_since is null));
alter table projects add check (destroying_since is null or leaving_job is not null);

-- Every job of a project shares it, so that the one that destroys it waits for all before it: those that are open too.
insert into job_locks (resource, job_id, mode, held_since)
select 'project:' || project_id, id, 'shared', case when state = 'waiting' then null else coalesce(started_at, now()) end
from jobs where project_id is not null and state in ('waiting', 'running', 'undoing', 'stuck');
