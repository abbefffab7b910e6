-- Lines of a container's configuration that operators allow.
create table lxc_lines (
    id         uuid primary key,
    name       text not null unique check (length(name) <= 40),
    key        text not null check (key ~ '^lxc\.[a-z0-9_.]+$' and length(key) <= 120),
    -- None: a guest with this line has no other that sets the key.
    value      text check (value !~ '[^ -~]' and length(value) between 1 and 100),
    comment    text check (length(comment) <= 200),
    created_by uuid references users on delete set null,
    created_at timestamptz not null default now()
);
-- Which of them the configuration of a guest has.
create table guest_lxc_lines (
    guest_id uuid not null references guests on delete cascade,
    line_id  uuid not null references lxc_lines,
    primary key (guest_id, line_id)
);
create index on guest_lxc_lines (line_id);
