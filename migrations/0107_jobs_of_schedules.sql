-- Jobs that nobody asked for, which went well: they are forgotten after a while, since each hour has one of every guest, and what
-- they came to is kept with the guest.
create index jobs_of_schedules on jobs (ended_at)
    where kind in ('guest_states', 'node_baseline') and created_by is null and state = 'done';
