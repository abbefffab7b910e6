//! Who pushes, for people.
//!
//! The controller says it in the environment. A push straight to the guest's own SSH comes in by an
//! account that many share; sshd says in a file which key opened the session (`ExposeAuthInfo`),
//! and the comment of that key, where Corpus keeps the keys of the account, says whose it is.

use std::path::Path;

use crate::files;
use crate::host::Host;
use crate::setup::KEYS;

/// Who pushes: set by whoever authenticated them.
pub(super) const BY: &str = "CORPUS_BY";

/// In bytes.
const MAX_BYTES: usize = 100;

/// As the controller says; or by the key that `exposed` names; or the account, or root.
pub(super) fn pusher(host: &Host, exposed: Option<&Path>) -> String {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| is_plain(value));
    if let Some(by) = variable(BY) {
        return by;
    }
    let account = variable("SUDO_USER").unwrap_or_else(|| "root".into());
    exposed.and_then(|exposed| owner(host, &account, exposed)).unwrap_or(account)
}

/// Whose key opened the session, by the comment that Corpus gave it.
fn owner(host: &Host, account: &str, exposed: &Path) -> Option<String> {
    let exposed = files::read(exposed).ok()??;
    let kept = files::read(&host.path(KEYS).join(account)).ok()??;
    let mut used = exposed.lines().filter_map(|line| line.strip_prefix("publickey ")).map(str::trim);
    used.find_map(|key| {
        let comment = kept.lines().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix([' ', '\t']))?.trim();
        is_plain(comment).then(|| comment.to_owned())
    })
}

/// Whether it can be told to people: one line, and not a long one.
pub(super) fn is_plain(by: &str) -> bool {
    !by.is_empty() && by.len() <= MAX_BYTES && !by.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_key_tells_whose_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        fs::create_dir_all(host.path(KEYS)).unwrap();
        let kept = "ssh-ed25519 AAAA12 bob\nssh-ed25519 AAAA1 mia\nssh-ed25519 AAAA3\n";
        fs::write(host.path(KEYS).join("sysadmin"), kept).unwrap();
        let owner = |text: &str| {
            let exposed = folder.path().join("exposed");
            fs::write(&exposed, text).unwrap();
            owner(&host, "sysadmin", &exposed)
        };
        assert_eq!(owner("publickey ssh-ed25519 AAAA1\n").as_deref(), Some("mia"));
        assert_eq!(owner("password\npublickey ssh-ed25519 AAAA12\n").as_deref(), Some("bob"));
        for unknown in
            ["publickey ssh-ed25519 AAAA3\n", "publickey ssh-ed25519 AAAA\n", "publickey \n", "password\n", ""]
        {
            assert_eq!(owner(unknown), None, "{unknown:?}");
        }
        assert_eq!(super::owner(&host, "nobody", &folder.path().join("exposed")), None);
    }
}
