-- The git server's host key, the same at all servers of this database; the private part is sealed.
create table git_host_keys (
    id             uuid primary key,
    private_sealed bytea not null,
    created_at     timestamptz not null default now(),
    only_one       boolean not null default true unique check (only_one)
);

-- Work that one server at a time does, such as reading the guests: who, until it lapses.
create table leases (
    name  text primary key,
    owner uuid not null,
    until timestamptz not null
);
