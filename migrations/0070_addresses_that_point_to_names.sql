-- A guest may be pointed: the reverse record (PTR) of its address says one of its names. Networks of nodes may be alike,
-- so guests of several nodes may have one address: it points to a name of one of them.
alter table guests add constraint guests_and_ip unique (id, ip);
alter table dns_names
    -- The address of the guest whose reverse record is to say this name.
    add column pointed_address text,
    -- The reverse zone that the record was written to; none while there is none of ours.
    add column pointer_zone_id uuid references zones,
    -- Why there is none.
    add column pointer_problem text check (length(pointer_problem) <= 500),
    -- When it was last written, or could not be.
    add column pointer_at timestamptz,
    add constraint dns_names_pointer check (pointed_address is not null
        or (pointer_zone_id is null and pointer_problem is null and pointer_at is null)),
    -- A record that points to a name points to one that leads somewhere by itself, for as long as we say where to.
    add constraint dns_names_pointer_says_a_name check (pointed_address is null or (zone_id is not null and not wildcard)),
    -- It points to a name that leads to that very guest: a name that is pointed to leads nowhere else.
    add constraint dns_names_pointed_guest foreign key (guest_id, pointed_address) references guests (id, ip);
create unique index dns_names_pointed_address on dns_names (pointed_address) where pointed_address is not null;
create unique index dns_names_pointer_of_guest on dns_names (guest_id) where pointed_address is not null;
create index dns_names_of_pointer_zone on dns_names (pointer_zone_id) where pointer_zone_id is not null;
