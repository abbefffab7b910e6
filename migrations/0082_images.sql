-- Images that guests are clones of. Each has versions, one for each archive that lay in the folder of images under its
-- name: new guests are made from the newest, and those that are there stay on theirs.
create table image_versions (
    name     text not null check (name ~ '^[a-z]([a-z0-9-]{0,25}[a-z0-9])?$'),
    sha256   text not null check (sha256 ~ '^[0-9a-f]{64}$'),
    -- What nodes call it, and guests that are clones of it.
    label    text not null unique generated always as (name || '-' || left(sha256, 12)) stored,
    bytes    bigint not null check (bytes > 0),
    made_at  timestamptz not null,
    found_at timestamptz not null default now(),
    primary key (name, sha256)
);
create index image_versions_newest on image_versions (name, made_at desc, found_at desc);
create index guests_image on guests (image);

-- What new guests are made from.
create view newest_images as
    select distinct on (name) name, label, sha256, made_at from image_versions order by name, made_at desc, found_at desc;

-- What each node has, by its last reading.
create view node_images as
    select n.id as node_id, i.label
    from nodes n cross join lateral jsonb_array_elements_text(coalesce(n.reading -> 'images', '[]')) as i (label);

-- What a node has and nobody needs: a version that was superseded a while ago (what was asked for before has been made
-- since), and what was there before there were versions, of which no guest of the node is a clone.
create view needless_images as
    select i.node_id, i.label from node_images i
    where not exists (select from guests g where g.node_id = i.node_id and g.image = i.label)
        and (exists (select from image_versions v where v.name = i.label)
            or exists (select from image_versions v join image_versions w
                on w.name = v.name and (w.made_at, w.found_at) > (v.made_at, v.found_at)
                where v.label = i.label and w.found_at < now() - interval '1 hour'));
