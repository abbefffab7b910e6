-- Lists are found through by what somebody remembers of a line, and a member keeps the filters of a list as a view.

-- A text by its words, and what is looked for by how its words begin. A name is several of them, so that
-- www.example.org is found by "exam". All of it is answered from an index, however many lines there are.
create function words_of(given text) returns tsvector immutable parallel safe language sql return
    to_tsvector('pg_catalog.simple'::regconfig, regexp_replace(left(given, 65536), '[^[:alnum:]]+', ' ', 'g'));
create function words_asked(given text) returns tsquery immutable parallel safe language sql return
    to_tsquery('pg_catalog.simple'::regconfig, (
        select string_agg(word || ':*', ' & ')
        from regexp_split_to_table(lower(given), '[^[:alnum:]]+') word where word <> ''));

create index audit_by on audit (actor, id desc);
create index audit_of_action on audit (action collate "C", id desc);
create index audit_subjects on audit using gin (words_of(subject));
create index audit_words on audit using gin (words_of(detail::text));
create index jobs_of_kind on jobs (kind, queue_order desc);
create index jobs_words on jobs using gin (words_of(title));
create index deployments_words on deployments using gin (words_of(subject)) where leader_id is null;

-- The query is that of the list's own operation, written anew from what was read of it: never an address.
create table views (
    id         uuid primary key,
    user_id    uuid not null references users on delete cascade,
    list       text not null check (list in ('guests', 'nodes', 'names', 'deployments', 'jobs', 'audit')),
    name       text not null check (char_length(name) between 1 and 60),
    query      text not null check (query ~ '^[!-~]+$' and char_length(query) <= 1000),
    created_at timestamptz not null default now(),
    unique (user_id, list, name)
);
