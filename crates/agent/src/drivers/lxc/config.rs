//! The configuration of a container, rendered whole.
//!
//! Debian's `common.conf` is not included: what an operator (or the lxcfs package, whose stop
//! hook sleeps for half a second) puts beside it would change every guest. What it says is
//! said here instead, minus what a guest of ours does not need.
//!
//! A guest with ids of its own ([`GuestPlan::ids`]) is unprivileged: its root is nobody on the node.
//! What holds it is said here in full ([`confinement`]); what can't be had makes the start fail.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::Path;

use corpus_domain::{Backing, GuestId, GuestName, IdRange, ImageName, LxcKey, LxcLine, SizeProfile};
use corpus_protocol::{GuestPlan, GuestPort};

use super::limits::Held;
use super::{root, state, tools};
use crate::backings::{self, Store};
use crate::confinement::has_apparmor;
use crate::failure::Failure;
use crate::host::Host;

const MARKER: &str = "# corpus guest";
const SIZE: &str = "# size ";
const AT_BOOT: &str = "lxc.start.auto = ";
const IDS: &str = "# ids ";
const ID: &str = "# id ";
const APPARMOR: &str = "lxc.apparmor.profile = ";

/// What root in an unprivileged guest has no use for: it counts in its own user namespace only.
const DROPPED: &str = "audit_control audit_read block_suspend linux_immutable mac_admin mac_override sys_module \
                       sys_pacct sys_rawio sys_time syslog wake_alarm";
/// What root in a privileged guest, who is root on the node, must not have.
const DROPPED_PRIVILEGED: &str = "mac_admin mac_override sys_time sys_module sys_rawio";

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
    /// Which guest of its name it is; older agents did not say.
    pub id: Option<GuestId>,
    pub image: ImageName,
    pub backing: Backing,
    /// None for a privileged guest.
    pub ids: Option<IdRange>,
}

impl Made {
    /// Reads it from a configuration of ours; nothing when the file is someone else's.
    pub fn read(config: &str) -> Option<Self> {
        let field = |key: &str| config.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
        config.starts_with(MARKER).then_some(())?;
        // Ids that can't be read must not make a guest privileged.
        let ids = field(IDS).map(|ids| ids.parse().ok());
        let id = field(ID).map(|id| id.parse().ok());
        Some(Self {
            id: id.map_or(Some(None), |id| id.map(Some))?,
            image: field("# image")?.parse().ok()?,
            backing: field("# backing")?.parse().ok()?,
            ids: ids.map_or(Some(None), |ids| ids.map(Some))?,
        })
    }

    pub fn uses(&self, image: &ImageName) -> bool {
        self.image == *image && backings::of(self.backing).is_ok_and(backings::Backing::lies_on_image)
    }

    /// Where its files are.
    pub fn store(&self, host: &Host, guest: &GuestName) -> Store {
        Store {
            folder: host.lxc_guest(guest),
            image: host.image(&self.image),
            ids: self.ids,
            is_begun: state::is_begun,
        }
    }

