//! An image built on the node from Debian's packages: the same system as the uploaded one.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use corpus_domain::{Bytes, ImageName};

use super::{is_settled, replace};
use crate::failure::{At, Failure};
use crate::files;
use crate::host::Host;
use crate::runner::Argv;
use crate::task::Task;

const BUILD: Duration = Duration::from_mins(30);
/// What a build needs at its largest, packages and system together.
const ROOM: Bytes = Bytes(1_500_000_000);
const PACKAGES: &str =
    "systemd-sysv,openssh-server,sudo,git,python3,iproute2,iputils-ping,ca-certificates,curl,nano-tiny,rsync,acl";

/// What a container has no hardware, terminal or network for, and what would delay its sshd.
const MASKED: [&str; 45] = [
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "dpkg-db-backup.timer",
    "systemd-timesyncd.service",
    "console-getty.service",
    "getty.target",
    "systemd-udevd.service",
    "systemd-udevd-control.socket",
    "systemd-udevd-kernel.socket",
    "systemd-udev-trigger.service",
    "systemd-journal-flush.service",
    "systemd-user-sessions.service",
    "systemd-update-utmp.service",
    "systemd-update-utmp-runlevel.service",
    "systemd-sysctl.service",
    "systemd-modules-load.service",
    "systemd-binfmt.service",
    "systemd-remount-fs.service",
    "systemd-pstore.service",
    "systemd-random-seed.service",
    "systemd-machine-id-commit.service",
    "systemd-firstboot.service",
    "systemd-sysusers.service",
    "systemd-hwdb-update.service",
    "systemd-logind.service",
    "systemd-ask-password-wall.path",
    "systemd-ask-password-console.path",
    "systemd-tmpfiles-setup-dev.service",
    "kmod-static-nodes.service",
    "dev-hugepages.mount",
    "dev-mqueue.mount",
    "sys-kernel-debug.mount",
    "sys-kernel-tracing.mount",
    "sys-kernel-config.mount",
    "sys-fs-fuse-connections.mount",
    "proc-sys-fs-binfmt_misc.automount",
    "systemd-networkd-wait-online.service",
    "modprobe@.service",
    "rc-local.service",
    "ldconfig.service",
    "systemd-journal-catalog-update.service",
    "systemd-update-done.service",
];

/// What reads a kernel's command line, partitions and consoles at each boot, all before the first unit.
const MASKED_GENERATORS: [&str; 9] = [
    "systemd-cryptsetup-generator",
    "systemd-debug-generator",
    "systemd-getty-generator",
    "systemd-gpt-auto-generator",
    "systemd-hibernate-resume-generator",
    "systemd-integritysetup-generator",
    "systemd-run-generator",
    "systemd-system-update-generator",
    "systemd-veritysetup-generator",
];

const SSHD: &str = "\
# Corpus writes the host key and the keys of the members when it makes a guest.
HostKey /etc/ssh/ssh_host_ed25519_key
UseDNS no
PermitRootLogin yes
PasswordAuthentication yes
# Whose key it is that pushes.
ExposeAuthInfo yes
AuthorizedKeysFile .ssh/authorized_keys /etc/corpus/authorized_keys/%u
";

const SSH_UNIT: &str = "\
[Unit]
Description=OpenBSD Secure Shell server
# Not after sysinit.target: nothing there is needed for a login.
DefaultDependencies=no
After=systemd-remount-fs.service systemd-tmpfiles-setup.service
Conflicts=shutdown.target
Before=shutdown.target

[Service]
Type=notify
ExecStart=/usr/sbin/sshd -D
ExecReload=/bin/kill -HUP $MAINPID
KillMode=process
Restart=on-failure
RestartPreventExitStatus=255
RuntimeDirectory=sshd
RuntimeDirectoryMode=0755

[Install]
WantedBy=multi-user.target
Alias=sshd.service
";

/// The image is a system of this suite, built on the node. Once built it is kept as it is.
pub fn ensure(task: &Task<'_>, name: &ImageName, suite: &str, mirror: Option<&str>) -> Result<bool, Failure> {
    require_suite(suite)?;
    let origin = format!("debootstrap {suite}");
    if is_settled(task, name, &origin) {
        return Ok(false);
    }
    let mirror = match mirror {
        Some(given) => given.to_owned(),
        None => own_mirror(task.host, suite)
            .ok_or_else(|| Failure::Missing("the host has no Debian source to build an image from".into()))?,
    };
    require_url(&mirror)?;
    files::require_room(&task.host.corpus(), ROOM)?;
    replace(task, name, &origin, |root| {
        let argv = Argv::new("debootstrap").args(["--variant=minbase", "--include", PACKAGES, suite]);
        argv.arg(root).arg(&mirror).limit(BUILD).run(task)?;
        prepare(task, root)
    })?;
    Ok(true)
}

