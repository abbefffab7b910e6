//! The configuration of a container, rendered whole.
//!
//! Debian's `common.conf` is not included: what an operator (or the lxcfs package, whose stop
//! hook sleeps for half a second) puts beside it would change every guest. What it says is
//! said here instead, minus what a guest of ours does not need.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use corpus_domain::{Backing, GuestName, ImageName, SizeProfile};
use corpus_protocol::{GuestPlan, GuestPort};

use super::disk;
use crate::failure::Failure;
use crate::host::Host;

const MARKER: &str = "# corpus guest";
const SIZE: &str = "# size ";

/// Devices that a guest may use: null, zero, full, tty, console, ptmx, random, urandom, pts.
const DEVICES: [&str; 11] = [
    "c *:* m",
    "b *:* m",
    "c 1:3 rwm",
    "c 1:5 rwm",
    "c 1:7 rwm",
    "c 5:0 rwm",
    "c 5:1 rwm",
    "c 5:2 rwm",
    "c 1:8 rwm",
    "c 1:9 rwm",
    "c 136:* rwm",
];

/// What a guest was made from, as its configuration says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    pub image: ImageName,
    pub backing: Backing,
}

impl Made {
    /// Reads it from a configuration of ours; nothing when the file is someone else's.
    pub fn read(config: &str) -> Option<Self> {
        let field = |key: &str| config.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        config.starts_with(MARKER).then_some(())?;
        Some(Self { image: field("# image")?.parse().ok()?, backing: field("# backing")?.parse().ok()? })
    }

    pub fn uses(&self, image: &ImageName) -> bool {
        self.backing == Backing::Overlayfs && self.image == *image
    }

    /// An existing guest can't be moved to another image or backing.
    pub fn require_same_origin(&self, plan: &GuestPlan) -> Result<(), Failure> {
        if (&self.image, self.backing) == (&plan.image, plan.backing) {
            return Ok(());
        }
        Err(Failure::Invalid(format!(
            "{} was made from image {} with backing {}; destroy it before it is made from {} with {}",
            plan.name, self.image, self.backing, plan.image, plan.backing
        )))
    }
}

/// The guest's port, and the bridge it is on, as a configuration of ours says.
pub fn port(config: &str, guest: &GuestName) -> Option<(String, GuestPort)> {
    let value = |key: &str| config.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
    config.starts_with(MARKER).then_some(())?;
    let (ip, _) = value("lxc.net.0.ipv4.address")?.split_once('/')?;
    let mac = value("lxc.net.0.hwaddr")?.parse().ok()?;
    let bridge = value("lxc.net.0.link").filter(|name| crate::node::require_interface_name(name).is_ok())?;
    Some((bridge.to_owned(), GuestPort { guest: guest.clone(), ip: ip.parse().ok()?, mac }))
}

/// The same configuration with another size.
pub fn resized(config: &str, size: SizeProfile) -> String {
    let line = |line: &str| if line.starts_with(SIZE) { format!("{SIZE}{size}\n") } else { format!("{line}\n") };
    config.lines().map(line).collect()
}

/// The guest's folder and, in it, what an overlay writes to.
pub fn upper(host: &Host, name: &GuestName) -> PathBuf {
    host.lxc_guest(name).join("delta0")
}

/// The host's end of the guest's cable: fixed, so that a leftover is found, and 15 bytes at most.
pub fn interface(ip: Ipv4Addr) -> String {
    format!("cg{:08x}", ip.to_bits())
}