    /// An existing guest can't be moved to another image or backing, nor its files to other ids.
    pub fn require_same_origin(&self, plan: &GuestPlan) -> Result<(), Failure> {
        if self.ids != plan.ids {
            let ids =
                |ids: Option<IdRange>| ids.map_or("no ids of its own".to_owned(), |ids| format!("the ids from {ids}"));
            return Err(Failure::Invalid(format!(
                "{} was made with {}; destroy it before it is made with {}",
                plan.name,
                ids(self.ids),
                ids(plan.ids)
            )));
        }
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

/// The same configuration of a guest that its node does not start at boot.
pub fn not_at_boot(config: &str) -> String {
    let line = |line: &str| if line.starts_with(AT_BOOT) { format!("{AT_BOOT}0\n") } else { format!("{line}\n") };
    config.lines().map(line).collect()
}

/// The same configuration of a guest that its node starts at boot or not, with these lines and no others of their kinds: what can
/// be one of them is written here only, and nothing else of a configuration can be.
pub fn with_settings(config: &str, autostart: bool, lines: &[LxcLine]) -> Result<String, Failure> {
    let settings = settings(autostart, lines)?;
    let kept = config
        .lines()
        .filter(|line| !is_setting(line))
        .flat_map(|line| if line.starts_with(AT_BOOT) { settings.clone() } else { vec![line.to_owned()] });
    Ok(kept.map(|line| line + "\n").collect())
}

/// What a configuration says of what is changed later.
fn settings(autostart: bool, lines: &[LxcLine]) -> Result<Vec<String>, Failure> {
    let mut keys = BTreeSet::new();
    if let Some(twice) = lines.iter().find(|line| !keys.insert(line.key())) {
        return Err(Failure::Invalid(format!("{} is set twice", twice.key())));
    }
    let at_boot = format!("{AT_BOOT}{}", u8::from(autostart));
    Ok(std::iter::once(at_boot).chain(lines.iter().map(ToString::to_string)).collect())
}

fn is_setting(line: &str) -> bool {
    line.split_once('=').is_some_and(|(key, _)| key.trim().parse::<LxcKey>().is_ok())
}

/// The size that a configuration of ours says.
pub fn size(config: &str) -> Option<SizeProfile> {
    config.lines().find_map(|line| line.strip_prefix(SIZE))?.trim().parse().ok()
}

/// The same configuration as this agent would have it where that may change with the node: what was
/// written by an older one has no groups of its own, and AppArmor may have come or gone.
pub fn refreshed(host: &Host, name: &GuestName, config: &str) -> String {
    let groups = state::lines(name);
    let missing = groups.into_iter().filter(|group| !config.lines().any(|line| line == group));
    let said = config.lines().map(|line| if line.starts_with(APPARMOR) { apparmor(host) } else { line.to_owned() });
    said.chain(missing).map(|line| line + "\n").collect()
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
    let mut lines = vec![
        MARKER.to_owned(),
        "# Written by corpus-agent; changes are overwritten.".to_owned(),
        format!("# image {}", plan.image),
        format!("# backing {}", plan.backing),
        format!("{SIZE}{}", plan.size),
        format!("lxc.arch = {}", if cfg!(target_arch = "x86_64") { "linux64" } else { std::env::consts::ARCH }),
        format!("lxc.uts.name = {name}"),
    ];
    lines.extend(settings(plan.autostart, &plan.lines)?);
    lines.extend([
        "lxc.net.0.type = veth".to_owned(),
        format!("lxc.net.0.link = {}", net.bridge),
        "lxc.net.0.flags = up".to_owned(),
        "lxc.net.0.name = eth0".to_owned(),
        format!("lxc.net.0.veth.pair = {}", interface(net.ip)),
        format!("lxc.net.0.hwaddr = {}", net.mac),
        format!("lxc.net.0.ipv4.address = {}/{}", net.ip, net.network.prefix()),
        format!("lxc.net.0.ipv4.gateway = {}", net.network.gateway()),
        "lxc.pty.max = 1024".to_owned(),
        "lxc.tty.max = 0".to_owned(),
        "lxc.tty.dir = lxc".to_owned(),
        "lxc.console.path = none".to_owned(),
        format!("lxc.log.file = {}", root::log(&folder).display()),
        "lxc.log.level = ERROR".to_owned(),
    ]);
    lines.extend(plan.id.map(|id| format!("{ID}{id}")));
    lines.extend(root_lines(host, plan)?);
    lines.extend(confinement(host, plan.ids));
    for group in ["cgroup", "cgroup2"] {
        lines.push(format!("lxc.{group}.devices.deny = a"));
        lines.extend(DEVICES.iter().map(|device| format!("lxc.{group}.devices.allow = {device}")));
    }
    lines.extend(Held::of(host).lines(name, true, plan.limits, net.ip));
    Ok(lines.join("\n") + "\n")
}

/// What holds the guest's processes.
fn confinement(host: &Host, ids: Option<IdRange>) -> Vec<String> {
    let mut lines = vec![
        apparmor(host),
        "lxc.mount.auto = cgroup:mixed proc:mixed sys:mixed".to_owned(),
        // Left to itself LXC loads no list, and says nothing, where the node has one already.
        "lxc.seccomp.allow_nesting = 1".to_owned(),
    ];
    let Some(ids) = ids else {
        lines.push("lxc.seccomp.profile = /usr/share/lxc/config/common.seccomp".to_owned());
        lines.push(format!("lxc.cap.drop = {DROPPED_PRIVILEGED}"));
        return lines;
    };
    lines.push(format!("{IDS}{ids}"));
    lines.extend(["u", "g"].map(|kind| format!("lxc.idmap = {kind} 0 {ids} {}", IdRange::LEN)));
    lines.push(format!("lxc.seccomp.profile = {}", tools::system_calls(host).display()));
    lines.push(format!("lxc.cap.drop = {DROPPED}"));
    lines
}

/// Where the kernel has AppArmor, LXC refuses to start a guest whose profile it can't make.
fn apparmor(host: &Host) -> String {
    format!("{APPARMOR}{}", if has_apparmor(host) { "generated" } else { "unconfined" })
}

fn root_lines(host: &Host, plan: &GuestPlan) -> Result<Vec<String>, Failure> {
    let made = Made { id: plan.id, image: plan.image.clone(), backing: plan.backing, ids: plan.ids };
    let store = made.store(host, &plan.name);
    let path = |path: &Path| format!("lxc.rootfs.path = dir:{}", path.display());
    Ok(match backings::of(plan.backing)?.root(&store) {
        Some(tree) => vec![path(&tree)],
        None => vec![
            path(&root::place(&store.folder)),
            // The hook's mounts are this guest's only, and go with it.
            "lxc.monitor.unshare = 1".to_owned(),
            format!("lxc.hook.pre-start = {} {}", tools::agent(host).display(), root::WORD),
        ],
    })
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
            id: None,
            driver: Driver::Lxc,
            image: "debian-12".parse().unwrap(),
            backing,
            size: SizeProfile::Small,
            limits: SizeProfile::Small.limits(),
            net: GuestNet {
                bridge: "lxcbr1".into(),
                network: corpus_domain::GuestNetwork::DEFAULT,
                ip,
                mac: MacAddress::for_ip(ip),
            },
            autostart: true,
            lines: Vec::new(),
            ids: Some(IdRange::try_from(IdRange::LOWEST).unwrap()),
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
        assert!(config.contains("lxc.rootfs.path = dir:/var/lib/lxc/www.example.org/root\n"));
        let larger = GuestPlan { size: SizeProfile::Medium, ..plan(Backing::Loop) };
        assert_eq!(resized(&config, SizeProfile::Medium), render(&host, &larger).unwrap());
    }

    #[test]
    fn a_guest_that_goes_on_elsewhere_is_not_started_at_boot() {
        let (host, begins) = (Host::default(), plan(Backing::Loop));
        let rests = GuestPlan { autostart: false, ..begins.clone() };
        assert_eq!(not_at_boot(&render(&host, &begins).unwrap()), render(&host, &rests).unwrap());
    }

    #[test]
    fn settings_change_and_the_rest_stays() {
        let line = |key: &str, value: &str| LxcLine::new(key.parse().unwrap(), value.parse().unwrap()).unwrap();
        let (host, before) = (Host::default(), plan(Backing::Loop));
        let (files, forward) = (line("lxc.prlimit.nofile", "4096"), line("lxc.sysctl.net.ipv4.ip_forward", "1"));
        let after = GuestPlan { autostart: false, lines: vec![files.clone(), forward.clone()], ..before.clone() };
        let (was, is) = (render(&host, &before).unwrap(), render(&host, &after).unwrap());
        assert!(is.contains(
            "\nlxc.start.auto = 0\nlxc.prlimit.nofile = 4096\nlxc.sysctl.net.ipv4.ip_forward = 1\nlxc.net.0."
        ));
        assert_eq!(with_settings(&was, false, &after.lines).unwrap(), is);
        assert_eq!(with_settings(&is, false, &after.lines).unwrap(), is);
        assert_eq!(with_settings(&is, true, &[]).unwrap(), was);
        assert_eq!(not_at_boot(&with_settings(&was, true, &after.lines).unwrap()), is);
        // Whatever else is written of it meanwhile.
        let limited = super::super::limits::Held::of(&host).limited(&is, &after.name, after.limits);
        assert_eq!(
            refreshed(&host, &after.name, &limited).replace(&apparmor(&host), ""),
            is.replace(&apparmor(&host), "")
        );
        let by_hand = format!("{was}lxc.sysctl.net.ipv4.ip_forward=1\n");
        assert_eq!(with_settings(&by_hand, true, &[]).unwrap(), was);
        let twice = [files, line("lxc.prlimit.nofile", "1")];
        assert!(with_settings(&was, true, &twice).is_err());
        // No line of ours is one that a guest may have.
        assert!(!was.lines().any(is_setting));
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
    fn a_privileged_guest_has_no_ids() {
        let host = Host::default();
        let plan = GuestPlan { ids: None, ..plan(Backing::Loop) };
        let config = render(&host, &plan).unwrap();
        assert!(!config.contains("idmap"), "{config}");
        assert!(config.contains("lxc.rootfs.path = dir:/var/lib/lxc/www.example.org/root\n"));
        assert_eq!(Made::read(&config).unwrap().ids, None);
    }

    #[test]
    fn ids_stay_and_are_never_lost() {
        let mut plan = plan(Backing::Overlayfs);
        let config = render(&Host::default(), &plan).unwrap();
        let made = Made::read(&config).unwrap();
        assert_eq!(made.ids, plan.ids);
        plan.ids = IdRange::all().nth(1);
        assert!(made.require_same_origin(&plan).is_err());
        plan.ids = None;
        assert!(made.require_same_origin(&plan).is_err());
        for garbled in ["# ids 1073741825", "# ids ", "# ids x"] {
            assert!(Made::read(&config.replace("# ids 1073741824", garbled)).is_none(), "{garbled}");
        }
    }

    #[test]
    fn an_older_configuration_gets_groups_of_its_own_once() {
        let (host, plan) = (Host::default(), plan(Backing::Overlayfs));
        let config = render(&host, &plan).unwrap();
        assert_eq!(refreshed(&host, &plan.name, &config), config);
        let kept: Vec<&str> = config.lines().filter(|line| !line.contains("cgroup.dir")).collect();
        let older = kept.join("\n") + "\n";
        let again = refreshed(&host, &plan.name, &older);
        assert!(state::lines(&plan.name).iter().all(|group| again.lines().filter(|line| line == group).count() == 1));
        assert_eq!(refreshed(&host, &plan.name, &again), again);
    }

    #[test]
    fn refuses_what_it_cannot_make() {
        let host = Host::default();
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
