-- Guests reach guests of their own project on other nodes, by TCP.

-- By which address a guest is reached from other nodes: 198.18.x.y of its number. It keeps it for as long as it is there.
create table guest_stand_ins (
    guest_id uuid primary key references guests on delete cascade,
    number   int not null unique check (number between 1 and 65534)
);

create index firewall_rules_between_guests on firewall_rules (project_id)
    where action = 'allow' and source in ('guest', 'environment');

-- Whom rules let in from one node to another; they are there once both have routes. Each port is a way of its own, so such a
-- rule is for 16 at most, as MAX_FAR_PORTS of the protocol says.
create view far_guests as
select r.id as rule_id, r.state, r.first_port, r.last_port,
    s.id as source_id, s.node_id as source_node, s.ip as source_ip,
    t.id as target_id, t.node_id as target_node, t.ip as target_ip, t.name as target_name,
    s.routed and s.ip is not null and t.routed and t.ip is not null as is_there
from firewall_rules r
join guests s on s.project_id = r.project_id and (s.id = r.source_guest_id or s.environment = r.source_environment)
join guests t on t.project_id = r.project_id and (t.id = r.guest_id or t.environment = r.environment)
where r.action = 'allow' and r.source in ('guest', 'environment') and r.protocol = 'tcp'
    and r.last_port - r.first_port < 16 and s.node_id <> t.node_id;
