//! Whatever a repository can do it can do at each kind of place, and what goes wrong there is said in words.

use std::io::{self, Read};
use std::sync::Arc;

use secrecy::SecretString;

use super::known::{Held, Tree, about, noise};
use super::s3_server::{self, S3Server};
use super::sshd::{self, Sshd};
use super::{KEEP, read, write};
use crate::storage::Backend;
use crate::{Access, BackupError, Contents, InvalidPlace, Place, Reading, Repository, Storage, StorageError, Which};

fn repository_at(storage: Storage) -> Repository {
    Repository::at(storage, SecretString::from("correct horse"))
}

/// An error with what caused it.
fn whole(error: &dyn std::error::Error) -> String {
    let cause = error.source().map(|cause| format!(": {}", whole(cause))).unwrap_or_default();
    format!("{error}{cause}")
}

fn tree(seed: u64) -> Tree {
    let kept = Tree::new().file(1, "kept", &noise(1, 3 << 20)).file(1, "late", &noise(seed, 300_000));
    kept.folder(1, "some").file(2, "text", b"text")
}

/// All that a repository can do.
fn everything(storage: &Storage) {
    let ours = repository_at(storage.clone());
    assert!(matches!(ours.list("guest").unwrap_err(), BackupError::NoRepository(_)));
    assert_eq!(ours.tagged("none").unwrap(), None);
    let first = tree(2).save(&ours, "guest").unwrap();
    let second = tree(3).save(&ours, "guest").unwrap();
    assert!(first.added_bytes > 3 << 20 && second.added_bytes < 400_000, "{first:?} {second:?}");
    assert_eq!(ours.tagged(&about("guest").tag).unwrap().unwrap().label, "guest");
    assert!(Tree::read(&ours, &first.snapshot.id) == tree(2));
    assert!(Tree::read(&ours, &second.snapshot.id) == tree(3));
    let mut content = Vec::new();
    ours.read_file(&second.snapshot.id, &[b"some", b"text"], &mut content).unwrap();
    assert_eq!(content, b"text");
    let listed = ours.list_folder(&second.snapshot.id, &[]).unwrap();
    assert_eq!(listed.iter().map(|entry| entry.name.clone()).collect::<Vec<_>>(), [&b"kept"[..], b"late", b"some"]);
    ours.check(Reading::All).unwrap();

    let at = tempfile::tempdir().unwrap();
    for text in ["one", "two", "three"] {
        write(&at.path().join("from"), "file", text);
        ours.save(&at.path().join("from"), "controller", "here").unwrap();
    }
    assert_eq!(ours.thin("controller", KEEP).unwrap(), 1);
    ours.restore("controller", &Which::Latest, &at.path().join("to")).unwrap();
    assert_eq!(read(&at.path().join("to"), "file"), "three");

    ours.remove(std::slice::from_ref(&first.snapshot.id)).unwrap();
    ours.remove(&[first.snapshot.id]).unwrap();
    ours.prune().unwrap();
    assert_eq!(ours.list("guest").unwrap(), std::slice::from_ref(&second.snapshot));
    assert!(Tree::read(&ours, &second.snapshot.id) == tree(3));
    ours.check(Reading::All).unwrap();

    let wrong = Repository::at(storage.clone(), SecretString::from("wrong"));
    assert!(matches!(wrong.list("guest").unwrap_err(), BackupError::Password(_)));
    both_make_it(&storage.below("both"));
    storage.remove().unwrap();
    storage.remove().unwrap();
    assert!(matches!(ours.list("guest").unwrap_err(), BackupError::NoRepository(_)));
}

/// Two make the same one at a time: one has made it, and the other's key is gone.
fn both_make_it(storage: &Storage) {
    use rustic_core::{ConfigOptions, Credentials, KeyOptions, RepositoryBackends, RepositoryOptions};
    let open = || Arc::new(Backend::new(storage.files().unwrap(), crate::fault::Fault::default()));
    let reached = |backend: &Arc<Backend>| {
        let options = RepositoryOptions::default().no_cache(true);
        rustic_core::Repository::new(&options, &RepositoryBackends::new(backend.clone(), None)).unwrap()
    };
    let credentials = Credentials::password("correct horse");
    let (one, other) = (open(), open());
    // One has written its key and no configuration yet when the other comes.
    let abandoned = [bytes::Bytes::from_static(b"{}")];
    storage.files().unwrap().write(&format!("keys/{}", "0".repeat(64)), &abandoned).unwrap();
    let config =
        reached(&one).init(&credentials, &KeyOptions::default(), &ConfigOptions::default()).unwrap().config().clone();
    // It looked before the first had written its configuration, so it goes on.
    let second = reached(&other).init_with_config(&credentials, &KeyOptions::default(), config);
    assert!(second.is_err_and(|error| BackupError::of("making")(error).to_string().contains("making")));
    assert_eq!(storage.files().unwrap().list("keys").unwrap().len(), 2);
    one.made().unwrap();
    assert_eq!(storage.files().unwrap().list("keys").unwrap().len(), 1);
    let ours = repository_at(storage.clone());
    tree(4).save(&ours, "guest").unwrap();
    ours.check(Reading::All).unwrap();
}

