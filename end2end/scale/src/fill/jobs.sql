-- Jobs, the newest of which are not over: stuck ones, a third in all that run elsewhere or are stuck, and those that
-- wait for the guest of one of these. A two-hundredth is of the first guest.
create temp table task on commit drop as
select n, k, pg_temp.id(8, n) as id,
    pg_temp.id(4, case
        when k > 0 then 2 + (k - 1) % (size.open / 3) when k = 0 or n % 200 = 0 then 1 else 1 + (hashint8extended(n, 6) & 2147483647) % size.guests
    end) as guest_id,
    case when k > size.open / 3 then 'waiting' when k > size.stuck then 'running' when k > 0 then 'stuck' when k = 0 or luck < 0.93 then 'done'
        when luck < 0.98 then 'undone' else 'abandoned' end as state,
    case when k >= 0 then 'guest_restart' else (array['guest_restart', 'guest_create', 'guest_start', 'guest_stop', 'name_attach', 'deploy',
        'keys_sync', 'environment_configure', 'guest_limit', 'name_detach'])[1 + n % 10] end as kind,
    now() - (size.jobs - n) * interval '1 year' / size.jobs as created_at,
    pg_temp.id(8, size.jobs - size.open + 1 + (k - 1) % (size.open / 3)) as blocker
from size, generate_series(1, size.jobs) n, lateral (
    select n - (size.jobs - size.open) as k, pg_temp.dice(n, 7) as luck) drawn_jobs;
analyze task;

insert into jobs (id, queue_order, kind, title, params, dag, state, node_id, guest_id, project_id, created_by, created_at, started_at, ended_at, owner,
    generation, lease_until, error, waiting_for, waiting_since, blocked_by, abandoned_by, comment, feed_seq, state_seq)
overriding system value
select t.id, t.n, t.kind, initcap(replace(t.kind, '_', ' ')) || ' ' || g.name,
    jsonb_build_object('id', g.id, 'name', g.name, 'node', g.node_id, 'ssh_port', g.ssh_port), dag.value, t.state, g.node_id, g.id, g.project_id,
    pg_temp.id(1, 1 + t.n % size.users), t.created_at, case when t.state <> 'waiting' then t.created_at + interval '1 second' end,
    case when t.state in ('done', 'undone', 'abandoned') then t.created_at + make_interval(secs => 2 + t.n % 60) end,
    case when t.state = 'running' then pg_temp.elsewhere() end, case when t.state = 'waiting' then 0 else 1 end,
    case when t.state = 'running' then '2100-01-01'::timestamptz end,
    case when t.state in ('undone', 'stuck', 'abandoned') then 'Start: the node did not answer within 30 s' end,
    case when t.state = 'waiting' then '“Guest Restart ' || g.name || '” to end' end, case when t.state = 'waiting' then t.created_at end,
    case when t.state = 'waiting' then t.blocker end, case when t.state = 'abandoned' then pg_temp.id(1, 1) end,
    case when t.state = 'abandoned' then 'cleaned up by hand' end, 12, 12
from task t join guests g on g.id = t.guest_id join shape dag on dag.name = 'dag', size;
select setval(pg_get_serial_sequence('jobs', 'queue_order'), jobs) from size;

insert into job_locks (resource, job_id, mode, held_since)
select needs.resource, t.id, needs.mode, case when t.state <> 'waiting' then t.created_at end
from task t join guests g on g.id = t.guest_id,
    lateral (values ('guest:' || g.id, 'exclusive'), ('node:' || g.node_id, 'shared')) as needs (resource, mode)
where t.k > 0;

-- The steps of each tenth that is over, and of all that are not.
insert into job_steps (job_id, index, name, title, state, started_at, ended_at, attempts, error, undo_error, seq)
select t.id, step, name, title, case
        when t.state = 'done' then 'done' when t.state = 'waiting' then 'pending' when step = 0 then
            case t.state when 'running' then 'done' when 'stuck' then 'undo_failed' else 'undone' end
        when step = 1 then case t.state when 'running' then 'running' else 'failed' end else 'pending' end,
    t.created_at, case when t.state = 'done' then t.created_at + interval '2 seconds' end, 1,
    case when step = 1 and t.state in ('undone', 'stuck', 'abandoned') then 'the node did not answer within 30 s' end,
    case when step = 0 and t.state = 'stuck' then 'the node did not answer within 30 s' end, step + 1
from task t, (values (0, 'stop', 'Shut down'), (1, 'start', 'Start'), (2, 'sshkeys', 'Bring SSH keys'), (3, 'ping', 'Log in over SSH'),
    (4, 'ready', 'Mark as running')) as steps (step, name, title)
where t.k > 0 or t.n % 10 = 0 or t.k = 0;

-- The log of each hundredth; the last that is over has the longest.
insert into job_log (job_id, seq, at, step, stream, text)
select t.id, line, t.created_at + make_interval(secs => line * 0.1), line % 5, case when line % 10 = 0 then 'note' else 'out' end,
    'line ' || line || ' of what a step of this job did on its node'
from task t, size, generate_series(1, case when t.k = 0 then size.lines / 5 else 20 end) line
where t.k = 0 or t.n % 100 = 0;

update jobs set feed_seq = (select lines / 5 + 12 from size) where id = pg_temp.id(8, (select jobs - open from size));
