-- Lists of projects and deployments are read a page at a time, however many there are.

-- The deployments of a project, and those on a guest, the newest first.
create index deployments_of_project on deployments (project_id, ordered_at desc, id desc) where leader_id is null;
create index deployments_of_guest on deployments (guest_id, ordered_at desc, id desc);

-- Projects, the newest first; those of a member.
create index projects_newest on projects (created_at desc, id desc);
create index memberships_of_project on memberships (project_id);

-- What the figures of delivery count, without a look at the rows, which hold whole reports.
create index deployments_delivered on deployments (project_id, ended_at desc)
    include (environment, state, elapsed_ms)
    where leader_id is null and environment <> 'dev' and trigger <> 'drill'
        and state in ('live', 'rolled_back', 'broken');

-- When the commits of a deployment were authored, in milliseconds since 1970, by the guest's word: the time
-- from there to live is counted of all deployments of three months, and a report is large.
alter table deployments add column authored_ms bigint[] not null default '{}';
update deployments d set authored_ms = array(
    select least((c ->> 'at_ms')::numeric, 9223372036854775807)::bigint
    from jsonb_array_elements(d.report -> 'commits') c
)
where final and state = 'live' and ended_at > now() - interval '13 weeks'
    and jsonb_typeof(report -> 'commits') = 'array';
