//! The ports of guests in the kernel: who is let on the bridge, and where the node finds them.
//!
//! A guest is let on before it starts, by whoever starts it, and its entries are taken away with
//! it; the files of the plan hold those that have a route, and say at boot what was so before.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use corpus_protocol::GuestPort;

use super::identity::element;
use crate::failure::Failure;
use crate::files;
use crate::host::Host;
use crate::runner::Argv;
use crate::task::Task;

/// `ATF_PERM` of `if_arp.h`: the entry is fixed.
const FIXED: u32 = 4;

/// The neighbour entries of a bridge: address, MAC.
type Neighbours = BTreeMap<Ipv4Addr, String>;

/// The node knows where the guest is, and the guest may speak on its port. Nothing else of it gets
/// anywhere, so a guest must not start without. In this order: where the first is not there, nor is the second.
pub fn admit(task: &Task<'_>, bridge: &str, port: &GuestPort) -> Result<(), Failure> {
    let (ip, mac) = (port.ip.to_string(), port.mac.to_string());
    if fixed(task.host, bridge).get(&port.ip) != Some(&mac) {
        let argv = Argv::new("ip").args(["neigh", "replace", &ip, "lladdr", &mac, "dev", bridge, "nud", "permanent"]);
        argv.quiet().run(task)?;
    }
    let added = Argv::new("nft").arg(format!("add element bridge corpus ports {{ {} }}", element(port))).quiet();
    match added.run(task) {
        Err(Failure::Command { tail, .. }) if tail.iter().any(|line| line.contains("No such file")) => {
            forget(task, bridge, port.ip)?;
            let message =
                format!("the node's firewall is not in force, so {} is not started; repair the node first", port.guest);
            Err(Failure::Missing(message))
        }
        added => added.map(drop),
    }
}

/// What [`admit`] did is gone. The port of a guest in the plan is not taken away here: its route goes first.
pub fn retract(task: &Task<'_>, bridge: &str, port: &GuestPort) -> Result<(), Failure> {
    if !fixed(task.host, bridge).contains_key(&port.ip) {
        return Ok(());
    }
    // Whichever of the two is there; a table that is gone holds nothing.
    let deleted = Argv::new("nft").arg(format!("delete element bridge corpus ports {{ {} }}", element(port)));
    deleted.quiet().end(task)?;
    forget(task, bridge, port.ip)
}

fn forget(task: &Task<'_>, bridge: &str, ip: Ipv4Addr) -> Result<(), Failure> {
    Argv::new("ip").args(["neigh", "del", &ip.to_string(), "dev", bridge]).quiet().end(task).map(drop)
}

/// The set of ports holds what the file says.
pub fn load(task: &Task<'_>) -> Result<(), Failure> {
    Argv::new("nft").arg("-f").arg(task.host.configuration().join("ports.nft")).run(task).map(drop)
}

/// The neighbour entries of the bridge are what the file says.
pub fn settle(task: &Task<'_>, bridge: &str) -> Result<(), Failure> {
    let file = task.host.configuration().join("neighbours");
    let (planned, found) = (planned(&files::read(&file)?.unwrap_or_default()), fixed(task.host, bridge));
    if planned.iter().any(|(ip, mac)| found.get(ip) != Some(mac)) {
        Argv::new("ip").args(["-force", "-batch"]).arg(&file).run(task)?;
    }
    found.keys().filter(|ip| !planned.contains_key(ip)).try_for_each(|ip| forget(task, bridge, *ip))
}

/// What of the kernel's ports and neighbour entries is not as in these two files, a sentence each.
pub fn differences(host: &Host, bridge: &str, files: (&str, &str), ports: &BTreeSet<String>) -> Vec<String> {
    let wanted: BTreeSet<String> =
        files.0.lines().filter_map(|line| Some(line.split_once('{')?.1)).map(inner).collect();
    let lacking = wanted.difference(ports).map(|port| format!("the firewall lets nothing through from {port}"));
    let besides =
        ports.difference(&wanted).map(|port| format!("the firewall lets through from {port}, no guest of this node"));
    let (planned, found) = (planned(files.1), fixed(host, bridge));
    let unknown = planned.iter().filter(|(ip, mac)| found.get(ip) != Some(mac));
    let unknown = unknown.map(|(ip, mac)| format!("the node would ask the bridge where {ip} is, which is {mac}"));
    let stray = found.iter().filter(|(ip, _)| !planned.contains_key(ip));
    let stray = stray.map(|(ip, mac)| format!("the node takes {mac} for {ip}, which no guest has"));
    lacking.chain(besides).chain(unknown).chain(stray).collect()
}

fn inner(element: &str) -> String {
    element.trim_end_matches('}').trim().to_owned()
}

/// The entries of the file `neighbours`.
fn planned(text: &str) -> Neighbours {
    text.lines().filter_map(|line| entry(&line.split(' ').collect::<Vec<_>>(), 2, 4)).collect()
}

/// The fixed entries of the bridge, from /proc/net/arp: address, type, flags, MAC, mask, device.
fn fixed(host: &Host, bridge: &str) -> Neighbours {
    let text = std::fs::read_to_string(host.path("/proc/net/arp")).unwrap_or_default();
    let of_bridge = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let flags = u32::from_str_radix(fields.get(2)?.trim_start_matches("0x"), 16).ok()?;
        (fields.get(5) == Some(&bridge) && flags & FIXED != 0).then(|| entry(&fields, 0, 3))?
    };
    text.lines().filter_map(of_bridge).collect()
}

fn entry(fields: &[&str], ip: usize, mac: usize) -> Option<(Ipv4Addr, String)> {
    Some((fields.get(ip)?.parse().ok()?, (*fields.get(mac)?).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::identity::{neighbours, ports};
    use super::super::plan::tests::plan;
    use super::*;

    #[test]
    fn what_differs_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let plan = plan();
        let table = "IP address       HW type     Flags       HW address            Mask     Device\n\
                     10.5.0.10        0x1         0x6         00:16:3e:05:00:0a     *        lxcbr1\n\
                     10.5.0.12        0x1         0x6         00:16:3e:05:00:0c     *        lxcbr1\n\
                     10.5.0.13        0x1         0x2         00:16:3e:05:00:0d     *        lxcbr1\n\
                     10.0.0.1         0x1         0x6         00:16:3e:00:00:01     *        eth0\n";
        files::write(&host.path("/proc/net/arp"), table, 0o644).unwrap();
        let inside = [element(&plan.ports[0]), "\"cg0a05000c\" . 00:16:3e:05:00:0c . 10.5.0.12".to_owned()];
        let files = (ports(&plan), neighbours(&plan));
        let told = differences(&host, "lxcbr1", (&files.0, &files.1), &inside.into());
        assert_eq!(
            told,
            [
                "the firewall lets nothing through from \"cg0a05000b\" . 00:16:3e:05:00:0b . 10.5.0.11",
                "the firewall lets through from \"cg0a05000c\" . 00:16:3e:05:00:0c . 10.5.0.12, no guest of this node",
                "the node would ask the bridge where 10.5.0.11 is, which is 00:16:3e:05:00:0b",
                "the node takes 00:16:3e:05:00:0c for 10.5.0.12, which no guest has",
            ]
        );
    }
}
