-- The controller's Salt masters: each says of itself that it is there.
create table salt_masters (
    name         text primary key check (name ~ '^[a-z0-9][a-z0-9-]{0,31}$'),
    address      text not null check (length(address) between 1 and 253),
    publish_port integer not null check (publish_port between 1 and 65535),
    request_port integer not null check (request_port between 1 and 65535),
    public_key   text not null check (length(public_key) between 100 and 4096),
    seen_at      timestamptz not null default now()
);

-- The guests that follow one, each with the public key of its minion, which the guest told; `known_at` is when its master had it.
create table salt_minions (
    guest_id   uuid primary key references guests on delete cascade,
    master     text not null references salt_masters on delete cascade,
    public_key text not null check (length(public_key) between 100 and 4096),
    known_at   timestamptz
);
create index salt_minions_of_master on salt_minions (master);
