-- What programs ask with, in the name of their member.
create table tokens (
    id uuid primary key,
    user_id uuid not null references users on delete cascade,
    name text not null check (char_length(name) between 1 and 60),
    grant_ text not null check (grant_ in ('read', 'deploy', 'operate', 'all')),
    -- SHA-256 of its random bytes: the text itself is kept nowhere.
    hash bytea not null unique check (octet_length(hash) = 32),
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    last_used_at timestamptz,
    revoked_at timestamptz
);
-- Of those that are not revoked; a name is free again afterwards.
create unique index tokens_name on tokens (user_id, name) where revoked_at is null;
create index tokens_of_user on tokens (user_id, id);

create index refused_logins_last on refused_logins (last_at, hour, login, network, reason);
