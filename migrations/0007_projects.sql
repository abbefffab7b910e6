-- Projects: who is what in one and by whose word, the guests that its environments stand on,
-- and every deployment with its log.

-- A role is given by the directory or here; who has several of one project has the strongest.
alter table memberships add column source text not null default 'ldap' check (source in ('ldap', 'corpus'));
alter table memberships alter column source drop default;
alter table memberships drop constraint memberships_pkey;
alter table memberships add primary key (user_id, project_id, source);

create view member_roles as
select distinct on (user_id, project_id) user_id, project_id, role
from memberships
order by user_id, project_id, array_position(array['maintainer', 'developer', 'viewer'], role);

-- Deployments of a project are numbered from 1, without gaps.
alter table projects add column last_deployment bigint not null default 0;

-- An environment stands on one guest, of its own project and kind, and that guest is for nothing else.
alter table guests add constraint guests_of_environment unique (id, project_id, environment);

create table environments (
    project_id    uuid not null references projects,
    environment   text not null,
    guest_id      uuid not null constraint environments_guest unique,
    state         text not null check (state in ('setting_up', 'ready', 'failed', 'leaving')),
    state_reason  text,
    settings      jsonb not null default '{}' check (jsonb_typeof(settings) = 'object'),
    -- As the guest told it last.
    live          jsonb,
    archives      jsonb not null default '[]',
    configuration jsonb not null default '[]',
    observed_at   timestamptz,
    created_by    uuid references users on delete set null,
    created_at    timestamptz not null default now(),
    primary key (project_id, environment),
    constraint environments_on_guest foreign key (guest_id, project_id, environment)
        references guests (id, project_id, environment)
);

create table deployments (
    id           uuid primary key,
    project_id   uuid not null references projects on delete cascade,
    number       bigint not null,
    environment  text not null check (environment in ('dev', 'staging', 'prod')),
    -- History outlives the guest.
    guest_id     uuid not null,
    guest        text not null,
    trigger      text not null check (trigger in ('push', 'hand', 'restore', 'drill')),
    -- What was ordered here; null for what came by git.
    ordered      jsonb,
    by_id        uuid references users on delete set null,
    by           text not null,
    state        text not null default 'waiting' check (state in
        ('waiting', 'running', 'rolling_back', 'live', 'rolled_back', 'broken', 'superseded')),
    commit       text,
    subject      text,
    fault        text,
    ordered_at   timestamptz not null default now(),
    ended_at     timestamptz,
    elapsed_ms   bigint,
    -- As far as it has come; the guest's own once it is final.
    report       jsonb,
    final        boolean not null default false,
    -- Where the guest's journal goes on, in bytes, and how many log lines came before that.
    journal_next bigint not null default 0,
    lines        bigint not null default 0,
    job_id       uuid,
    constraint deployments_number unique (project_id, number),
    check ((state in ('live', 'rolled_back', 'broken', 'superseded')) = (ended_at is not null)),
    check (not final or ended_at is not null)
);
create index deployments_newest on deployments (project_id, environment, ordered_at desc);
create index deployments_listed on deployments (ordered_at desc, id desc);
create index deployments_open on deployments (project_id) where ended_at is null;

-- Append-only: a line that is written stays as it is, as long as its project is there.
create table deployment_log (
    deployment_id uuid not null references deployments on delete cascade,
    number        bigint not null,
    at            timestamptz not null,
    stream        text not null check (stream in ('out', 'err', 'note')),
    text          text not null,
    primary key (deployment_id, number)
);

create function is_append_only() returns trigger language plpgsql as $$
begin
    raise exception 'the rows of % are never changed', tg_table_name;
end $$;

create trigger deployment_log_stays before update on deployment_log
    for each row execute function is_append_only();

-- What the guest has told as final is history.
create function is_final() returns trigger language plpgsql as $$
begin
    raise exception 'deployment % is over', old.id;
end $$;

create trigger deployment_stays before update on deployments
    for each row when (old.final and (new.report is distinct from old.report or new.state <> old.state))
    execute function is_final();
