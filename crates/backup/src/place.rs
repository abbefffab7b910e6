//! Where backups are kept, as an operator writes it: a folder, a folder of an SFTP server, or a bucket of an S3 server.
//!
//! What is written is taken apart and judged once, when the configuration is read: from then on no part of it can lead out
//! of its place, and none has to be quoted for a server. What opens a place is none of its parts, so a place may be shown.

use std::fmt;
use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;

/// The port of SSH.
const SSH_PORT: u16 = 22;

/// A place for backups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A folder of this machine, by its whole path.
    Folder(PathBuf),
    /// A folder of an SFTP server.
    Sftp(SftpPlace),
    /// Objects of an S3 server.
    S3(S3Place),
}

/// A folder of an SFTP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SftpPlace {
    pub(crate) user: String,
    /// Without the brackets of an IPv6 address.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Begins with `/`, ends with none.
    pub(crate) path: String,
}

/// A bucket of an S3 server, and what the names of objects in it begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Place {
    pub(crate) bucket: String,
    /// Begins and ends with no `/`; may be empty.
    pub(crate) prefix: String,
}

/// A text that is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InvalidPlace {
    /// No kind of place begins so.
    #[error("a place is a folder by its whole path, sftp://USER@HOST[:PORT]/PATH or s3://BUCKET[/PREFIX]")]
    Kind,
    /// Who enters it.
    #[error("sftp:// needs the account at the server: sftp://USER@HOST/PATH")]
    User,
    /// A password.
    #[error("a place holds no password: the server is entered with a key")]
    Password,
    /// Its host or port.
    #[error("the host of sftp:// is a name or an address, and a port from 1 to 65535 may follow it")]
    Host,
    /// Its path.
    #[error("the path of sftp:// is a whole path of names without . and .. and none of % ? #")]
    Path,
    /// The bucket.
    #[error("a bucket has 3 to 63 of a-z, 0-9, - and ., and begins and ends with one of the first two")]
    Bucket,
    /// What is below it.
    #[error("what follows the bucket are names of A-Z, a-z, 0-9, -, _ and . with one / between each")]
    Prefix,
}

impl Place {
    /// A folder in this one, by its plain name.
    #[must_use]
    pub(crate) fn below(&self, name: &str) -> Self {
        match self {
            Self::Folder(path) => Self::Folder(path.join(name)),
            Self::Sftp(at) => Self::Sftp(SftpPlace { path: format!("{}/{name}", at.path), ..at.clone() }),
            Self::S3(at) => Self::S3(S3Place { prefix: at.key(name), ..at.clone() }),
        }
    }
}

impl SftpPlace {
    /// `host:port`, with brackets around an IPv6 address.
    pub(crate) fn server(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

impl S3Place {
    /// The name of an object.
    pub(crate) fn key(&self, path: &str) -> String {
        if self.prefix.is_empty() { path.to_owned() } else { format!("{}/{path}", self.prefix) }
    }
}

impl FromStr for Place {
    type Err = InvalidPlace;

    fn from_str(text: &str) -> Result<Self, InvalidPlace> {
        if text.starts_with('/') {
            Ok(Self::Folder(text.into()))
        } else if let Some(rest) = text.strip_prefix("sftp://") {
            sftp(rest).map(Self::Sftp)
        } else if let Some(rest) = text.strip_prefix("s3://") {
            s3(rest).map(Self::S3)
        } else {
            Err(InvalidPlace::Kind)
        }
    }
}

fn sftp(text: &str) -> Result<SftpPlace, InvalidPlace> {
    let (authority, path) = text.split_once('/').ok_or(InvalidPlace::Path)?;
    let (user, server) = authority.rsplit_once('@').ok_or(InvalidPlace::User)?;
    if user.contains(':') {
        return Err(InvalidPlace::Password);
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+@".contains(&byte);
    if user.is_empty() || !user.bytes().all(plain) {
        return Err(InvalidPlace::User);
    }
    let (host, port) = host_and_port(server).ok_or(InvalidPlace::Host)?;
    let path = path.strip_suffix('/').unwrap_or(path);
    let named = |name: &str| !matches!(name, "" | "." | "..") && !name.contains(odd);
    if !path.split('/').all(named) {
        return Err(InvalidPlace::Path);
    }
    Ok(SftpPlace { user: user.to_owned(), host, port, path: format!("/{path}") })
}

/// What a URL would take for something else, or a terminal would obey.
fn odd(one: char) -> bool {
    one.is_control() || matches!(one, '%' | '?' | '#' | '\\')
}

fn host_and_port(text: &str) -> Option<(String, u16)> {
    let port = |text: &str| text.parse().ok().filter(|port| *port != 0);
    if let Some(rest) = text.strip_prefix('[') {
        let (address, rest) = rest.split_once(']')?;
        let address: Ipv6Addr = address.parse().ok()?;
        let port = if rest.is_empty() { SSH_PORT } else { port(rest.strip_prefix(':')?)? };
        return Some((address.to_string(), port));
    }
    let (host, port) = match text.split_once(':') {
        Some((host, given)) => (host, port(given)?),
        None => (text, SSH_PORT),
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
    (!host.is_empty() && host.bytes().all(plain)).then(|| (host.to_owned(), port))
}

fn s3(text: &str) -> Result<S3Place, InvalidPlace> {
    let (bucket, prefix) = text.split_once('/').unwrap_or((text, ""));
    let ends = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let bytes = bucket.as_bytes();
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(byte);
    let fits = (3..=63).contains(&bytes.len()) && bytes.iter().all(plain) && !bucket.contains("..");
    if !(fits && ends(bytes.first()) && ends(bytes.last())) {
        return Err(InvalidPlace::Bucket);
    }
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    if !(prefix.is_empty() || prefix.split('/').all(is_plain)) {
        return Err(InvalidPlace::Prefix);
    }
    Ok(S3Place { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
}

/// Whether a name is the same in a URL as it is, and leads nowhere else.
pub(crate) fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !matches!(name, "" | "." | "..") && name.bytes().all(plain)
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "{}", path.display()),
            Self::Sftp(at) if at.port == SSH_PORT && !at.host.contains(':') => {
                write!(f, "sftp://{}@{}{}", at.user, at.host, at.path)
            }
            Self::Sftp(at) => write!(f, "sftp://{}@{}{}", at.user, at.server(), at.path),
            Self::S3(at) if at.prefix.is_empty() => write!(f, "s3://{}", at.bucket),
            Self::S3(at) => write!(f, "s3://{}/{}", at.bucket, at.prefix),
        }
    }
}
