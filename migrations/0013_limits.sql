-- What each guest may take of its node, and how much of a node may be promised.

-- A guest that is there already has the limits of its size profile. The defaults are those of `small`.
alter table guests
    add column memory     bigint not null default 1073741824 check (memory between 67108864 and 17592186044416),
    add column cpu_millis integer not null default 1000 check (cpu_millis between 100 and 1024000),
    add column processes  integer not null default 1024 check (processes between 64 and 4194304),
    add column io_weight  smallint not null default 100 check (io_weight between 1 and 1000),
    -- What it counts for on its node's disk: all that it may fill where its size is held, else a usual part.
    add column storage    bigint not null default 2000000000 check (storage > 0);

update guests set memory = p.mib * 1048576, cpu_millis = p.millis, processes = p.processes, io_weight = p.weight,
    storage = case when backing = 'loop' then p.storage else least(p.storage, 2000000000) end
from (values
    ('xxxsmall',   256::bigint,   500,   256,  50,     500000000),
    ('xxsmall',    512,          1000,   512,  50,    1000000000),
    ('xsmall',     768,          1000,  1024, 100,    3000000000),
    ('small',     1024,          1000,  1024, 100,    5000000000),
    ('medium',    2048,          2000,  2048, 100,   10000000000),
    ('large',     4096,          2000,  4096, 100,   20000000000),
    ('xxxlarge',  8192,          4000,  8192, 200,  100000000000),
    ('xtrem',    16384,          8000,  8192, 200,  500000000000),
    ('xxtrem',   32768,         12000, 16384, 300, 1000000000000),
    ('xxxtrem',  65536,         16000, 16384, 300, 2000000000000)
) as p (size, mib, millis, processes, weight, storage)
where guests.size = p.size;

-- What a node has is what it told last; how much more of it may be promised, in per cent, is for ops to set.
-- Guests share processors and are slowed down at worst; memory and storage that are not there make them fail.
alter table nodes
    add column memory     bigint generated always as ((facts ->> 'memory')::bigint) stored,
    add column cpu_millis bigint generated always as ((facts -> 'cpu' ->> 'count')::bigint * 1000) stored,
    add column storage    bigint generated always as ((facts -> 'storage' ->> 'total')::bigint) stored,
    add column memory_overcommit  integer not null default 150 check (memory_overcommit between 10 and 10000),
    add column cpu_overcommit     integer not null default 800 check (cpu_overcommit between 10 and 10000),
    add column storage_overcommit integer not null default 100 check (storage_overcommit between 10 and 10000);

-- From now on slots are what is promised; this is only how many guests there may be at most.
update nodes set slots = 4096 where state in ('ready', 'draining', 'initializing') and facts is not null;
