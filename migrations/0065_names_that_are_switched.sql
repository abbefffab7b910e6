-- A name that was switched from a guest on another node is routed there too, until nobody is sent there any more.
alter table dns_names add column former_guest_id uuid references guests on delete set null;
create index dns_names_of_former_guest on dns_names (former_guest_id) where former_guest_id is not null;

alter table undoes drop constraint undoes_kind_check;
alter table undoes add constraint undoes_kind_check check (kind in ('key', 'member', 'name', 'settings', 'switch'));
