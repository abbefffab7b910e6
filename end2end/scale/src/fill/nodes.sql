-- Nodes, at addresses where nothing listens; what they last told was written by another server, which goes on.
insert into nodes (id, address, ssh_port, ssh_user, host_key, public_ip, environments, state, state_reason, reachability,
    reachability_since, reachability_reason, network, bridge, slots, plan_revision, facts, facts_at, drift, checked_at,
    check_due_at, observer, observed_until, created_by, created_at)
select pg_temp.id(3, n), '127.9.' || n / 250 || '.' || 1 + n % 250, 1, 'root', pg_temp.key_line('node' || n),
    '198.51.' || n / 250 || '.' || 1 + n % 250,
    case n % 4 when 0 then array['dev'] when 1 then array['dev', 'staging'] else array['dev', 'staging', 'prod'] end,
    case when n % 100 = 10 then 'draining' when n % 100 = 20 then 'failed' else 'ready' end,
    case when n % 100 = 20 then 'The image could not be brought: the disk is full.' end,
    case when n % 100 = 30 then 'unreachable' when n % 400 = 40 then 'host_key_changed' else 'reachable' end,
    now() - make_interval(hours => n), case when n % 100 = 30 then 'nothing answers at its address' end,
    '10.5.0.1/16', 'lxcbr1', 4096, n,
    pg_temp.shape('facts') || jsonb_build_object('hostname', 'node' || n, 'addresses', jsonb_build_array('192.0.2.' || n % 250)),
    now() - make_interval(hours => n % 100),
    case when n % 40 = 5 then jsonb_build_array(pg_temp.shape('drift')) else '[]' end,
    now() - make_interval(secs => n % 60), '2100-01-01', pg_temp.elsewhere(), '2100-01-01', pg_temp.id(1, 1), now() - interval '1 year'
from size, generate_series(1, size.nodes) n;

insert into leases (name, owner, until) values ('discover-deployments', pg_temp.elsewhere(), '2100-01-01');
