//! The bridge of the guests, as a systemd unit whose lines are argvs.

use std::path::Path;

use corpus_domain::MacAddress;
use corpus_protocol::NodePlan;

/// The unit: it makes the bridge at boot, before LXC starts guests on it.
///
/// The bridge's MAC is set: left to itself the kernel takes the lowest of its ports', so the
/// gateway would change its MAC when a guest comes, and guests would lose it for a while. Where
/// guests are the node knows from a file, and asks nobody. The bridge learns nothing from frames to
/// link-local groups (LLDP): no rule sees these, and a guest could take another's place by them.
pub fn unit(folder: &Path, plan: &NodePlan) -> String {
    let (bridge, network) = (&plan.bridge, plan.network);
    let neighbours = folder.join("neighbours");
    let neighbours = neighbours.display();
    let mac = MacAddress::for_ip(network.gateway());
    format!(
        "\
# Written by corpus-agent; changes are overwritten.
[Unit]
Description=Corpus: bridge of the guests
After=network.target
Before=lxc.service lxc-net.service corpus-firewall.service corpus-proxy.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=-/sbin/ip link add name {bridge} type bridge
ExecStart=/sbin/ip link set dev {bridge} address {mac}
ExecStart=/sbin/ip link set dev {bridge} type bridge no_linklocal_learn 1
ExecStart=/sbin/ip address replace {network} dev {bridge}
ExecStart=/sbin/ip link set dev {bridge} up
ExecStart=-/sbin/ip -force -batch {neighbours}
ExecStart=/sbin/sysctl -q -w net.ipv4.ip_forward=1
ExecStop=-/sbin/ip link delete dev {bridge}

[Install]
WantedBy=multi-user.target
"
    )
}
