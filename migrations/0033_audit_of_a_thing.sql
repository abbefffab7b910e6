-- Who changed a thing last is told to whoever changes it at the same time; and what was done to one thing can be listed.
create index audit_of_subject on audit (subject_id, id desc) where subject_id is not null;
