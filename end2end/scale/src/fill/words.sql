-- What the other files are written with; all of it is this connection's own, and gone with it.
set local synchronous_commit = off;
set local work_mem = '128MB';
set local jit = off;

-- `followers` and `lines` are of the largest environment and the longest log.
create temp table size (nodes int, projects int, users int, guests int, followers int, zones int, names int,
    deployments int, lines int, jobs int, open int, stuck int, audit int);
create temp table shape (name text primary key, value jsonb);

-- The id of a row by its number: of version 7, and in the order of the numbers.
-- Kinds: 1 user, 2 project, 3 node, 4 guest, 5 zone, 6 name, 7 deployment, 8 job, 9 audit, 10 key, 11 claim, 12 other, 13 notice, 14 robot, 15 token, 16 key of a robot.
create function pg_temp.id(kind int, n bigint) returns uuid language sql immutable as $$
    select ('0' || to_hex(((1735689600000 + n) << 16) | 28672 | kind) || to_hex((-9223372036854775808) | n))::uuid
$$;

-- From 0 to 1, the same for the same number.
create function pg_temp.dice(n bigint, salt int) returns float language sql immutable as $$
    select (hashint8extended(n, salt) & 2147483647) / 2147483648.0
$$;

-- A project besides the first, few of them often and most of them seldom; the second is in the middle.
create function pg_temp.other_project(n bigint, salt int, projects int) returns int language sql immutable as $$
    select 2 + (floor(pg_temp.dice(n, salt) ^ 2 * (projects - 1))::int + projects / 2) % (projects - 1)
$$;

-- A public key that nobody has the private one of.
create function pg_temp.key(of text) returns bytea language sql immutable as $$
    select '\x0000000b7373682d6564323535313900000020'::bytea || sha256(of::bytea)
$$;
create function pg_temp.key_line(of text) returns text language sql immutable as $$
    select 'ssh-ed25519 ' || encode(pg_temp.key(of), 'base64')
$$;

create function pg_temp.commit_of(n bigint) returns text language sql immutable as $$
    select left(encode(sha256(n::text::bytea), 'hex'), 40)
$$;

create function pg_temp.ms(moment timestamptz) returns bigint language sql immutable as $$
    select (extract(epoch from moment) * 1000)::bigint
$$;

create function pg_temp.shape(of text) returns jsonb language sql stable as $$ select value from pg_temp.shape where name = of $$;

-- The owner of every lease: a server that is somewhere else.
create function pg_temp.elsewhere() returns uuid language sql immutable as $$
    select '00000000-0000-7000-8000-0000000000ff'::uuid
$$;
