-- Backups on which nobody should rely are told to whoever looks after them: each schedule is looked at once an hour, and what is
-- wrong with it is told when it begins.
alter table backup_schedules
    -- Since when it is as it is set.
    add column set_at       timestamptz not null default now(),
    add column need_look_at timestamptz not null default now(),
    -- What is wrong, of what was told.
    add column need_told    text check (need_told in ('late', 'undumped', 'unproven'));
create index backup_schedules_to_look_at on backup_schedules (need_look_at);

-- What is wrong with the backups of a guest that has a schedule, if anything is: the worst of it.
create view backup_needs as
    select c.guest_id, g.project_id, g.name, last.taken_at, last.dump_problem, c.problem, c.prove_problem,
        case
            when greatest(last.taken_at, c.set_at) < now() - 2 * ('1 ' || c.every)::interval then 'late'
            when last.dump_problem is not null then 'undumped'
            when c.prove and greatest(p.at, c.set_at) < now() - interval '14 days' then 'unproven'
        end as need
    from backup_schedules c join guests g on g.id = c.guest_id left join proven_guests p on p.guest_id = c.guest_id
    left join lateral (
        select b.taken_at, b.dump_problem from guest_backups b where b.guest_id = c.guest_id and b.state = 'ready'
        order by b.created_at desc limit 1) last on true;
