//! The bare repositories are there, with our configuration and hook.
//!
//! The configuration is ours as a whole: it is what makes a push safe, so that it is written
//! again whenever it differs. Members enter a guest as `sysadmin`, who may become root by sudo;
//! so the group of sudo may write to the repositories, and nobody else reads them: the pillar
//! holds secrets, and who may write a repository's hooks has the rights of those who run them.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::failure::{At, Failure};
use crate::files;
use crate::project::git::Repository;
use crate::project::layout::Layout;
use crate::project::order::AGENT;
use crate::runner::Argv;
use crate::task::Task;

/// The group whose members may become root, as Debian and our images have it.
const GROUP: &str = "sudo";
/// Where git looks for what holds for all users of the guest.
const SYSTEM: &str = "/etc/gitconfig";
/// The longest push that is taken.
const MAX_PUSH: &str = "400m";
/// A push that brings nothing for so long is dead.
const STALE: Duration = Duration::from_hours(1);

/// Both repositories are there and take pushes; tells whether anything was changed.
pub fn install(layout: &Layout, task: &Task<'_>) -> Result<bool, Failure> {
    let mut changed = false;
    for repository in Repository::ALL {
        let folder = repository.path(layout);
        changed |= made(&folder, task)?;
        changed |= files::ensure(&folder.join("config"), &configuration(), 0o640)?;
        changed |= files::ensure(&folder.join("hooks/proc-receive"), &hook(layout, repository), 0o755)?;
        group(&folder.join("config"), task)?;
        changed |= trusted(&folder, layout, task)?;
        sweep(&folder)?;
    }
    Ok(changed)
}

/// Git of this guest knows nothing of the repositories any more.
pub fn gone(layout: &Layout, task: &Task<'_>) -> Result<(), Failure> {
    for repository in Repository::ALL {
        let folder = repository.path(layout);
        if layout.is_standard() && is_trusted(&folder, task)? {
            let Some(path) = folder.to_str() else { continue };
            let only = ["config", "--file", SYSTEM, "--fixed-value", "--unset-all", "safe.directory", path];
            Argv::new("git").args(only).run(task)?;
        }
    }
    Ok(())
}

/// An empty repository is made in a folder that has its group already: git keeps it from there on.
fn made(folder: &Path, task: &Task<'_>) -> Result<bool, Failure> {
    if folder.join("HEAD").exists() {
        return Ok(false);
    }
    fs::create_dir_all(folder).at("make", folder)?;
    for folder in [folder.parent().unwrap_or(folder), folder] {
        group(folder, task)?;
        fs::set_permissions(folder, Permissions::from_mode(0o2770)).at("change the mode of", folder)?;
    }
    let init = ["init", "--quiet", "--bare", "--shared=0660", "--initial-branch=main", "--template="];
    Argv::new("git").args(init).arg(folder).run(task)?;
    Ok(true)
}

/// As owner root, so that only root and the group's members get in.
fn group(path: &Path, task: &Task<'_>) -> Result<(), Failure> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let groups = files::read(&task.host.path("/etc/group"))?.unwrap_or_default();
    let id = group_id(&groups, GROUP).unwrap_or(0);
    chown(path, Some(0), Some(id)).at("change the owner of", path)
}

/// The number of a group in `group(5)`.
fn group_id(groups: &str, name: &str) -> Option<u32> {
    let fields = groups.lines().map(|line| line.split(':').collect::<Vec<_>>());
    fields.filter(|fields| fields.first() == Some(&name)).find_map(|fields| fields.get(2)?.parse().ok())
}

fn configuration() -> String {
    format!(
        "# Kept by Corpus; changes are overwritten.\n\
         [core]\n\
         \trepositoryformatversion = 0\n\
         \tfilemode = true\n\
         \tbare = true\n\
         \tsharedRepository = 0660\n\
         \tlogAllRefUpdates = true\n\
         [receive]\n\
         # The hook decides on every branch and tag.\n\
         \tprocReceiveRefs = refs/heads\n\
         \tprocReceiveRefs = refs/tags\n\
         # What Corpus keeps there is nobody's to push.\n\
         \thideRefs = refs/corpus\n\
         \tmaxInputSize = {MAX_PUSH}\n\
         # Only this way of unpacking says what the limit is.\n\
         \tunpackLimit = 1\n\
         \tadvertiseAtomic = true\n\
         \tadvertisePushOptions = true\n\
         [transfer]\n\
         \tfsckObjects = true\n\
         [gc]\n\
         \tautoDetach = true\n"
    )
}

