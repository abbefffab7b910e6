//! Any restic reads what lies at a server, by itself and without Corpus.

use std::process::{Command, Output};

use secrecy::SecretString;

use super::known::{Tree, noise};
use super::s3_server::{BUCKET, S3Server};
use super::sshd::{Sshd, write};
use crate::{Reading, Repository, Storage};

fn restic(repository: &str, args: &[&str], env: &[(&str, &str)]) -> Option<Output> {
    let run = Command::new("restic")
        .args(["--no-cache", "--repo", repository])
        .args(args)
        .env("RESTIC_PASSWORD", "correct horse")
        .envs(env.iter().copied())
        .output();
    if run.is_err() {
        assert!(std::env::var_os("CI").is_none(), "restic is not installed");
    }
    run.ok()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// It checks and reads what we wrote.
fn reads(storage: Storage, run: impl Fn(&[&str]) -> Option<Output>) -> Option<Repository> {
    let ours = Repository::at(storage, SecretString::from("correct horse"));
    let tree = Tree::new().file(1, "file", b"read by another").file(1, "large", &noise(1, 5 << 20));
    tree.save(&ours, "guest").unwrap();
    let checked = run(&["check", "--read-data"])?;
    assert!(checked.status.success(), "{}", text(&checked));
    let dumped = run(&["dump", "latest", "/file"]).unwrap();
    assert_eq!(String::from_utf8_lossy(&dumped.stdout), "read by another", "{}", text(&dumped));
    Some(ours)
}

/// And adds to it, and we read what it added.
fn shared(storage: Storage, run: impl Fn(&[&str]) -> Option<Output>) {
    let Some(ours) = reads(storage, &run) else { return };
    let from = tempfile::tempdir().unwrap();
    std::fs::write(from.path().join("theirs"), "by restic").unwrap();
    let saved = run(&["backup", "--tag", "theirs", &from.path().join("theirs").display().to_string()]).unwrap();
    assert!(saved.status.success(), "{}", text(&saved));
    let theirs = ours.tagged("theirs").unwrap().unwrap();
    let names: Vec<_> = Tree::read(&ours, &theirs.id).0.into_iter().map(|(entry, _)| entry.name).collect();
    assert!(names.contains(&b"theirs".to_vec()));
    ours.check(Reading::All).unwrap();
}

#[test]
fn restic_reads_it_at_an_sftp_server() {
    let sshd = Sshd::start();
    // The files as a folder, and by restic's own SFTP.
    let one = sshd.home().join("one").display().to_string();
    reads(sshd.storage("one"), |args| restic(&one, args, &[]));
    let known = sshd.dir.path().join("known_hosts");
    let key = sshd.host_key.public_key().to_openssh().unwrap();
    write(&known, &format!("[127.0.0.1]:{} {key}\n", sshd.port), 0o644);
    let command = format!(
        "sftp.command=ssh -F none -p {} -i {}/user_key -o UserKnownHostsFile={} -o StrictHostKeyChecking=yes \
         backup@127.0.0.1 -s sftp",
        sshd.port,
        sshd.dir.path().display(),
        known.display()
    );
    let two = format!("sftp:backup@127.0.0.1:{}", sshd.home().join("two").display());
    shared(sshd.storage("two"), |args| restic(&two, &[&["-o", command.as_str()], args].concat(), &[]));
}

#[test]
fn restic_reads_it_at_an_s3_server() {
    let Some(server) = S3Server::start() else { return };
    // What restic sends over plain HTTP is signed in pieces, which moto can't check.
    server.send("POST", "/moto-api/reset-auth", "s3", "1000000");
    let place = format!("s3:http://127.0.0.1:{}/{BUCKET}/shared", server.port);
    let keys = [("AWS_ACCESS_KEY_ID", server.key_id.as_str()), ("AWS_SECRET_ACCESS_KEY", server.secret.as_str())];
    shared(server.storage("shared"), |args| restic(&place, args, &keys));
}
