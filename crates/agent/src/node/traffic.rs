//! The units of the collector, which hears the proxy (see [`crate::traffic`]).
//!
//! The socket is systemd's, so what is told while no collector runs waits there; haproxy finds it in its own root. The
//! service is nobody on the node: it has that socket, a folder to keep its counts, and one for those who follow.
//!
//! Sites are served without it. So a collector that does not run is told of by a check, and started by the next plan, but
//! is no reason to bring all else into force again.

use crate::drivers::AGENT;
use crate::failure::Failure;
use crate::files;
use crate::host::Host;
use crate::runner::Argv;
use crate::task::Task;
use crate::traffic::{STATE, WORD};

/// The socket and the service, in the order in which they start.
pub const UNITS: [&str; 2] = ["corpus-traffic.socket", "corpus-traffic.service"];
/// The folder of haproxy's socket, on the node.
const FOLDER: &str = "/var/lib/haproxy/corpus";
/// The socket, as haproxy finds it once it is in its root.
pub const SOCKET: &str = "/corpus/access";
/// What `STATE` leads to: systemd keeps it where nobody but root and the service can enter.
const PRIVATE: &str = "/var/lib/private/corpus-traffic";

/// The unit of the socket: haproxy may write to it, and nobody else.
pub fn socket() -> String {
    "\
# Written by corpus-agent; changes are overwritten.
[Unit]
Description=Corpus: where the proxy tells of requests

[Socket]
ListenDatagram=/var/lib/haproxy/corpus/access
SocketUser=root
SocketGroup=haproxy
SocketMode=0620
DirectoryMode=0755
RemoveOnStop=yes
TriggerLimitIntervalSec=0

[Install]
WantedBy=sockets.target
"
    .to_owned()
}

/// The unit of the service.
pub fn service() -> String {
    format!(
        "\
# Written by corpus-agent; changes are overwritten.
[Unit]
Description=Corpus: counts what the proxy tells of requests
Requires=corpus-traffic.socket
After=corpus-traffic.socket
StartLimitIntervalSec=0

[Service]
ExecStart={AGENT} {WORD}
StandardInput=socket
StandardOutput=journal
StandardError=journal
DynamicUser=yes
StateDirectory=corpus-traffic
StateDirectoryMode=0700
RuntimeDirectory=corpus-traffic
RuntimeDirectoryMode=0700
UMask=0077
CapabilityBoundingSet=
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
RestrictAddressFamilies=AF_UNIX
LimitNOFILE=256
TasksMax=64
MemoryMax=256M
LogRateLimitIntervalSec=1min
LogRateLimitBurst=20
Restart=always
RestartSec=1
TimeoutStopSec=5

[Install]
WantedBy=multi-user.target
"
    )
}

/// Whether this is a unit of the collector.
pub fn is_ours(unit: &str) -> bool {
    UNITS.contains(&unit)
}

/// Starts those of these units of the node that are the collector's; what keeps it from running is for the next check.
/// Tells whether there were any.
pub fn start(task: &Task<'_>, units: &[&str]) -> Result<bool, Failure> {
    let down: Vec<&str> = UNITS.into_iter().filter(|unit| units.contains(unit)).collect();
    if down.is_empty() {
        return Ok(false);
    }
    Argv::new("systemctl").arg("start").args(down).end(task)?;
    Ok(true)
}

/// Those of its units that are there are in force as they are on disk, as far as they can be. A socket does not begin anew
/// under its service.
pub fn restart(task: &Task<'_>, there: &[&str]) -> Result<(), Failure> {
    Argv::new("systemctl").args(["stop", "--quiet"]).args(UNITS.iter().rev()).quiet().end(task)?;
    start(task, there).map(drop)
}

/// What it has kept is gone, once its units are.
pub fn remove(host: &Host) -> Result<bool, Failure> {
    let mut changed = false;
    for folder in [PRIVATE, STATE, FOLDER] {
        changed |= files::remove_folder(&host.path(folder))?;
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn haproxy_finds_the_socket_in_its_root() {
        let listens = format!("ListenDatagram=/var/lib/haproxy{SOCKET}\n");
        assert!(socket().contains(&listens) && listens.contains(FOLDER));
    }

    #[test]
    fn nothing_is_left_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        files::write(&host.path(PRIVATE).join("now"), "{}", 0o600).unwrap();
        std::os::unix::fs::symlink("private/corpus-traffic", host.path(STATE)).unwrap();
        files::write(&host.path(FOLDER).join("access"), "", 0o600).unwrap();
        assert!(remove(&host).unwrap() && !remove(&host).unwrap());
        assert!(std::fs::symlink_metadata(host.path(STATE)).is_err() && host.path("/var/lib/haproxy").exists());
    }
}
