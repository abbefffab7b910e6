//! The resolver of the node's guests: unbound, by a unit and a file of our own.
//!
//! It listens on the guests' gateway and answers them alone. Zones of ours are asked from their own
//! servers and never kept, so that a name is there as soon as it is attached; everything else goes
//! to the servers that the node itself uses, or from the root down where it uses none. A name of
//! somebody else can't lead to an address that is near, unless ops let guests go there. Guests find each other by names that
//! are for them alone (see `guest_names`).
//!
//! The file lies in unbound's own folder, where a host's AppArmor profile lets it read. The service
//! that comes with the package stays off, and is left alone where it was there before.

use std::net::IpAddr;
use std::path::PathBuf;

use corpus_domain::Ipv4Network;
use corpus_protocol::{NodePlan, ZoneServers};

use super::guest_names;
use crate::files;
use crate::host::Host;

/// The unit.
pub const UNIT: &str = "corpus-resolver.service";
/// What of it must be there before anything is rendered.
const PROGRAM: &str = "/usr/sbin/unbound";
/// Where the node's own servers stand, and where systemd-resolved tells those behind its stub.
const RESOLV_CONF: [&str; 2] = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
const STUB: &str = "127.0.0.53";

/// Answers that lead back to what is near: a host's own, its link's, and private networks.
const NEAR: [&str; 7] =
    ["0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"];
const NEAR_V6: [&str; 4] = ["::1/128", "::ffff:0:0/96", "fc00::/7", "fe80::/10"];

/// Questions of one guest a second beyond which most are dropped.
const QUESTIONS: u32 = 300;

/// Whether it is installed.
pub fn is_installed(host: &Host) -> bool {
    host.path(PROGRAM).exists()
}

/// Where its configuration is.
pub fn path(host: &Host) -> PathBuf {
    host.path("/etc/unbound/corpus.conf")
}

/// The servers that the node itself asks.
pub fn upstreams(host: &Host) -> Vec<IpAddr> {
    let [own, behind] = RESOLV_CONF.map(|path| files::read(&host.path(path)).ok().flatten().unwrap_or_default());
    let own = servers(&own);
    if own.iter().any(|ip| ip.to_string() == STUB) && !behind.is_empty() { servers(&behind) } else { own }
}

fn servers(text: &str) -> Vec<IpAddr> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    lines.filter_map(|rest| rest.trim().parse().ok()).collect()
}

/// The configuration.
pub fn configuration(plan: &NodePlan, upstreams: &[IpAddr]) -> String {
    let gateway = plan.network.gateway();
    let network = format!("{}/{}", plan.network.network(), plan.network.prefix());
    let near: String = NEAR
        .iter()
        .filter(|near| !is_open(plan, near))
        .chain(&NEAR_V6)
        .fold(String::new(), |text, near| text + &format!("    private-address: {near}\n"));
    let mut zones: Vec<&ZoneServers> = plan.zones.iter().filter(|zone| !zone.servers.is_empty()).collect();
    zones.sort_by(|a, b| a.zone.cmp(&b.zone));
    let own: String = zones.iter().map(|zone| own_zone(zone)).collect();
    let stubs: String = zones.iter().map(|zone| stub(zone)).collect();
    let guests = guest_names::views(plan);
    format!(
        "\
# Written by corpus-agent; changes are overwritten.
server:
    interface: {gateway}
    access-control: 0.0.0.0/0 deny
    access-control: ::0/0 deny
    access-control: {network} allow
    username: \"\"
    chroot: \"\"
    directory: \"/etc/unbound\"
    pidfile: \"\"
    do-daemonize: no
    use-syslog: no
    logfile: \"\"
    verbosity: 0
    module-config: \"iterator\"
    num-threads: 2
    outgoing-range: 4096
    num-queries-per-thread: 2048
    incoming-num-tcp: 200
    tcp-idle-timeout: 5000
    msg-cache-size: 16m
    rrset-cache-size: 32m
    cache-max-negative-ttl: 60
    ip-ratelimit: {QUESTIONS}
    edns-buffer-size: 1232
    deny-any: yes
    hide-identity: yes
    hide-version: yes
    minimal-responses: yes
    do-not-query-localhost: {}
{near}{own}{of_guests}{stubs}{}remote-control:
    control-enable: no
{views}",
        if upstreams.iter().any(IpAddr::is_loopback) { "no" } else { "yes" },
        forward(upstreams),
        of_guests = guests.server,
        views = guests.views,
    )
}

