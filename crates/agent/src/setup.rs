//! What is set inside a guest: files, host key, passwords, and the keys of the members.

use std::net::Ipv4Addr;

use corpus_protocol::{Account, AuthorizedKeys, GuestSetup, SshHostKey};

use crate::failure::Failure;
use crate::guest_root::{GuestPath, GuestRoot, Owner};

/// The folder in a guest with the keys that Corpus keeps, a file for each account. sshd reads
/// it besides the account's own `~/.ssh/authorized_keys`, which Corpus leaves alone.
pub const KEYS: &str = "/etc/corpus/authorized_keys";

/// What setting up a guest changed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Changed {
    /// Anything at all.
    pub anything: bool,
    /// The host key, which a running sshd has read already.
    pub host_key: bool,
}

/// Files, host key and passwords are as given.
pub fn apply(root: &GuestRoot, setup: &GuestSetup) -> Result<Changed, Failure> {
    let mut changed = Changed::default();
    for file in &setup.files {
        if file.yields && is_of_guest(root, &file.path.parse()?)? {
            continue;
        }
        changed.anything |= root.ensure(&file.path.parse()?, &file.text, Owner::root(file.mode))?;
    }
    if let Some(addresses) = setup.readdressed {
        changed.anything |= readdress(root, addresses)?;
    }
    if let Some(key) = &setup.host_key {
        changed.host_key = host_key(root, key)?;
    }
    if !setup.accounts.is_empty() {
        changed.anything |= accounts(root, &setup.accounts)?;
    }
    changed.anything |= changed.host_key;
    Ok(changed)
}

/// Where it says what its names mean.
const HOSTS: &str = "/etc/hosts";

/// Where the guest's hosts file says an address that it had, it says the one that it has. All else is as it was written.
fn readdress(root: &GuestRoot, (had, has): (Ipv4Addr, Ipv4Addr)) -> Result<bool, Failure> {
    let path = HOSTS.parse()?;
    let Some(found) = root.read(&path)? else { return Ok(false) };
    let (had, has) = (had.to_string(), has.to_string());
    let line = |line: &str| match line.split_once(char::is_whitespace) {
        Some((address, _)) if address == had => line.replacen(&had, &has, 1),
        _ => line.to_owned(),
    };
    let text: String = found.text.split_inclusive('\n').map(line).collect();
    root.ensure(&path, &text, found.owner)
}

/// The first line of a file that Corpus keeps in a guest.
const OURS: &str = "# Kept by Corpus";

/// Whether somebody in the guest wrote this file.
fn is_of_guest(root: &GuestRoot, path: &GuestPath) -> Result<bool, Failure> {
    Ok(root.read(path)?.is_some_and(|found| !found.text.trim().is_empty() && !found.text.starts_with(OURS)))
}

/// The keys that Corpus keeps in a guest are exactly these.
pub fn keys(root: &GuestRoot, keys: &AuthorizedKeys) -> Result<bool, Failure> {
    let mut changed = false;
    for (user, lines) in keys.iter().filter(|(_, lines)| !lines.is_empty()) {
        if lines.iter().any(|line| line.chars().any(char::is_control)) {
            return Err(Failure::Invalid(format!("a key of {user} is not one line")));
        }
        changed |= root.ensure(&key_file(user.as_str())?, &key_text(lines), KEY_OWNER)?;
    }
    for name in unplanned(root, keys)? {
        changed |= root.remove(&key_file(&name)?)?;
    }
    Ok(changed)
}

/// Who owns the files of keys: sshd does not trust a file that others may write.
const KEY_OWNER: Owner = Owner::root(0o644);

/// A guest may have made any number of them.
const NAMED: usize = 3;

fn key_file(user: &str) -> Result<GuestPath, Failure> {
    format!("{KEYS}/{user}").parse()
}

fn key_text(lines: &[String]) -> String {
    format!("# Kept by Corpus; changes are overwritten.\n{}\n", lines.join("\n"))
}

