-- When the directory is asked again when a certificate should be renewed (ARI): it may be sooner than it said at first, as
-- before it revokes it. Of those only that are served, and of a directory.
alter table certificates add column renewal_ask_at timestamptz;
update certificates c set renewal_ask_at = now()
where c.source = 'acme' and exists (select from dns_names n where n.certificate_id = c.id);
create index certificates_to_ask on certificates (renewal_ask_at) where renewal_ask_at is not null;