/// The hook asks sudo for the rights that a deployment needs, when the pusher is not root.
fn hook(layout: &Layout, repository: Repository) -> String {
    let command = format!("{AGENT} project receive {} {}", layout.project(), repository.as_str());
    format!(
        "#!/bin/sh\n\
         # Kept by Corpus; changes are overwritten.\n\
         # Which key opened the session, as sshd says.\n\
         set -- ${{SSH_USER_AUTH:+--exposed \"$SSH_USER_AUTH\"}}\n\
         if [ \"$(id -u)\" = 0 ]; then exec {command} \"$@\"; fi\n\
         exec sudo -n {command} \"$@\"\n"
    )
}

/// Git refuses a repository of somebody else unless the guest as a whole trusts it.
fn trusted(folder: &Path, layout: &Layout, task: &Task<'_>) -> Result<bool, Failure> {
    if !layout.is_standard() || is_trusted(folder, task)? {
        return Ok(false);
    }
    Argv::new("git").args(["config", "--file", SYSTEM, "--add", "safe.directory"]).arg(folder).run(task)?;
    fs::set_permissions(SYSTEM, Permissions::from_mode(0o644)).at("change the mode of", SYSTEM)?;
    Ok(true)
}

fn is_trusted(folder: &Path, task: &Task<'_>) -> Result<bool, Failure> {
    if !Path::new(SYSTEM).exists() {
        return Ok(false);
    }
    let all = ["config", "--file", SYSTEM, "--get-all", "safe.directory"];
    let (_, known) = Argv::new("git").args(all).quiet().end(task)?;
    Ok(known.stdout.lines().any(|line| Path::new(line) == folder))
}

/// What pushes left that were killed while they came in; git takes away what it can itself.
pub(super) fn sweep(repository: &Path) -> Result<(), Failure> {
    let objects = repository.join("objects");
    for entry in fs::read_dir(&objects).at("list", &objects)?.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let quarantine = name.starts_with("tmp_objdir-incoming-") || name.starts_with("incoming-");
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|time| SystemTime::now().duration_since(time).ok());
        if quarantine && age.is_some_and(|age| age > STALE) {
            files::remove_folder(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use crate::task::test::with_task;

    #[test]
    fn repositories_are_made_once_and_mended() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path(), &"shop".parse().unwrap());
        with_task(&Host::below(folder.path()), |task| {
            assert!(install(&layout, task).unwrap());
            assert!(!install(&layout, task).unwrap());
            let config = layout.pillar_repository().join("config");
            fs::write(&config, "[core]\n\tbare = true\n").unwrap();
            assert!(install(&layout, task).unwrap());
            let get = Argv::new("git").arg("--git-dir").arg(layout.pillar_repository());
            let get = get.args(["config", "--get-all", "receive.procReceiveRefs"]).run(task).unwrap();
            assert_eq!(get.stdout, "refs/heads\nrefs/tags\n");
        });
        let mode = fs::metadata(layout.repository().join("objects")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o2770);
    }

    #[test]
    fn only_dead_pushes_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        let made = |name: &str, age: u64| {
            let path = folder.path().join("objects").join(name);
            fs::create_dir_all(&path).unwrap();
            let time = SystemTime::now() - Duration::from_secs(age);
            fs::File::open(&path).unwrap().set_modified(time).unwrap();
            path
        };
        let (dead, alive, pack) = (made("tmp_objdir-incoming-a", 7200), made("incoming-b", 60), made("pack", 7200));
        sweep(folder.path()).unwrap();
        assert!(!dead.exists() && alive.exists() && pack.exists());
    }

    #[test]
    fn groups_by_name() {
        let groups = "root:x:0:\nsudoers:x:26:\nsudo:x:27:sysadmin\n";
        assert_eq!(group_id(groups, "sudo"), Some(27));
        assert_eq!(group_id(groups, "wheel"), None);
    }
}
