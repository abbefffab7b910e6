-- Lists of guests and DNS names are answered a page at a time, each page from an index.

create index guests_of_project on guests (project_id, name);
drop index guests_project;
create index guests_of_state on guests (state, name);
create index dns_names_of_zone on dns_names (zone_id, name);

-- The job that is on a guest, if one is, is looked for in each line: what is over is not read for it.
create index jobs_open_of_guest on jobs (guest_id, queue_order desc)
    where guest_id is not null and state in ('waiting', 'running', 'undoing', 'stuck');