/// The files in the folder of accounts that have no key.
fn unplanned(root: &GuestRoot, keys: &AuthorizedKeys) -> Result<Vec<String>, Failure> {
    let mut names = root.list(&KEYS.parse()?)?;
    names.retain(|name| !keys.iter().any(|(user, lines)| user.as_str() == name && !lines.is_empty()));
    names.sort_unstable();
    Ok(names)
}

/// What [`keys`] would change, a sentence for each account.
pub fn key_differences(root: &GuestRoot, keys: &AuthorizedKeys) -> Result<Vec<String>, Failure> {
    let mut differences = Vec::new();
    for (user, lines) in keys.iter().filter(|(_, lines)| !lines.is_empty()) {
        let found = root.read(&key_file(user.as_str())?)?;
        differences.extend(match found {
            None => Some(format!("the keys of {user} are missing")),
            Some(found) if found.owner != KEY_OWNER => {
                Some(format!("the keys of {user} can be changed by others than root"))
            }
            Some(found) => key_difference(user.as_str(), lines, &found.text),
        });
    }
    let unplanned = unplanned(root, keys)?;
    let named = unplanned.iter().take(NAMED);
    differences.extend(named.map(|name| format!("{name:?} has keys, and should have none")));
    if unplanned.len() > NAMED {
        differences.push(format!("{} more accounts have keys, and should have none", unplanned.len() - NAMED));
    }
    Ok(differences)
}

fn key_difference(user: &str, wanted: &[String], text: &str) -> Option<String> {
    if text == key_text(wanted) {
        return None;
    }
    let found: Vec<&str> =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let missing = wanted.iter().filter(|line| !found.contains(&line.trim())).count();
    let foreign = found.iter().filter(|line| !wanted.iter().any(|wanted| wanted.trim() == **line)).count();
    let keys = |count: usize| if count == 1 { "1 key".to_owned() } else { format!("{count} keys") };
    Some(match (missing, foreign) {
        (0, 0) => format!("the file with the keys of {user} was changed"),
        (missing, 0) => format!("{user} lacks {}", keys(missing)),
        (0, foreign) => format!("{user} has {} that Corpus did not bring", keys(foreign)),
        (missing, foreign) => {
            format!("{user} lacks {} and has {} that Corpus did not bring", keys(missing), keys(foreign))
        }
    })
}

fn host_key(root: &GuestRoot, key: &SshHostKey) -> Result<bool, Failure> {
    let private = root.ensure(&"/etc/ssh/ssh_host_ed25519_key".parse()?, &key.private, Owner::root(0o600))?;
    let public = format!("{}\n", key.public.trim_end());
    let public = root.ensure(&"/etc/ssh/ssh_host_ed25519_key.pub".parse()?, &public, Owner::root(0o644))?;
    Ok(private || public)
}

fn accounts(root: &GuestRoot, accounts: &[Account]) -> Result<bool, Failure> {
    let path = "/etc/shadow".parse()?;
    let Some(shadow) = root.read(&path)? else {
        return Err(Failure::Missing("the guest has no /etc/shadow".into()));
    };
    root.ensure(&path, &with_passwords(&shadow.text, accounts)?, shadow.owner)
}

