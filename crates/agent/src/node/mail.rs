//! The service that takes mail from guests ([`crate::mail`]): its unit, what it reads, and what it counted.
//!
//! It is no part of what is swapped together: a node whose port 25 has another owner goes on with all the rest of its
//! plan, so that no guest waits for it, and says so wherever its differences are told. Whose mail is taken is read by the running service itself, so a
//! guest that is switched on or off cuts nobody's connection.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::net::Ipv4Addr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use corpus_domain::DriftKind;
use corpus_protocol::{Difference, MailCount, MailPlan, NodePlan};

use super::plan::require_guest_address;
use super::unit_path;
use crate::drivers::lxc::AGENT;
use crate::facts::{is_taken_at, processes_of};
use crate::failure::{At, Failure};
use crate::files;
use crate::host::Host;
use crate::mail::{COUNTS, POLICY, read_counts};
use crate::runner::Argv;
use crate::task::Task;

/// The unit.
const UNIT: &str = "corpus-mail.service";
/// Where guests find it.
pub const PORT: u16 = 25;
/// Connections of one guest that the firewall lets through; the service takes fewer, and says so.
pub const CONNECTIONS: u32 = 20;
/// The service's own folder; systemd keeps it below another one, where nobody else looks in.
const STATE: [&str; 2] = ["/var/lib/corpus-mail", "/var/lib/private/corpus-mail"];

/// A guest is known by its address alone, and the relay has one.
pub fn require_sound(plan: &NodePlan) -> Result<(), Failure> {
    let Some(mail) = &plan.mail else { return Ok(()) };
    if mail.relay.port() == 0 || mail.relay.ip().is_unspecified() {
        return Err(Failure::Invalid(format!("{} is no address of a mail relay", mail.relay)));
    }
    let mut ips = BTreeSet::new();
    for guest in &mail.guests {
        require_guest_address(plan, guest.ip)?;
        if !ips.insert(guest.ip) {
            return Err(Failure::Invalid(format!("two guests send mail from {}", guest.ip)));
        }
    }
    Ok(())
}

/// The plan as far as this host can follow it: without mail where a mail server of the host has the port. Guests are then
/// not let to it either, since it is that server which would hear them. Tells what to do about it.
pub fn as_far_as_can_be<'a>(host: &Host, plan: &'a NodePlan) -> (Cow<'a, NodePlan>, Option<String>) {
    let gateway = plan.network.gateway();
    let is_taken = plan.mail.is_some() && processes_of(host, UNIT).is_empty() && is_taken_at(host, gateway, PORT);
    if !is_taken {
        return (Cow::Borrowed(plan), None);
    }
    let problem = format!(
        "no mail is taken from guests, since port {PORT} of {gateway} is taken by a mail server of the host; let that one \
         listen on its own addresses only (inet_interfaces of Postfix, dc_local_interfaces of Exim), or stop it, and \
         repair the node"
    );
    (Cow::Owned(NodePlan { mail: None, ..plan.clone() }), Some(problem))
}

/// The service runs as planned, or not at all.
pub fn settle(task: &Task<'_>, plan: &NodePlan) -> Result<bool, Failure> {
    let Some(mail) = &plan.mail else { return stop(task) };
    let mut changed = files::ensure(&policy_path(task.host), &policy(mail), 0o644)?;
    open_way(task.host)?;
    let renewed = files::ensure(&unit_path(task.host, UNIT), &unit(plan.network.gateway()), 0o644)?;
    if renewed {
        Argv::new("systemctl").arg("daemon-reload").run(task)?;
        Argv::new("systemctl").args(["enable", "--quiet", UNIT]).quiet().run(task)?;
    }
    if renewed || !is_of_this_agent(task.host) {
        let (status, _) = Argv::new("systemctl").args(["restart", UNIT]).quiet().end(task)?;
        if !status.success() {
            // It is told as a difference, too, and no guest waits for it.
            task.note(format!("{UNIT} does not start; the node's journal says why"));
        }
        changed = true;
    }
    Ok(changed)
}

