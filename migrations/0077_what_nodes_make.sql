-- What guests each node can make, as `driver/backing`: it tells so itself. One that has not been read since it learnt to
-- tell makes what every node made until then.
create function makings(facts jsonb, only_held boolean) returns text[] immutable parallel safe language sql as $$
    select case
        when jsonb_path_exists(facts, '$.drivers[*].backings[*]') then (
            select coalesce(array_agg((d ->> 'driver') || '/' || (b ->> 'backing')), '{}')
            from jsonb_array_elements(facts -> 'drivers') d cross join jsonb_array_elements(d -> 'backings') b
            where d ->> 'obstacle' is null and b ->> 'obstacle' is null and (not only_held or (b ->> 'holds_size')::boolean))
        when only_held then array['lxc/loop']
        else array['lxc/overlayfs', 'lxc/loop', 'lxc/dir']
    end
$$;
alter table nodes
    add column makes text[] not null generated always as (makings(facts, false)) stored,
    -- Those of them that are held to the storage of their size.
    add column holds text[] not null generated always as (makings(facts, true)) stored;
