-- How much the repository of a project's backups may take: one more thing that quotas limit.
alter table quota_policy add column backups bigint check (backups between 0 and 1000000000000000);
alter table project_quotas
    add column backups bigint check (backups between 0 and 1000000000000000),
    drop constraint project_quotas_unlimited_check,
    add constraint project_quotas_unlimited_check
        check (unlimited <@ array['guests', 'memory', 'cpu', 'storage', 'names', 'ports', 'backups']);

-- What it takes, as it was counted last: whenever something was saved to it, removed from it, or it was checked.
alter table backup_repositories add column bytes bigint not null default 0 check (bytes >= 0);
update backup_repositories r
set bytes = coalesce((select sum(added_bytes) from guest_backups b where b.project_id = r.project_id), 0);
