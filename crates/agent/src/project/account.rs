//! The account that a project's tree belongs to.

use std::path::Path;
use std::time::{Duration, Instant};

use corpus_domain::ProjectName;

use crate::failure::Failure;
use crate::files;
use crate::project::leftovers;
use crate::runner::Argv;
use crate::task::Task;

/// Linux knows no longer names of accounts: `useradd(8)`.
const MAX: usize = 32;
/// How long what runs as the account has to be gone.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// The account's name: the project's; where the guest has another account of that name, or the
/// name is too long for one, `p-` and as much of it as fits.
pub fn name(project: &ProjectName) -> String {
    let name = project.as_str();
    let taken = |name: &str| find(name).is_some_and(|entry| entry.about != about(project));
    if name.len() <= MAX && !taken(name) {
        return name.to_owned();
    }
    format!("p-{name}").chars().take(MAX).collect()
}

/// The account exists, and its home is where its key lies; tells whether anything was changed.
pub fn ensure(task: &Task<'_>, project: &ProjectName, home: &Path) -> Result<bool, Failure> {
    let name = name(project);
    match find(&name) {
        Some(entry) if entry.about == about(project) => return settle(task, &name, &entry, home),
        Some(_) => return Err(Failure::Invalid(format!("the guest has an account {name} that is not the project's"))),
        None => {}
    }
    Argv::new("useradd")
        .args(["--system", "--user-group", "--no-create-home", "--home-dir"])
        .arg(home)
        .args(["--shell", "/usr/sbin/nologin", "--comment", &about(project), &name])
        .run(task)?;
    Ok(true)
}

/// One that was made before accounts had a home gets it. That can't be while something runs as it, and is tried again then.
fn settle(task: &Task<'_>, name: &str, entry: &Entry, home: &Path) -> Result<bool, Failure> {
    if Path::new(&entry.home) == home || !leftovers::of_user(entry.user).is_empty() {
        return Ok(false);
    }
    Argv::new("usermod").arg("--home").arg(home).arg(name).run(task)?;
    Ok(true)
}

/// The account is gone; tells whether there was one.
pub fn ensure_absent(task: &Task<'_>, project: &ProjectName) -> Result<bool, Failure> {
    let name = name(project);
    if find(&name).is_none_or(|entry| entry.about != about(project)) {
        return Ok(false);
    }
    end_processes(task, &name)?;
    Argv::new("userdel").arg(&name).run(task)?;
    Ok(true)
}

/// The full name of an account, if there is one.
pub fn full_name(name: &str) -> Option<String> {
    find(name).map(|entry| entry.about)
}

/// The accounts with this full name.
pub fn of_full_name(about: &str) -> Vec<String> {
    let passwd = files::read(Path::new("/etc/passwd")).ok().flatten().unwrap_or_default();
    let named = passwd.lines().filter(|line| line.split(':').nth(4) == Some(about));
    named.filter_map(|line| line.split(':').next()).map(str::to_owned).collect()
}

/// What runs as the account ends: it could not be removed otherwise.
pub fn end_processes(task: &Task<'_>, name: &str) -> Result<(), Failure> {
    let (user, _) = ids(name)?;
    let end = Instant::now() + END_TIMEOUT;
    loop {
        let running = leftovers::of_user(user);
        if running.is_empty() || Instant::now() > end {
            return Ok(());
        }
        for (pid, program) in running {
            task.note(format!("{program} (pid {pid}) runs as {name} and is ended"));
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The numbers of an account and its group.
pub fn ids(name: &str) -> Result<(u32, u32), Failure> {
    find(name)
        .map(|entry| (entry.user, entry.group))
        .ok_or_else(|| Failure::Missing(format!("the guest has no account {name}")))
}

fn about(project: &ProjectName) -> String {
    format!("Corpus project {project}")
}

struct Entry {
    user: u32,
    group: u32,
    about: String,
    home: String,
}

/// An account of passwd(5).
fn find(name: &str) -> Option<Entry> {
    let passwd = files::read(Path::new("/etc/passwd")).ok().flatten()?;
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then_some(())?;
        let user = fields.nth(1)?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        Some(Entry { user, group, about: fields.next()?.to_owned(), home: fields.next()?.to_owned() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_never_those_of_others() {
        let name = |text: &str| name(&text.parse().unwrap());
        assert_eq!(name("no-such-account"), "no-such-account");
        assert_eq!(name("root"), "p-root");
        assert_eq!(name(&"a".repeat(40)).len(), 32);
        assert_eq!(ids("root").unwrap(), (0, 0));
    }
}
