-- Snapshots that are taken before something is deployed: of which deployment; it may never have begun.
alter table snapshots add column deployment_id uuid;
create unique index snapshots_before_deployment on snapshots (deployment_id, guest_id) where deployment_id is not null;

-- How many of these a guest keeps; none: none is taken. A guest may have that and no schedule.
alter table snapshot_schedules
    drop constraint snapshot_schedules_every_check,
    alter column next_at drop not null,
    add column deployments int check (deployments between 1 and 12),
    add constraint snapshot_schedules_every_check check (every in ('never', 'hour', 'day', 'week')),
    add check ((every = 'never') = (next_at is null)),
    add check (every <> 'never' or deployments is not null);
