//! Firewalls of the host that are not ours, and drop what they do not know.
//!
//! What one table of nftables accepts another one still drops. firewalld is told what is ours (`node::firewalld`);
//! others can't be told so that it lasts, and are refused before anything is set up.

use crate::failure::Failure;
use crate::files;
use crate::host::Host;

/// What stands in the way of a node's firewall, and what to do about it.
pub fn in_the_way(host: &Host) -> Option<String> {
    let text = |path: &str| files::read(&host.path(path)).ok().flatten().unwrap_or_default();
    let is_ufw = text("/etc/ufw/ufw.conf").lines().any(|line| line.trim().eq_ignore_ascii_case("enabled=yes"));
    if is_ufw && host.path("/usr/sbin/ufw").exists() {
        return Some(refused("ufw", "ufw disable"));
    }
    if text("/var/lib/shorewall/state").starts_with("Started") {
        return Some(refused("shorewall", "systemctl disable --now shorewall"));
    }
    None
}

fn refused(name: &str, end: &str) -> String {
    format!("{name} is active on the host, and drops what is for guests: end it ({end}), or use firewalld in its place")
}

/// Fails while one of them is active.
pub fn require_none(host: &Host) -> Result<(), Failure> {
    in_the_way(host).map_or(Ok(()), |why| Err(Failure::Missing(why)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let write = |path: &str, text: &str| files::write(&host.path(path), text, 0o644).unwrap();
        write("/usr/sbin/ufw", "");
        write("/etc/ufw/ufw.conf", "# ufw\nENABLED=no\n");
        require_none(&host).unwrap();
        write("/etc/ufw/ufw.conf", "# ufw\nENABLED=yes\n");
        let told = require_none(&host).unwrap_err().to_string();
        assert!(told.starts_with("ufw is active") && told.contains("ufw disable"), "{told}");
        write("/etc/ufw/ufw.conf", "");
        write("/var/lib/shorewall/state", "Started Tue 24 Nov 2026 from /etc/shorewall/\n");
        assert!(in_the_way(&host).unwrap().starts_with("shorewall is active"));
        write("/var/lib/shorewall/state", "Cleared Tue 24 Nov 2026\n");
        assert_eq!(in_the_way(&host), None);
    }
}
