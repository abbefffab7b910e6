//! On real repositories in real folders; what restic itself reads is tried where it is installed.
#![expect(clippy::disallowed_methods, reason = "restic is run as an operator runs it")]

mod damage;
mod failing;
mod known;
mod places;
mod restic_at_servers;
mod room;
mod s3_server;
mod sshd;
mod trees;
mod with_restic;

use std::path::Path;

use secrecy::SecretString;

use crate::{BackupError, Keep, Reading, Repository, Which};

const KEEP: Keep = Keep { daily: 7, weekly: 4, monthly: 12 };

fn repository(folder: &Path) -> Repository {
    Repository::at(folder.join("repository").into(), SecretString::from("correct horse"))
}

fn write(folder: &Path, name: &str, contents: &str) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join(name), contents).unwrap();
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn what_was_saved_comes_back_and_what_is_the_same_takes_no_room() {
    let at = tempfile::tempdir().unwrap();
    let (from, to) = (at.path().join("from"), at.path().join("to"));
    let large = "a line that is long enough to be stored\n".repeat(50_000);
    write(&from, "large", &large);
    write(&from, "small", "one");
    let repository = repository(at.path());
    let first = repository.save(&from, "controller", "here").unwrap();
    assert_eq!((first.snapshot.files, first.snapshot.bytes), (2, large.len() as u64 + 3));
    write(&from, "small", "two");
    let second = repository.save(&from, "controller", "here").unwrap();
    assert!(second.added_bytes < 4_000, "{} bytes more for three that changed", second.added_bytes);

    let listed: Vec<String> = repository.list("controller").unwrap().into_iter().map(|one| one.id).collect();
    assert_eq!(listed, [second.snapshot.id.clone(), first.snapshot.id.clone()]);
    assert_eq!(repository.list("guest").unwrap(), []);

    assert_eq!(repository.restore("controller", &Which::Latest, &to).unwrap(), second.snapshot);
    assert_eq!((read(&to, "small"), read(&to, "large")), ("two".to_owned(), large));
    let again = repository.restore("controller", &Which::Latest, &to).unwrap_err();
    assert!(matches!(again, BackupError::NotEmpty(_)), "{again}");
    let before = at.path().join("before");
    let begin = first.snapshot.id[..12].to_owned();
    repository.restore("controller", &Which::Id(begin), &before).unwrap();
    assert_eq!(read(&before, "small"), "one");
}

#[test]
fn what_is_not_there_or_does_not_open_says_so() {
    let at = tempfile::tempdir().unwrap();
    let ours = repository(at.path());
    let error = ours.list("controller").unwrap_err();
    assert!(matches!(error, BackupError::NoRepository(_)), "{error}");
    write(&at.path().join("from"), "file", "one");
    ours.save(&at.path().join("from"), "controller", "here").unwrap();
    let other = Repository::at(at.path().join("repository").into(), SecretString::from("wrong"));
    let error = other.list("controller").unwrap_err();
    assert!(matches!(error, BackupError::Password(_)), "{error}");
    assert!(!format!("{ours:?}").contains("correct horse"));
    let error = ours.restore("controller", &Which::Id("ffff".to_owned()), &at.path().join("to")).unwrap_err();
    assert!(matches!(error, BackupError::NoSnapshot { .. }), "{error}");
}

#[test]
fn a_damaged_byte_is_found() {
    let at = tempfile::tempdir().unwrap();
    let ours = repository(at.path());
    write(&at.path().join("from"), "file", &"what must not be lost\n".repeat(1_000));
    ours.save(&at.path().join("from"), "controller", "here").unwrap();
    ours.check(Reading::All).unwrap();
    let packs = files(&at.path().join("repository/data"));
    for pack in packs {
        let mut bytes = std::fs::read(&pack).unwrap();
        let middle = bytes.len() / 3;
        bytes[middle] ^= 1;
        std::fs::set_permissions(&pack, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::write(&pack, bytes).unwrap();
    }
    let error = ours.check(Reading::All).unwrap_err();
    assert!(matches!(error, BackupError::Damaged { .. }), "{error}");
}

#[test]
fn old_ones_go_and_those_of_others_stay() {
    let at = tempfile::tempdir().unwrap();
    let ours = repository(at.path());
    let from = at.path().join("from");
    for text in ["one", "two", "three"] {
        write(&from, "file", text);
        ours.save(&from, "controller", "here").unwrap();
    }
    write(&from, "file", "another's");
    ours.save(&from, "guest", "here").unwrap();
    // All of one day: the last of it is kept, and the oldest of all, while there are fewer than may be.
    assert_eq!(ours.thin("controller", KEEP).unwrap(), 1);
    assert_eq!(ours.list("controller").unwrap().len(), 2);
    assert_eq!(ours.list("guest").unwrap().len(), 1);
    ours.check(Reading::All).unwrap();
    ours.restore("controller", &Which::Latest, &at.path().join("to")).unwrap();
    assert_eq!(read(&at.path().join("to"), "file"), "three");
}

/// Without Corpus, by the tool that everybody has.
#[test]
fn restic_reads_it() {
    let restic = |args: &[&str], repository: &Path| {
        std::process::Command::new("restic")
            .args(["--no-cache", "--repo"])
            .arg(repository)
            .args(args)
            .env("RESTIC_PASSWORD", "correct horse")
            .output()
    };
    let at = tempfile::tempdir().unwrap();
    let ours = repository(at.path());
    write(&at.path().join("from"), "file", "read by another");
    ours.save(&at.path().join("from"), "controller", "here").unwrap();
    let place = at.path().join("repository");
    let Ok(checked) = restic(&["check", "--read-data"], &place) else {
        assert!(std::env::var_os("CI").is_none(), "restic is not installed");
        return;
    };
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let dumped = restic(&["dump", "latest", "/file"], &place).unwrap();
    assert_eq!(
        String::from_utf8_lossy(&dumped.stdout),
        "read by another",
        "{}",
        String::from_utf8_lossy(&dumped.stderr)
    );
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
