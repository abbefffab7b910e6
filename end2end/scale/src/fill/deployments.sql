-- Where projects are deployed to: up to four guests an environment, on the largest many.
create temp table placed as
select g.id as guest_id, g.name as guest, g.project_id, g.environment,
    row_number() over (partition by g.project_id, g.environment order by g.id)::int as place
from guests g where g.state = 'running';
analyze placed;

insert into environments (project_id, environment, settings, created_by)
select project_id, environment, '{"greeting": "hello", "workers": 4}', pg_temp.id(1, 1) from placed where place = 1;

insert into environment_guests (guest_id, project_id, environment, role, state, state_reason, configuration, observed_at, created_by)
select guest_id, project_id, environment, 'leader', case when luck < 0.97 or project_id = pg_temp.id(2, 2) then 'ready' else 'failed' end,
    case when luck >= 0.97 and project_id <> pg_temp.id(2, 2) then 'The guest has no room for the layout.' end,
    pg_temp.shape('configuration'), now() - interval '10 seconds', pg_temp.id(1, 1)
from (select *, pg_temp.dice(row_number() over (order by guest_id), 3) as luck from placed where place = 1) leaders;

insert into environment_guests (guest_id, project_id, environment, role, state, observed_at, created_by)
select guest_id, project_id, environment, 'follower', 'ready', now() - interval '10 seconds', pg_temp.id(1, 1)
from placed, size
where place between 2 and case when project_id = pg_temp.id(2, 1) and environment = 'prod' then 1 + size.followers else 4 end;
analyze environments, environment_guests;

-- A fifth is of the first project. One in 199 has a report and a log, so have the newest, and half of the newer ones that failed.
create temp table drawn as
with places as (
    select project_id, array_agg(environment order by environment) as environments, array_agg(guest_id order by environment) as guests,
        array_agg(guest order by environment) as names
    from placed where place = 1 group by project_id
), numbered as (
    select n, pg_temp.id(2, case when n % 5 = 0 then 1 else pg_temp.other_project(n, 4, size.projects) end) as project_id,
        1 + n % (size.users - 4) as who, n > size.deployments - 12 as open,
        now() - (size.deployments - n) * interval '1 year' / size.deployments as ordered_at, pg_temp.dice(n, 5) as luck, size.deployments - n as age
    from size, generate_series(1, size.deployments) n
), several as (
    select *, 1 + n / 5 % cardinality(environments) as pick from numbered join places using (project_id)
)
select n, pg_temp.id(7, n) as id, project_id, row_number() over (partition by project_id order by n) as number,
    environments[pick] as environment, guests[pick] as guest_id, names[pick] as guest, 4 + who as who, ordered_at,
    not open and (n % 199 = 0 or age < greatest(n / 200, 100) or age < greatest(n / 5, 2000) and n % 2 = 0 and luck between 0.88 and 0.96) as reported,
    case when open then (array['running', 'waiting', 'rolling_back'])[1 + n % 3] when luck < 0.88 then 'live' when luck < 0.95 then 'rolled_back'
        when luck < 0.96 then 'broken' else 'superseded' end as state,
    case when open then null else 3000 + (luck * 40000)::bigint end as elapsed_ms, 40 as lines
from several;
analyze drawn;

-- The longest log is of the newest deployment to the largest environment.
update drawn set lines = size.lines from size
where n = (select max(n) from drawn where project_id = pg_temp.id(2, 1) and environment = 'prod' and reported and state = 'live');

insert into deployments (id, project_id, number, environment, guest_id, guest, trigger, ordered, by_id, by, state, commit, subject,
    fault, ordered_at, ended_at, elapsed_ms, report, final, lines, job_id, follows)
select d.id, d.project_id, d.number, d.environment, d.guest_id, d.guest, case when d.n % 21 = 0 then 'hand' else 'push' end,
    case when d.n % 21 = 0 then pg_temp.shape('ordered') end, pg_temp.id(1, d.who), 'member' || d.who, d.state, pg_temp.commit_of(d.n),
    'Change ' || d.n || ': what a member did today', case when d.state in ('rolled_back', 'broken') then 'install: 30-site.sls failed' end,
    d.ordered_at, d.ordered_at + make_interval(secs => d.elapsed_ms / 1000.0), d.elapsed_ms,
    case when d.reported then pg_temp.shape(case when d.state in ('rolled_back', 'broken') then 'failed' else 'report' end)
        || jsonb_build_object('id', d.id, 'project', p.name, 'environment', d.environment, 'state', d.state, 'by', 'member' || d.who,
            'commit', pg_temp.commit_of(d.n), 'ordered_ms', pg_temp.ms(d.ordered_at), 'began_ms', pg_temp.ms(d.ordered_at),
            'ended_ms', pg_temp.ms(d.ordered_at) + d.elapsed_ms, 'lines', d.lines) end,
    d.elapsed_ms is not null, d.lines, null, 1
from (select * from drawn order by n) d join projects p on p.id = d.project_id;

update projects set last_deployment = last.number
from (select project_id, max(number) as number from drawn group by project_id) last where last.project_id = projects.id;
analyze deployments;

-- The newest were made on the other guests too.
insert into deployments (id, project_id, number, environment, guest_id, guest, trigger, ordered, by_id, by, state, commit, subject,
    fault, ordered_at, ended_at, elapsed_ms, report, final, lines, follows, leader_id)
select pg_temp.id(12, row_number() over (order by d.n, p.place)), d.project_id, d.number, d.environment, p.guest_id, p.guest, leader.trigger,
    leader.ordered, leader.by_id, leader.by, leader.state, leader.commit, leader.subject, leader.fault, leader.ordered_at, leader.ended_at,
    leader.elapsed_ms, leader.report, leader.final, 0, 1, leader.id
from drawn d join deployments leader on leader.id = d.id
join environment_guests e on e.project_id = d.project_id and e.environment = d.environment and e.role = 'follower'
join placed p on p.guest_id = e.guest_id, size
where d.reported and d.n > size.deployments - greatest(size.deployments / 200, 100);

insert into deployment_log (deployment_id, number, at, stream, text)
select d.id, line, d.ordered_at + make_interval(secs => line * 0.1), case when line % 20 = 0 then 'err' when line % 10 = 0 then 'note' else 'out' end,
    'line ' || line || ' of what the recipe 10-packages wrote while it worked on ' || d.guest
from drawn d, generate_series(1, d.lines) line where d.reported;
