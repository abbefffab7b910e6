-- The things of Corpus and the rules that hold between them. A rule that the database can
-- hold is held here: two requests at once can never share a name, an address or a port.

create table users (
    id            uuid primary key,
    realm         text not null check (realm in ('ldap', 'local')),
    login         text not null,
    display_name  text not null,
    mail          text,
    ops           boolean not null default false,
    disabled_at   timestamptz,
    last_login_at timestamptz,
    created_at    timestamptz not null default now(),
    unique (realm, login)
);

create table projects (
    id         uuid primary key,
    name       text not null unique,
    created_at timestamptz not null default now()
);

create table memberships (
    user_id    uuid not null references users on delete cascade,
    project_id uuid not null references projects on delete cascade,
    role       text not null check (role in ('viewer', 'developer', 'maintainer')),
    primary key (user_id, project_id)
);

-- The key pair by which the controller enters nodes and guests; the private part is sealed.
create table control_keys (
    id             uuid primary key,
    public_key     text not null,
    private_sealed bytea not null,
    created_at     timestamptz not null default now(),
    only_one       boolean not null default true unique check (only_one)
);

create table nodes (
    id                 uuid primary key,
    address            text not null,
    ssh_port           integer not null check (ssh_port between 1 and 65535),
    ssh_user           text not null,
    host_key           text not null,
    public_ip          text,
    environments       text[] not null,
    state              text not null check (state in
        ('linking', 'linked', 'initializing', 'ready', 'draining', 'unlinking', 'failed')),
    state_reason       text,
    reachability       text not null default 'unknown' check (reachability in
        ('unknown', 'reachable', 'unreachable', 'host_key_changed')),
    reachability_since timestamptz not null default now(),
    reachability_reason text,
    network            text not null,
    bridge             text not null,
    slots              integer not null default 0 check (slots >= 0),
    plan_revision      bigint not null default 0,
    facts              jsonb,
    facts_at           timestamptz,
    reading            jsonb,
    reading_at         timestamptz,
    created_by         uuid references users on delete set null,
    created_at         timestamptz not null default now(),
    unique (address, ssh_port)
);

create table guests (
    id              uuid primary key,
    name            text not null unique,
    node_id         uuid not null references nodes,
    project_id      uuid not null references projects,
    environment     text not null check (environment in ('dev', 'staging', 'prod')),
    driver          text not null check (driver in ('lxc', 'libvirt', 'docker')),
    image           text not null,
    backing         text not null check (backing in ('dir', 'overlayfs', 'btrfs', 'lvm', 'zfs')),
    size            text not null,
    mode            text not null check (mode in ('masterless', 'salt', 'mastersalt')),
    ip              text,
    mac             text,
    ssh_port        integer check (ssh_port between 40000 and 50000),
    autostart       boolean not null default true,
    password_sealed bytea,
    host_key        text,
    routed          boolean not null default false,
    state           text not null check (state in
        ('creating', 'running', 'starting', 'stopping', 'stopped', 'destroying', 'failed')),
    state_reason    text,
    state_since     timestamptz not null default now(),
    created_by      uuid references users on delete set null,
    created_at      timestamptz not null default now(),
    unique (node_id, ip),
    unique (node_id, mac),
    unique (node_id, ssh_port)
);
create index guests_project on guests (project_id);

create table zones (
    id         uuid primary key,
    name       text not null unique,
    created_by uuid references users on delete set null,
    created_at timestamptz not null default now()
);

create table dns_names (
    id          uuid primary key,
    name        text not null unique,
    zone_id     uuid not null references zones,
    guest_id    uuid not null references guests,
    state       text not null check (state in ('wanted', 'attached', 'detaching', 'failed')),
    state_reason text,
    routed      boolean not null default false,
    answered_at timestamptz,
    created_by  uuid references users on delete set null,
    created_at  timestamptz not null default now()
);
create index dns_names_guest on dns_names (guest_id);

-- A public key names one member: it will also be how a member is known to git.
create table ssh_keys (
    id          uuid primary key,
    user_id     uuid not null references users on delete cascade,
    line        text not null,
    algorithm   text not null,
    bits        integer not null,
    fingerprint text not null unique,
    comment     text not null,
    created_at  timestamptz not null default now()
);
create index ssh_keys_user on ssh_keys (user_id);

-- Append-only: no update or delete is ever made here.
create table audit (
    id         uuid primary key,
    at         timestamptz not null default now(),
    actor_id   uuid references users on delete set null,
    actor      text not null,
    action     text not null,
    subject    text not null,
    subject_id uuid,
    detail     jsonb not null default '{}'
);
create index audit_at on audit (at desc);
