//! Lines of a container's configuration that operators may allow guests to have.
//!
//! LXC's configuration decides what holds a guest: one wrong line runs a program on the node, or lets the root of a guest
//! out of it. And the root of a guest is hostile. So a key is one of few families, each of which is known to change nothing
//! but what the guest does with what it has: everything else, also what a later LXC knows, is no key at all. A value is
//! of characters that end no line and quote nothing. Nobody, operators neither, has a line that is not made here; the
//! agent reads what it is sent through the same types.
//!
//! What the families are, and why no others:
//! - `lxc.sysctl.net.*` writes below `/proc/sys/net` as the guest's own root could: the kernel keeps what is there for each
//!   network, and shows a guest nothing else of it. All other sysctls are read-only in a guest, and stay so for LXC too.
//! - `lxc.prlimit.*` is set from outside, so it may be more than the guest's root can take: only what the guest's memory
//!   and process limits bound all the same. Not `rtprio` and `nice`: time that is taken so is not counted by a quota.
//! - `lxc.proc.oom_score_adj`, from 0 on: the guest is ended sooner than others, never later.
//!
//! Control groups are the guest's limits; `lxc.environment` is also what hooks on the node are run with.

use crate::text::{Invalid, text_type};

const OOM: &str = "lxc.proc.oom_score_adj";
/// As many files as Linux lets a process have open unless told otherwise (`fs.nr_open`).
const FILES: u64 = 1_048_576;
const EXPECTED: &str = "lxc.sysctl.net.…, lxc.prlimit.nofile, .nproc, .memlock or .stack, or lxc.proc.oom_score_adj, 120 characters at most";

fn is_key(given: &str) -> bool {
    given == OOM
        || given.strip_prefix("lxc.sysctl.net.").is_some_and(|rest| rest.split('.').all(is_part))
        || given.strip_prefix("lxc.prlimit.").is_some_and(|of| ["nofile", "nproc", "memlock", "stack"].contains(&of))
}

/// A name below `/proc/sys`: LXC makes a path of it, and there is no way up in it.
fn is_part(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

fn is_value(given: &str) -> bool {
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.:,/+-".contains(&b));
    given.split(' ').all(is_word)
}

text_type!(
    /// What operators call a line of a container's configuration.
    LxcLineName, "name of a line", "a lower-case letter, then letters, digits and hyphens, 40 characters at most",
    pattern: "^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$", max: 40, example: "many-files", crate::names::label
);
text_type!(
    /// A key of LXC that guests may have: of the network's sysctls, of the limits of a process, and how soon the guest is ended
    /// when memory is short.
    LxcKey, "key", EXPECTED,
    pattern: r"^lxc\.(sysctl\.net(\.[a-z0-9_]+)+|prlimit\.(nofile|nproc|memlock|stack)|proc\.oom_score_adj)$",
    max: 120, example: "lxc.sysctl.net.ipv4.ip_forward",
    |given| is_key(given).then(|| given.to_owned())
);
text_type!(
    /// What a key of LXC is set to.
    LxcValue, "value", "words of letters, digits and _ . : , / + - with one space between them, 100 characters at most",
    pattern: "^[A-Za-z0-9_.:,/+-]+( [A-Za-z0-9_.:,/+-]+)*$", max: 100, example: "1",
    |given| is_value(given).then(|| given.to_owned())
);

/// A line: a key, and a value that it takes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "Parts")]
pub struct LxcLine {
    key: LxcKey,
    value: LxcValue,
}

/// A line as it is sent.
#[derive(serde::Deserialize)]
struct Parts {
    key: LxcKey,
    value: LxcValue,
}

impl TryFrom<Parts> for LxcLine {
    type Error = Invalid;
    fn try_from(parts: Parts) -> Result<Self, Invalid> {
        Self::new(parts.key, parts.value)
    }
}

impl LxcLine {
    /// With a value that LXC can set, as far as that can be known: with another one the guest would not start.
    ///
    /// # Errors
    /// Where the key takes no such value.
    pub fn new(key: LxcKey, value: LxcValue) -> Result<Self, Invalid> {
        let refused = |expected| Err(Invalid::new("value", value.as_str(), expected));
        let amount = |text: &str, most: u64| digits(text).is_some_and(|number| number <= most);
        if key.as_str() == OOM && !amount(value.as_str(), 1000) {
            return refused("a number from 0 to 1000");
        }
        if let Some(of) = key.as_str().strip_prefix("lxc.prlimit.") {
            let (soft, hard) = value.as_str().split_once(':').unwrap_or((value.as_str(), value.as_str()));
            let most = if of == "nofile" { FILES } else { u64::MAX };
            // The kernel takes no `unlimited` for files.
            let of_one = |text: &str| text == "unlimited" && of != "nofile" || amount(text, most);
            let rank = |text: &str| if text == "unlimited" { u64::MAX } else { digits(text).unwrap_or(u64::MAX) };
            if !of_one(soft) || !of_one(hard) || rank(soft) > rank(hard) {
                return refused(match of {
                    "nofile" => "a number up to 1048576, or a lower and a higher one with a colon between them",
                    _ => "a number or `unlimited`, or a lower and a higher one with a colon between them",
                });
            }
        }
        Ok(Self { key, value })
    }

    /// Its key.
    pub const fn key(&self) -> &LxcKey {
        &self.key
    }

    /// What that is set to.
    pub const fn value(&self) -> &LxcValue {
        &self.value
    }
}

/// As it stands in the configuration.
impl std::fmt::Display for LxcLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} = {}", self.key, self.value)
    }
}

