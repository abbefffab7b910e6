-- A node that is asked for its sites may run out of time before all of them were. A name that was left out keeps the
-- time at which it was last asked itself; null where it is asked whenever its node is (`nodes.sites_at`).
alter table dns_names add column site_left_at timestamptz;

-- What is seen of the guests of an environment that have a release, or of one of them: whether visitors reach it, and
-- when that was seen. The leader is always one of them; a follower without a release takes no part.
create function seen_guests(of_project uuid, of_environment text, only_guest uuid) returns jsonb
    language sql stable parallel safe as $$
    select jsonb_agg(jsonb_build_object(
        'guest', g.name, 'role', eg.role, 'guest_state', g.state, 'node_reachability', n.reachability,
        'guest_seen_at', n.reading_at, 'site_status', s.site_status, 'site_problem', s.site_problem,
        'site_since', s.site_since, 'site_checked_at', coalesce(s.site_left_at, n.sites_at)
    ) order by eg.role = 'leader' desc, g.name)
    from environment_guests eg join guests g on g.id = eg.guest_id join nodes n on n.id = g.node_id
    left join lateral (
        select d.site_status, d.site_problem, d.site_since, d.site_left_at from dns_names d
        where d.guest_id = eg.guest_id and d.state = 'attached' order by d.created_at, d.name limit 1
    ) s on true
    where eg.project_id = of_project and eg.environment = of_environment
        and (only_guest is null or eg.guest_id = only_guest)
        and (eg.role = 'leader' or only_guest is not null or eg.state = 'ready' and eg.live is not null)
$$;
