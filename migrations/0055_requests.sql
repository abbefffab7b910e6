-- Requests to the operators: what a member may not do alone, kept as the fields of the operation that is done when it
-- is approved. There is never a secret in one.
create table requests (
    id          uuid primary key,
    operation   text not null check (operation in (
        'create_project', 'link_node', 'initialize_node', 'request_guest', 'attach_name')),
    wanted      jsonb not null check (wanted ->> 'operation' = operation and pg_column_size(wanted) < 32768),
    -- What was done instead, where operators changed it.
    changed     jsonb check (changed ->> 'operation' = operation),
    title       text not null,
    asker_id    uuid not null references users on delete cascade,
    -- The project that it is for: its maintainers see the request. Its name stays when it is gone.
    project_id  uuid references projects on delete set null,
    project     text,
    state       text not null default 'open' check (state in ('open', 'approved', 'refused', 'withdrawn', 'lapsed')),
    decided_by  uuid references users on delete set null,
    -- The rule that decided, in words: it may be gone by now.
    rule        text,
    reason      text,
    -- What was made, and by which job.
    path        text check (path like '/%'),
    job_id      uuid,
    created_at  timestamptz not null default now(),
    expires_at  timestamptz not null,
    decided_at  timestamptz,
    check ((state = 'open') = (decided_at is null))
);

-- Every page of an operator counts the open ones, and the queue begins with them.
create index requests_open on requests (id) where state = 'open';
create index requests_in_order on requests ((state = 'open') desc, id desc);
create index requests_of_asker on requests (asker_id, id desc);
create index requests_of_project on requests (project_id) where project_id is not null;
create index requests_expiry on requests (expires_at) where state = 'open';
create index requests_decided on requests (decided_at) where decided_at is not null;

-- Rules that decide at once, in the order of their ids: the first that fits.
create table request_rules (
    id         uuid primary key,
    rule       jsonb not null check (pg_column_size(rule) < 32768),
    created_by uuid references users on delete set null,
    created_at timestamptz not null default now()
);

-- All projects may take names in such a zone, each when operators have approved it.
alter table zones add column asks boolean not null default false;
alter table zones add constraint zones_asks_of_all check (open or not asks);
