//! The proxy: HTTP by host name, and a TCP port for each guest's SSH.
//!
//! haproxy's configuration hardly ever changes: names and ports are looked up in two maps that
//! give the guest's address, and maps are replaced in the running process (see `live`). So a new
//! route is in force at once, cuts no connection, and leaves no old process behind that waits for
//! a long SSH session to end. Ports are bound a hundred at a time; on one that has no guest the
//! connection is closed.
//!
//! Who comes to a name by HTTP may be sent to HTTPS; that too, and how long browsers are told to remember it, is looked up.
//! What an authority asks before it gives a certificate is answered first of all, whatever the name leads to. The node's
//! own question, what a site answers, comes by a socket that only root can open: there nobody is sent to HTTPS.
//!
//! A name that several guests share is looked up in two more maps (see `pools`). Where none of them can take a request it
//! goes where a name of a single guest goes: to the guest that `hosts.map` gives.
//!
//! Each request is told of when it has ended (see `traffic`), by the name that it was routed by; those for no site are not,
//! and the node's own are not.
//!
//! Each session at a port of SSH is noted when it is over, for the signs of intrusion (see `signs`).
//!
//! Places are shared: see `places`. A guest is counted by its address, once the name or the port
//! has told which it is; a source from its first packet, so that connections which ask for nothing
//! are bounded too. What a guest answers, or does not, costs its own visitors only.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::RangeInclusive;
use std::path::Path;

use corpus_protocol::NodePlan;

use super::far;
use super::links::{self, Identity};
use super::places::Places;
use super::signs::{NOTED, RING};
use super::{pools, traffic};
use crate::traffic::line;

/// How many ports are bound together.
const BLOCK: u16 = 100;
/// Where the running proxy takes commands.
pub const SOCKET: &str = "/run/corpus-proxy/admin.sock";
/// Where it takes the node's own requests for sites.
pub const SITES: &str = "/run/corpus-proxy/sites.sock";
/// What authorities ask for begins so (RFC 8555, 8.3).
const CHALLENGE: &str = "/.well-known/acme-challenge/";

/// What sessions are noted in: some ten thousand of them.
const RING_SIZE: u32 = 1 << 20;
/// How long is waited for the first word of who comes to a port of SSH.
const FIRST_WORD: &str = "1s";

/// New connections of one source in ten seconds: a handshake of TLS costs the host a fraction of a millisecond.
const CONNECTIONS: u32 = 5000;
/// Requests to one guest in ten seconds.
const REQUESTS: u32 = 20_000;

/// What the host offers the proxy.
#[derive(Debug, Clone)]
pub struct Offers {
    /// There is a certificate for port 443.
    pub certificate: bool,
    /// The kernel speaks IPv6.
    pub ipv6: bool,
    /// How many connections it can hold.
    pub places: Places,
    /// By what other nodes know it, once that is there.
    pub identity: Option<Identity>,
}

/// The lines of `hosts.map`: name, address.
pub fn hosts(plan: &NodePlan) -> String {
    names(plan, false)
}

/// The lines of `wildcards.map`: the name that others are right below, address.
pub fn wildcards(plan: &NodePlan) -> String {
    names(plan, true)
}

fn names(plan: &NodePlan, wildcard: bool) -> String {
    let routes = plan.http_routes.iter().filter(|route| route.wildcard == wildcard);
    lines(&routes.map(|route| (route.name.as_str(), route.ip)).collect::<BTreeMap<_, _>>())
}

/// The lines of `ports.map`: port, address.
pub fn ports(plan: &NodePlan) -> String {
    let routes: BTreeMap<_, _> = plan.ssh_routes.iter().map(|route| (route.port.get(), route.ip)).collect();
    lines(&routes)
}

/// The lines of `redirects.map`: the names whose visitors are sent to HTTPS.
pub fn redirects(plan: &NodePlan) -> String {
    let redirected = plan.http_routes.iter().filter(|route| route.https.redirect);
    lines(&redirected.map(|route| (route.name.as_str(), "https")).collect())
}

/// The lines of `hsts.map`: name, seconds.
pub fn hsts(plan: &NodePlan) -> String {
    let told = plan.http_routes.iter().filter_map(|route| Some((route.name.as_str(), route.https.hsts_s?)));
    lines(&told.collect())
}

/// The lines of `challenges.map`: name and path, answer.
pub fn challenges(plan: &NodePlan) -> String {
    let asked = plan.challenges.iter();
    lines(&asked.map(|one| (format!("{}{CHALLENGE}{}", one.name, one.token), one.answer.as_str())).collect())
}

fn lines<K: std::fmt::Display, V: std::fmt::Display>(routes: &BTreeMap<K, V>) -> String {
    routes.iter().fold(String::new(), |mut text, (key, value)| {
        let _ = writeln!(text, "{key} {value}");
        text
    })
}