#[test]
fn a_folder_does_everything() {
    let at = tempfile::tempdir().unwrap();
    let storage = Storage::from(at.path().join("not/there"));
    let room = storage.room().unwrap().unwrap();
    assert!(room.all > room.free && room.free > 0);
    everything(&storage.below("yet"));
}

#[test]
fn an_sftp_server_does_everything() {
    let sshd = Sshd::start();
    let storage = sshd.storage("not/there");
    let room = storage.room().unwrap().unwrap();
    assert!(room.all > room.free && room.free > 0);
    everything(&storage.below("yet"));
    // For nobody else to read.
    let mode = std::os::unix::fs::PermissionsExt::mode(&sshd.home().join("not").metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn an_s3_server_does_everything() {
    let Some(server) = S3Server::start() else { return };
    let refused = server.send("GET", &format!("/{}?list-type=2", s3_server::BUCKET), "s3", "");
    assert!(refused.contains("403"), "it checks who asks: {refused}");
    let storage = server.storage("not/there");
    assert_eq!(storage.room().unwrap(), None);
    // What is not of the repository stays.
    let beside = server.storage("not/there/yet");
    beside.files().unwrap().write("notes", &[bytes::Bytes::from_static(b"mine")]).unwrap();
    everything(&storage.below("yet"));
    assert_eq!(&*beside.files().unwrap().read("notes").unwrap(), b"mine");
    // A bucket of its own.
    everything(&Storage::new("s3://backups".parse().unwrap(), &server.access()).unwrap());
    long_list(&server.storage("many"));
}

/// More names than a server gives at a time.
fn long_list(storage: &Storage) {
    let files = storage.files().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let files = files.clone();
            scope.spawn(move || {
                for number in 0..140 {
                    files.write(&format!("data/ab/{thread}-{number}"), &[bytes::Bytes::from_static(b"x")]).unwrap();
                }
            });
        }
    });
    assert_eq!(files.list("data").unwrap().len(), 8 * 140);
    storage.remove().unwrap();
    assert_eq!(files.list("data").unwrap(), []);
}

/// What is done when a content is asked for that is far in.
struct Then<F> {
    held: Held,
    at: u64,
    done: F,
}

impl<F: Fn() + Send + Sync> Contents for Then<F> {
    fn open(&self, number: u64) -> io::Result<Box<dyn Read + Send>> {
        if number == self.at {
            (self.done)();
        }
        self.held.open(number)
    }
}

/// Something is done in the middle of a save.
fn saved_while(ours: &Repository, done: impl Fn() + Send + Sync + 'static) -> Result<crate::Saved, BackupError> {
    // Two packs are full before.
    let tree = (0..60).fold(Tree::new(), |tree, number| tree.file(1, &format!("{number:02}"), &noise(number, 2 << 20)));
    let entries: Vec<_> = tree.0.iter().map(|(entry, _)| Ok(entry.clone())).collect();
    let contents = Then { held: Held::of(&tree), at: 40, done };
    let saved = ours.save_tree(&about("large"), entries.into_iter(), Arc::new(contents));
    if let Ok(saved) = &saved {
        assert!(Tree::read(ours, &saved.snapshot.id) == tree);
    }
    saved
}

#[test]
fn an_sftp_server_that_dies_in_the_middle_leaves_nothing_half() {
    let sshd = Arc::new(Sshd::start());
    let ours = repository_at(sshd.storage("guests"));
    let good = tree(1).save(&ours, "guest").unwrap();
    // A line that breaks is opened again.
    let dying = sshd.clone();
    let entered = || sshd.log().matches("Accepted publickey").count();
    let before = entered();
    let saved = saved_while(&ours, move || dying.cut()).unwrap();
    // To save, once more for that, and to read: on a busy machine a line is opened more often.
    assert!((before + 3..before + 10).contains(&entered()), "{before}, then {}", entered());
    ours.remove(&[saved.snapshot.id]).unwrap();
    ours.prune().unwrap();

    let dying = sshd.clone();
    let error = saved_while(&ours, move || dying.stop()).unwrap_err();
    let said = whole(&error);
    assert!(matches!(error, BackupError::Storage { source: StorageError::Unreachable { .. }, .. }), "{error:?}");
    assert!(said.starts_with("writing to the repository failed: 127.0.0.1:"), "{said}");
    // By one who came just before it died, it was reached.
    let (refused, reset) = ("can't be reached: Connection refused", "can't be reached: Connection reset");
    assert!(said.contains(refused) || said.contains(reset), "{said}");
    let error = whole(&ours.list("guest").unwrap_err());
    assert!(error.starts_with("opening the repository failed") && error.contains("can't be reached"), "{error}");

    sshd.run();
    assert_eq!(ours.list("large").unwrap(), []);
    assert_eq!(ours.tagged(&about("large").tag).unwrap(), None);
    ours.check(Reading::Index).unwrap();
    saved_while(&ours, || {}).unwrap();
    ours.prune().unwrap();
    ours.check(Reading::All).unwrap();
    assert!(Tree::read(&ours, &good.snapshot.id) == tree(1));
}

