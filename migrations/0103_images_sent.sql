-- A version of a project's image may come as an archive, and is then of no guest.
alter table image_versions
    drop constraint image_versions_check,
    add constraint image_versions_check
        check ((image_id is null) = (unpacked is null) and (image_id is not null or guest is null));
