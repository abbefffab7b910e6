-- Whether developers of a project may enter its guests of prod and read the pillar there. Who enters a guest
-- is root there, and could deploy; so no project begins with it, those that are here neither.
alter table projects add column developers_enter_prod boolean not null default false;

-- Who may enter which guest: the one rule for all that brings keys, takes them, or checks them.
create view guest_entrants as
select g.id as guest_id, g.node_id, u.id as user_id
from guests g
join projects p on p.id = g.project_id
join users u on u.disabled_at is null and (u.ops or exists (
    select 1 from memberships m
    where m.project_id = g.project_id and m.user_id = u.id
      and (m.role = 'maintainer'
           or (m.role = 'developer' and (g.environment <> 'prod' or p.developers_enter_prod)))));

-- Guests of prod have the keys of developers until now. A node that comes back gets all keys anew: so these
-- count as away until they are read the next time, which is seconds after a server of this release starts.
update nodes set reachability = 'unreachable', reachability_since = now(),
                 reachability_reason = 'not read since Corpus was brought up to date'
where reachability = 'reachable' and id in (select node_id from guests where environment = 'prod');

-- Sessions and connections of a member that began in an earlier epoch are over.
alter table users add column epoch integer not null default 0;

-- A key that another account holds, and the text whose signature proves that the claimant has it.
create table key_claims (
    id          uuid primary key,
    user_id     uuid not null references users on delete cascade,
    line        text not null,
    fingerprint text not null,
    nonce       text not null unique,
    expires_at  timestamptz not null,
    unique (user_id, fingerprint)
);
create index key_claims_expire on key_claims (expires_at);
