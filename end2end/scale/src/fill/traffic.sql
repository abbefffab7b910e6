-- What visitors asked for: of the largest environment every minute of two days and every hour of a month, of the others
-- some of them.
insert into traffic_minutes (project_id, environment, at, requests, statuses, bytes_in, bytes_out, latency)
select e.project_id, e.environment, date_trunc('minute', now()) - make_interval(mins => m), 100 + m % 60,
    array[0, 80 + m % 60, 10, 9, 1]::bigint[], 60000, 1400000, array[0, 0, 0, 5, 10, 15, 20, 20, 10, 5, 5, 4, 3, 2, 1]::bigint[]
from environments e join projects p on p.id = e.project_id, generate_series(2, 2880) m
where m % 30 = 0 or (p.name = 'atlas' and e.environment = 'prod');

insert into traffic_hours (project_id, environment, at, requests, statuses, bytes_in, bytes_out, latency)
select e.project_id, e.environment, date_trunc('hour', now()) - make_interval(hours => h), 6000 + h,
    array[0, 5000 + h, 500, 440, 60]::bigint[], 3600000, 84000000, array[0, 0, 0, 300, 600, 900, 1200, 1200, 600, 300, 300, 240, 180, 120, 60]::bigint[]
from environments e join projects p on p.id = e.project_id, generate_series(0, 743) h
where h % 6 = 0 or (p.name = 'atlas' and e.environment = 'prod');

insert into traffic_errors (project_id, environment, at, name, wildcard, method, path, status, took_ms, cause)
select e.project_id, e.environment, now() - make_interval(mins => n), 'www.zone1.example', false, 'GET', '/page/' || n, 502, 31, 'SH'
from environments e join projects p on p.id = e.project_id, generate_series(1, 50) n
where n < 4 or (p.name = 'atlas' and e.environment = 'prod');

insert into traffic_read (node_id, taken_at, counted_to, read_at)
select id, now(), date_trunc('minute', now()) - interval '2 minutes', now() from nodes;
