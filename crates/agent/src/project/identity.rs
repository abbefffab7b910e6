//! The SSH key of a project's account, by which it fetches what lies elsewhere (a deploy key).
//!
//! It is made once, on the guest, and leaves it only as its public half, which is in the project's
//! configuration (`ssh_identity`). The private half belongs to the account, in the `.ssh` of its
//! home; what is told is a copy that only root writes, for what lies in an account's own folder may
//! lead anywhere.

use std::fs;
use std::os::unix::fs::chown;

use crate::failure::{At, Failure};
use crate::files;
use crate::project::layout::Layout;
use crate::runner::Argv;
use crate::task::Task;

/// The key's file below the account's `.ssh`, as ssh looks for it.
const FILE: &str = "id_ed25519";

/// The key is there, and belongs to the account; tells whether it had to be made.
pub fn ensure(layout: &Layout, (user, group): (u32, u32), task: &Task<'_>) -> Result<bool, Failure> {
    if layout.identity().exists() {
        return Ok(false);
    }
    let (folder, part) = (layout.ssh(), layout.home().join(".ssh.new"));
    files::remove_folder(&part)?;
    files::private(&part)?;
    let key = part.join(FILE);
    let host = rustix::system::uname();
    let name = format!("{}@{}", layout.project(), host.nodename().to_string_lossy());
    Argv::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", &name, "-f"]).arg(&key).run(task)?;
    let public = files::read(&key.with_extension("pub"))?.unwrap_or_default();
    for path in [key.with_extension("pub"), key, part.clone()] {
        chown(&path, Some(user), Some(group)).at("change the owner of", &path)?;
    }
    files::remove_folder(&folder)?;
    fs::rename(&part, &folder).at("name", &folder)?;
    files::write(&layout.identity(), &public, 0o644)?;
    Ok(true)
}

/// The public half, as one puts it where it may come in; nothing until it is made.
pub fn public(layout: &Layout) -> String {
    files::read(&layout.identity()).ok().flatten().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::host::Host;
    use crate::task::test::with_task;

    #[test]
    fn a_key_is_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path(), &"shop".parse().unwrap());
        fs::create_dir_all(layout.home()).unwrap();
        let own = fs::metadata(folder.path()).map(|about| (about.uid(), about.gid())).unwrap();
        let made = || with_task(&Host::below(folder.path()), |task| ensure(&layout, own, task)).unwrap();
        assert_eq!(public(&layout), "");
        assert!(made());
        let first = public(&layout);
        assert!(first.starts_with("ssh-ed25519 AAAA") && first.contains(" shop@"), "{first}");
        assert_eq!(fs::metadata(layout.ssh().join(FILE)).unwrap().mode() & 0o777, 0o600);
        assert!(!made() && public(&layout) == first);
        // The account's copy leads elsewhere: what is told is not read there.
        fs::write(layout.ssh().join("id_ed25519.pub"), "other").unwrap();
        assert_eq!(public(&layout), first);
    }
}
