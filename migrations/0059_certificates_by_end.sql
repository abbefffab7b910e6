-- The list of certificates is by their end.
create index certificates_by_end on certificates (not_after, id);
