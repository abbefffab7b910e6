-- Where what Corpus is made of was last seen: guests don't reach it, wherever it is. A host that can't be
-- resolved keeps its addresses; one that nobody asks for any more is forgotten.
create table infrastructure (
    host     text not null,
    address  text not null,
    seen_at  timestamptz not null default now(),
    asked_at timestamptz not null default now(),
    primary key (host, address)
);
