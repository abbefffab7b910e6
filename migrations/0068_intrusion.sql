-- Signs of intrusion as nodes count them at their own edge, and the addresses that are kept out of all nodes for a while.

-- Up to where each node was read. What it counts rises until its rules or its proxy begin anew.
create table intrusion_readings (
    node_id    uuid primary key references nodes on delete cascade,
    due_at     timestamptz not null default now(),
    -- By the node's clock, in seconds since 1970.
    read_until bigint,
    read_at    timestamptz,
    tls_errors bigint not null default 0 check (tls_errors >= 0)
);
create table intrusion_drops (
    guest_id uuid primary key references guests on delete cascade,
    node_id  uuid not null references nodes on delete cascade,
    packets  bigint not null check (packets >= 0)
);
create index intrusion_drops_of_node on intrusion_drops (node_id);

-- How many of each kind in each hour.
create table intrusion_signs (
    node_id  uuid not null references nodes on delete cascade,
    -- None: the node itself.
    guest_id uuid references guests on delete cascade,
    kind     text not null check (kind in ('refused_ssh', 'dropped_packet', 'tls_error')),
    hour     timestamptz not null,
    count    bigint not null check (count > 0),
    check ((kind = 'tls_error') = (guest_id is null))
);
create unique index intrusion_signs_of_guests on intrusion_signs (guest_id, kind, hour, node_id) where guest_id is not null;
create unique index intrusion_signs_of_nodes on intrusion_signs (node_id, kind, hour) where guest_id is null;
create index intrusion_signs_by_hour on intrusion_signs (hour);

-- Who failed where, for as long as it may count towards a block.
create table intrusion_failures (
    node_id  uuid not null references nodes on delete cascade,
    guest_id uuid not null references guests on delete cascade,
    address  text not null,
    read_at  timestamptz not null,
    refused  int not null check (refused >= 0),
    accepted int not null check (accepted >= 0),
    primary key (node_id, guest_id, address, read_at)
);
create index intrusion_failures_by_time on intrusion_failures (read_at);
create index intrusion_failures_of_address on intrusion_failures (address);

create table blocked_addresses (
    id         uuid primary key,
    -- An IPv4 address, or the /64 of an IPv6 one.
    address    text not null,
    why        text not null,
    since      timestamptz not null default now(),
    until      timestamptz not null,
    -- Who decided it; none: Corpus itself.
    blocked_by uuid references users on delete set null,
    by_hand    boolean not null,
    -- The one node that told of it, if it was no more than one.
    node_id    uuid references nodes on delete set null,
    -- When it was lifted, or its time was found to be over; none: in force.
    ended_at   timestamptz,
    lifted_by  uuid references users on delete set null,
    lifted     boolean not null default false,
    -- Whether operators were told; who blocked by hand knows.
    told       boolean not null default false,
    check (until > since),
    check (not lifted or ended_at is not null)
);
create index blocked_addresses_untold on blocked_addresses (id) where not told;
create unique index blocked_addresses_in_force on blocked_addresses (address) where ended_at is null;
create index blocked_addresses_by_end on blocked_addresses (ended_at, id desc);
create index blocked_addresses_of_node on blocked_addresses (node_id) where ended_at is null;

-- The hours in which operators were told.
create table intrusion_told (
    hour timestamptz primary key
);
