-- The backups of a project are a list of their own, newest first: they outlive the guests they are of.
drop index guest_backups_of_project;
create index guest_backups_of_project on guest_backups (project_id, created_at desc, id desc);

-- What is being taken is counted for each schedule that is due: a few rows among all that were ever taken.
create index guest_backups_being_taken on guest_backups (guest_id) where state = 'taking';
create index snapshots_being_taken on snapshots (node_id) where state = 'taking';
