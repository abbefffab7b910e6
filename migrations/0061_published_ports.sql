-- How many ports of nodes may lead to the guests of a project: one more thing that quotas limit.
alter table quota_policy add column ports bigint check (ports between 0 and 1000000);
alter table project_quotas
    add column ports bigint check (ports between 0 and 1000000),
    drop constraint project_quotas_unlimited_check,
    add constraint project_quotas_unlimited_check
        check (unlimited <@ array['guests', 'memory', 'cpu', 'storage', 'names', 'ports']);
alter table project_tallies add column ports int not null default 0;

create function published_port_is_tallied() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        insert into project_tallies (project_id, ports) values (old.project_id, -1);
    else
        insert into project_tallies (project_id, ports) values (new.project_id, 1);
    end if;
    return null;
end $$;
create trigger published_port_is_tallied after insert on firewall_rules
    for each row when (new.action = 'publish') execute function published_port_is_tallied();
create trigger published_port_is_tallied_out after delete on firewall_rules
    for each row when (old.action = 'publish') execute function published_port_is_tallied();

create or replace function fold_tallies() returns void language sql as $$
    with gone as (
        delete from project_tallies
        where project_id in (select project_id from project_tallies group by project_id having count(*) > 1)
        returning *)
    insert into project_tallies (project_id, guests, running, failed, stopped, names, attached, memory, cpu_millis,
        storage, ports)
    select project_id, sum(guests), sum(running), sum(failed), sum(stopped), sum(names), sum(attached), sum(memory),
        sum(cpu_millis), sum(storage), sum(ports)
    from gone group by project_id
    having (sum(guests), sum(running), sum(failed), sum(stopped), sum(names), sum(attached), sum(memory),
        sum(cpu_millis), sum(storage), sum(ports)) <> (0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    with gone as (
        delete from node_tallies
        where node_id in (select node_id from node_tallies group by node_id having count(*) > 1)
        returning *)
    insert into node_tallies
    select node_id, sum(guests), sum(memory), sum(cpu_millis), sum(storage)
    from gone group by node_id
    having (sum(guests), sum(memory), sum(cpu_millis), sum(storage)) <> (0, 0, 0, 0);
    with gone as (
        delete from zone_tallies
        where (zone_id, project_id) in (
            select zone_id, project_id from zone_tallies group by zone_id, project_id having count(*) > 1)
        returning *)
    insert into zone_tallies select zone_id, project_id, sum(names) from gone
    group by zone_id, project_id having sum(names) <> 0
$$;
