-- What is said of a site and of a name is what was seen, again and again: what the node's proxy answers for the name,
-- and what the authoritative server answers. Rows change only when what was seen does; that it is still so, and
-- when it was last looked at, stands at the node and at the zone, so that looking each minute costs few writes.

alter table nodes add column sites_at timestamptz, add column sites_due_at timestamptz not null default now();
alter table zones add column answers_at timestamptz, add column answers_due_at timestamptz not null default now();
alter table zones add column silent_since timestamptz, add column silent_reason text;

alter table dns_names add column site_status smallint check (site_status between 100 and 999);
alter table dns_names add column site_problem text;
-- Since when the site answers so; null until it was looked at.
alter table dns_names add column site_since timestamptz;
alter table dns_names add column unanswered_since timestamptz;
alter table dns_names add column unanswered_reason text;
alter table dns_names add check ((unanswered_since is null) = (unanswered_reason is null));
