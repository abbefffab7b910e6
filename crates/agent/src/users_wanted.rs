//! The users that a project wants on this guest, beside those of its image and its packages.
//!
//! Only accounts that were made here are ever touched, which is told by what their full name says: users can't change that
//! themselves. One that is not wanted any more stays with its files, and nobody enters by it: it has expired, and what runs
//! as it ends. Their keys are the node's business, like those of all accounts.

use std::collections::BTreeSet;
use std::path::Path;

use corpus_protocol::GuestUser;

use crate::failure::Failure;
use crate::files;
use crate::project::account;
use crate::runner::Argv;
use crate::task::Task;

/// What the full name of these accounts is.
const ABOUT: &str = "User of Corpus";
/// Who of them may do all that root may.
const SUDOERS: &str = "/etc/sudoers.d/corpus-users";
/// The day on which who is not wanted has expired, in days since 1970.
const LONG_AGO: &str = "1";

/// These are the users that were made here, and no others of them can enter; tells whether anything had to be done.
pub fn ensure(users: &[GuestUser], task: &Task<'_>) -> Result<bool, Failure> {
    let sudoers = task.host.path(SUDOERS);
    let mut changed = withdraw(&sudoers, users)?;
    let wanted: BTreeSet<&str> = users.iter().map(|user| user.name.as_str()).collect();
    for name in account::of_full_name(ABOUT) {
        if !wanted.contains(name.as_str()) && !has_expired(&name)? {
            Argv::new("usermod").args(["--expiredate", LONG_AGO, &name]).run(task)?;
            account::end_processes(task, &name)?;
            changed = true;
        }
    }
    let mut foreign = Vec::new();
    for name in &wanted {
        match account::full_name(name) {
            Some(about) if about == ABOUT && has_expired(name)? => {
                Argv::new("usermod").args(["--expiredate", "", name]).run(task)?;
                changed = true;
            }
            Some(about) if about == ABOUT => {}
            Some(_) => foreign.push(*name),
            None => {
                // No password opens it, and it is not locked: a key does.
                let make = Argv::new("useradd").args(["--create-home", "--user-group", "--shell", "/bin/bash"]);
                make.args(["--password", "*", "--comment", ABOUT, name]).run(task)?;
                changed = true;
            }
        }
    }
    let trusted: Vec<&str> = users.iter().filter(|user| user.sudo).map(|user| user.name.as_str()).collect();
    let trusted: Vec<&str> = trusted.into_iter().filter(|name| !foreign.contains(name)).collect();
    if !trusted.is_empty() {
        changed |= files::ensure(&sudoers, &text(&trusted), 0o440)?;
    }
    if foreign.is_empty() {
        return Ok(changed);
    }
    let (names, verb) = (foreign.join(", "), if foreign.len() == 1 { "is an account" } else { "are accounts" });
    Err(Failure::Invalid(format!("{names} {verb} of the guest's own already, which stays as it is")))
}

fn text(names: &[&str]) -> String {
    let line = |name: &&str| format!("{name} ALL=(ALL:ALL) NOPASSWD: ALL\n");
    format!("# Kept by Corpus; changes are overwritten.\n{}", names.iter().map(line).collect::<String>())
}

/// Who may not any more can't from the first moment on.
fn withdraw(sudoers: &Path, users: &[GuestUser]) -> Result<bool, Failure> {
    let Some(found) = files::read(sudoers)? else { return Ok(false) };
    let may = |name: &str| users.iter().any(|user| user.sudo && user.name.as_str() == name);
    let named = found.lines().filter_map(|line| line.split_once(" ALL=")).map(|(name, _)| name);
    if named.clone().all(may) && named.clone().next().is_some() {
        return Ok(false);
    }
    files::remove(sudoers)
}

/// Whether shadow(5) says that an account has expired.
fn has_expired(name: &str) -> Result<bool, Failure> {
    let shadow = files::read(Path::new("/etc/shadow"))?.unwrap_or_default();
    let line = shadow.lines().find(|line| line.split(':').next() == Some(name));
    Ok(line.and_then(|line| line.split(':').nth(7)).is_some_and(|day| !day.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_any_more_is_out_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sudoers");
        let user = |name: &str, sudo| GuestUser { name: name.parse().unwrap(), sudo };
        assert!(!withdraw(&path, &[]).unwrap(), "there is none");
        std::fs::write(&path, text(&["ann", "bob"])).unwrap();
        assert!(!withdraw(&path, &[user("ann", true), user("bob", true), user("eve", true)]).unwrap());
        assert!(path.exists());
        assert!(withdraw(&path, &[user("ann", true), user("bob", false)]).unwrap());
        assert!(!path.exists());
    }
}