fn prepare(task: &Task<'_>, root: &Path) -> Result<(), Failure> {
    let generators = MASKED_GENERATORS.iter().map(|name| format!("etc/systemd/system-generators/{name}"));
    for masked in MASKED.iter().map(|unit| format!("etc/systemd/system/{unit}")).chain(generators) {
        link("/dev/null", &root.join(masked))?;
    }
    link("/dev/null", &root.join("etc/tmpfiles.d/systemd-nologin.conf"))?;
    link("/lib/systemd/system/multi-user.target", &root.join("etc/systemd/system/default.target"))?;
    let inside = |program: &str| Argv::new("chroot").arg(root).arg(program);
    inside("useradd")
        .args([
            "--uid",
            "1000",
            "--user-group",
            "--create-home",
            "--shell",
            "/bin/bash",
            "--groups",
            "sudo",
            "sysadmin",
        ])
        .run(task)?;
    inside("passwd").args(["-q", "--lock", "sysadmin"]).run(task)?;
    for (path, text, mode) in [
        ("etc/sudoers.d/corpus", "%sudo ALL=(ALL:ALL) NOPASSWD: ALL\n", 0o440),
        ("etc/ssh/sshd_config.d/corpus.conf", SSHD, 0o644),
        ("etc/systemd/system/ssh.service", SSH_UNIT, 0o644),
        ("etc/systemd/journald.conf.d/corpus.conf", "[Journal]\nStorage=volatile\nRuntimeMaxUse=16M\n", 0o644),
        ("etc/machine-id", "", 0o444),
        ("etc/resolv.conf", "", 0o644),
    ] {
        files::remove(&root.join(path))?;
        files::write(&root.join(path), text, mode)?;
    }
    for key in ["rsa", "ecdsa", "ed25519"].iter().flat_map(|kind| [format!("{kind}_key"), format!("{kind}_key.pub")]) {
        files::remove(&root.join(format!("etc/ssh/ssh_host_{key}")))?;
    }
    files::remove(&root.join("etc/hostname"))?;
    files::remove_folder(&root.join("var/cache/apt/archives"))?;
    files::remove_folder(&root.join("var/lib/apt/lists"))?;
    Ok(())
}

fn link(target: &str, path: &Path) -> Result<(), Failure> {
    files::remove(path)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).at("make", folder)?;
    }
    symlink(target, path).at("link", path)
}

/// Where the host's own apt finds this suite, in either of its formats; a mirror of Debian
/// itself (its path ends so) rather than someone's additions to it.
fn own_mirror(host: &Host, suite: &str) -> Option<String> {
    let folder = fs::read_dir(host.path("/etc/apt/sources.list.d")).into_iter().flatten().flatten();
    let more = folder
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "list" || end == "sources"));
    let paths = [host.path("/etc/apt/sources.list")].into_iter().chain(more);
    let texts = paths.filter_map(|path| fs::read_to_string(path).ok());
    let mut mirrors: Vec<String> = texts.flat_map(|text| sources(&text, suite)).collect();
    mirrors.sort_by_key(|mirror| !mirror.trim_end_matches('/').ends_with("debian"));
    mirrors.into_iter().next()
}

/// The mirrors of a suite in a file of apt's.
fn sources(text: &str, suite: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.strip_prefix("deb ")?.split_whitespace().skip_while(|word| !word.contains("://"));
        let mirror = words.next()?;
        (words.next()? == suite).then(|| mirror.to_owned())
    });
    let stanzas = text.split("\n\n").filter_map(|stanza| {
        let words = |key| stanza.lines().find_map(|line| line.strip_prefix(key)).map(str::split_whitespace);
        words("Suites:")?.any(|word| word == suite).then_some(())?;
        words("URIs:")?.next().map(str::to_owned)
    });
    lines.chain(stanzas).collect()
}

fn require_suite(suite: &str) -> Result<(), Failure> {
    let fits = !suite.is_empty() && suite.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    if fits { Ok(()) } else { Err(Failure::Invalid(format!("{suite:?} is no suite of Debian such as bookworm"))) }
}

fn require_url(mirror: &str) -> Result<(), Failure> {
    let known = ["http://", "https://", "file:///"].iter().any(|scheme| mirror.starts_with(scheme));
    if known && mirror.bytes().all(|b| b.is_ascii_graphic()) {
        return Ok(());
    }
    Err(Failure::Invalid(format!("{mirror:?} is no mirror's URL such as http://deb.debian.org/debian")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uploaded_image_lacks_the_same() {
        let recipes =
            [include_str!("../../../../scripts/recipe-common"), include_str!("../../../../scripts/recipe-guest")]
                .concat();
        let words: Vec<&str> = recipes.split(|c: char| c.is_whitespace() || c == ';').collect();
        let generator = |name: &&'static str| name.strip_prefix("systemd-")?.strip_suffix("-generator");
        for masked in MASKED.into_iter().chain(MASKED_GENERATORS.iter().filter_map(generator)) {
            assert!(words.contains(&masked), "{masked}");
        }
    }

    #[test]
    fn the_hosts_own_mirror() {
        let old = "# deb http://no/\ndeb [signed-by=/x arch=amd64] http://deb.example.org/debian bookworm main\ndeb http://x.org/y trixie main\n";
        assert_eq!(sources(old, "bookworm"), ["http://deb.example.org/debian"]);
        let new = "Types: deb\nURIs: https://deb.example.org/debian\nSuites: bookworm bookworm-updates\n\nURIs: http://x.org/\nSuites: sid\n";
        assert_eq!(sources(new, "bookworm"), ["https://deb.example.org/debian"]);
        assert!(require_suite("bookworm; reboot").is_err() && require_url("--x http://").is_err());
    }
}
