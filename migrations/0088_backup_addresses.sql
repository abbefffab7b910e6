-- The address that a guest had when a backup was taken stands in its files: where it has another one since, they are told.
alter table guest_backups add column ip text;