/// Whether an interface of the host is such an end.
pub fn is_interface(name: &str) -> bool {
    name.strip_prefix("cg").is_some_and(|ip| ip.len() == 8 && ip.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// The text of `config`.
pub fn render(host: &Host, plan: &GuestPlan) -> Result<String, Failure> {
    let (name, net) = (&plan.name, &plan.net);
    if !net.network.takes(net.ip) {
        return Err(Failure::Invalid(format!("{} is no address for a guest in {}", net.ip, net.network)));
    }
    crate::node::require_interface_name(&net.bridge)?;
    let folder = host.lxc_guest(name);
    let root = root_path(host, plan)?;
    let apparmor =
        if host.path("/sys/kernel/security/apparmor/profiles").exists() { "generated" } else { "unconfined" };
    let mut lines = vec![
        MARKER.to_owned(),
        "# Written by corpus-agent; changes are overwritten.".to_owned(),
        format!("# image {}", plan.image),
        format!("# backing {}", plan.backing),
        format!("{SIZE}{}", plan.size),
        format!("lxc.arch = {}", if cfg!(target_arch = "x86_64") { "linux64" } else { std::env::consts::ARCH }),
        format!("lxc.uts.name = {name}"),
        format!("lxc.rootfs.path = {root}"),
        format!("lxc.start.auto = {}", u8::from(plan.autostart)),
        "lxc.net.0.type = veth".to_owned(),
        format!("lxc.net.0.link = {}", net.bridge),
        "lxc.net.0.flags = up".to_owned(),
        "lxc.net.0.name = eth0".to_owned(),
        format!("lxc.net.0.veth.pair = {}", interface(net.ip)),
        format!("lxc.net.0.hwaddr = {}", net.mac),
        format!("lxc.net.0.ipv4.address = {}/{}", net.ip, net.network.prefix()),
        format!("lxc.net.0.ipv4.gateway = {}", net.network.gateway()),
        format!("lxc.apparmor.profile = {apparmor}"),
        "lxc.seccomp.profile = /usr/share/lxc/config/common.seccomp".to_owned(),
        "lxc.cap.drop = mac_admin mac_override sys_time sys_module sys_rawio".to_owned(),
        "lxc.mount.auto = cgroup:mixed proc:mixed sys:mixed".to_owned(),
        "lxc.pty.max = 1024".to_owned(),
        "lxc.tty.max = 0".to_owned(),
        "lxc.tty.dir = lxc".to_owned(),
        "lxc.console.path = none".to_owned(),
        format!("lxc.log.file = {}", folder.join("lxc.log").display()),
        "lxc.log.level = ERROR".to_owned(),
    ];
    if plan.backing == Backing::Loop {
        // What is deleted in the guest is given back to the node's disk.
        lines.push("lxc.rootfs.options = discard=async".to_owned());
        // Whoever starts the guest waits until no agent has its disk open.
        let file = disk::file(&folder);
        lines.push(format!("lxc.hook.pre-start = /usr/bin/flock --wait 30 {} /bin/true", file.display()));
    }
    for group in ["cgroup", "cgroup2"] {
        lines.push(format!("lxc.{group}.devices.deny = a"));
        lines.extend(DEVICES.iter().map(|device| format!("lxc.{group}.devices.allow = {device}")));
    }
    Ok(lines.join("\n") + "\n")
}

fn root_path(host: &Host, plan: &GuestPlan) -> Result<String, Failure> {
    let folder = host.lxc_guest(&plan.name);
    match plan.backing {
        Backing::Overlayfs => Ok(format!(
            "overlay:{}:{}",
            host.image(&plan.image).join("rootfs").display(),
            upper(host, &plan.name).display()
        )),
        Backing::Dir => Ok(format!("dir:{}", folder.join("rootfs").display())),
        Backing::Loop => Ok(format!("loop:{}", disk::file(&folder).display())),
        other => Err(Failure::Invalid(format!("the lxc driver has no backing {other}; use overlayfs, loop or dir"))),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use corpus_domain::{Driver, MacAddress};
    use corpus_protocol::GuestNet;

    pub fn plan(backing: Backing) -> GuestPlan {
        let ip = Ipv4Addr::new(10, 5, 0, 10);
        GuestPlan {
            name: "www.example.org".parse().unwrap(),
            driver: Driver::Lxc,
            image: "debian-12".parse().unwrap(),
            backing,
            size: SizeProfile::Small,
            net: GuestNet {
                bridge: "lxcbr1".into(),
                network: corpus_domain::GuestNetwork::DEFAULT,
                ip,
                mac: MacAddress::for_ip(ip),
            },
            autostart: true,
        }
    }

    #[test]
    fn an_overlay_guest() {
        insta::assert_snapshot!(
            render(&Host::below("/nowhere"), &plan(Backing::Overlayfs)).unwrap().replace("/nowhere", "")
        );
    }

    #[test]
    fn a_guest_with_a_disk_of_its_own() {
        let host = Host::default();
        let config = render(&host, &plan(Backing::Loop)).unwrap();
        assert!(config.contains("lxc.rootfs.path = loop:/var/lib/lxc/www.example.org/rootfs.img\n"));
        let larger = GuestPlan { size: SizeProfile::Medium, ..plan(Backing::Loop) };
        assert_eq!(resized(&config, SizeProfile::Medium), render(&host, &larger).unwrap());
    }

    #[test]
    fn its_port_of_the_bridge() {
        let plan = plan(Backing::Dir);
        let config = render(&Host::default(), &plan).unwrap();
        let (bridge, port) = port(&config, &plan.name).unwrap();
        assert_eq!((bridge.as_str(), port.ip, port.mac), ("lxcbr1", plan.net.ip, plan.net.mac));
    }

    #[test]
    fn what_it_was_made_from() {
        let config = render(&Host::default(), &plan(Backing::Dir)).unwrap();
        assert!(config.contains("lxc.rootfs.path = dir:/var/lib/lxc/www.example.org/rootfs\n"));
        let made = Made::read(&config).unwrap();
        made.require_same_origin(&plan(Backing::Dir)).unwrap();
        assert!(made.require_same_origin(&plan(Backing::Overlayfs)).is_err());
        assert!(Made::read("lxc.arch = linux64\n# corpus guest\n# image x\n# backing dir\n").is_none());
    }

    #[test]
    fn refuses_what_it_cannot_make() {
        let host = Host::default();
        assert!(render(&host, &plan(Backing::Zfs)).is_err());
        let mut outside = plan(Backing::Dir);
        outside.net.ip = Ipv4Addr::new(10, 6, 0, 10);
        assert!(render(&host, &outside).is_err());
        let mut bridge = plan(Backing::Dir);
        bridge.net.bridge = "br0\nlxc.hook.start = /bin/x".into();
        assert!(render(&host, &bridge).is_err());
    }

    #[test]
    fn interface_names_fit() {
        assert_eq!(interface(Ipv4Addr::new(10, 5, 0, 10)), "cg0a05000a");
    }
}
