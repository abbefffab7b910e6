-- Who is signed in (one row a browser), and the accounts that need no directory.

create table tower_sessions (
    id          text primary key,
    data        jsonb not null,
    expiry_date timestamptz not null
);
create index tower_sessions_expiry on tower_sessions (expiry_date);

create table local_accounts (
    login         text primary key,
    password_hash text not null check (password_hash like '$argon2id$%'),
    created_at    timestamptz not null default now(),
    changed_at    timestamptz not null default now()
);
