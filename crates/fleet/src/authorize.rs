//! The controller's line in an account's `authorized_keys(5)`.
//!
//! Added by appending, removed by writing a new file and moving it over the old one, so that
//! a cut line never costs a person their own key.

use std::time::Duration;

use corpus_domain::NodeAddress;
use russh_sftp::client::SftpSession;
use russh_sftp::client::error::Error as SftpError;
use russh_sftp::protocol::{FileAttributes, OpenFlags, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::command::{Command, HostPath, must};
use super::connection::Connection;
use super::error::NodeError;
use super::key::ControlKey;
use super::privilege::Privilege;

const FOLDER: &str = ".ssh";
const LIMIT: Duration = Duration::from_secs(10);
/// The longest file that is read: thousands of keys. A host could send one without end.
const MAX_FILE: u64 = 1 << 20;

/// Lets the control key in: its line is in the account's `~/.ssh/authorized_keys`, once.
/// Tells whether it had to be added.
pub async fn authorize(on: &Connection, key: &ControlKey) -> Result<bool, NodeError> {
    add(on, key, &line_of(key)).await
}

/// The same on a gateway, for the key that was made for it: it is let in to reach this host only.
pub async fn authorize_forwarding(on: &Connection, key: &ControlKey, to: &NodeAddress) -> Result<bool, NodeError> {
    add(on, key, &forwarding_line(key, to)).await
}

/// The line that lets a key reach a host, and the guests at its other ports, and no other host. That it may run
/// commands is left to it: by them it is taken away again.
pub fn forwarding_line(key: &ControlKey, to: &NodeAddress) -> String {
    let to = match to {
        NodeAddress::Ip(std::net::IpAddr::V6(ip)) => format!("[{ip}]"),
        other => other.to_string(),
    };
    format!("restrict,port-forwarding,permitopen=\"{to}:*\" {}", line_of(key))
}

async fn add(on: &Connection, key: &ControlKey, line: &str) -> Result<bool, NodeError> {
    let sftp = on.sftp().await?;
    let folder = FileAttributes { permissions: Some(0o700), ..FileAttributes::empty() };
    if sftp.create_dir(FOLDER).await.is_ok() {
        sftp.set_metadata(FOLDER, folder).await.map_err(|e| on.sftp_failed("protecting", FOLDER, e))?;
    }
    let before = read(on, &sftp).await?;
    if before.lines().any(|line| is_of(line, key)) {
        return Ok(false);
    }
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::APPEND;
    write(on, &sftp, HostPath::AuthorizedKeys, flags, &format!("{gap}{line}\n")).await?;
    Ok(true)
}

/// Takes the control key's line away again. Tells whether it was there.
pub async fn revoke(on: &Connection, key: &ControlKey) -> Result<bool, NodeError> {
    let sftp = on.sftp().await?;
    let before = read(on, &sftp).await?;
    let after: String = before.split_inclusive('\n').filter(|line| !is_of(line, key)).collect();
    if after == before {
        return Ok(false);
    }
    let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::TRUNCATE;
    write(on, &sftp, HostPath::AuthorizedKeysPart, flags, &after).await?;
    let place = Command::Move(Privilege::Root, HostPath::AuthorizedKeysPart, HostPath::AuthorizedKeys);
    let placed = must(on, place, LIMIT).await;
    // What the file says counts, whatever became of the command.
    if read(on, &sftp).await? == after {
        return Ok(true);
    }
    placed?;
    Err(NodeError::Damaged { host: on.host().to_owned(), path: HostPath::AuthorizedKeys.to_string() })
}

fn line_of(key: &ControlKey) -> String {
    key.public_line().unwrap_or_default()
}

/// Whether a line is for this key, whatever its options and comment.
fn is_of(line: &str, key: &ControlKey) -> bool {
    let ours = line_of(key);
    let blob = ours.split(' ').nth(1).unwrap_or_default();
    !line.trim_start().starts_with('#') && line.split_ascii_whitespace().any(|word| word == blob)
}

async fn read(on: &Connection, sftp: &SftpSession) -> Result<String, NodeError> {
    let path = HostPath::AuthorizedKeys.to_string();
    let failed = |source| on.sftp_failed("reading", &path, source);
    let file = match sftp.open(path.as_str()).await {
        Ok(file) => file,
        Err(SftpError::Status(status)) if status.status_code == StatusCode::NoSuchFile => return Ok(String::new()),
        Err(source) => return Err(failed(source)),
    };
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).await.map_err(|source| failed(source.into()))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > MAX_FILE) {
        // Written back without its end, it would cost people their keys.
        let what = format!("{path} is longer than {} KiB; take out what is not needed", MAX_FILE >> 10);
        return Err(NodeError::Protocol { host: on.host().to_owned(), what, stderr: Vec::new() });
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

async fn write(
    on: &Connection,
    sftp: &SftpSession,
    path: HostPath<'_>,
    flags: OpenFlags,
    text: &str,
) -> Result<(), NodeError> {
    let path = path.to_string();
    let failed = |source| on.sftp_failed("writing", &path, source);
    let private = FileAttributes { permissions: Some(0o600), ..FileAttributes::empty() };
    let mut file = sftp.open_with_flags_and_attributes(path.as_str(), flags, private).await.map_err(failed)?;
    file.write_all(text.as_bytes()).await.map_err(|source| failed(source.into()))?;
    file.close().await.map_err(|source| failed(source.into()))
}
