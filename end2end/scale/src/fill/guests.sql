-- Guests: a tenth is of the first project, a hundredth on the first node. Place and ids are numbered on each node.
insert into guests (id, name, node_id, project_id, environment, driver, image, backing, size, memory, cpu_millis, mode, ip, mac,
    ssh_port, id_range, host_key, routed, state, state_reason, state_since, should_run, autostart, created_by, created_at)
select pg_temp.id(4, n), 'g' || n || '.' || p.name || '.example.org', pg_temp.id(3, node), p.id,
    (array['dev', 'staging', 'prod'])[1 + n % 3], 'lxc', 'debian-12', case when n % 10 = 0 then 'loop' else 'overlayfs' end,
    case when n % 7 = 0 then 'medium' else 'small' end, case when n % 7 = 0 then 2147483648 else 1073741824 end,
    case when n % 7 = 0 then 2000 else 1000 end, case when n % 2 = 0 then 'masterless' else 'salt' end,
    '10.5.' || place / 250 || '.' || 2 + place % 250, '00:16:3e:' || regexp_replace(lpad(to_hex(n), 6, '0'), '(..)(..)(..)', '\1:\2:\3'),
    40000 + place, 1073741824 + 65536 * place::bigint, pg_temp.key_line('guest' || n), n % 3 > 0, state,
    case when state = 'failed' then 'It did not answer over SSH after its start.' end, now() - make_interval(mins => n),
    state not in ('stopped', 'stopping'), true, pg_temp.id(1, 1 + n % users), now() - make_interval(hours => n % 8000)
from (
    select n, project, node, users, row_number() over (partition by node order by n)::int as place, case
        when n = 1 or luck < 0.86 then 'running' when luck < 0.95 then 'stopped' when luck < 0.98 then 'failed'
        when luck < 0.985 then 'creating' when luck < 0.99 then 'starting' when luck < 0.995 then 'stopping'
        else 'destroying' end as state
    from (
        select n, size.users, pg_temp.dice(n, 2) as luck,
            case when n <= size.guests / 10 then 1 else pg_temp.other_project(n, 1, size.projects) end as project,
            case when n > size.guests - greatest(size.guests / 100, 30) then 1 else 2 + n % (size.nodes - 1) end as node
        from size, generate_series(1, size.guests) n
    ) drawn_guests
) placed_guests join projects p on p.id = pg_temp.id(2, project)
order by n;
analyze nodes, guests;

-- What the nodes told last, with their guests.
update nodes set reading_at = now() - interval '2 seconds', reading = pg_temp.shape('reading') || jsonb_build_object(
    'load', round((random() * 8)::numeric, 2), 'uptime_s', 86400 + nodes.plan_revision,
    'guests', coalesce((
        select jsonb_agg(pg_temp.shape('guest') || jsonb_build_object('name', g.name, 'state', g.state)
            || case when g.state = 'stopped' then pg_temp.shape('guest_stopped') else '{}' end order by g.name)
        from guests g where g.node_id = nodes.id and g.state in ('running', 'stopped')), '[]'));
