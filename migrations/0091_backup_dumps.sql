-- What the guest's project dumped before a backup was taken; nothing where it dumps nothing.
alter table guest_backups
    add column dumped_bytes bigint check (dumped_bytes >= 0),
    -- Why that failed: the backup was taken all the same.
    add column dump_problem text check (length(dump_problem) between 1 and 1000),
    -- While it dumps its node gives others theirs: how long that takes is up to whoever is root in the guest.
    add column dumping boolean not null default false,
    add check (dump_problem is null or dumped_bytes is not null);
