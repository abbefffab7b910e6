-- Deployments are found by the beginning of their commit.
create index deployments_commit on deployments ((commit collate "C")) where leader_id is null and commit is not null;
