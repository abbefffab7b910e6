insert into users (id, realm, login, display_name, ops)
select gen_random_uuid(), 'local', 'member' || n, 'Member ' || n, n <= 2 from generate_series(1, 10) n;

insert into projects (id, name) select gen_random_uuid(), case n when 1 then 'atlas' else 'project' || n end
from generate_series(1, 24) n;

insert into memberships (user_id, project_id, role, source)
select u.id, p.id, 'maintainer', 'corpus' from users u, projects p where u.login like 'member%' and not u.ops;

insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, network, bridge, slots, reachability)
select gen_random_uuid(), '127.0.9.' || n, 1, 'root',
    'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICtZB/UHmRfIQ9w50MXZ1k2rRC9DQIwTl3SL5yoFAIvF',
    '{dev,staging,prod}', 'ready', '10.5.0.1/16', 'lxcbr1', 64, 'reachable'
from generate_series(1, 8) n;

insert into guests (id, name, node_id, project_id, environment, driver, image, backing, size, mode, state, ip, ssh_port, host_key, id_range)
select gen_random_uuid(), 'g' || k || '.' || p.name || '.example.org', n.id, p.id, case k when 3 then 'prod' else 'dev' end,
    'lxc', 'debian-12', 'overlayfs', 'small', 'masterless', 'running', '10.5.0.' || 10 + 4 * p.number + k,
    40000 + 4 * p.number + k, n.host_key, 1073741824 + 65536 * (4 * p.number + k)
from generate_series(1, 3) k, (select id, name, row_number() over (order by name)::int as number from projects) p
join (select id, host_key, row_number() over (order by address)::int as number from nodes) n on n.number = p.number % 8 + 1;

insert into zones (id, name, open) values (gen_random_uuid(), 'example.org', true);
insert into dns_names (id, name, zone_id, guest_id, state, routed)
select gen_random_uuid(), 'www.' || g.name, z.id, g.id, 'attached', true from guests g, zones z;

insert into environments (project_id, environment)
select project_id, environment from guests where name like 'g1.%' or name like 'g3.%';
insert into environment_guests (guest_id, project_id, environment, role, state)
select id, project_id, environment, case when name like 'g2.%' then 'follower' else 'leader' end, 'ready' from guests
where name like 'g1.%' or name like 'g2.%' or name like 'g3.%';

insert into deployments (id, project_id, number, environment, guest_id, guest, trigger, by, state, commit, subject, ordered_at, ended_at, elapsed_ms)
select gen_random_uuid(), g.project_id, n, 'dev', g.id, g.name, 'push', 'member3', 'live', repeat('a1', 20), 'Change ' || n,
    now() - make_interval(hours => 100 - n), now() - make_interval(hours => 100 - n), 4200
from guests g, generate_series(1, 5) n where g.name like 'g1.%';
update projects set last_deployment = 5;
insert into deployment_log (deployment_id, number, at, stream, text)
select d.id, n, d.ordered_at, 'out', 'line ' || n || ' of what was done' from deployments d, generate_series(1, 40) n;
update environment_guests e set archives = jsonb_build_array(jsonb_build_object('id', d.id, 'commit', null, 'at_ms', 1,
    'bytes', 1, 'has_failed_tree', false))
from deployments d where d.project_id = e.project_id and d.number = 1 and e.environment = 'dev' and e.role = 'leader';

insert into jobs (id, kind, title, params, dag, state, node_id, guest_id, project_id, started_at, ended_at)
select gen_random_uuid(), 'guest_restart', 'Restart ' || g.name, '{}', '{}', 'done', g.node_id, g.id, g.project_id, now(), now()
from guests g, generate_series(1, 4) n;
-- Of a server that is not there; nobody takes it over before its lease ends.
insert into jobs (id, kind, title, params, dag, state, node_id, guest_id, project_id, started_at, owner, generation, lease_until)
select gen_random_uuid(), 'guest_restart', 'Restart ' || name, '{}', '{}', 'running', node_id, id, project_id, now(),
    gen_random_uuid(), 1, now() + interval '1 day'
from guests where name = 'g3.atlas.example.org';
insert into job_steps (job_id, index, name, title, state)
select id, 0, 'restart', 'Restart', 'running' from jobs where state = 'running';
