-- Archives are shown with the subject of their commit. The deployment that made it live again, as a restore does,
-- brought no commits and knows none: then an earlier one of that commit does.
create index deployments_of_commit on deployments (project_id, environment, commit, ordered_at desc)
    where subject is not null and leader_id is null;
