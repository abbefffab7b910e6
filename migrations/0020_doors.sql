-- What the doors need: answers to requests that may come twice.
create table idempotency_keys (
    member_id uuid not null references users (id) on delete cascade,
    key text not null check (length(key) between 1 and 64),
    -- Who works on it: a server that took it over has another one.
    claim uuid not null,
    operation text not null,
    -- A digest of what was asked; what was asked may hold secrets.
    asked bytea not null,
    -- What was answered; none while it is worked on. Never a secret.
    answer jsonb,
    began_at timestamptz not null default now(),
    primary key (member_id, key)
);
create index idempotency_keys_began on idempotency_keys (began_at);
