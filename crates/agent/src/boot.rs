//! Which boot of the host this is, and how another one begins.

use std::time::{SystemTime, UNIX_EPOCH};

use corpus_protocol::Answer;

use crate::failure::Failure;
use crate::files;
use crate::host::Host;
use crate::runner::Argv;
use crate::task::Task;

/// Until the host goes down: the answer to who asked for it is on its way first.
const NOTICE: &str = "--on-active=1s";

/// What no other boot of the host has: the kernel's id of its boot, and when init started, which differs where the host is
/// a container that booted again on the same kernel.
pub fn id(host: &Host) -> Result<String, Failure> {
    let read = |path: &str| files::read(&host.path(path)).map(Option::unwrap_or_default);
    let (kernel, init) = (read("/proc/sys/kernel/random/boot_id")?, read("/proc/1/stat")?);
    // The name of init, which comes before, may have spaces.
    let fields = init.rsplit_once(')').map_or("", |(_, rest)| rest);
    let started = fields.split_whitespace().nth(19).unwrap_or_default();
    Ok(format!("{}-{started}", kernel.trim()))
}

/// Which boot it is, and what the clocks say.
pub fn read(host: &Host) -> Result<Answer, Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let uptime = files::read(&host.path("/proc/uptime"))?.unwrap_or_default();
    let up_s = uptime.split(['.', ' ']).next().and_then(|seconds| seconds.parse().ok()).unwrap_or_default();
    Ok(Answer::Boot { id: id(host)?, now_s: i64::try_from(now.as_secs()).unwrap_or_default(), up_s })
}

/// The host boots again, unless it has since `before`.
pub fn again(task: &Task<'_>, before: &str) -> Result<bool, Failure> {
    if id(task.host)? != before {
        return Ok(false);
    }
    task.note("the host reboots");
    let argv = Argv::new("systemd-run").args(["--quiet", "--collect", NOTICE, "systemctl", "--no-block", "reboot"]);
    argv.run(task).map(|_| true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::test::with_task;

    #[test]
    fn a_boot_is_told_from_another() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let boots = |kernel: &str, started: &str| {
            files::write(&host.path("/proc/sys/kernel/random/boot_id"), &format!("{kernel}\n"), 0o644).unwrap();
            let stat = format!("1 (an init) S {} {started} 0\n", ["0"; 18].join(" "));
            files::write(&host.path("/proc/1/stat"), &stat, 0o644).unwrap();
            id(&host).unwrap()
        };
        let first = boots("0c7", "12");
        assert_eq!(first, "0c7-12");
        assert_ne!(boots("0c7", "4711"), first, "a container that booted again");
        // Asked once more after it, nothing happens.
        assert!(!with_task(&host, |task| again(task, &first)).unwrap());
        assert_ne!(boots("1d8", "12"), first);
    }
}
