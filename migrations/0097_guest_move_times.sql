-- How long guests answered nothing while they were moved: by that it is said before the next move how long it will take.
create table guest_move_times (
    job_id       uuid primary key,
    guest_id     uuid not null references guests on delete cascade,
    from_node_id uuid references nodes on delete set null,
    to_node_id   uuid references nodes on delete set null,
    backing      text not null,
    -- What was brought while it stood still.
    bytes        bigint not null check (bytes >= 0),
    -- From when it was told to stop until it was logged in to at the other node.
    downtime_ms  bigint not null check (downtime_ms >= 0),
    at           timestamptz not null default now()
);
create index guest_move_times_of_guest on guest_move_times (guest_id, at desc);
create index guest_move_times_of_backing on guest_move_times (backing, at desc);
create index guest_move_times_at on guest_move_times (at desc);
create index guest_move_times_from on guest_move_times (from_node_id) where from_node_id is not null;
create index guest_move_times_to on guest_move_times (to_node_id) where to_node_id is not null;

-- What is expected of a guest: the median of the last moves, 20 at most, of itself, else of guests on such a backing, else of
-- all; nothing where none was moved yet.
create function expected_downtime(guest uuid, on_backing text)
returns table (downtime_ms bigint, moves bigint, moves_of text) language sql stable as $$
    with found as (
        (select 1 as rank, 'guest' as moves_of, t.downtime_ms from guest_move_times t
         where t.guest_id = guest order by t.at desc limit 20)
        union all
        (select 2, 'backing', t.downtime_ms from guest_move_times t where t.backing = on_backing order by t.at desc limit 20)
        union all
        (select 3, 'all', t.downtime_ms from guest_move_times t order by t.at desc limit 20))
    select percentile_disc(0.5) within group (order by f.downtime_ms), count(*), f.moves_of
    from found f where f.rank = (select min(rank) from found) group by f.moves_of
$$;
