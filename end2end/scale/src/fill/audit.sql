-- A year of what was done.
insert into audit (id, at, actor_id, actor, door, token, project_id, project, action, subject, subject_id, detail)
select pg_temp.id(9, n), now() - (size.audit - n) * interval '1 year' / size.audit, pg_temp.id(1, who), 'member' || who,
    case when n % 3 = 0 then 'api' else 'page' end, case when n % 3 = 0 then 'Jenkins' end, p.id, p.name,
    (array['guest.request', 'guest.restart', 'guest.start', 'guest.stop', 'name.attach', 'name.detach', 'key.add', 'project.member',
        'environment.configure', 'deployment.order', 'deployment.begin', 'member.roles', 'guest.destroy', 'guest.limit', 'job.retry',
        'guest.reveal_password'])[1 + n % 16],
    'g' || 1 + n % size.guests || '.example.org', pg_temp.id(4, 1 + n % size.guests),
    case when n % 2 = 0 then jsonb_build_object('job', pg_temp.id(8, 1 + n % size.jobs)) else '{}' end
from size cross join generate_series(1, size.audit) n cross join lateral (select 1 + n % size.users as who) drawn_audit
    join guests g on g.id = pg_temp.id(4, 1 + n % size.guests) join projects p on p.id = g.project_id;
