-- A name belongs to a guest, or to an environment and so to all its guests. One of an environment names that, and leads
-- to the environment's leader besides: where its guests can't be told apart, or none of them takes a request, it is the
-- leader's. An environment keeps its leader for as long as it is there; its names stay with that guest when it goes.
alter table environment_guests
    add constraint environment_guests_environment_of unique (guest_id, project_id, environment);
alter table dns_names add column environment text check (environment in ('dev', 'staging', 'prod'));
alter table dns_names add constraint dns_names_of_environment
    foreign key (guest_id, project_id, environment)
    references environment_guests (guest_id, project_id, environment) on delete set null (environment);
-- A wildcard has no page by which its guests could be proven.
alter table dns_names add constraint dns_names_of_environment_are_no_wildcards check (environment is null or not wildcard);
create index dns_names_of_environments on dns_names (project_id, environment) where environment is not null;

create function name_is_of_its_environments_leader() returns trigger language plpgsql as $$
begin
    if not exists (select from environment_guests where guest_id = new.guest_id and role = 'leader') then
        raise exception 'the guest of % leads no environment', new.name
            using errcode = 'foreign_key_violation', constraint = 'dns_names_of_environment';
    end if;
    return new;
end $$;
create trigger name_is_of_its_environments_leader before insert or update of guest_id, environment on dns_names
    for each row when (new.environment is not null) execute function name_is_of_its_environments_leader();

-- How the requests of its names are spread over its guests.
alter table environments
    add column balance_policy text not null default 'round_robin'
        check (balance_policy in ('round_robin', 'fewest_connections')),
    add column stickiness text not null default 'none' check (stickiness in ('none', 'cookie', 'source'));

-- A guest that is given no requests: since when, why, and the job for whose time that is. Without a job it is so until
-- the guest proves: by a deployment, or when it is started. With one it ends with the job, whatever becomes of it.
alter table environment_guests
    add column out_since timestamptz,
    add column out_reason text,
    add column out_job uuid,
    add check ((out_since is null) = (out_reason is null)),
    add check (out_job is null or out_since is not null);
create index environment_guests_out_by on environment_guests (out_job) where out_job is not null;

-- The guests that share the names of an environment, which its leader's node serves: those on that node. One takes
-- part when nothing keeps it out, and what is live on the leader is live there too.
create view balance_members as
select eg.guest_id, eg.project_id, eg.environment, eg.role, eg.out_since, eg.out_reason, eg.out_job,
    g.node_id, g.name, g.ip, g.state as guest_state, l.guest_id as leader_id,
    eg.state = 'ready' and (eg.live is not null or l.live is null)
        and (eg.out_since is null
             or (eg.out_job is not null
                 and not exists (
                     select from jobs j
                     where j.id = eg.out_job and j.state in ('waiting', 'running', 'undoing')))) as active
from environment_guests eg
join guests g on g.id = eg.guest_id
join environment_guests l on l.project_id = eg.project_id and l.environment = eg.environment and l.role = 'leader'
join guests lg on lg.id = l.guest_id and lg.node_id = g.node_id
where eg.state in ('ready', 'leaving') and g.routed and g.ip is not null
    and exists (select from dns_names n where n.guest_id = l.guest_id and n.environment = l.environment and n.routed);
