-- A name may be another name for one of the same project (CNAME). It is a name with a row, a route and a certificate of its
-- own, and leads where that one leads: both are switched by one statement.
alter table dns_names add constraint dns_names_and_guest unique (id, guest_id);
alter table dns_names
    add column alias_of uuid,
    -- One that others are another name for stays for as long as they do, and they lead nowhere else.
    add constraint dns_names_alias_leads_along foreign key (alias_of, guest_id) references dns_names (id, guest_id),
    add constraint dns_names_alias_is_of_ours check (alias_of is null or (zone_id is not null and not wildcard)),
    -- What points to a name points to the name itself (RFC 1034, section 3.6.2).
    add constraint dns_names_pointer_says_no_alias check (pointed_address is null or alias_of is null);
create index dns_names_aliases on dns_names (alias_of) where alias_of is not null;

-- An alias of an alias is none, so there are no circles: what one is an alias of is there first, and stays so.
create function alias_is_of_a_name() returns trigger language plpgsql as $$
declare
    target dns_names;
begin
    if tg_op = 'UPDATE' then
        raise exception 'what % is an alias of stays', old.name
            using errcode = 'check_violation', constraint = 'dns_names_alias_stays';
    end if;
    select * into target from dns_names where id = new.alias_of for share;
    if target.alias_of is not null then
        raise exception '% is an alias itself', target.name
            using errcode = 'check_violation', constraint = 'dns_names_alias_of_an_alias';
    end if;
    if target.wildcard or target.zone_id is null or target.environment is distinct from new.environment then
        raise exception '% can have no alias like this', target.name
            using errcode = 'check_violation', constraint = 'dns_names_alias_of_a_name';
    end if;
    return new;
end $$;
create trigger alias_is_of_a_name before insert on dns_names
    for each row when (new.alias_of is not null) execute function alias_is_of_a_name();
create trigger alias_stays before update of alias_of on dns_names
    for each row when (new.alias_of is distinct from old.alias_of) execute function alias_is_of_a_name();