/// The first ports of the blocks to bind; the first block is always there.
fn blocks(plan: &NodePlan) -> BTreeSet<u16> {
    let used = plan.ssh_routes.iter().map(|route| route.port.get());
    used.chain([*corpus_domain::SSH_PORTS.start()]).map(|port| port - port % BLOCK).collect()
}

/// How many ports are bound, each a file: HTTP, HTTPS, the node's own, other nodes', those between guests, and those of SSH.
pub fn listeners(plan: &NodePlan) -> u64 {
    bound(plan).len() as u64 + 3 + u64::from(plan.links.is_some()) + if far::of(plan).is_some() { 2 } else { 0 }
}

/// The ports that are bound as the plan says.
pub fn bound(plan: &NodePlan) -> Vec<u16> {
    blocks(plan).into_iter().flat_map(ports_of_block).collect()
}

/// Those that are bound together.
pub fn ports_of_block(first: u16) -> RangeInclusive<u16> {
    first..=last_of(first)
}

fn last_of(block: u16) -> u16 {
    (block + BLOCK - 1).min(*corpus_domain::SSH_PORTS.end())
}

/// `haproxy.cfg`.
pub fn configuration(folder: &Path, plan: &NodePlan, host: &Offers) -> String {
    let (any, dual) = if host.ipv6 { ("::", " v4v6") } else { ("", "") };
    let tls = if host.certificate {
        format!("    bind {any}:443{dual} {}\n", tls(&folder.join("certificates.list")))
    } else {
        String::new()
    };
    let binds = blocks(plan).into_iter().fold(String::new(), |mut text, first| {
        let _ = writeln!(text, "    bind {any}:{first}-{}{dual}", last_of(first));
        text
    });
    let http_binds = format!("    bind {any}:80{dual}\n{tls}    bind unix@{SITES} mode 600 name sites\n");
    let places = host.places;
    [
        global(folder, places),
        tables(),
        http(folder, places, &http_binds),
        pools::configuration(plan, places, host.identity.as_ref()),
        host.identity.as_ref().map(|identity| links::configuration(folder, identity, places)).unwrap_or_default(),
        host.identity
            .as_ref()
            .filter(|_| far::of(plan).is_some())
            .map(|identity| far::configuration(folder, identity, places))
            .unwrap_or_default(),
        ring(),
        ssh(folder, places, &binds),
    ]
    .concat()
}

/// How a port speaks TLS with the certificates of a list.
pub fn tls(list: &Path) -> String {
    format!("ssl crt-list {} ssl-min-ver TLSv1.2 alpn h2,http/1.1", list.display())
}

fn global(folder: &Path, places: Places) -> String {
    format!(
        "\
# Written by corpus-agent; changes are overwritten.
global
    log stderr format short daemon notice
    maxconn {all}
    user haproxy
    group haproxy
    chroot /var/lib/haproxy
    stats socket {SOCKET} mode 600 level admin expose-fd listeners
    server-state-file {folder}/servers.state
    hard-stop-after 24h

defaults
    timeout connect 5s
    timeout client 1m
    timeout server 5m
    timeout queue 5s
    # A request that does not come, and a connection that waits for the next one, hold a place.
    timeout http-request 10s
    timeout http-keep-alive 10s
    timeout client-fin 10s
    timeout server-fin 10s
    timeout tunnel 1h

",
        all = places.all,
        folder = folder.display(),
    )
}

/// Who has how many places. A table is looked up by a source, or by a guest's address.
fn tables() -> String {
    let table = |name: &str, key: &str, store: &str| {
        format!("backend {name}\n    stick-table type {key} size 100k expire 1m store {store}\n\n")
    };
    [
        table("http_sources", "ipv6", "conn_cur,conn_rate(10s)"),
        table("http_requests", "ipv6", "conn_cur"),
        table("http_guests", "ip", "conn_cur,http_req_rate(10s)"),
        table("ssh_sources", "ipv6", "conn_cur"),
        table("ssh_guests", "ip", "conn_cur"),
    ]
    .concat()
}

/// Counts a source: an IPv4 address, which may come in the form of an IPv6 one, or the network of an IPv6 one.
fn tracked(ruleset: &str, counter: &str, table: &str) -> String {
    format!(
        "    {ruleset} track-{counter} src table {table} if {{ src 0.0.0.0/0 }}\n    \
         {ruleset} track-{counter} src,ipmask(32,64) table {table} unless {{ src 0.0.0.0/0 }}\n"
    )
}

