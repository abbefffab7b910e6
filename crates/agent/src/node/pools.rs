//! Pools: guests over which the requests of a name are balanced, in the proxy's words.
//!
//! Which pools and members there are hardly ever changes, so it is a part of haproxy's configuration, which is checked and
//! reloaded without cutting a connection. Which members are given requests changes with every deployment: that is set in
//! the running process (see `live`), and stands in a file which a process that starts anew reads.
//!
//! A member that is to be given none is in `maint`, not in `drain`: to one in `drain` haproxy still brings those visitors
//! who have its cookie. Either way a request that is under way goes on to its end.

use std::collections::BTreeMap;
use std::fmt::Write;

use corpus_domain::{BalancePolicy, GuestName, PoolId, Stickiness};
use corpus_protocol::{HealthCheck, LINK_PORT, NodePlan, Pool, PoolMember};

use super::links::{self, Identity};
use super::places::Places;

/// What the proxy's backends of pools begin with.
pub const PREFIX: &str = "pool-";
/// The cookie that a visitor is known by. What it holds tells no address: the member's place in its pool's list.
const COOKIE: &str = "CORPUS_GUEST";

/// The proxy's name for a pool.
pub fn backend(id: &PoolId) -> String {
    format!("{PREFIX}{id}")
}

/// The lines of `pools.map`: name, pool.
pub fn names(plan: &NodePlan) -> String {
    let routes = plan.http_routes.iter().filter_map(|route| Some((route.name.as_str(), backend(route.pool.as_ref()?))));
    lines(routes.collect())
}

/// The lines of `members.map`: address, pool. One on another node comes by that node's address, as others there do.
pub fn members(plan: &NodePlan) -> String {
    let here = all(plan).filter(|(_, member)| member.via.is_none());
    lines(here.map(|(pool, member)| (member.ip, backend(&pool.id))).collect())
}

fn lines<K: std::fmt::Display>(entries: BTreeMap<K, String>) -> String {
    entries.into_iter().fold(String::new(), |mut text, (key, value)| {
        let _ = writeln!(text, "{key} {value}");
        text
    })
}

/// The members of all pools.
pub fn all(plan: &NodePlan) -> impl Iterator<Item = (&Pool, &PoolMember)> {
    plan.pools.iter().flat_map(|pool| pool.members.iter().map(move |member| (pool, member)))
}

/// The members of a pool in one order, whatever order they came in.
fn sorted(pool: &Pool) -> BTreeMap<&GuestName, &PoolMember> {
    pool.members.iter().map(|member| (&member.guest, member)).collect()
}

/// `servers.state`: what a process that starts is told of those who are given no requests. The format is that of
/// `show servers state`, version 1; a 1 as administrative state is `maint`.
pub fn states(plan: &NodePlan) -> String {
    let header = "1\n# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight \
                  srv_time_since_last_change srv_check_status srv_check_result srv_check_health srv_check_state \
                  srv_agent_state bk_f_forced_id srv_f_forced_id srv_fqdn srv_port srvrecord srv_use_ssl srv_check_port \
                  srv_check_addr srv_agent_addr srv_agent_port\n";
    let out: BTreeMap<_, _> = all(plan)
        .filter(|(_, member)| !member.active)
        .map(|(pool, member)| ((&pool.id, &member.guest), member))
        .collect();
    out.into_iter().fold(header.to_owned(), |mut text, ((id, guest), member)| {
        let (ip, (port, tls)) = (member.ip, if member.via.is_some() { (LINK_PORT, 1) } else { (80, 0) });
        let _ = writeln!(text, "0 {} 0 {guest} {ip} 0 1 1 1 0 1 0 0 14 0 0 0 - {port} - {tls} 0 - - 0", backend(id));
        text
    })
}

/// The backends. A request is never sent twice once a member took the connection: it may have been one that changes
/// something. One that takes no connection has not seen it, so another is asked.
pub fn configuration(plan: &NodePlan, places: Places, identity: Option<&Identity>) -> String {
    let pools: BTreeMap<_, _> = plan.pools.iter().map(|pool| (&pool.id, pool)).collect();
    pools.values().fold(String::new(), |text, pool| text + &one(pool, places, identity))
}

