-- Members. The first is an operator; the next three have 1, 5 and 50 projects, the others 1 to 5.
insert into users (id, realm, login, display_name, mail, ops, last_login_at, created_at)
select pg_temp.id(1, n), 'ldap', 'member' || n, 'Member ' || n, 'member' || n || '@example.org', n = 1,
    now() - make_interval(mins => n), now() - interval '1 year'
from size, generate_series(1, size.users) n;

-- The first is the largest; the second is one like the others, and the measured members have it.
insert into projects (id, name, created_at)
select pg_temp.id(2, n), case n when 1 then 'atlas' else 'project' || n end, now() - interval '1 year'
from size, generate_series(1, size.projects) n;

insert into memberships (user_id, project_id, role, source)
select pg_temp.id(1, u), pg_temp.id(2, p), 'maintainer', 'corpus'
from size, (values (2, 2, 2), (3, 1, 5), (4, 1, 50)) as measured (u, first, last),
    generate_series(first, least(last, size.projects)) p;

insert into memberships (user_id, project_id, role, source)
select pg_temp.id(1, u), pg_temp.id(2, case when u % 5 = 0 and k = 1 then 1 else 1 + (u * 7 + k * 13) % size.projects end),
    (array['viewer', 'developer', 'maintainer'])[1 + (u + k) % 3], case when u % 2 = 0 then 'ldap' else 'corpus' end
from size, generate_series(5, size.users) u, generate_series(1, 1 + u % 5) k
on conflict do nothing;

insert into ssh_keys (id, user_id, line, algorithm, bits, fingerprint, comment)
select pg_temp.id(10, 2 * u + k), pg_temp.id(1, u), pg_temp.key_line(u || '/' || k) || ' member' || u || '@laptop' || k, 'ssh-ed25519',
    256, 'SHA256:' || rtrim(encode(sha256(pg_temp.key(u || '/' || k)), 'base64'), '='), 'member' || u || '@laptop' || k
from size, generate_series(1, size.users) u, generate_series(0, 1) k;

-- Robots, as many as a project can have, each with tokens and a key.
with account as (
    insert into users (id, realm, login, display_name)
    select pg_temp.id(14, 100 * p + r), 'robot', case p when 1 then 'atlas' else 'project' || p end || '/robot' || r, 'robot' || r
    from size, generate_series(1, size.projects) p, generate_series(1, 20) r
), token as (
    insert into tokens (id, user_id, name, grant_, hash, expires_at, last_used_at)
    select pg_temp.id(15, 10000 * p + 100 * r + n), pg_temp.id(14, 100 * p + r), 'token' || n, 'deploy',
        sha256(('robot' || p || '/' || r || '/' || n)::bytea), now() + interval '90 days', now()
    from size, generate_series(1, size.projects) p, generate_series(1, 20) r, generate_series(1, 3) n
), key as (
    insert into ssh_keys (id, user_id, line, algorithm, bits, fingerprint, comment, grant_)
    select pg_temp.id(16, 100 * p + r), pg_temp.id(14, 100 * p + r), pg_temp.key_line('robot' || p || '/' || r) || ' robot', 'ssh-ed25519', 256,
        'SHA256:' || rtrim(encode(sha256(pg_temp.key('robot' || p || '/' || r)), 'base64'), '='), 'robot', 'deploy'
    from size, generate_series(1, size.projects) p, generate_series(1, 20) r
)
insert into robots (user_id, project_id, name, role, environments)
select pg_temp.id(14, 100 * p + r), pg_temp.id(2, p), 'robot' || r, 'developer', '{dev,staging}'
from size, generate_series(1, size.projects) p, generate_series(1, 20) r;

-- Keys of the last member, which the measured ones say are theirs.
insert into key_claims (id, user_id, line, fingerprint, nonce, expires_at)
select pg_temp.id(11, u), pg_temp.id(1, u), k.line, k.fingerprint, 'nonce-' || u, '2100-01-01'
from generate_series(1, 4) u, size join ssh_keys k on k.id = pg_temp.id(10, 2 * size.users);

-- As many as are kept of a member; a third is unread.
insert into notices (id, user_id, event, news, project_id, created_at, read_at)
select pg_temp.id(13, 200 * u + n), pg_temp.id(1, u), 'job:' || n,
    jsonb_build_object('type', 'job', 'job', pg_temp.id(8, n), 'kind', 'guest_stop', 'title', 'Stop guest ' || n, 'state', 'done'),
    pg_temp.id(2, case when u < 5 then 2 else 1 + (u * 7 + 13) % size.projects end), now() - make_interval(hours => 200 - n), case when n % 3 > 0 then now() end
from size, generate_series(1, size.users) u, generate_series(1, 200) n;

-- One for each project, with as many deliveries as are kept; a tenth failed.
insert into webhooks (id, project_id, name, url, events, secret)
select pg_temp.id(14, p), pg_temp.id(2, p), 'chat', 'https://chat.example.org/' || p, '{deployment_live}', ''
from size, generate_series(1, size.projects) p;
insert into webhook_deliveries (id, webhook_id, project_id, key, event, payload, state, attempts, status, elapsed_ms, created_at)
select pg_temp.id(15, 500 * p + n), pg_temp.id(14, p), pg_temp.id(2, p), n::text, 'deployment_live',
    jsonb_build_object('event', 'deployment_live', 'path', '/projects'), case n % 10 when 0 then 'failed' else 'delivered' end,
    1, 204, 40, now() - make_interval(hours => 500 - n)
from size, generate_series(1, size.projects) p, generate_series(1, 500) n;

insert into refused_logins (hour, login, network, reason, first_at, last_at, count)
select date_trunc('hour', now()) - make_interval(hours => n), '', '203.0.113.' || n, 'unknown', now() - make_interval(hours => n),
    now() - make_interval(hours => n), n
from generate_series(1, 100) n;

-- Requests to the operators: a few are open, most were decided.
insert into requests (id, operation, wanted, title, asker_id, state, expires_at, decided_at, reason)
select pg_temp.id(17, 10 * u + n), 'create_project',
    jsonb_build_object('operation', 'create_project', 'name', 'wanted' || u, 'comment', 'because ' || n), 'Project wanted' || u,
    pg_temp.id(1, u), case n when 1 then 'open' else 'refused' end, now() + interval '14 days',
    case when n > 1 then now() end, case when n > 1 then 'not now' end
from size, generate_series(1, size.users) u, generate_series(1, 5) n;