/// Whether ops let guests go somewhere in this network: names of what is there must lead there.
fn is_open(plan: &NodePlan, near: &str) -> bool {
    let near: Option<Ipv4Network> = near.parse().ok();
    near.is_some_and(|near| plan.egress.allowed.iter().any(|rule| near.holds(rule.to) || rule.to.holds(near)))
}

/// Its names may lead to private addresses, and unbound's own list of names that are nobody's does not count.
fn own_zone(zone: &ZoneServers) -> String {
    format!("    private-domain: \"{0}.\"\n    local-zone: \"{0}.\" transparent\n", zone.zone)
}

fn stub(zone: &ZoneServers) -> String {
    let servers = zone.servers.iter().map(|server| format!("    stub-addr: {}@{}\n", server.ip(), server.port()));
    format!("stub-zone:\n    name: \"{}.\"\n{}    stub-no-cache: yes\n", zone.zone, servers.collect::<String>())
}

fn forward(upstreams: &[IpAddr]) -> String {
    if upstreams.is_empty() {
        return String::new();
    }
    let servers = upstreams.iter().map(|ip| format!("    forward-addr: {ip}\n"));
    format!("forward-zone:\n    name: \".\"\n{}", servers.collect::<String>())
}

/// The unit: it waits for the bridge, whose address it listens on, and is nobody on the node.
pub fn unit(host: &Host) -> String {
    let configuration = path(host);
    format!(
        "\
# Written by corpus-agent; changes are overwritten.
[Unit]
Description=Corpus: resolver of the guests
After=network.target corpus-network.service corpus-firewall.service
StartLimitIntervalSec=0

[Service]
Type=notify
ExecStart={PROGRAM} -d -p -c {}
ExecReload=/bin/kill -HUP $MAINPID
User=unbound
AmbientCapabilities=CAP_NET_BIND_SERVICE
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
LimitNOFILE=16384
MemoryMax=512M
Restart=always
RestartSec=1
TimeoutStopSec=5

[Install]
WantedBy=multi-user.target
",
        configuration.display()
    )
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::plan;
    use super::*;

    #[test]
    fn the_servers_of_the_node() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        assert_eq!(upstreams(&host), Vec::<IpAddr>::new());
        let write = |path: &str, text: &str| files::write(&host.path(path), text, 0o644).unwrap();
        write(RESOLV_CONF[0], "# x\nnameserver 192.0.2.1\n nameserver\tfd00::1\nnameserver fe80::1%eth0\nsearch x\n");
        let told = |host: &Host| upstreams(host).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(told(&host), ["192.0.2.1", "fd00::1"]);
        write(RESOLV_CONF[0], "nameserver 127.0.0.53\n");
        assert_eq!(told(&host), ["127.0.0.53"]);
        write(RESOLV_CONF[1], "nameserver 192.0.2.7\n");
        assert_eq!(told(&host), ["192.0.2.7"]);
    }

    #[test]
    fn where_ops_let_guests_go_names_may_lead() {
        let mut plan = plan();
        let near = |plan: &NodePlan| configuration(plan, &[]).contains("private-address: 10.0.0.0/8");
        assert!(!near(&plan), "10.1.2.3 is allowed");
        plan.egress.allowed.clear();
        assert!(near(&plan));
        plan.egress.allowed = vec!["0.0.0.0/0".parse().unwrap()];
        assert!(!near(&plan));
    }

    #[test]
    fn a_loopback_server_may_be_asked() {
        let ips = |ip: &str| [ip.parse().unwrap()];
        assert!(configuration(&plan(), &ips("127.0.0.1")).contains("do-not-query-localhost: no\n"));
        assert!(configuration(&plan(), &ips("192.0.2.1")).contains("do-not-query-localhost: yes\n"));
    }
}
