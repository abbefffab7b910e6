-- How much was in the storage of each guest, a number a day: by that it is told when it will be full.
create table guest_storage_days (
    guest_id uuid not null references guests on delete cascade,
    day      date not null,
    used     bigint not null check (used >= 0),
    primary key (guest_id, day)
);
create index guest_storage_days_by_day on guest_storage_days (day);
