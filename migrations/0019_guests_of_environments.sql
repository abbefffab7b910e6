-- All guests of an environment are rows of one table, each with its role in the two-phase commit by which
-- the environment is deployed: the leader, which is pushed to, and its followers. Before, the first guest
-- was in its environment's own row. Environments keep what is of all their guests.
--
-- What was called "first" and "others" is now called "leader" and "followers", and so is the phase "others"
-- of deployments. Reports that are kept are history and stay as they are: that phase is still read there.
alter table environment_guests add column role text not null default 'follower' check (role in ('leader', 'follower'));
alter table environment_guests alter column role drop default;
alter table environment_guests add column configuration jsonb not null default '[]';

insert into environment_guests (guest_id, project_id, environment, role, state, state_reason, live, archives,
                                configuration, observed_at, created_by, created_at)
    select guest_id, project_id, environment, 'leader', state, state_reason, live, archives,
           configuration, observed_at, created_by, created_at
    from environments;

-- Never two leaders; that there is one is seen to by who makes and removes environments, in one statement.
create unique index environment_guests_leader on environment_guests (project_id, environment) where role = 'leader';

drop view environment_places;
alter table environments
    drop column guest_id,
    drop column state,
    drop column state_reason,
    drop column live,
    drop column archives,
    drop column configuration,
    drop column observed_at;

alter index deployments_led rename to deployments_of_followers;
