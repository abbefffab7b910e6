//! The proxy: HTTP by host name, and a TCP port for each guest's SSH.
//!
//! haproxy's configuration hardly ever changes: names and ports are looked up in two maps that
//! give the guest's address, and maps are replaced in the running process (see `live`). So a new
//! route is in force at once, cuts no connection, and leaves no old process behind that waits for
//! a long SSH session to end. Ports are bound a hundred at a time; on one that has no guest the
//! connection is closed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use corpus_protocol::NodePlan;

/// How many ports are bound together.
const BLOCK: u16 = 100;
/// Where the running proxy takes commands.
pub const SOCKET: &str = "/run/corpus-proxy/admin.sock";

/// What the host offers the proxy.
#[derive(Debug, Clone, Copy, Default)]
pub struct Offers {
    /// There is a certificate for port 443.
    pub certificate: bool,
    /// The kernel speaks IPv6.
    pub ipv6: bool,
}

/// The lines of `hosts.map`: name, address.
pub fn hosts(plan: &NodePlan) -> String {
    let routes: BTreeMap<_, _> = plan.http_routes.iter().map(|route| (route.name.as_str(), route.ip)).collect();
    lines(&routes)
}

/// The lines of `ports.map`: port, address.
pub fn ports(plan: &NodePlan) -> String {
    let routes: BTreeMap<_, _> = plan.ssh_routes.iter().map(|route| (route.port.get(), route.ip)).collect();
    lines(&routes)
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

/// `haproxy.cfg`.
pub fn configuration(folder: &Path, plan: &NodePlan, host: Offers) -> String {
    let folder = folder.display();
    let (any, dual) = if host.ipv6 { ("::", " v4v6") } else { ("", "") };
    let tls = if host.certificate {
        format!("    bind {any}:443{dual} ssl crt {folder}/default.pem alpn h2,http/1.1\n")
    } else {
        String::new()
    };
    let last = *corpus_domain::SSH_PORTS.end();
    let binds = blocks(plan).into_iter().fold(String::new(), |mut text, first| {
        let _ = writeln!(text, "    bind {any}:{first}-{}{dual}", (first + BLOCK - 1).min(last));
        text
    });
    format!(
        "\
# Written by corpus-agent; changes are overwritten.
global
    log stderr format short daemon notice
    maxconn 4096
    user haproxy
    group haproxy
    chroot /var/lib/haproxy
    stats socket {SOCKET} mode 600 level admin expose-fd listeners
    hard-stop-after 24h

defaults
    timeout connect 5s
    timeout client 1m
    timeout server 5m
    timeout http-request 20s
    timeout http-keep-alive 30s
    timeout tunnel 1h

frontend http
    mode http
    bind {any}:80{dual}
{tls}    http-request set-var(txn.guest) req.hdr(host),field(1,:),lower,rtrim(.),map_str_ip({folder}/hosts.map)
    http-request return status 404 content-type text/plain string \"No site of this name here.\\n\" unless {{ var(txn.guest) -m found }}
    http-request set-header X-Forwarded-Proto https if {{ ssl_fc }}
    http-request set-header X-Forwarded-Proto http unless {{ ssl_fc }}
    http-request del-header X-Forwarded-For
    default_backend http_guest

backend http_guest
    mode http
    option forwardfor
    # No connection to one guest is ever used for a request to another.
    option http-server-close
    retries 1
    http-reuse never
    http-request set-dst var(txn.guest)
    server guest 0.0.0.0:80

frontend ssh
    mode tcp
    timeout client 24h
{binds}    tcp-request content set-var(sess.guest) dst_port,map_int_ip({folder}/ports.map)
    tcp-request content reject unless {{ var(sess.guest) -m found }}
    tcp-request content set-dst var(sess.guest)
    default_backend ssh_guest

backend ssh_guest
    mode tcp
    timeout server 24h
    option srvtcpka
    # A guest that still boots refuses; haproxy would keep the caller waiting a second before it tries again.
    retries 0
    server guest 0.0.0.0:22
"
    )
}

/// The unit of the proxy.
pub fn unit(folder: &Path) -> String {
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
        assert_eq!(ports(&plan()), "40000 10.5.0.10\n40001 10.5.0.11\n");
    }

    #[test]
    fn a_new_route_leaves_the_configuration_alone() {
        let folder = Path::new("/etc/corpus");
        let (one, mut more) = (plan(), plan());
        let both = Offers { certificate: true, ipv6: true };
        more.ssh_routes[0].port = 40_099.try_into().unwrap();
        assert_eq!(configuration(folder, &one, both), configuration(folder, &more, both));
        more.ssh_routes[0].port = 50_000.try_into().unwrap();
        assert!(configuration(folder, &more, both).contains("bind :::50000-50000 v4v6\n"));
    }
}
