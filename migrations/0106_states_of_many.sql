-- What is to be done in guests by and by, a few at a time: seeing to their states, and to the users that they are to have.
create table guest_chores (
    guest_id uuid not null references guests on delete cascade,
    chore    text not null check (chore in ('states', 'users')),
    -- Whether states are only tried.
    test     boolean not null default false,
    -- Nobody, where a schedule asks.
    asked_by uuid references users,
    asked_at timestamptz not null default now(),
    due_at   timestamptz not null default now(),
    primary key (guest_id, chore)
);
create index guest_chores_by_time on guest_chores (due_at);

-- How often the states of a project's guests are seen to by itself.
create table states_schedules (
    project_id uuid primary key references projects on delete cascade,
    every      text not null check (every in ('hour', 'day', 'week')),
    test       boolean not null,
    next_at    timestamptz not null default now()
);
create index states_schedules_by_time on states_schedules (next_at);

-- The users that all guests of a project have, beside those of their image; no environment named: in all.
create table guest_users (
    project_id   uuid not null references projects on delete cascade,
    name         text not null check (name ~ '^[a-z_][a-z0-9_-]{0,31}$'),
    environments text[] not null check (environments <@ array['dev', 'staging', 'prod']),
    sudo         boolean not null,
    keys         text[] not null check (cardinality(keys) between 1 and 16),
    set_by       uuid references users,
    set_at       timestamptz not null default now(),
    primary key (project_id, name)
);

-- Whether a project ever had such users: a guest that is made of its images, snapshots or backups may have them still.
alter table projects add column had_guest_users boolean not null default false;

-- The same for each guest.
create view users_of_guests as
    select g.id as guest_id, g.node_id, u.name, u.sudo, u.keys
    from guests g join projects p on p.id = g.project_id
        -- A preview has those of its project.
        join guest_users u on u.project_id = coalesce(p.parent_id, p.id)
    where u.environments = '{}' or g.environment = any(u.environments);

-- What a master has its states from, and when what it must know was changed last.
alter table salt_masters
    add column tree_commit  text check (tree_commit ~ '^[0-9a-f]{40,64}$'),
    add column tree_problem text check (length(tree_problem) between 1 and 1000),
    add column follows_git  boolean not null default false;

create table salt_revisions (
    master   text primary key references salt_masters on delete cascade,
    revision bigint not null default 1
);
create function salt_minions_changed() returns trigger language plpgsql as $$
begin
    if tg_op <> 'INSERT' then
        insert into salt_revisions as r (master) select old.master where exists (select 1 from salt_masters where name = old.master)
            on conflict (master) do update set revision = r.revision + 1;
    end if;
    if tg_op <> 'DELETE' and (tg_op = 'INSERT' or new.master <> old.master) then
        insert into salt_revisions as r (master) values (new.master)
            on conflict (master) do update set revision = r.revision + 1;
    end if;
    return null;
end $$;
create trigger salt_minion_changes after insert or delete or update of master, public_key on salt_minions
    for each row execute function salt_minions_changed();

create function salt_guests_changed() returns trigger language plpgsql as $$
begin
    insert into salt_revisions as r (master) select master from salt_minions where guest_id = new.id
        on conflict (master) do update set revision = r.revision + 1;
    return null;
end $$;
create trigger salt_guest_changes after update of name, node_id, environment on guests
    for each row when ((old.name, old.node_id, old.environment) is distinct from (new.name, new.node_id, new.environment))
    execute function salt_guests_changed();

-- Minions that a master did not take.
create table salt_strangers (
    master   text not null references salt_masters on delete cascade,
    minion   text not null check (length(minion) between 1 and 255),
    first_at timestamptz not null default now(),
    last_at  timestamptz not null default now(),
    times    bigint not null default 1,
    primary key (master, minion)
);
create index salt_strangers_by_time on salt_strangers (master, last_at desc);

-- What operators want of every node: one row.
create table baseline (
    one            boolean primary key default true check (one),
    packages       text[] not null default '{}',
    operators      text[] not null default '{}',
    password_login boolean not null default true,
    time_servers   text[] not null default '{}',
    root_mail      text check (length(root_mail) between 3 and 254),
    every          text not null default 'never' check (every in ('never', 'hour', 'day', 'week')),
    test           boolean not null default true,
    set_at         timestamptz
);
insert into baseline default values;

-- What that came to on each node.
create table node_baselines (
    node_id uuid primary key references nodes on delete cascade,
    at      timestamptz not null default now(),
    test    boolean not null,
    ran     bigint not null check (ran >= 0),
    failed  bigint not null check (failed >= 0),
    changed bigint not null check (changed >= 0),
    states  jsonb not null
);
-- When it is seen to on a node by itself the next time.
alter table nodes add column baseline_at timestamptz not null default now();