/// What of it is not as planned.
pub fn differences(host: &Host, plan: &NodePlan) -> Result<Vec<Difference>, Failure> {
    let found = |kind, text: String| Difference::of_node(kind, text);
    let unit_path = unit_path(host, UNIT);
    let Some(mail) = &plan.mail else {
        let stray = unit_path.exists().then(|| format!("{UNIT} is there, and no mail is taken from guests here"));
        return Ok(stray.map(|text| found(DriftKind::Unit, text)).into_iter().collect());
    };
    let mut differences = Vec::new();
    for (path, text) in [(policy_path(host), policy(mail)), (unit_path, unit(plan.network.gateway()))] {
        let is = match files::read(&path)? {
            Some(there) if there == text => continue,
            Some(_) => "was changed by someone else",
            None => "is missing",
        };
        differences.push(found(DriftKind::File, format!("{} {is}", path.display())));
    }
    if processes_of(host, UNIT).is_empty() {
        differences.push(found(DriftKind::Unit, format!("{UNIT} is not active")));
    }
    Ok(differences)
}

/// What became of the mail of guests.
pub fn read(host: &Host) -> Vec<MailCount> {
    let [_, private] = STATE;
    read_counts(&host.path(private).join(COUNTS))
}

/// Nothing of it is left.
pub fn remove(task: &Task<'_>) -> Result<bool, Failure> {
    let mut changed = stop(task)?;
    let [link, private] = STATE;
    changed |= files::remove(&task.host.path(link))?;
    changed |= files::remove_folder(&task.host.path(private))?;
    Ok(changed)
}

/// It does not run, and what it counted stays.
fn stop(task: &Task<'_>) -> Result<bool, Failure> {
    let path = unit_path(task.host, UNIT);
    let there = path.exists();
    if there {
        Argv::new("systemctl").args(["disable", "--now", "--quiet", UNIT]).quiet().run(task)?;
        files::remove(&path)?;
        Argv::new("systemctl").arg("daemon-reload").run(task)?;
    }
    Ok(files::remove(&policy_path(task.host))? || there)
}

/// The service is nobody, and comes to the agent and to what it reads also where root's files are for root only.
fn open_way(host: &Host) -> Result<(), Failure> {
    for folder in [host.configuration(), host.corpus(), host.lxc_tools()] {
        let mode = fs::metadata(&folder).at("look at", &folder)?.permissions().mode();
        if mode & 0o011 != 0o011 {
            fs::set_permissions(&folder, Permissions::from_mode(mode | 0o011)).at("open", &folder)?;
        }
    }
    Ok(())
}

/// Whether it runs, and is what the agent's file for services holds now.
fn is_of_this_agent(host: &Host) -> bool {
    let id = |path: PathBuf| fs::metadata(path).ok().map(|stat| (stat.dev(), stat.ino()));
    let wanted = id(host.path(AGENT));
    processes_of(host, UNIT).first().is_some_and(|pid| id(host.path(format!("/proc/{pid}/exe"))) == wanted)
}

fn policy_path(host: &Host) -> PathBuf {
    host.configuration().join(POLICY)
}

fn policy(mail: &MailPlan) -> String {
    serde_json::to_string(mail).unwrap_or_default() + "\n"
}

/// It is nobody, sees nothing of the host that it could change, and has one right: a port below 1024.
fn unit(gateway: Ipv4Addr) -> String {
    format!(
        "\
# Written by corpus-agent; changes are overwritten.
[Unit]
Description=Corpus: mail of the guests
After=network.target corpus-network.service corpus-firewall.service
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={AGENT} mail {gateway}:{PORT}
DynamicUser=yes
StateDirectory=corpus-mail
StateDirectoryMode=0700
UMask=0077
AmbientCapabilities=CAP_NET_BIND_SERVICE
CapabilityBoundingSet=CAP_NET_BIND_SERVICE
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
RestrictAddressFamilies=AF_INET AF_INET6
RestrictSUIDSGID=yes
LockPersonality=yes
LimitNOFILE=2048
LimitCORE=0
TasksMax=300
MemoryMax=256M
Restart=always
RestartSec=2
TimeoutStopSec=5

[Install]
WantedBy=multi-user.target
"
    )
}

