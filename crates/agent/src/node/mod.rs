//! Bridge, firewall and proxy of a node: rendered whole, checked, swapped, brought into force.
//!
//! What is on disk under `/etc/corpus` is what was last accepted. A plan that a checker refuses,
//! or that can't be brought into force, leaves the previous one on disk and in force. While a
//! plan is brought into force a mark lies beside it: an agent that finds the mark does all of
//! it again. Nothing changed means nothing is started but a look at what runs.

mod apply;
mod balance;
mod blocked;
mod certificates;
mod check;
mod counts;
mod egress;
mod far;
mod firewall;
mod firewalld;
mod guest_names;
mod identity;
mod links;
mod live;
mod mail;
mod network;
mod own_line;
mod places;
mod plan;
mod pools;
mod ports;
mod proxy;
mod remove;
mod reserved;
mod resolver;
mod rules;
mod signs;
mod sites;
mod traffic;

pub use self::apply::{apply, refresh};
pub use self::balance::{await_idle, members};
pub use self::certificates::{missing as missing_certificates, put as put_certificates};
pub use self::check::check;
pub use self::counts::read as read_firewall;
pub use self::mail::read as read_mail;
pub use self::plan::require_interface_name;
pub use self::ports::{admit, retract};
pub use self::remove::remove;
pub use self::reserved::settle as reserve_ports;
pub use self::signs::read as read_signs;
pub use self::sites::probe as probe_sites;

use std::path::{Path, PathBuf};

use corpus_protocol::NodePlan;

use crate::failure::Failure;
use crate::host::Host;
use crate::task::Task;

/// Waits until the ports are free at which the first guests are reached.
pub fn await_ports(task: &Task<'_>) -> Result<(), Failure> {
    reserved::await_free(task, proxy::ports_of_block(*corpus_domain::SSH_PORTS.start()).collect(), reserved::PATIENCE)
}

/// The families of our tables in nftables.
const FAMILIES: [&str; 2] = ["inet", "bridge"];

/// The units of a node, in the order in which they start.
const UNITS: [&str; 6] = {
    let [socket, collector] = traffic::UNITS;
    ["corpus-network.service", "corpus-firewall.service", socket, collector, "corpus-proxy.service", resolver::UNIT]
};

/// Those of them that this host can have: a node that was set up before there was a resolver has
/// none until its packages are looked at again, which a repair does.
fn units(host: &Host) -> Vec<&'static str> {
    let mut units = UNITS.to_vec();
    units.retain(|unit| *unit != resolver::UNIT || resolver::is_installed(host));
    units
}

/// A part of the node that is brought into force on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    /// A systemd unit.
    Unit,
    /// The units of what counts requests.
    Traffic,
    /// The nftables rules.
    Firewall,
    /// Who is let on the bridge, and where the node finds them.
    Ports,
    /// Which addresses are kept out for a while.
    Blocked,
    /// What haproxy reads when it starts.
    Proxy,
    /// What haproxy looks names and ports up in.
    Maps,
    /// Which members of pools haproxy gives requests.
    Members,
    /// Which certificates haproxy serves.
    Certificates,
    /// What unbound reads when it starts.
    Resolver,
    /// What firewalld reads, where a host has it.
    Firewalld,
}

/// A file of the node.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rendered {
    part: Part,
    path: PathBuf,
    text: String,
}

