-- A name whose guests are on several nodes is served by all of them: while the node of its guest is lost, a certificate that is
-- due comes by another one.
create function node_that_serves(id uuid) returns table (node_id uuid, is_own boolean) language sql stable as $$
    select c.id, c.id = g.node_id
    from dns_names n join guests g on g.id = n.guest_id
    join name_nodes s on s.name_id = n.id join nodes c on c.id = s.node_id
    where n.id = $1 and c.state in ('ready', 'draining') and c.reachability = 'reachable'
    order by c.id <> g.node_id, c.id limit 1
$$;