/// A number as the kernel writes it: digits alone.
fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(key: &str, value: &str) -> Result<LxcLine, Invalid> {
        LxcLine::new(key.parse()?, value.parse()?)
    }

    #[test]
    fn what_changes_the_guest_alone_is_a_line() {
        for (key, value) in [
            ("lxc.sysctl.net.ipv4.ip_forward", "1"),
            ("lxc.sysctl.net.ipv4.tcp_rmem", "4096 131072 6291456"),
            ("lxc.prlimit.nofile", "65536"),
            ("lxc.prlimit.nofile", "1024:1048576"),
            ("lxc.prlimit.memlock", "unlimited"),
            ("lxc.prlimit.nproc", "100:unlimited"),
            ("lxc.proc.oom_score_adj", "1000"),
        ] {
            assert_eq!(line(key, value).unwrap().to_string(), format!("{key} = {value}"));
        }
    }

    #[test]
    fn what_is_of_corpus_or_runs_on_the_node_is_no_key() {
        for key in [
            "lxc.rootfs.path",
            "lxc.idmap",
            "lxc.net.0.link",
            "lxc.hook.pre-start",
            "lxc.uts.name",
            "lxc.log.file",
            "lxc.include",
            "lxc.console.path",
            "lxc.tty.max",
            "lxc.pty.max",
            "lxc.init.cmd",
            "lxc.execute.cmd",
            "lxc.namespace.share.net",
            "lxc.group",
            "lxc.start.auto",
            "lxc.monitor.unshare",
            "lxc.ephemeral",
            "lxc.signal.halt",
            "lxc.autodev",
            "lxc.arch",
            "lxc.seccomp.profile",
            "lxc.apparmor.profile",
            "lxc.selinux.context",
            "lxc.cap.drop",
            "lxc.cap.keep",
            "lxc.mount.entry",
            "lxc.mount.auto",
            "lxc.cgroup.memory.limit_in_bytes",
            "lxc.cgroup2.memory.max",
            "lxc.cgroup.devices.allow",
            "lxc.cgroup.dir.container",
            "lxc.environment",
            "lxc.keyring.session",
            "lxc.no_new_privs",
            "lxc.time.offset.boot",
            "lxc.prlimit.rtprio",
            "lxc.prlimit.nice",
            "lxc.prlimit.core",
            "lxc.prlimit.nofile.x",
            "lxc.prlimit",
            "lxc.proc.attr.current",
            "lxc.proc.oom_adj",
            "lxc.sysctl",
            "lxc.sysctl.net",
            "lxc.sysctl.net.",
            "lxc.sysctl.kernel.core_pattern",
            "lxc.sysctl.kernel.modprobe",
            "lxc.sysctl.kernel.hostname",
            "lxc.sysctl.kernel.shm_rmid_forced",
            "lxc.sysctl.kernel.shmmax",
            "lxc.sysctl.fs.mqueue.msg_max",
            "lxc.sysctl.vm.overcommit_memory",
            "lxc.sysctl.fs.file-max",
            "lxc.sysctl.net..kernel.core_pattern",
            "lxc.sysctl.net.../kernel",
            "lxc.sysctl.net/../kernel/core_pattern",
            "lxc.sysctl.net.ipv4.ip_forward\nlxc.rootfs.path",
            "lxc.sysctl.net.ipv4.ip_forward = 1",
            "lxc.sysctl.net.ipv4.ip_forward ",
            " lxc.sysctl.net.ipv4.ip_forward",
            "LXC.sysctl.net.x",
            "#",
            "",
        ] {
            assert!(key.parse::<LxcKey>().is_err(), "{key:?}");
        }
        assert!(format!("lxc.sysctl.net.{}", "a".repeat(120)).parse::<LxcKey>().is_err());
    }

    #[test]
    fn a_value_ends_no_line_and_quotes_nothing() {
        for value in [
            "",
            " ",
            "1 ",
            " 1",
            "1  2",
            "1\t2",
            "1\n",
            "1\nlxc.rootfs.path = /",
            "1\r2",
            "1\u{85}2",
            "1\u{2028}2",
            "1\0",
            "\"1",
            "'1'",
            "#1",
            "1 # 2",
            "$(id)",
            "a=b",
            "a;b",
            "a\\",
            "é",
            "%1",
        ] {
            assert!(value.parse::<LxcValue>().is_err(), "{value:?}");
        }
        assert!("1".repeat(101).parse::<LxcValue>().is_err());
    }

    #[test]
    fn a_value_is_one_that_the_key_takes() {
        for (key, value) in [
            ("lxc.proc.oom_score_adj", "-1000"),
            ("lxc.proc.oom_score_adj", "+1"),
            ("lxc.proc.oom_score_adj", "1001"),
            ("lxc.prlimit.nofile", "unlimited"),
            ("lxc.prlimit.nofile", "1048577"),
            ("lxc.prlimit.nofile", "2:1"),
            ("lxc.prlimit.memlock", "unlimited:1"),
            ("lxc.prlimit.memlock", "1:2:3"),
            ("lxc.prlimit.memlock", "99999999999999999999"),
            ("lxc.prlimit.stack", "8M"),
            ("lxc.prlimit.nproc", ":"),
        ] {
            assert!(line(key, value).is_err(), "{key} = {value}");
            let sent = serde_json::json!({ "key": key, "value": value });
            assert!(serde_json::from_value::<LxcLine>(sent).is_err(), "{key} = {value} is read");
        }
    }
}
