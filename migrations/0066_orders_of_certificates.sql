-- The key of a certificate that is being issued: made before it is ordered, so that a step that is repeated asks for the
-- same certificate again. It goes with the order.
alter table certificate_orders add column key_sealed bytea;
-- Since when it has not worked, to be told of once it lasts.
alter table certificate_orders add column failing_since timestamptz;
alter table certificate_orders add column failing_told boolean not null default false;
-- How often it was told that it ends soon: not, once, or again shortly before.
alter table certificates add column end_told smallint not null default 0 check (end_told between 0 and 2);
create index certificates_due on certificates (renew_at) where renew_at is not null;
create index dns_names_without_certificate on dns_names (id) where certificate_id is null and state = 'attached';