fn http(folder: &Path, places: Places, binds: &str) -> String {
    let Places { http, http_of_guest: of_guest, http_of_source: of_source, .. } = places;
    let often = "Too many requests from where you are. Try again soon.";
    format!(
        "\
frontend http
    mode http
    maxconn {http}
    log {access} len {length} format raw local0
    log-format \"{format}\"
    option dontlognull
{binds}{sources}    tcp-request connection reject if {{ sc0_conn_cur gt {of_source} }} || {{ sc0_conn_rate gt {CONNECTIONS} }}
    http-request set-log-level silent if {{ so_name sites }}
    http-request set-var(txn.method) method,upper
    http-request set-var(txn.name) req.hdr(host),field(1,:),lower,rtrim(.)
{challenge}{https}    http-request set-var(txn.guest) var(txn.name),map_str_ip({folder}/hosts.map)
    http-request set-var(txn.site) var(txn.name) if {{ var(txn.guest) -m found }}
    http-request set-var(txn.below) var(txn.name),field(2,.,0) unless {{ var(txn.guest) -m found }}
    http-request set-var(txn.guest) var(txn.below),map_str_ip({folder}/wildcards.map) unless {{ var(txn.guest) -m found }}
    http-request set-log-level silent unless {{ var(txn.guest) -m found }}
    http-request return status 404 content-type text/plain string \"No site of this name here.\\n\" unless {{ var(txn.guest) -m found }}
    http-request set-var(txn.pool) var(txn.name),map_str({folder}/pools.map)
    # A guest that asks for a name which it shares is answered by itself: so it is proven while it is given no visitors.
    http-request set-var(txn.guest) src if {{ src,map_ip({folder}/members.map),strcmp(txn.pool) eq 0 }}
    http-request unset-var(txn.pool) if {{ src,map_ip({folder}/members.map),strcmp(txn.pool) eq 0 }}
    http-request unset-var(txn.pool) unless {{ var(txn.pool),nbsrv gt 0 }}
    # Guests that share a name have the places of one for it.
    http-request track-sc1 var(txn.guest) table http_guests
{limits}{requests}{many}    http-request set-header X-Forwarded-Proto https if {{ var(txn.https) -m found }}
    http-request set-header X-Forwarded-Proto http unless {{ var(txn.https) -m found }}
    http-request del-header X-Forwarded-For
    use_backend %[var(txn.pool)] if {{ var(txn.pool) -m found }}
    default_backend http_guest

backend http_guest
    mode http
    option forwardfor
    # No connection to one guest is ever used for a request to another.
    option http-server-close
    retries 1
    http-reuse never
    http-request set-dst var(txn.guest)
    server guest 0.0.0.0:80 maxconn {http}

",
        access = traffic::SOCKET,
        length = line::LONGEST,
        format = line::FORMAT,
        sources = tracked("tcp-request connection", "sc0", "http_sources"),
        challenge = challenge(folder),
        https = https(folder),
        limits = guests_limits(of_guest),
        requests = tracked("http-request", "sc2", "http_requests"),
        many = refuse(429, often, &format!("sc2_conn_cur gt {of_source}")),
        folder = folder.display(),
    )
}

fn refuse(status: u16, why: &str, when: &str) -> String {
    format!(
        "    http-request return status {status} content-type text/plain hdr Retry-After 5 hdr Connection close \
         string \"{why}\\n\" if {{ {when} }}\n"
    )
}

/// What one guest can't take is turned away, wherever it comes from.
pub fn guests_limits(of_guest: u64) -> String {
    let busy = "This site has more visitors than it can serve. Try again soon.";
    let full = refuse(503, busy, &format!("sc1_conn_cur gt {of_guest}"));
    full + &refuse(503, busy, &format!("sc1_http_req_rate gt {REQUESTS}"))
}

/// An answer is base64url and a dot; see `plan`.
fn challenge(folder: &Path) -> String {
    format!(
        "    http-request set-var(txn.path) path\n    \
         http-request set-var(txn.answer) var(txn.name),concat(,txn.path),map_str({}/challenges.map) if {{ path_beg {CHALLENGE} }}\n    \
         http-request return status 200 content-type text/plain lf-string \"%[var(txn.answer)]\" if {{ var(txn.answer) -m found }}\n",
        folder.display()
    )
}

/// Who comes by HTTP, and should not, is sent on; whether a request counts as one by HTTPS is in `txn.https`.
fn https(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "    http-request set-var(txn.redirect) var(txn.name),map_str({folder}/redirects.map)\n    \
         http-request set-var(txn.site) var(txn.name) if {{ var(txn.redirect) -m found }}\n    \
         http-request set-var(txn.https) bool(true) if {{ ssl_fc }} || {{ so_name sites }} {{ var(txn.redirect) -m found }}\n    \
         http-request redirect prefix https://%[var(txn.name)] code 308 if {{ var(txn.redirect) -m found }} !{{ var(txn.https) -m found }}\n    \
         http-request set-var(txn.hsts) var(txn.name),map_str({folder}/hsts.map) if {{ ssl_fc }}\n    \
         http-after-response set-header Strict-Transport-Security \"max-age=%[var(txn.hsts)]\" if {{ var(txn.hsts) -m found }}\n"
    )
}

