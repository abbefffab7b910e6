//! The ids of guests are reserved in `/etc/subuid` and `/etc/subgid`.
//!
//! LXC writes the map of a guest's ids itself, unless the host has `newuidmap(1)`, which somebody may
//! install at any time: then it is asked, and gives only what these files give to root. They also
//! keep `useradd(8)` from giving the same ids to somebody else.

use corpus_domain::IdRange;

use crate::failure::Failure;
use crate::files;
use crate::host::Host;

const FILES: [&str; 2] = ["/etc/subuid", "/etc/subgid"];

/// All ranges that guests may have, in one line of subuid(5).
fn line() -> String {
    format!("root:{}:{}", IdRange::LOWEST, IdRange::HIGHEST - IdRange::LOWEST + IdRange::LEN)
}

/// They are reserved.
pub fn reserve(host: &Host) -> Result<bool, Failure> {
    change(host, |text| text.lines().map(str::to_owned).chain([line()]).map(|one| one + "\n").collect())
}

/// They are not any more.
pub fn free(host: &Host) -> Result<bool, Failure> {
    change(host, |text| text.lines().filter(|one| *one != line()).map(|one| one.to_owned() + "\n").collect())
}

/// Changes each file in which the line is not as wanted; tells whether there was one.
fn change(host: &Host, changed: impl Fn(&str) -> String) -> Result<bool, Failure> {
    let mut found = false;
    for path in FILES.map(|path| host.path(path)) {
        let text = files::read(&path)?.unwrap_or_default();
        let (is_there, wanted) = (text.lines().any(|one| one == line()), changed(&text));
        if is_there != wanted.lines().any(|one| one == line()) {
            files::write(&path, &wanted, 0o644)?;
            found = true;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_keep_their_ids() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let path = host.path("/etc/subuid");
        files::write(&path, "admin:100000:65536", 0o644).unwrap();
        assert!(reserve(&host).unwrap() && !reserve(&host).unwrap());
        assert_eq!(files::read(&path).unwrap().unwrap(), "admin:100000:65536\nroot:1073741824:805306368\n");
        assert!(free(&host).unwrap() && !free(&host).unwrap());
        assert_eq!(files::read(&path).unwrap().unwrap(), "admin:100000:65536\n");
    }
}
