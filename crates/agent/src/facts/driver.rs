//! Which drivers a host has or could have.

use corpus_domain::Driver;
use corpus_protocol::DriverFact;

use super::parse::package_versions;
use crate::backings;
use crate::files;
use crate::host::Host;
use crate::task::Task;

/// Each driver, its version, and what stands in its way.
pub fn facts(task: &Task<'_>) -> Vec<DriverFact> {
    let host = task.host;
    let status = files::read(&host.path("/var/lib/dpkg/status")).ok().flatten();
    let packages = status.as_deref().map(package_versions).unwrap_or_default();
    let version = |names: &[&str]| names.iter().find_map(|name| packages.get(name)).map(ToString::to_string);
    Driver::ALL
        .iter()
        .map(|&driver| match driver {
            Driver::Lxc => DriverFact {
                driver,
                version: version(&["lxc"]),
                obstacle: obstacle(host, status.is_none()),
                backings: backings::facts(task),
            },
            Driver::Libvirt => later(driver, version(&["libvirt-daemon-system"])),
            Driver::Docker => later(driver, version(&["docker.io", "docker-ce"])),
        })
        .collect()
}

fn later(driver: Driver, version: Option<String>) -> DriverFact {
    DriverFact { driver, version, obstacle: Some("this agent sets up lxc only".to_owned()), backings: Vec::new() }
}

fn obstacle(host: &Host, no_dpkg: bool) -> Option<String> {
    if no_dpkg {
        return Some("the host has no dpkg; Debian 12 or later is needed".to_owned());
    }
    if !host.path("/run/systemd/system").is_dir() {
        return Some("the host's init is not systemd".to_owned());
    }
    if !rustix::process::geteuid().is_root() {
        return Some("the agent does not run as root".to_owned());
    }
    super::foreign::in_the_way(host)
}