/// Every file of the plan.
fn render(host: &Host, plan: &NodePlan) -> Vec<Rendered> {
    let folder = host.configuration();
    let places = places::Places::here(host, proxy::listeners(plan));
    let places = if far::of(plan).is_some() { places.with_far() } else { places };
    let ipv6 = host.path("/proc/net/if_inet6").exists();
    let identity = certificates::of_links(host, plan).map(links::Identity);
    let offers = proxy::Offers { certificate: certificate(host).exists(), ipv6, places, identity };
    let unit = |name: &str, text| Rendered { part: Part::Unit, path: unit_path(host, name), text };
    let [socket, collector] = traffic::UNITS;
    let counts = |name: &str, text| Rendered { part: Part::Traffic, ..unit(name, text) };
    let file = |part, name: &str, text| Rendered { part, path: folder.join(name), text };
    let mut files = vec![
        unit("corpus-network.service", network::unit(&folder, plan)),
        unit("corpus-firewall.service", firewall::unit(&folder)),
        counts(socket, traffic::socket()),
        counts(collector, traffic::service()),
        unit("corpus-proxy.service", proxy::unit(&folder, places)),
        file(Part::Ports, "ports.nft", identity::ports(plan)),
        file(Part::Ports, "neighbours", identity::neighbours(plan)),
        file(Part::Blocked, "blocked.nft", blocked::file(host, plan)),
        file(Part::Firewall, "firewall.nft", firewall::rules(&folder, plan)),
        file(Part::Maps, "hosts.map", proxy::hosts(plan)),
        file(Part::Maps, "wildcards.map", proxy::wildcards(plan)),
        file(Part::Maps, "ports.map", proxy::ports(plan)),
        file(Part::Maps, "redirects.map", proxy::redirects(plan)),
        file(Part::Maps, "hsts.map", proxy::hsts(plan)),
        file(Part::Maps, "challenges.map", proxy::challenges(plan)),
        Rendered {
            part: Part::Certificates,
            path: certificates::list_path(host),
            text: certificates::list(host, plan),
        },
        file(Part::Maps, "pools.map", pools::names(plan)),
        file(Part::Maps, "members.map", pools::members(plan)),
        file(Part::Members, "servers.state", pools::states(plan)),
        file(Part::Proxy, "haproxy.cfg", proxy::configuration(&folder, plan, &offers)),
    ];
    // The proxy knows this map where it takes what others bring.
    if offers.identity.is_some() {
        files.push(file(Part::Maps, "lent.map", links::lent(plan)));
    }
    if offers.identity.is_some() && far::of(plan).is_some() {
        let [ways, asked] = far::ways(plan);
        let maps = [("ways.map", ways), ("asked.map", asked), ("far.map", far::open(plan))];
        files.extend(maps.map(|(name, text)| file(Part::Maps, name, text)));
    }
    if firewalld::is_installed(host) {
        files.extend(firewalld::files(host, plan));
    }
    if resolver::is_installed(host) {
        let text = resolver::configuration(plan, &resolver::upstreams(host));
        files.push(unit(resolver::UNIT, resolver::unit(host)));
        files.push(Rendered { part: Part::Resolver, path: resolver::path(host), text });
    }
    files
}

fn unit_path(host: &Host, name: &str) -> PathBuf {
    host.path("/etc/systemd/system").join(name)
}

fn certificate(host: &Host) -> PathBuf {
    host.configuration().join("default.pem")
}

/// The last plan that was brought into force.
fn applied_path(host: &Host) -> PathBuf {
    host.configuration().join("node.json")
}

/// Lies there while a plan is brought into force.
fn mark(host: &Host) -> PathBuf {
    host.configuration().join("applying")
}

/// What the kernel's rules looked like when they were brought into force.
fn seen_rules(folder: &Path) -> PathBuf {
    folder.join("firewall.seen")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files;

    #[test]
    fn the_files_of_a_node() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        files::write(&host.path("/usr/sbin/unbound"), "", 0o755).unwrap();
        files::write(&host.path("/etc/resolv.conf"), "nameserver 192.0.2.1\n", 0o644).unwrap();
        files::write(&certificate(&host), "", 0o600).unwrap();
        let mut plan = plan::tests::far();
        let text = certificates::pem::tests::file(1);
        plan.links.as_mut().unwrap().certificate.digest = crate::digest::sha256(text.as_bytes());
        for one in plan.all_certificates() {
            let file = host.configuration().join(format!("certificates/{}.pem", one.id));
            files::write(&file, &text, 0o600).unwrap();
        }
        let text = render(&host, &plan)
            .iter()
            .fold(String::new(), |text, file| text + &format!("==> {}\n{}\n", file.path.display(), file.text));
        insta::assert_snapshot!(text.replace(&folder.path().display().to_string(), ""));
    }
}