#[test]
fn an_s3_server_that_dies_in_the_middle_is_told_of() {
    let Some(server) = S3Server::start().map(Arc::new) else { return };
    let ours = repository_at(server.storage("guests"));
    tree(1).save(&ours, "guest").unwrap();
    let dying = server.clone();
    let error = saved_while(&ours, move || dying.stop()).unwrap_err();
    let said = whole(&error);
    assert!(matches!(error, BackupError::Storage { source: StorageError::Unreachable { .. }, .. }), "{error:?}");
    assert!(said.starts_with("writing to the repository failed: 127.0.0.1 can't be reached: "), "{said}");
    for hidden in [&server.secret, &server.key_id, "http://", "X-Amz-"] {
        assert!(!said.contains(hidden), "{said}");
    }
}

#[test]
fn a_server_with_another_host_key_hears_nothing() {
    let sshd = Sshd::start();
    let access = sshd::access(&sshd.key, &sshd::new_key());
    let error = repository_at(sshd.storage_by("guests", &access)).list("guest").unwrap_err();
    let said = whole(&error);
    let shown = sshd.host_key.public_key().fingerprint(russh::keys::ssh_key::HashAlg::Sha256).to_string();
    assert!(matches!(error, BackupError::Storage { source: StorageError::HostKey { .. }, .. }), "{error:?}");
    assert!(said.contains(&shown) && said.contains("sftp.host_keys"), "{said}");
    let log = sshd.log();
    assert!(!log.contains("Accepted") && !log.contains("publickey"), "{log}");
}

#[test]
fn a_key_that_a_server_does_not_know_is_named() {
    let sshd = Sshd::start();
    let other = sshd::new_key();
    let access = sshd::access(&other, &sshd.host_key);
    let error = repository_at(sshd.storage_by("guests", &access)).list("guest").unwrap_err();
    let said = whole(&error);
    assert!(matches!(error, BackupError::Storage { source: StorageError::NotLetIn { .. }, .. }), "{error:?}");
    let line = russh::keys::PublicKey::new(other.public_key().key_data().clone(), "").to_openssh().unwrap();
    assert!(said.contains("does not let backup in") && said.ends_with(&line), "{said}");
}

#[test]
fn where_an_account_may_not_write_nothing_is_saved() {
    let sshd = Sshd::start();
    let place = format!("sftp://backup@127.0.0.1:{}/usr/not-ours", sshd.port);
    let storage = Storage::new(place.parse().unwrap(), &sshd.access()).unwrap();
    let error = tree(1).save(&repository_at(storage), "guest").unwrap_err();
    assert_eq!(
        whole(&error),
        format!(
            "making the repository failed: making /usr/not-ours failed: 127.0.0.1:{} says the account may not",
            sshd.port
        )
    );
    std::fs::write(sshd.home().join("file"), "no folder").unwrap();
    let error = tree(1).save(&repository_at(sshd.storage("file/in")), "guest").unwrap_err();
    assert!(whole(&error).starts_with("making the repository failed") || whole(&error).contains("says"), "{error:?}");
    assert!(!sshd.home().join("file/in").exists());
}

#[test]
fn what_an_s3_server_refuses_is_said() {
    let Some(server) = S3Server::start() else { return };
    let said = |place: &str, access: &Access| {
        let storage = Storage::new(place.parse().unwrap(), access).unwrap();
        let error = whole(&tree(1).save(&repository_at(storage), "guest").unwrap_err());
        for hidden in [&server.secret, "http://", "X-Amz-"] {
            assert!(!error.contains(hidden), "{error}");
        }
        error
    };
    let wrong = s3_server::access(server.port, &server.key_id, "wrong-secret");
    let error = said("s3://backups/a", &wrong);
    assert!(error.contains("SignatureDoesNotMatch") && error.contains("s3.secret_access_key_file"), "{error}");
    let unknown = s3_server::access(server.port, "AKIANOBODY", &server.secret);
    let error = said("s3://backups/a", &unknown);
    assert!(error.contains("InvalidAccessKeyId") && error.contains("s3.access_key_id"), "{error}");
    let error = said("s3://no-such-bucket/a", &server.access());
    assert!(error.contains("there is no such bucket"), "{error}");
    let nobody = s3_server::access(sshd::free_port(), &server.key_id, &server.secret);
    let error = said("s3://backups/a", &nobody);
    assert!(error.contains("127.0.0.1 can't be reached") && error.contains("refused"), "{error}");
}

