-- Several servers read every node; one of them at a time writes what it reads: who has the node's
-- observer, until it lapses. See controller/src/store/observer.rs.
alter table nodes
    add column observer uuid,
    add column observed_until timestamptz;