#[cfg(test)]
pub(super) mod tests {
    use corpus_protocol::MailGuest;

    use super::super::plan::tests::plan;
    use super::*;

    /// A plan with mail of its first guest.
    pub fn mailing() -> NodePlan {
        let mut plan = plan();
        let first = &plan.ports[0];
        let guest = MailGuest { guest: first.guest.clone(), ip: first.ip, messages_per_hour: 100 };
        let relay = "192.0.2.25:25".parse().unwrap();
        plan.mail = Some(MailPlan { relay, max_bytes: 25 << 20, guests: vec![guest] });
        plan
    }

    #[test]
    fn mail_is_of_guests_and_goes_to_a_relay() {
        require_sound(&mailing()).unwrap();
        let refuse = |change: &dyn Fn(&mut MailPlan)| {
            let mut plan = mailing();
            change(plan.mail.as_mut().unwrap());
            require_sound(&plan).unwrap_err().to_string()
        };
        assert!(refuse(&|mail| mail.guests[0].ip = Ipv4Addr::new(10, 5, 0, 1)).contains("10.5.0.1"));
        assert!(refuse(&|mail| mail.guests.push(mail.guests[0].clone())).contains("two guests"));
        assert!(refuse(&|mail| mail.relay = "0.0.0.0:25".parse().unwrap()).contains("no address"));
        assert!(refuse(&|mail| mail.relay = "192.0.2.25:0".parse().unwrap()).contains("no address"));
    }

    fn socket(address: &str, port: &str) -> String {
        format!(
            "   0: {address}:{port} 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0\n"
        )
    }

    #[test]
    fn a_mail_server_of_the_host_keeps_its_port() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let plan = mailing();
        let with = |table: &str, text: &str| {
            for path in ["/proc/net/tcp", "/proc/net/tcp6"] {
                files::write(&host.path(path), if path == table { text } else { "" }, 0o644).unwrap();
            }
            as_far_as_can_be(&host, &plan).0.mail.is_none()
        };
        assert!(!with("/proc/net/tcp", &socket("0100007F", "0019")), "it listens for the host alone");
        assert!(!with("/proc/net/tcp", &socket("0B004D0A", "0019")), "it listens at another address");
        assert!(!with("/proc/net/tcp", &socket("0100050A", "0050")), "it listens at another port");
        assert!(with("/proc/net/tcp", &socket("0100050A", "0019")));
        assert!(with("/proc/net/tcp", &socket("00000000", "0019")));
        assert!(with("/proc/net/tcp6", &socket("00000000000000000000000000000000", "0019")));
        assert!(as_far_as_can_be(&host, &plan).1.is_some_and(|problem| problem.contains("inet_interfaces")));
        assert_eq!(as_far_as_can_be(&host, &self::plan()).1, None, "it takes no mail");
        let own = "/sys/fs/cgroup/system.slice/corpus-mail.service/cgroup.procs";
        files::write(&host.path(own), "7\n", 0o644).unwrap();
        assert!(!with("/proc/net/tcp", &socket("0100050A", "0019")), "it is the service itself");
    }

    #[test]
    fn what_is_not_as_planned_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let told = |plan: &NodePlan| -> Vec<String> {
            differences(&host, plan).unwrap().into_iter().map(|one| one.text).collect()
        };
        assert_eq!(told(&plan()), Vec::<String>::new());
        assert_eq!(told(&mailing()).len(), 3);
        files::write(&policy_path(&host), "{}", 0o644).unwrap();
        files::write(&unit_path(&host, UNIT), &unit(mailing().network.gateway()), 0o644).unwrap();
        let now = told(&mailing());
        assert!(
            now.len() == 2 && now[0].contains("changed by someone else") && now[1].contains("not active"),
            "{now:?}"
        );
        assert_eq!(told(&plan()).len(), 1);
    }

    #[test]
    fn the_unit_of_the_service() {
        insta::assert_snapshot!(unit(Ipv4Addr::new(10, 5, 0, 1)));
    }
}
