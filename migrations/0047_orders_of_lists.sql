-- Lists of jobs and deployments by how long one took: a page of them is read from these, however many there are.
-- From either end of what is new, the indexes that are there already serve.

create index jobs_longest on jobs ((ended_at - started_at) desc, queue_order desc)
    where ended_at - started_at is not null;
create index deployments_longest on deployments (elapsed_ms desc, id desc)
    where leader_id is null and elapsed_ms is not null;
create index deployments_of_project_longest on deployments (project_id, elapsed_ms desc, id desc)
    where leader_id is null and elapsed_ms is not null;
