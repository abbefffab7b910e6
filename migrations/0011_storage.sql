-- Guests can have a disk of their own, of the size of their profile.
alter table guests drop constraint guests_backing_check;
alter table guests add constraint guests_backing_check
    check (backing in ('dir', 'overlayfs', 'btrfs', 'lvm', 'zfs', 'loop'));
