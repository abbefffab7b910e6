-- What a member who has nothing is to do first is shown until it is done, or until they want it no more.
alter table users add column first_steps_dismissed_at timestamptz;

-- A node has its address, and may have a name that people know it by.
alter table nodes add column name text;
create unique index nodes_name on nodes (lower(name)) where name is not null;
