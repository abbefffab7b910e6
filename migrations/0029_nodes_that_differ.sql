-- The overview asks which nodes are not as they should be. What differs is long; most nodes have none of it.
create index nodes_that_differ on nodes (address, ssh_port) where jsonb_array_length(drift) > 0;
