-- Whether a guest could be had back from a backup, tried: what became of it when it was last tried with this one. While it
-- is tried (ended_at is null) a guest of it is on a node, as large as the one that it is of, and this is its place there.
create table backup_proofs (
    backup_id  uuid primary key references guest_backups on delete cascade,
    project_id uuid not null references projects on delete cascade,
    -- What the guest is called by on its node.
    id         uuid not null unique,
    began_at   timestamptz not null default now(),
    ended_at   timestamptz,
    passed     boolean,
    -- What was seen, a line each; none where it failed before anything was.
    told       text check (length(told) between 1 and 4000),
    node_id    uuid references nodes,
    ip         text,
    mac        text,
    ssh_port   int check (ssh_port between 40000 and 50000),
    id_range   bigint check (id_range between 1073741824 and 1878982656 and id_range % 65536 = 0),
    image      text,
    memory     bigint not null check (memory >= 0),
    cpu_millis int not null check (cpu_millis >= 0),
    storage    bigint not null check (storage >= 0),
    -- It is entered by SSH, once its node knows of it.
    routed     boolean not null default false,
    check ((ended_at is null) = (passed is null)),
    check ((ended_at is null) = (node_id is not null)),
    check (ended_at is null or (ip is null and mac is null and ssh_port is null and id_range is null and not routed)),
    unique (node_id, ip),
    unique (node_id, mac),
    unique (node_id, ssh_port),
    unique (node_id, id_range)
);

-- It is beyond what a project may have, so a project has one at a time.
create unique index backup_proofs_open on backup_proofs (project_id) where node_id is not null;

-- It counts on its node as any guest does.
create function backup_proof_is_tallied() returns trigger language plpgsql as $$
begin
    if tg_op <> 'INSERT' and old.node_id is not null then
        insert into node_tallies values (old.node_id, -1, -old.memory, -old.cpu_millis, -old.storage);
    end if;
    if tg_op <> 'DELETE' and new.node_id is not null then
        insert into node_tallies values (new.node_id, 1, new.memory, new.cpu_millis, new.storage);
    end if;
    return null;
end $$;
create trigger backup_proof_is_tallied after insert or delete on backup_proofs
    for each row execute function backup_proof_is_tallied();
create trigger backup_proof_changes after update of node_id, memory, cpu_millis, storage on backup_proofs for each row
    when ((old.node_id, old.memory, old.cpu_millis, old.storage)
          is distinct from (new.node_id, new.memory, new.cpu_millis, new.storage))
    execute function backup_proof_is_tallied();

-- Nobody takes there what a guest that is moved has, or one that is tried.
create or replace function guest_place_is_free() returns trigger language plpgsql as $$
declare
    taken text;
begin
    select case when m.ip = new.ip then 'ip' when m.mac = new.mac then 'mac' when m.ssh_port = new.ssh_port then 'ssh_port'
                else 'id_range' end into taken
    from (select node_id, guest_id, ip, mac, ssh_port, id_range from guest_moves
          union all
          select node_id, id, ip, mac, ssh_port, id_range from backup_proofs where node_id is not null) m
    where m.node_id = new.node_id and m.guest_id <> new.id
        and (m.ip = new.ip or m.mac = new.mac or m.ssh_port = new.ssh_port or m.id_range = new.id_range)
    limit 1;
    if found then
        raise exception 'another guest has that %', taken
            using errcode = 'unique_violation', constraint = 'guests_node_id_' || taken || '_key';
    end if;
    return new;
end $$;

create or replace view needless_images as
    select i.node_id, i.label from node_images i
    where not exists (select from guests g where g.node_id = i.node_id and g.image = i.label)
        and not exists (select from guest_moves m where m.node_id = i.node_id and m.image = i.label and m.memory > 0)
        and not exists (select from backup_proofs p where p.node_id = i.node_id and p.image = i.label)
        and (exists (select from image_versions v where v.name = i.label)
            or exists (select from image_versions v join image_versions w
                on w.name = v.name and (w.made_at, w.found_at) > (v.made_at, v.found_at)
                where v.label = i.label and w.found_at < now() - interval '1 hour'));

-- With its schedule a guest's latest backup is tried each week, if its maintainers want that.
alter table backup_schedules
    add column prove         boolean not null default false,
    add column prove_at      timestamptz not null default now(),
    -- Why it was not tried when it was time.
    add column prove_problem text check (length(prove_problem) between 1 and 1000);
create index backup_schedules_to_prove on backup_schedules (prove_at) where prove;

-- When it was last shown that a guest can be had back from a backup: the backup itself may be gone since.
create table proven_guests (
    guest_id uuid primary key references guests on delete cascade,
    at       timestamptz not null,
    -- The moment that the backup was of.
    taken_at timestamptz not null,
    -- How long it took until the guest was there, in milliseconds.
    took_ms  bigint not null check (took_ms >= 0)
);
