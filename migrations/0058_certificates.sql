-- Certificates of names: what is served, what is wanted next, and what it is made with. Keys are sealed; a node gets those
-- of the names that it serves.
create table certificates (
    id          uuid primary key,
    dns_name_id uuid not null references dns_names on delete cascade,
    source      text not null check (source in ('internal', 'acme', 'uploaded')),
    names       text[] not null check (cardinality(names) > 0),
    -- PEM, the leaf first.
    chain       text not null check (length(chain) <= 65536),
    key_sealed  bytea not null,
    -- SHA-256 of the PEM that a node serves: chain, then key.
    digest      text not null check (digest ~ '^[0-9a-f]{64}$'),
    issuer      text not null,
    serial      text not null,
    not_before  timestamptz not null,
    not_after   timestamptz not null check (not_after > not_before),
    -- When the next one is due; never for what was uploaded.
    renew_at    timestamptz,
    created_at  timestamptz not null default now()
);
create index certificates_of_name on certificates (dns_name_id, created_at desc);

-- The one that is served, and what is told to who comes by HTTP.
alter table dns_names add column certificate_id uuid references certificates on delete set null;
alter table dns_names add column https_redirect boolean not null default false;
alter table dns_names add column hsts_s integer check (hsts_s between 1 and 63072000);
create index dns_names_certificate on dns_names (certificate_id) where certificate_id is not null;

-- A certificate that a name is to get: one at a time, tried again with growing pauses.
create table certificate_orders (
    dns_name_id uuid primary key references dns_names on delete cascade,
    source      text not null check (source in ('internal', 'acme')),
    state       text not null default 'wanted' check (state in ('wanted', 'issuing', 'failed')),
    challenge   text check (challenge in ('http-01', 'dns-01')),
    attempts    integer not null default 0,
    next_try_at timestamptz not null default now(),
    -- What went wrong last, and what can be done about it.
    problem     text,
    job_id      uuid,
    updated_at  timestamptz not null default now()
);
create index certificate_orders_due on certificate_orders (next_try_at) where state <> 'issuing';

-- What the proxies answer while a directory looks whether a name is ours.
create table http_challenges (
    token       text primary key check (token ~ '^[A-Za-z0-9_-]{1,128}$'),
    dns_name_id uuid not null references dns_names on delete cascade,
    answer      text not null check (length(answer) <= 256 and answer ~ '^[A-Za-z0-9_.-]+$'),
    created_at  timestamptz not null default now()
);
create index http_challenges_of_name on http_challenges (dns_name_id);

-- Our accounts at directories, sealed.
create table acme_accounts (
    directory  text primary key,
    sealed     bytea not null,
    created_at timestamptz not null default now()
);

-- The authority that signs where there is no directory: one for all servers of this database.
create table certificate_authority (
    id          boolean primary key default true check (id),
    certificate text not null,
    key_sealed  bytea not null,
    created_at  timestamptz not null default now()
);
