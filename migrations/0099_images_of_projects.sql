-- Images that projects make, of a guest of theirs or of a folder in one. Only their own guests are made of them, so two
-- projects can have images of the same name.
create table made_images (
    id         uuid primary key,
    project_id uuid not null references projects on delete cascade,
    name       text not null check (name ~ '^[a-z]([a-z0-9-]{0,25}[a-z0-9])?$'),
    -- A version is being made, until it is there or is given up.
    is_being_made boolean not null default true,
    created_at timestamptz not null default now(),
    unique (project_id, name)
);

-- What is known of a version that was made. Its archive lies under its SHA-256, which no other image has: each names the
-- image that it is of.
alter table image_versions
    add column image_id uuid references made_images on delete cascade,
    add column unpacked bigint check (unpacked > 0),
    add column guest text,
    add column folder text,
    add column comment text,
    add column made_by uuid references users on delete set null,
    add check ((image_id is null) = (unpacked is null) and (image_id is null) = (guest is null));
create index image_versions_of_made on image_versions (image_id, made_at desc, found_at desc);

-- What new guests are made from: of those of everybody, and of each project's.
create or replace view newest_images as
    select distinct on (name, image_id) name, label, sha256, made_at, image_id
    from image_versions order by name, image_id, made_at desc, found_at desc;

-- What a node has and nobody needs: a version that was superseded a while ago (what was asked for before has been made
-- since), what was there before there were versions, and what is no version any more, of which no guest of the node is a clone.
create or replace view needless_images as
    select i.node_id, i.label from node_images i
    where not exists (select from guests g where g.node_id = i.node_id and g.image = i.label)
        and (exists (select from image_versions v where v.name = i.label and v.image_id is null)
            or exists (select from image_versions v join image_versions w
                on w.name = v.name and w.image_id is not distinct from v.image_id
                    and (w.made_at, w.found_at) > (v.made_at, v.found_at)
                where v.label = i.label and w.found_at < now() - interval '1 hour')
            or i.label ~ '-[0-9a-f]{12}$' and not exists (select from image_versions v where v.label = i.label));
