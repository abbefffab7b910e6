-- Programs without a browser that wait to be let in by a member who has one (RFC 8628).
create table device_logins (
    -- SHA-256 of the code that the program holds: the code itself is kept nowhere.
    hash bytea primary key check (octet_length(hash) = 32),
    -- What a person types.
    user_code text not null unique check (user_code ~ '^[BCDFGHJKLMNPQRSTVWXZ]{8}$'),
    -- What the program says it is, and from where it asks, so that a person can judge it.
    client text not null check (char_length(client) between 1 and 60),
    network text not null,
    -- What its token is to be good for: what it asked, then what was granted.
    grant_ text not null check (grant_ in ('read', 'deploy', 'operate', 'all')),
    expires_at timestamptz not null,
    -- When it last asked whether it is let in.
    asked_at timestamptz,
    -- Who decided, and what; a member who is gone lets nobody in.
    user_id uuid references users on delete cascade,
    days integer check (days between 1 and 365),
    is_approved boolean,
    check ((user_id is null) = (is_approved is null)),
    check (is_approved is not true or days is not null)
);
create index device_logins_expiry on device_logins (expires_at);
create index device_logins_network on device_logins (network);
create index device_logins_user on device_logins (user_id);
