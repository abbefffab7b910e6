-- Mail from guests: whose is taken by its node, and what became of it.

-- What a project decided for all guests of an environment, those too that come later. Where nothing was decided, mail of
-- dev is not taken and all other is.
create table environment_mail (
    project_id  uuid not null references projects on delete cascade,
    environment text not null check (environment in ('dev', 'staging', 'prod')),
    sends       boolean not null,
    primary key (project_id, environment)
);

-- What was decided for one guest; null: it is as its environment.
alter table guests add column sends_mail boolean;

create view guest_mail as
select g.id as guest_id, g.project_id, g.environment, g.node_id,
    coalesce(m.sends, g.environment <> 'dev') as environment_sends,
    coalesce(g.sends_mail, m.sends, g.environment <> 'dev') as sends
from guests g
left join environment_mail m on m.project_id = g.project_id and m.environment = g.environment;

-- What nodes counted, by guest and hour.
create table guest_mail_counts (
    guest_id uuid not null references guests on delete cascade,
    hour     timestamptz not null,
    accepted bigint not null,
    limited  bigint not null,
    refused  bigint not null,
    failed   bigint not null,
    bytes    bigint not null,
    primary key (guest_id, hour)
);
create index guest_mail_counts_by_hour on guest_mail_counts (hour);

alter table nodes
    add column mail_read_at  timestamptz,
    add column mail_asked_at timestamptz;
