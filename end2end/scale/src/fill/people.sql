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

-- Keys of the last member, which the measured ones say are theirs.
insert into key_claims (id, user_id, line, fingerprint, nonce, expires_at)
select pg_temp.id(11, u), pg_temp.id(1, u), k.line, k.fingerprint, 'nonce-' || u, '2100-01-01'
from generate_series(1, 4) u, size join ssh_keys k on k.id = pg_temp.id(10, 2 * size.users);

insert into refused_logins (hour, login, network, reason, first_at, last_at, count)
select date_trunc('hour', now()) - make_interval(hours => n), '', '203.0.113.' || n, 'unknown', now() - make_interval(hours => n),
    now() - make_interval(hours => n), n
from generate_series(1, 100) n;