#[test]
fn places_are_read_and_shown() {
    for good in [
        "/srv/backups",
        "sftp://backup@storage.example.org/srv/backups",
        "sftp://backup@192.0.2.7:2222/a/b c",
        "sftp://u1@sub@[2001:db8::1]:22/a",
        "s3://backups",
        "s3://my.backups/corpus/guests",
    ] {
        assert_eq!(good.parse::<Place>().unwrap().to_string(), good);
    }
    let below = |place: &str| place.parse::<Place>().unwrap().below("x").to_string();
    assert_eq!(below("/srv/"), "/srv/x");
    assert_eq!(below("sftp://u@h/srv/"), "sftp://u@h/srv/x");
    assert_eq!((below("s3://abc"), below("s3://abc/d/")), ("s3://abc/x".to_owned(), "s3://abc/d/x".to_owned()));
    for (bad, why) in [
        ("", InvalidPlace::Kind),
        ("srv/backups", InvalidPlace::Kind),
        ("ftp://host/path", InvalidPlace::Kind),
        ("sftp:user@host:/path", InvalidPlace::Kind),
        ("sftp://host/path", InvalidPlace::User),
        ("sftp://@host/path", InvalidPlace::User),
        ("sftp://-oProxy Command@host/path", InvalidPlace::User),
        ("sftp://user:hunter2@host/path", InvalidPlace::Password),
        ("sftp://user@host", InvalidPlace::Path),
        ("sftp://user@host/", InvalidPlace::Path),
        ("sftp://user@host//path", InvalidPlace::Path),
        ("sftp://user@host/a/../b", InvalidPlace::Path),
        ("sftp://user@host/a%2e", InvalidPlace::Path),
        ("sftp://user@host/a\nb", InvalidPlace::Path),
        ("sftp://user@/path", InvalidPlace::Host),
        ("sftp://user@host:0/path", InvalidPlace::Host),
        ("sftp://user@host:99999/path", InvalidPlace::Host),
        ("sftp://user@2001:db8::1/path", InvalidPlace::Host),
        ("s3://", InvalidPlace::Bucket),
        ("s3://ab", InvalidPlace::Bucket),
        ("s3://Backups", InvalidPlace::Bucket),
        ("s3://a..b", InvalidPlace::Bucket),
        ("s3://backups-", InvalidPlace::Bucket),
        ("s3://user:key@host/bucket", InvalidPlace::Bucket),
        ("s3://backups/a//b", InvalidPlace::Prefix),
        ("s3://backups/../b", InvalidPlace::Prefix),
        ("s3://backups/a b", InvalidPlace::Prefix),
    ] {
        assert_eq!(bad.parse::<Place>().unwrap_err(), why, "{bad}");
    }
}

#[test]
fn what_opens_a_place_is_not_shown() {
    let key = sshd::new_key();
    let text = key.to_openssh(russh::keys::ssh_key::LineEnding::LF).unwrap();
    let secret = text.lines().nth(2).unwrap();
    let sftp = sshd::access(&key, &sshd::new_key());
    let s3 = s3_server::access(1, "AKIDEXAMPLE", "the-secret");
    let both = Access { sftp: sftp.sftp, s3: s3.s3 };
    for place in ["sftp://backup@host/a", "s3://backups/a"] {
        let storage = Storage::new(place.parse().unwrap(), &both).unwrap();
        let ours = repository_at(storage.clone());
        let shown = format!("{both:?} {storage:?} {storage} {ours:?} {:?}", storage.files().unwrap());
        assert!(shown.contains(place), "{shown}");
        for hidden in [secret, "the-secret", "AKIDEXAMPLE", "correct horse"] {
            assert!(!shown.contains(hidden), "{shown}");
        }
    }
    let none = Storage::new("s3://backups".parse().unwrap(), &Access::default()).unwrap_err();
    assert!(none.to_string().contains("[s3]"), "{none}");
    let bad = crate::SftpAccess::new(&SecretString::from("not a key"), &[]).unwrap_err().to_string();
    assert!(bad.contains("no private key") && !bad.contains("not a key"), "{bad}");
}
