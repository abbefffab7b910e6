-- Zones, a quarter of them for some projects only; the first has half of the names.
insert into zones (id, name, open, created_by, created_at)
select pg_temp.id(5, n), 'zone' || n || '.example', n % 4 <> 1, pg_temp.id(1, 1), now() - interval '1 year'
from size, generate_series(1, size.zones) n;

insert into zone_projects (zone_id, project_id)
select z.id, pg_temp.id(2, p)
from size, zones z, generate_series(1, size.projects) p
where not z.open and (z.id = pg_temp.id(5, 1) or p % 10 = 0);

-- Names: a hundredth leads to the first guest.
insert into dns_names (id, name, zone_id, guest_id, state, state_reason, routed, answered_at, created_by, created_at)
select pg_temp.id(6, n), 'n' || n || '.' || z.name, z.id,
    pg_temp.id(4, case when n <= size.names / 100 then 1 else 1 + (n * 7919::bigint) % size.guests end), state,
    case when state = 'failed' then 'The name server refused it.' end, n % 3 = 0,
    case when state in ('attached', 'detaching') then now() - make_interval(mins => n) end, pg_temp.id(1, 1 + n % size.users),
    now() - make_interval(mins => n)
from size, generate_series(1, size.names) n
join zones z on z.id = pg_temp.id(5, case when n % 2 = 0 then 1 else 1 + n / 2 % (select zones from size) end),
lateral (select case n % 50 when 7 then 'wanted' when 17 then 'failed' when 27 then 'detaching' else 'attached' end as state) drawn_names;

-- One name from elsewhere for each project that has a guest.
insert into name_claims (id, name, guest_id, project_id, token)
select distinct on (g.project_id) pg_temp.id(16, row_number() over (order by g.project_id)) as claim,
    'www.' || g.name || '.example', g.id, g.project_id, repeat('0', 40)
from guests g order by g.project_id, g.id;