/// shadow(5) with the second field of each given account replaced.
fn with_passwords(shadow: &str, accounts: &[Account]) -> Result<String, Failure> {
    let mut lines: Vec<String> = shadow.lines().map(str::to_owned).collect();
    for Account { user, password } in accounts {
        let hash = &password.0;
        if !hash.starts_with('$') || hash.contains(':') || hash.chars().any(char::is_control) {
            return Err(Failure::Invalid(format!("the password of {user} is not hashed for crypt(3)")));
        }
        let line = lines.iter_mut().find(|line| line.split(':').next() == Some(user.as_str()));
        let Some(line) = line else {
            return Err(Failure::Missing(format!("the guest has no account {user}")));
        };
        let rest: Vec<&str> = line.splitn(3, ':').skip(2).collect();
        *line = format!("{user}:{hash}:{}", rest.first().copied().unwrap_or(":::::"));
    }
    Ok(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use corpus_protocol::UnixPasswordHash;
    use proptest::prelude::*;

    fn account(user: &str, hash: &str) -> Account {
        Account { user: user.parse().unwrap(), password: UnixPasswordHash(hash.into()) }
    }

    #[test]
    fn passwords_replace_only_their_field() {
        let shadow = "root:*:19000:0:99999:7:::\nrooty:!:1::::::\nsysadmin:!:19000:0:99999:7:::\n";
        let set = with_passwords(shadow, &[account("root", "$6$a$b"), account("sysadmin", "$6$c$d")]).unwrap();
        assert_eq!(set, "root:$6$a$b:19000:0:99999:7:::\nrooty:!:1::::::\nsysadmin:$6$c$d:19000:0:99999:7:::\n");
        assert!(with_passwords(shadow, &[account("bob", "$6$a$b")]).is_err());
        assert!(with_passwords(shadow, &[account("root", "")]).is_err());
    }

    #[test]
    fn missing_and_foreign_keys_are_told_apart() {
        let wanted = ["ssh-ed25519 AAAA a".to_owned(), "ssh-ed25519 BBBB b".to_owned()];
        let told = |text: &str| key_difference("root", &wanted, text);
        assert_eq!(told(&key_text(&wanted)), None);
        assert_eq!(told("ssh-ed25519 AAAA a\n").as_deref(), Some("root lacks 1 key"));
        let foreign = key_text(&wanted) + "ssh-ed25519 CCCC evil\n";
        assert_eq!(told(&foreign).as_deref(), Some("root has 1 key that Corpus did not bring"));
        assert_eq!(told("x\ny\n").as_deref(), Some("root lacks 2 keys and has 2 keys that Corpus did not bring"));
        assert_eq!(told(&wanted.join("\n")).as_deref(), Some("the file with the keys of root was changed"));
    }

    #[test]
    fn a_guest_with_another_address_finds_itself() {
        let folder = tempfile::tempdir().unwrap();
        let root = GuestRoot::folder(folder.path()).unwrap();
        let addresses = (Ipv4Addr::new(10, 5, 0, 1), Ipv4Addr::new(10, 6, 0, 9));
        assert!(!readdress(&root, addresses).unwrap(), "there is no such file");
        std::fs::create_dir(folder.path().join("etc")).unwrap();
        let hosts = folder.path().join("etc/hosts");
        std::fs::write(&hosts, "127.0.0.1 localhost\n# 10.5.0.1 is\n10.5.0.1\twww\n10.5.0.10 db\n10.5.0.1 x 10.5.0.1")
            .unwrap();
        assert!(readdress(&root, addresses).unwrap() && !readdress(&root, addresses).unwrap(), "once");
        let now = "127.0.0.1 localhost\n# 10.5.0.1 is\n10.6.0.9\twww\n10.5.0.10 db\n10.6.0.9 x 10.5.0.1";
        assert_eq!(std::fs::read_to_string(&hosts).unwrap(), now);
    }

    #[test]
    fn what_the_guest_wrote_stays() {
        let folder = tempfile::tempdir().unwrap();
        let root = GuestRoot::folder(folder.path()).unwrap();
        std::fs::create_dir(folder.path().join("etc")).unwrap();
        let path = "/etc/resolv.conf";
        for (found, stays) in
            [("", false), ("\n", false), ("# Kept by Corpus; x\n", false), ("nameserver 192.0.2.1\n", true)]
        {
            std::fs::write(folder.path().join("etc/resolv.conf"), found).unwrap();
            assert_eq!(is_of_guest(&root, &path.parse().unwrap()).unwrap(), stays, "{found:?}");
        }
    }

    proptest! {
        #[test]
        fn no_hash_adds_a_line_or_field(hash in "\\PC*|[\\x00-\\x7f]*") {
            let shadow = "root:*:19000:0:99999:7:::\n";
            if let Ok(set) = with_passwords(shadow, &[account("root", &hash)]) {
                prop_assert_eq!(set.lines().count(), 1);
                prop_assert_eq!(set.trim_end_matches('\n').split(':').count(), 9);
            }
        }
    }
}
