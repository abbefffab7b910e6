-- What the address of a guest that is moved points back to goes with it. What it was at the other place is kept here, should
-- the guest go back: the name, the reverse zone that its record stood in, or why it stood nowhere.
alter table guest_moves
    add column pointed_name_id uuid references dns_names on delete set null,
    add column pointed_zone_id uuid references zones on delete set null,
    add column pointed_problem text check (length(pointed_problem) <= 500);
create index guest_moves_of_pointed_name on guest_moves (pointed_name_id) where pointed_name_id is not null;
create index guest_moves_of_pointed_zone on guest_moves (pointed_zone_id) where pointed_zone_id is not null;
