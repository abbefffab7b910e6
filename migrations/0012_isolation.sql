-- Guests are unprivileged: each has 65,536 ids of its own on its node. The number is the first of them.
-- Root in a guest without them is root on its node, and somebody said why it may be so.
alter table guests
    add column id_range bigint
        constraint guests_id_range_check check (id_range between 1073741824 and 1878982656 and id_range % 65536 = 0),
    add column privileged_reason text
        constraint guests_privileged_reason_check check (char_length(privileged_reason) between 1 and 200),
    add constraint guests_node_id_id_range_key unique (node_id, id_range);

-- What was made before stays what it is; what was only requested gets ids like any other.
update guests set privileged_reason = 'made before guests were unprivileged' where ssh_port is not null;

-- One or the other, from the moment at which a place is allocated.
alter table guests add constraint guests_confined
    check (num_nonnulls(id_range, privileged_reason) = 1
           or (ssh_port is null and num_nonnulls(id_range, privileged_reason) = 0));
