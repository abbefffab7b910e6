-- A guest may tell of deployments without end, and of deployments without end: each is followed
-- again less and less often, and of what was only found so many a day.
alter table deployments add column follows integer not null default 0;
alter table deployments add column followed_at timestamptz;
create index deployments_found on deployments (guest_id, ordered_at) where ordered is null and by_id is null;

-- How many jobs of a project wait is asked before each that is submitted.
create index jobs_waiting on jobs (project_id) where state = 'waiting';

-- The host key that a guest shows instead of its own, until a maintainer has compared it.
alter table guests add column other_host_key text;
