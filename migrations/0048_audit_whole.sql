-- The audit whole: which door each row came by, which project it concerns, and that rows are only ever added.

-- Who is removed leaves what they did as it was written: a row of the audit is not changed by anything.
alter table audit drop constraint audit_actor_id_fkey;

alter table audit
    -- Unknown for what was written before this.
    add column door text check (door in ('page', 'api', 'git', 'job', 'command_line', 'corpus')),
    -- With which token, by the id and by the name that it had.
    add column token_id uuid,
    add column token text,
    -- Whether a robot did it: it may be gone with its project, and stays what it was.
    add column robot boolean not null default false,
    -- The project that it concerns may be destroyed, and another one have its name: so both are kept.
    add column project_id uuid,
    add column project text,
    -- What tells of others than who reads it.
    add column ops_only boolean not null default false;

-- Pages are in the order of time, so that what was done between two times is a part of the index.
drop index audit_at;
drop index audit_by;
drop index audit_of_action;

-- What is still there says which project it was about.
update audit set project_id = projects.id, project = projects.name
    from (select id as subject, id as project from projects
        union all select id, project_id from guests
        union all select n.id, g.project_id from dns_names n join guests g on g.id = n.guest_id
        union all select id, project_id from jobs where project_id is not null) about
    join projects on projects.id = about.project
    where audit.subject_id = about.subject;
-- Who a key was taken from is told to nobody but the operators.
update audit set ops_only = true where action in ('key.claim', 'key.moved_away');

create index audit_at on audit (at desc, id desc);
create index audit_by on audit (actor, at desc, id desc);
create index audit_of_action on audit (action collate "C", at desc, id desc);
create index audit_in_project on audit (project, at desc, id desc) where project is not null;
-- What members read: what concerns their projects, and what they did themselves.
create index audit_of_project on audit (project_id, at desc, id desc) where project_id is not null and not ops_only;
create index audit_own on audit (actor_id, at desc, id desc) where actor_id is not null and not ops_only;
create index audit_own_in_project on audit (actor_id, project, at desc, id desc)
    where actor_id is not null and project is not null and not ops_only;

-- Whether a row is what somebody looks for; what is null is not asked. It is one expression, which the planner
-- takes apart as if it stood in the query.
create function audit_has(one audit, actor text, action text, subject text, more text, project text)
returns boolean stable parallel safe language sql return
    (audit_has.actor is null or one.actor = audit_has.actor)
    and (audit_has.action is null or one.action collate "C" = audit_has.action
        or (one.action collate "C" >= audit_has.action || '.' and one.action collate "C" < audit_has.action || '/'))
    and (audit_has.subject is null or words_of(one.subject) @@ words_asked(audit_has.subject))
    and (more is null or words_of(one.detail::text) @@ words_asked(more))
    and (audit_has.project is null or one.project = audit_has.project);

-- Rows are added and never changed, whoever asks: this holds for the owner of the table too, which the server is.
create function audit_is_only_added_to() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and current_setting('corpus.forgets_audit', true) = 'on' then
        return null;
    end if;
    raise exception 'rows of the audit are only added: % is refused', lower(tg_op)
        using errcode = 'insufficient_privilege', hint = 'What is old is removed by forget_audit(days, most).';
end $$;

-- What is removed is the oldest, all of it up to a time, and no younger than 30 days; and that it was removed is a
-- row. So nobody can take single rows out, or take any out unseen.
create function audit_is_removed_from_its_end() returns trigger language plpgsql as $$
declare
    many bigint;
    first timestamptz;
    last timestamptz;
begin
    select count(*), min(at), max(at) into many, first, last from gone;
    if many = 0 then
        return null;
    end if;
    if last > now() - interval '30 days' then
        raise exception 'rows of the audit are kept for 30 days at least' using errcode = 'insufficient_privilege';
    end if;
    if exists (select from audit where at < last) then
        raise exception 'the oldest rows of the audit are removed first' using errcode = 'insufficient_privilege';
    end if;
    -- An id of version 7, as the server gives them.
    insert into audit (id, actor, action, subject, door, detail)
    select overlay(overlay(overlay(md5(random()::text || clock_timestamp()) placing lpad(to_hex(ms), 12, '0') from 1)
            placing '7' from 13) placing '8' from 17)::uuid,
        '', 'audit.remove', 'audit', 'corpus', jsonb_build_object('rows', many, 'from', first, 'to', last)
    from (select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as ms) now;
    return null;
end $$;

create trigger audit_is_only_added_to before update or delete or truncate on audit
    for each statement execute function audit_is_only_added_to();
create trigger audit_is_removed_from_its_end after delete on audit
    referencing old table as gone for each statement execute function audit_is_removed_from_its_end();
-- Also where triggers of users are set aside, as while a copy is loaded.
alter table audit enable always trigger audit_is_only_added_to;
alter table audit enable always trigger audit_is_removed_from_its_end;

-- Removes rows of days that ended so many days ago, the oldest first and so many at most; tells how many there were.
-- One server at a time does it.
create function forget_audit(days integer, most integer) returns bigint language plpgsql
set corpus.forgets_audit = 'on' as $$
declare
    ended constant timestamptz := date_trunc('day', now(), 'UTC') - make_interval(hours => 24 * days);
    removed bigint;
begin
    if days < 30 then
        raise exception 'rows of the audit are kept for 30 days at least' using errcode = 'insufficient_privilege';
    end if;
    if not pg_try_advisory_xact_lock(hashtextextended('corpus: the audit is forgotten', 0)) then
        return 0;
    end if;
    delete from audit where id in (select id from audit where at < ended order by at, id limit most);
    get diagnostics removed = row_count;
    return removed;
end $$;
