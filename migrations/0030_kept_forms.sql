-- Forms that are shown again at an address of their own: what a member typed (no secret), what was wrong with it, and
-- the answer's status. They are for that member alone, for an hour.
create table kept_forms (
    id         uuid primary key,
    user_id    uuid not null references users on delete cascade,
    -- So many a member, and no more: a form beyond them takes the place of the oldest.
    place      smallint not null check (place between 1 and 8),
    -- The path of the page that shows it, here and nowhere else, and which form it is.
    page       text not null check (page ~ '^/[!-~]*$' and page !~ '^//|[\\?#]' and char_length(page) <= 2000),
    form       text not null check (char_length(form) <= 2000),
    state      jsonb not null check (jsonb_typeof(state) = 'object' and octet_length(state::text) <= 131072),
    created_at timestamptz not null default now(),
    unique (user_id, place)
);
create index kept_forms_age on kept_forms (created_at);
