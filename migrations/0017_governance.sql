-- Zones say which projects may take names in them; those that are there are open to all, as they were.
alter table zones add column open boolean not null default true;
alter table zones alter column open drop default;

create table zone_projects (
    zone_id    uuid not null references zones on delete cascade,
    project_id uuid not null references projects on delete cascade,
    primary key (zone_id, project_id)
);

-- A name that led to a guest is kept from other projects for a while: browsers have its cookies, and
-- people its address. The project may be gone meanwhile, so it is no foreign key.
create table freed_names (
    name       text primary key,
    project_id uuid not null,
    freed_at   timestamptz not null default now()
);

create function name_is_freed() returns trigger language plpgsql as $$
begin
    delete from freed_names where freed_at < now() - interval '30 days';
    insert into freed_names (name, project_id)
    select old.name, guests.project_id from guests where guests.id = old.guest_id
    on conflict (name) do update set project_id = excluded.project_id, freed_at = excluded.freed_at;
    return null;
end $$;

-- One that was never answered led nobody anywhere.
create trigger dns_name_is_freed after delete on dns_names
    for each row when (old.answered_at is not null) execute function name_is_freed();

-- Names of projects that were destroyed: clones and habits still push there.
create table former_projects (
    name         text primary key,
    destroyed_at timestamptz not null default now()
);
insert into former_projects (name, destroyed_at)
    select subject, max(at) from audit where action = 'project.destroy' group by subject;

create function project_is_former() returns trigger language plpgsql as $$
begin
    insert into former_projects (name) values (old.name)
    on conflict (name) do update set destroyed_at = excluded.destroyed_at;
    return null;
end $$;

create trigger project_is_former after delete on projects
    for each row execute function project_is_former();
