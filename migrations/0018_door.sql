-- Logins: those that were refused, counted by the hour, and from where members signed in before.
create table refused_logins (
    hour     timestamptz not null,
    -- Of an account that is known here; empty for anything else that was typed, which may be a
    -- password and is kept nowhere.
    login    text not null check (length(login) <= 64),
    -- The address, of IPv6 the network of 64 bits; empty when there were too many to be told apart.
    network  text not null check (length(network) <= 64),
    reason   text not null check (length(reason) <= 64),
    first_at timestamptz not null,
    last_at  timestamptz not null,
    count    bigint not null check (count > 0),
    primary key (hour, login, network, reason)
);

-- Whoever signed in from a network before is not kept out by what others try from elsewhere.
create table login_places (
    login   text not null,
    network text not null,
    last_at timestamptz not null default now(),
    primary key (login, network)
);
