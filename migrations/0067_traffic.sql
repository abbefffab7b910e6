-- What the proxies of nodes counted of the requests of visitors, by environment: minutes of the last two days and hours
-- of the last thirty. A minute is added to both in one transaction, so hours are never behind. Latencies are counts
-- under bounds, which can be added up; percentiles can't.

-- Two lists of counts, place by place. A count that is as high as this stays there: so no sum of a month overflows.
create function counts_added(a bigint[], b bigint[]) returns bigint[] language sql immutable as $$
    select coalesce(array_agg(least(coalesce(x, 0) + coalesce(y, 0), 1125899906842624) order by place), '{}')
    from unnest(a, b) with ordinality as counts (x, y, place)
$$;

create table traffic_minutes (
    project_id  uuid not null references projects on delete cascade,
    environment text not null check (environment in ('dev', 'staging', 'prod')),
    at          timestamptz not null,
    requests    bigint not null,
    -- Of them, answered with 1xx, 2xx, 3xx, 4xx and 5xx.
    statuses    bigint[] not null check (cardinality(statuses) = 5),
    bytes_in    bigint not null,
    bytes_out   bigint not null,
    latency     bigint[] not null check (cardinality(latency) <= 64),
    primary key (project_id, environment, at)
);
create index traffic_minutes_at on traffic_minutes (at);

create table traffic_hours (
    project_id  uuid not null references projects on delete cascade,
    environment text not null check (environment in ('dev', 'staging', 'prod')),
    at          timestamptz not null,
    requests    bigint not null,
    statuses    bigint[] not null check (cardinality(statuses) = 5),
    bytes_in    bigint not null,
    bytes_out   bigint not null,
    latency     bigint[] not null check (cardinality(latency) <= 64),
    primary key (project_id, environment, at)
);
create index traffic_hours_at on traffic_hours (at);

-- The last requests that failed, some of each environment. What they say was chosen by strangers.
create table traffic_errors (
    id          bigint generated always as identity primary key,
    project_id  uuid not null references projects on delete cascade,
    environment text not null check (environment in ('dev', 'staging', 'prod')),
    at          timestamptz not null,
    name        text not null,
    wildcard    boolean not null,
    method      text not null,
    path        text not null,
    status      int not null,
    took_ms     bigint not null,
    cause       text not null
);
create index traffic_errors_of on traffic_errors (project_id, environment, at desc, id desc);

-- Until where each node was read: what comes before that is counted. It is read by one server at a time.
create table traffic_read (
    node_id    uuid primary key references nodes on delete cascade,
    taken_at   timestamptz not null default '-infinity',
    counted_to timestamptz,
    read_at    timestamptz,
    -- Requests that the node could not count, and when it told of some last.
    lost_lines bigint not null default 0,
    lost_at    timestamptz
);

-- Which names a node serves, and for which environment: that of the guest which takes their requests there. One that is
-- being switched is served by two nodes.
create view names_on_nodes as
select g.node_id, n.name, n.wildcard, n.project_id, coalesce(n.environment, g.environment) as environment
from dns_names n join guests g on g.id = n.guest_id
union
select g.node_id, n.name, n.wildcard, n.project_id, g.environment
from dns_names n join guests f on f.id = n.guest_id join guests g on g.id = n.former_guest_id
where f.node_id <> g.node_id;
