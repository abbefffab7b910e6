-- What guests of each environment may lie on, as operators say; those that are there already stay.
create table environment_backings (
    environment text primary key check (environment in ('dev', 'staging', 'prod')),
    forbidden   text[] not null default '{}' check (cardinality(forbidden) <= 16),
    -- What they lie on unless said; none: the first that is allowed and that some node makes.
    usual       text check (usual <> all (forbidden))
);
insert into environment_backings (environment) values ('dev'), ('staging'), ('prod');
