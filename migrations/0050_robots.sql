-- Robots: accounts of a project, for programs. One has a row among the users, so that its tokens, its keys and what it
-- did are kept as a member's are; but its role stands here and not among the memberships, so it is no member anywhere.
alter table users drop constraint users_realm_check;
alter table users add constraint users_realm_check check (realm in ('ldap', 'local', 'robot'));
alter table users add constraint users_robot_is_bounded check (realm <> 'robot' or (not ops and mail is null));

create table robots (
    user_id      uuid primary key references users on delete cascade,
    project_id   uuid not null references projects on delete cascade,
    name         text not null,
    role         text not null check (role in ('viewer', 'developer', 'maintainer')),
    -- Where its role counts; it sees nothing of others.
    environments text[] not null check (
        cardinality(environments) > 0 and environments <@ array['dev', 'staging', 'prod']),
    expires_at   timestamptz,
    created_by   uuid references users on delete set null,
    created_at   timestamptz not null default now(),
    unique (project_id, name)
);

-- However a robot ends, by a member or with its project, nothing that it holds counts from the same transaction on.
-- What it did stays, under its name; who makes one of that name again has the same account, without what it held.
create function robot_ends() returns trigger language plpgsql as $$
begin
    delete from ssh_keys where user_id = old.user_id;
    update tokens set revoked_at = now() where user_id = old.user_id and revoked_at is null;
    delete from idempotency_keys where member_id = old.user_id;
    update users set disabled_at = now(), epoch = epoch + 1 where id = old.user_id;
    return null;
end $$;

create trigger robot_ends after delete on robots for each row execute function robot_ends();

-- A robot's keys are deploy keys: for git, to read or to deploy as well, and until a day if one is given. When a key
-- was last used for git is told of members' keys too.
alter table ssh_keys add column grant_ text check (grant_ in ('read', 'deploy'));
alter table ssh_keys add column expires_at timestamptz;
alter table ssh_keys add column last_used_at timestamptz;

-- No robot enters a guest, whatever else is said of it.
create or replace view guest_entrants as
select g.id as guest_id, g.node_id, u.id as user_id
from guests g
join projects p on p.id = g.project_id
join users u on u.disabled_at is null and u.realm <> 'robot' and (u.ops or exists (
    select 1 from memberships m
    where m.project_id = g.project_id and m.user_id = u.id
      and (m.role = 'maintainer'
           or (m.role = 'developer' and (g.environment <> 'prod' or p.developers_enter_prod)))));
