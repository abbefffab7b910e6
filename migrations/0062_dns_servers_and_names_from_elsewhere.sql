-- A zone is held by one of the configured DNS servers; those that are there, by the one of the section [dns].
alter table zones add column provider text not null default 'powerdns' check (provider ~ '^[a-z][a-z0-9-]{0,19}$');
-- For how long resolvers may keep what is answered for its names.
alter table zones add column ttl_s integer not null default 60 check (ttl_s between 10 and 86400);

-- Where names of its guests point to by IPv6, if the node has such an address.
alter table nodes add column public_ipv6 text;

-- A name of a zone that others hold is in none of ours: the world is asked for it.
alter table dns_names alter column zone_id drop not null;
alter table dns_names add column world_due_at timestamptz not null default now();
create index dns_names_from_elsewhere on dns_names (world_due_at) where zone_id is null and state = 'attached';

create or replace function tally_name(n dns_names, sign int) returns void language sql as $$
    insert into project_tallies (project_id, names, attached)
    values (n.project_id, sign, sign * (n.state = 'attached')::int);
    insert into zone_tallies (zone_id, project_id, names)
    select n.zone_id, n.project_id, sign where n.zone_id is not null
$$;

-- Names from elsewhere that projects want, each with the proof that is to stand in its zone. Until that is seen a claim
-- keeps nobody from anything, so two projects may claim one name: who can write into its zone gets it.
create table name_claims (
    id         uuid primary key,
    name       text not null,
    guest_id   uuid not null references guests on delete cascade,
    project_id uuid not null references projects on delete cascade,
    token      text not null check (length(token) between 32 and 128),
    -- What the world answered last: where the name leads to, and whether our proof was there.
    answered   text[] not null default '{}',
    leads      boolean not null default false,
    proven     boolean not null default false,
    -- Why nothing could be asked, or why it is not attached though all is as it should be.
    problem    text,
    asked_at   timestamptz,
    due_at     timestamptz not null default now(),
    expires_at timestamptz not null default now() + interval '7 days',
    created_by uuid references users on delete set null,
    created_at timestamptz not null default now(),
    unique (project_id, name)
);
create index name_claims_due on name_claims (due_at);
create index name_claims_of_guest on name_claims (guest_id);
