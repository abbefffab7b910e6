-- Which packages of a guest are older than in the newest version of its image, as its node found: how many, the first of
-- them by name, and which version that was.
alter table guests
    add column lacks_count integer check (lacks_count >= 0),
    add column lacks text[] not null default '{}',
    add column lacks_image text,
    add column lacks_at timestamptz;
alter table nodes add column updates_asked_at timestamptz;
create index nodes_updates_asked on nodes (updates_asked_at nulls first) where state in ('ready', 'draining');