/// Where sessions are noted; see `signs`.
fn ring() -> String {
    format!("ring {RING}\n    format raw\n    maxlen 256\n    size {RING_SIZE}\n\n")
}

fn ssh(folder: &Path, places: Places, binds: &str) -> String {
    let Places { ssh, ssh_of_guest: of_guest, ssh_of_source: of_source, .. } = places;
    format!(
        "\
frontend ssh
    mode tcp
    maxconn {ssh}
    timeout client 24h
    log ring@{RING} format raw daemon info
    log-format \"{NOTED}\"
{binds}{sources}    tcp-request connection reject if {{ sc0_conn_cur gt {of_source} }}
    tcp-request inspect-delay {FIRST_WORD}
    tcp-request content set-var(sess.guest) dst_port,map_int_ip({folder}/ports.map)
    tcp-request content reject unless {{ var(sess.guest) -m found }}
    tcp-request content track-sc1 var(sess.guest) table ssh_guests
    tcp-request content reject if {{ sc1_conn_cur gt {of_guest} }}
    tcp-request content set-dst var(sess.guest)
    # Clients of SSH speak first, all but a few. Whoever waits for the guest's first word gets it a moment later.
    tcp-request content set-var(sess.speaks) int(1) if {{ req.payload(0,4) -m bin 5353482d }}
    default_backend ssh_guest

backend ssh_guest
    mode tcp
    timeout server 24h
    option srvtcpka
    # A guest that still boots refuses; haproxy would keep the caller waiting a second before it tries again.
    retries 0
    server guest 0.0.0.0:22
",
        sources = tracked("tcp-request connection", "sc0", "ssh_sources"),
        folder = folder.display(),
    )
}

/// The unit of the proxy.
pub fn unit(folder: &Path, places: Places) -> String {
    let files = places.files;
    let configuration = folder.join("haproxy.cfg");
    let configuration = configuration.display();
    format!(
        "\
# Written by corpus-agent; changes are overwritten.
[Unit]
Description=Corpus: proxy to the guests
After=network.target corpus-network.service

[Service]
Type=notify
RuntimeDirectory=corpus-proxy
ExecStart=/usr/sbin/haproxy -Ws -f {configuration} -p /run/corpus-proxy/pid
ExecReload=/bin/kill -USR2 $MAINPID
KillMode=mixed
Restart=always
LimitNOFILE={files}
OOMScoreAdjust=-500
SuccessExitStatus=143
TimeoutStopSec=5

[Install]
WantedBy=multi-user.target
"
    )
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::plan;
    use super::*;

    #[test]
    fn maps_are_sorted_and_end_in_a_line() {
        assert_eq!(hosts(&plan()), "b.example.org 10.5.0.11\nwww.example.org 10.5.0.10\n");
        let mut plan_with = plan();
        plan_with.http_routes[0].wildcard = true;
        assert_eq!(hosts(&plan_with), "b.example.org 10.5.0.11\n");
        assert_eq!(wildcards(&plan_with), "www.example.org 10.5.0.10\n");
        assert_eq!(ports(&plan()), "40000 10.5.0.10\n40001 10.5.0.11\n");
    }

    #[test]
    fn what_is_said_of_https_is_in_maps() {
        let mut plan = plan();
        plan.http_routes[0].https.redirect = true;
        plan.http_routes[1].https.hsts_s = Some(300);
        assert_eq!(redirects(&plan), "www.example.org https\n");
        assert_eq!(hsts(&plan), "b.example.org 300\n");
        let answer = "x.example.org/.well-known/acme-challenge/tok_-1 tok_-1.thumb\n";
        assert_eq!(challenges(&plan), answer);
    }

    #[test]
    fn a_new_route_leaves_the_configuration_alone() {
        let folder = Path::new("/etc/corpus");
        let (one, mut more) = (plan(), plan());
        let both = &Offers { certificate: true, ipv6: true, places: Places::of(20_000, 4 << 30, 102), identity: None };
        more.ssh_routes[0].port = 40_099.try_into().unwrap();
        assert_eq!(configuration(folder, &one, both), configuration(folder, &more, both));
        more.ssh_routes[0].port = 50_000.try_into().unwrap();
        assert!(configuration(folder, &more, both).contains("bind :::50000-50000 v4v6\n"));
    }
}
