-- A name may stand for all names below it that have none of their own: *.NAME.
alter table dns_names add column wildcard boolean not null default false;
alter table dns_names drop constraint dns_names_name_key;
alter table dns_names add constraint dns_names_name_key unique (name, wildcard);
alter table dns_names add check (not wildcard or zone_id is not null);

-- A node's own name in a zone of ours, which leads to the node itself.
create table node_dns_names (
    node_id    uuid primary key references nodes on delete cascade,
    name       text not null unique,
    zone_id    uuid not null references zones,
    created_at timestamptz not null default now()
);
create index node_dns_names_of_zone on node_dns_names (zone_id);
