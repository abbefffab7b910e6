-- Previews: a branch `preview/NAME` of a project, deployed on a guest of its own for a while. A preview is a project of
-- its own with the environment dev alone, so whatever is shown, asked and refused of projects is of it too; but who is
-- what in it is what they are in the project that it is of, and what it takes is taken of that one's quota.
alter table projects add column parent_id uuid references projects;
alter table projects add column preview text;
alter table projects add column expires_at timestamptz;
-- Who pushed it first.
alter table projects add column preview_by uuid references users on delete set null;
alter table projects add check ((parent_id is null) = (preview is null) and (parent_id is null) = (expires_at is null));
alter table projects add constraint projects_preview unique (parent_id, preview);
create index projects_that_expire on projects (expires_at) where parent_id is not null;

-- Whether a project has previews and how many at most, what their names are below, how large their guests are and for
-- how many days they stay. A project without a row has none.
create table preview_rules (
    project_id uuid primary key references projects on delete cascade,
    most       integer not null check (most between 0 and 20),
    domain     text,
    size       text not null,
    days       integer not null check (days between 1 and 90),
    check (most = 0 or domain is not null)
);

-- A preview has one guest, of dev, whoever asks for another one by whichever way.
create function preview_has_one_guest() returns trigger language plpgsql as $$
begin
    if exists (select from projects where id = new.project_id and parent_id is not null)
        and (new.environment <> 'dev' or exists (select from guests where project_id = new.project_id and id <> new.id))
    then
        raise exception 'a preview has one guest, of dev';
    end if;
    return new;
end $$;
create trigger preview_has_one_guest before insert or update of project_id, environment on guests
    for each row execute function preview_has_one_guest();

-- The members of a project are those of its previews.
create or replace view member_roles as
select distinct on (user_id, project_id) user_id, project_id, role
from (
    select user_id, project_id, role from memberships
    union all
    select m.user_id, p.id, m.role from memberships m join projects p on p.parent_id = m.project_id
) given
order by user_id, project_id, array_position(array['maintainer', 'developer', 'viewer'], role);

create or replace view guest_entrants as
select g.id as guest_id, g.node_id, u.id as user_id
from guests g
join projects p on p.id = g.project_id
join users u on u.disabled_at is null and u.realm <> 'robot' and (u.ops or exists (
    select 1 from memberships m
    where m.project_id = coalesce(p.parent_id, p.id) and m.user_id = u.id
      and (m.role = 'maintainer'
           or (m.role = 'developer' and (g.environment <> 'prod' or p.developers_enter_prod)))));

-- A name that a preview had is kept for its project, whose next preview of that branch has it again.
create or replace function name_is_freed() returns trigger language plpgsql as $$
begin
    delete from freed_names where freed_at < now() - interval '30 days';
    insert into freed_names (name, project_id)
    select old.name, coalesce(p.parent_id, p.id) from guests g join projects p on p.id = g.project_id
    where g.id = old.guest_id
    on conflict (name) do update set project_id = excluded.project_id, freed_at = excluded.freed_at;
    return null;
end $$;
