-- What tests came to that belong to a deployment. A report is one file; its cases are rows, so that they are listed a
-- page at a time, what failed first. Both go with their deployment.

create table test_reports (
    id            uuid primary key,
    deployment_id uuid not null references deployments on delete cascade,
    name          text not null check (length(name) between 1 and 100),
    cases         integer not null check (cases >= 0),
    failed        integer not null check (failed >= 0),
    errors        integer not null check (errors >= 0),
    skipped       integer not null check (skipped >= 0),
    elapsed_ms    bigint not null check (elapsed_ms >= 0),
    -- What its cases take here.
    bytes         bigint not null check (bytes >= 0),
    by_id         uuid references users on delete set null,
    by            text not null,
    uploaded_at   timestamptz not null default now(),
    constraint test_reports_name unique (deployment_id, name)
);

create table test_cases (
    report_id     uuid not null references test_reports on delete cascade,
    number        integer not null check (number >= 0),
    deployment_id uuid not null,
    -- In the order in which they are listed: 0 failed, 1 error, 2 skipped, 3 passed.
    rank          smallint not null check (rank between 0 and 3),
    suite         text not null,
    name          text not null,
    class         text,
    elapsed_ms    bigint check (elapsed_ms >= 0),
    message       text,
    output        text,
    primary key (report_id, number)
);
create index test_cases_listed on test_cases (deployment_id, rank, report_id, number);

-- By this key in their addresses the badges of a project are fetched without login; no row: it has none. Kept as a hash
-- to be found by, and sealed to be shown to maintainers again.
create table badge_keys (
    project_id uuid primary key references projects on delete cascade,
    hash       bytea not null unique,
    key        bytea not null,
    made_by    uuid references users on delete set null,
    made_at    timestamptz not null default now()
);
