-- What the firewalls of nodes let through to guests, which ports lead to them, and what operators keep out. A row is
-- one rule as somebody wrote it; a node's plan holds what it comes to for the guests that are there.

-- What operators call some networks, for rules.
create table named_networks (
    id         uuid primary key,
    name       text not null unique,
    networks   text[] not null check (cardinality(networks) between 1 and 64),
    comment    text,
    created_by uuid references users on delete set null,
    created_at timestamptz not null default now()
);

alter table guests add constraint guests_and_project unique (id, project_id);
alter table guests add constraint guests_and_node unique (id, node_id);

create table firewall_rules (
    id                 uuid primary key,
    action             text not null check (action in ('allow', 'publish', 'block')),
    -- Of whom: a guest, an environment, all guests of a node; a block of no node is of all.
    project_id         uuid references projects on delete cascade,
    guest_id           uuid,
    environment        text check (environment in ('dev', 'staging', 'prod')),
    node_id            uuid references nodes on delete cascade,
    -- Who: exactly what the word says is given.
    source             text not null check (source in ('anywhere', 'addresses', 'guest', 'environment', 'network')),
    network            text check ((source = 'addresses') = (network is not null)),
    source_guest_id    uuid check ((source = 'guest') = (source_guest_id is not null)),
    source_environment text check (source_environment in ('dev', 'staging', 'prod')),
    network_id         uuid constraint firewall_rules_network references named_networks,
    protocol           text check (protocol in ('tcp', 'udp')),
    first_port         int check (first_port between 1 and 65535),
    last_port          int check (last_port between first_port and 65535),
    node_port          int,
    comment            text,
    state              text not null default 'wanted' check (state in ('wanted', 'in_force', 'removing')),
    created_by         uuid references users on delete set null,
    created_at         timestamptz not null default now(),
    check ((source = 'environment') = (source_environment is not null)),
    check ((source = 'network') = (network_id is not null)),
    check ((first_port is null) = (last_port is null) and (first_port is null) = (protocol is null)),
    check ((project_id is not null) = (guest_id is not null or environment is not null)),
    check (guest_id is null or environment is null),
    -- Guests and environments are let in by their own project only: the keys below see to it.
    check (project_id is not null or source not in ('guest', 'environment')),
    constraint firewall_rules_allow check (action <> 'allow'
        or (node_port is null and protocol is not null and (node_id is null) = (project_id is not null))),
    constraint firewall_rules_publish check (action <> 'publish'
        or (guest_id is not null and node_id is not null and node_port is not null and protocol is not null
            and first_port = last_port and source not in ('guest', 'environment'))),
    constraint firewall_rules_block check (action <> 'block'
        or (project_id is null and node_port is null and source in ('addresses', 'network'))),
    -- The ports of the node's own services, and those that lead to SSH of guests, are nobody's to publish.
    constraint firewall_rules_node_port check (node_port between 1024 and 39999 or node_port between 50001 and 65535),
    -- A guest that moves takes its published ports along.
    constraint firewall_rules_guest foreign key (guest_id, project_id)
        references guests (id, project_id) on update cascade on delete cascade,
    constraint firewall_rules_on_node foreign key (guest_id, node_id)
        references guests (id, node_id) on update cascade on delete cascade,
    constraint firewall_rules_source_guest foreign key (source_guest_id, project_id)
        references guests (id, project_id) on delete cascade
);
create unique index firewall_rules_published on firewall_rules (node_id, protocol, node_port)
    where action = 'publish';
create index firewall_rules_of_guest on firewall_rules (guest_id) where guest_id is not null;
create index firewall_rules_of_environment on firewall_rules (project_id, environment) where environment is not null;
create index firewall_rules_of_node on firewall_rules (node_id) where node_id is not null;
create index firewall_rules_from_guest on firewall_rules (source_guest_id) where source_guest_id is not null;
create index firewall_rules_from_network on firewall_rules (network_id) where network_id is not null;

-- The port by which Corpus reaches the node leads nowhere else.
create function published_port_is_not_the_nodes_own() returns trigger language plpgsql as $$
begin
    if exists (select from nodes where id = new.node_id and ssh_port = new.node_port) then
        raise exception 'port % of the node is the one that it is reached by', new.node_port
            using errcode = 'check_violation', constraint = 'firewall_rules_own_line';
    end if;
    return new;
end $$;
create trigger published_port_is_not_the_nodes_own before insert or update of node_id, node_port on firewall_rules
    for each row when (new.action = 'publish') execute function published_port_is_not_the_nodes_own();

-- What nodes counted, and kept from guests last, as of their last reading.
create table firewall_counts (
    rule_id uuid not null references firewall_rules on delete cascade,
    node_id uuid not null references nodes on delete cascade,
    packets bigint not null,
    bytes   bigint not null,
    primary key (rule_id, node_id)
);
create index firewall_counts_of_node on firewall_counts (node_id);

create table firewall_drops (
    guest_id uuid not null references guests on delete cascade,
    source   text not null,
    protocol text not null,
    port     int not null,
    packets  bigint not null,
    last_at  timestamptz not null
);
create index firewall_drops_of_guest on firewall_drops (guest_id, last_at desc);

alter table nodes
    add column firewall_read_at  timestamptz,
    add column firewall_asked_at timestamptz;
