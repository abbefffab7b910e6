//! Bridge, firewall and proxy of a node: rendered whole, checked, swapped, brought into force.
//!
//! What is on disk under `/etc/corpus` is what was last accepted. A plan that a checker refuses,
//! or that can't be brought into force, leaves the previous one on disk and in force. While a
//! plan is brought into force a mark lies beside it: an agent that finds the mark does all of
//! it again. Nothing changed means nothing is started but a look at what runs.

mod apply;
mod check;
mod firewall;
mod live;
mod network;
mod plan;
mod proxy;
mod remove;

pub use self::apply::apply;
pub use self::check::check;
pub use self::plan::require_interface_name;
pub use self::remove::remove;

use std::path::{Path, PathBuf};

use corpus_protocol::NodePlan;

use crate::host::Host;

/// The units of a node, in the order in which they start.
const UNITS: [&str; 3] = ["corpus-network.service", "corpus-firewall.service", "corpus-proxy.service"];

/// A part of the node that is brought into force on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    /// A systemd unit.
    Unit,
    /// The nftables rules.
    Firewall,
    /// What haproxy reads when it starts.
    Proxy,
    /// What haproxy looks names and ports up in.
    Maps,
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
    let offers =
        proxy::Offers { certificate: certificate(host).exists(), ipv6: host.path("/proc/net/if_inet6").exists() };
    let unit = |name: &str, text| Rendered { part: Part::Unit, path: unit_path(host, name), text };
    let file = |part, name: &str, text| Rendered { part, path: folder.join(name), text };
    vec![
        unit("corpus-network.service", network::unit(plan)),
        unit("corpus-firewall.service", firewall::unit(&folder)),
        unit("corpus-proxy.service", proxy::unit(&folder)),
        file(Part::Firewall, "firewall.nft", firewall::rules(plan)),
        file(Part::Maps, "hosts.map", proxy::hosts(plan)),
        file(Part::Maps, "ports.map", proxy::ports(plan)),
        file(Part::Proxy, "haproxy.cfg", proxy::configuration(&folder, plan, offers)),
    ]
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

    #[test]
    fn the_files_of_a_node() {
        let host = Host::below("/nowhere");
        let text = render(&host, &plan::tests::plan())
            .iter()
            .fold(String::new(), |text, file| text + &format!("==> {}\n{}\n", file.path.display(), file.text));
        insta::assert_snapshot!(text.replace("/nowhere", ""));
    }
}
