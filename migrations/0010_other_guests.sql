-- Environments on several guests: the first is pushed to and leads, the others deploy what it does.
create table environment_guests (
    guest_id     uuid primary key,
    project_id   uuid not null,
    environment  text not null,
    state        text not null check (state in ('setting_up', 'ready', 'failed', 'leaving')),
    state_reason text,
    -- As the guest told it last.
    live         jsonb,
    archives     jsonb not null default '[]',
    observed_at  timestamptz,
    created_by   uuid references users on delete set null,
    created_at   timestamptz not null default now(),
    constraint environment_guests_environment foreign key (project_id, environment) references environments,
    constraint environment_guests_on_guest foreign key (guest_id, project_id, environment)
        references guests (id, project_id, environment)
);
create index environment_guests_of on environment_guests (project_id, environment);

-- Every guest that a project is deployed to.
create view environment_places as
select project_id, environment, guest_id, true as is_first, state, live, archives from environments
union all
select project_id, environment, guest_id, false, state, live, archives from environment_guests;

-- A deployment on another guest has a row of its own, which names that on the first and has its number.
alter table deployments add column leader_id uuid references deployments on delete cascade;
alter table deployments drop constraint deployments_number;
create unique index deployments_number on deployments (project_id, number) where leader_id is null;
create index deployments_led on deployments (leader_id) where leader_id is not null;
