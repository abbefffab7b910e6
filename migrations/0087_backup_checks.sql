-- Whether what lies in a project's repository of backups is what was written: looked at by itself each week, a part of it each
-- time where there is much.
alter table backup_repositories
    add column check_at   timestamptz not null default now() + interval '7 days',
    add column checked_at timestamptz,
    -- What was found to be damaged then.
    add column damage     text check (length(damage) between 1 and 2000),
    add check (damage is null or checked_at is not null);
create index backup_repositories_by_check on backup_repositories (check_at);
