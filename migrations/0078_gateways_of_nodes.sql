-- A host that does not answer from here is reached through another one, its gateway, by the gateway's SSH.
create table node_gateways (
    node_id uuid primary key references nodes (id) on delete cascade,
    address text not null,
    ssh_port integer not null check (ssh_port between 1 and 65535),
    ssh_user text not null,
    -- The confirmed host key of the gateway.
    host_key text not null,
    -- The node as the gateway knows it, `address:port`: the controller makes its key for the gateway from it.
    serves text not null
);