fn one(pool: &Pool, places: Places, identity: Option<&Identity>) -> String {
    let servers = sorted(pool).values().enumerate().fold(String::new(), |mut text, (at, member)| {
        let server = match (member.via, identity) {
            (None, _) => format!("{}:80", member.ip),
            (Some(node), Some(identity)) => identity.server(member, node),
            // There is no way to it yet.
            (Some(_), None) => return text,
        };
        let cookie = if pool.stickiness == Stickiness::Cookie { format!(" cookie {}", at + 1) } else { String::new() };
        let _ = writeln!(text, "    server {} {server}{cookie}", member.guest);
        text
    });
    format!(
        "backend {name}
    mode http
{balance}    option forwardfor
    option http-server-close
    option redispatch 1
    retries 2
    http-reuse never
    timeout check 5s
    load-server-state-from-file global
{again}{check}    default-server check inter 2s fastinter 500ms downinter 1s fall 2 rise 1 maxconn {most}
{servers}
",
        name = backend(&pool.id),
        balance = balance(pool),
        again =
            if pool.members.iter().any(|member| member.via.is_some()) { links::tried_again() } else { String::new() },
        check = pool.check.as_ref().map(check).unwrap_or_default(),
        most = places.http_of_guest,
    )
}

fn balance(pool: &Pool) -> String {
    let policy = match pool.policy {
        BalancePolicy::RoundRobin => "roundrobin",
        BalancePolicy::FewestConnections => "leastconn",
    };
    match pool.stickiness {
        Stickiness::None => format!("    balance {policy}\n"),
        Stickiness::Cookie => {
            format!("    balance {policy}\n    cookie {COOKIE} insert indirect nocache httponly maxidle 24h\n")
        }
        // Of those who came to one that leaves, only they go elsewhere.
        Stickiness::Source => "    balance source\n    hash-type consistent\n".to_owned(),
    }
}

fn check(HealthCheck { host, path, status }: &HealthCheck) -> String {
    format!(
        "    option httpchk
    http-check send meth GET uri {path} ver HTTP/1.1 hdr Host {host} hdr User-Agent corpus hdr Connection close
    http-check expect status {status}
"
    )
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::{balanced, linked};
    use super::*;

    fn configured(change: impl FnOnce(&mut Pool)) -> String {
        let mut plan = balanced();
        change(&mut plan.pools[0]);
        configuration(&plan, Places::of(20_000, 4 << 30, 102), None)
    }

    #[test]
    fn who_is_out_stands_in_the_file_and_nowhere_else() {
        let mut plan = balanced();
        let (before, states_before) = (configured(|_| ()), states(&plan));
        assert_eq!(states_before.lines().count(), 2);
        plan.pools[0].members[0].active = false;
        assert_eq!(configuration(&plan, Places::of(20_000, 4 << 30, 102), None), before);
        let states = states(&plan);
        let last = states.lines().last().unwrap();
        let id = &plan.pools[0].id;
        assert!(last.starts_with(&format!("0 pool-{id} 0 b.example.org 10.5.0.11 0 1 ")), "{last}");
        assert_eq!(last.split(' ').count(), states.lines().nth(1).unwrap().split(' ').count() - 1);
    }

    #[test]
    fn the_order_in_which_members_come_is_no_change() {
        assert_eq!(configured(|_| ()), configured(|pool| pool.members.reverse()));
    }

    #[test]
    fn policies_and_stickiness() {
        let cookie = configured(|pool| pool.stickiness = Stickiness::Cookie);
        assert!(cookie.contains("balance roundrobin\n    cookie CORPUS_GUEST insert"), "{cookie}");
        assert!(cookie.contains("server a.example.org 10.5.0.10:80 cookie 1\n    server b.example.org"), "{cookie}");
        let source = configured(|pool| pool.stickiness = Stickiness::Source);
        assert!(source.contains("balance source\n    hash-type consistent\n") && !source.contains("cookie"));
        assert!(configured(|pool| pool.policy = BalancePolicy::FewestConnections).contains("balance leastconn\n"));
        let unchecked = configured(|pool| pool.check = None);
        assert!(!unchecked.contains("httpchk") && unchecked.contains("default-server check"));
    }

    #[test]
    fn a_member_on_another_node_is_there_once_there_is_a_way() {
        let mut plan = linked();
        let places = Places::of(20_000, 4 << 30, 102);
        assert!(!configuration(&plan, places, None).contains("c.example.org"));
        let identity = Identity("/x.pem".into());
        assert!(
            configuration(&plan, places, Some(&identity))
                .contains("server c.example.org 192.0.2.8:7443 ssl crt /x.pem")
        );
        assert!(!members(&plan).contains("192.0.2.8"));
        let elsewhere = plan.pools[0].members.iter_mut().find(|member| member.via.is_some()).unwrap();
        elsewhere.active = false;
        assert!(states(&plan).ends_with(" c.example.org 192.0.2.8 0 1 1 1 0 1 0 0 14 0 0 0 - 7443 - 1 0 - - 0\n"));
    }

    #[test]
    fn names_and_members_lead_to_their_pool() {
        let plan = balanced();
        let id = &plan.pools[0].id;
        assert_eq!(names(&plan), format!("shop.example.org pool-{id}\n"));
        assert_eq!(members(&plan), format!("10.5.0.10 pool-{id}\n10.5.0.11 pool-{id}\n"));
    }
}
