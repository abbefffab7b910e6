-- What a person who waits for a job wants to know: when it is tried next, and when a step
-- last gave a sign of life.

alter table jobs add column retry_at timestamptz;
alter table job_steps add column alive_at timestamptz;
