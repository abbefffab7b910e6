//! Where backups are kept: folders, and places at servers with what opens those.
//!
//! A controller that is brought back has no configuration yet, so what opens the place is read from any file that has these
//! sections, and nothing else is asked of it.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use corpus_backup::{Access, InvalidAccess, Place, S3Access, S3Options, SftpAccess, Storage};
use secrecy::SecretString;

use super::read::Reader;
use super::{ConfigError, read_file, sections};

const SECTIONS: [&str; 2] = ["sftp", "s3"];
/// The region of servers that have none.
const REGION: &str = "us-east-1";

/// A secret from a file that only its owner may read; its last line ends cut off.
pub fn read_secret(path: &Path) -> Result<SecretString, String> {
    let failed = |error: std::io::Error| format!("{} can't be read: {error}", path.display());
    let mode = std::fs::metadata(path).map_err(failed)?.mode();
    if mode & 0o077 != 0 {
        return Err(format!("{} may be read by others (mode {:o}): chmod 600 it", path.display(), mode & 0o777));
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let secret = text.trim_end_matches(['\r', '\n']);
    if secret.is_empty() {
        return Err(format!("{} is empty", path.display()));
    }
    Ok(secret.into())
}

/// What opens a place for backups, of a machine that has no configuration.
///
/// It is read from the sections `[sftp]` and `[s3]` of a file, which may have others, and the environment.
pub fn storage(place: Place, file: Option<&Path>) -> Result<Storage, ConfigError> {
    let mut reader = Reader::default();
    if let Some(path) = file {
        let mut table = read_file(path)?;
        // It may be the configuration of another release.
        table.retain(|name, _| SECTIONS.contains(&name));
        reader.file(path, table);
    }
    let ours =
        |name: &str| SECTIONS.iter().any(|section| name.starts_with(&format!("CORPUS_{}__", section.to_uppercase())));
    reader.environment(std::env::vars().filter(|(name, _)| ours(name)));
    let access = access(&mut reader);
    let storage = Storage::new(place, &access);
    let faults = reader.into_faults();
    match storage {
        Ok(storage) if faults.is_empty() => Ok(storage),
        Err(error) if faults.is_empty() => Err(ConfigError::Faults(vec![error.to_string()])),
        _ => Err(ConfigError::Faults(faults)),
    }
}

/// The value of a key that is a place.
pub fn place(r: &mut Reader, name: &'static str, access: &Access) -> Option<Storage> {
    let text = r.checked(name, |text| Some(text.to_owned()))?;
    // The value is not shown: who does not know better writes a password into it.
    let place = text.parse::<Place>().map_err(|error| r.fault(format!("{name}: {error}"))).ok()?;
    Storage::new(place, access).map_err(|error| r.fault(format!("{name}: {error}"))).ok()
}

/// What opens places at servers.
pub fn access(r: &mut Reader) -> Access {
    let sftp = r.has_section("sftp").then(|| sftp(r)).flatten();
    let s3 = r.has_section("s3").then(|| s3(r)).flatten();
    Access { sftp: sftp.map(Arc::new), s3: s3.map(Arc::new) }
}

fn sftp(r: &mut Reader) -> Option<SftpAccess> {
    let key = secret(r, "sftp.key_file");
    let host_keys: Vec<String> = r.list("sftp.host_keys");
    if host_keys.is_empty() {
        r.required("sftp.host_keys", None::<()>);
        return None;
    }
    let access = SftpAccess::new(&key?, &host_keys);
    access.map_err(|error| r.fault(format!("{}: {error}", key_of(&error)))).ok()
}

fn s3(r: &mut Reader) -> Option<S3Access> {
    let endpoint = r.checked("s3.endpoint", sections::web_root);
    let endpoint = r.required("s3.endpoint", endpoint);
    let key_id = r.checked("s3.access_key_id", word);
    let key_id = r.required("s3.access_key_id", key_id);
    let secret = secret(r, "s3.secret_access_key_file");
    let region = r.checked("s3.region", word).unwrap_or_else(|| REGION.to_owned());
    let bucket_in_host = r.optional("s3.bucket_in_host").unwrap_or(false);
    let authorities = authorities(r);
    let (endpoint, key_id, secret) = (endpoint?, key_id?, secret?);
    let options = S3Options { endpoint, region, key_id, secret, bucket_in_host, authorities };
    S3Access::new(options).map_err(|error| r.fault(format!("{}: {error}", key_of(&error)))).ok()
}

/// What is no file that can be read is a fault.
fn authorities(r: &mut Reader) -> Option<Vec<u8>> {
    let file: PathBuf = r.optional("s3.ca_file")?;
    let read = std::fs::read(&file);
    read.map_err(|error| r.fault(format!("s3.ca_file: {} can't be read: {error}", file.display()))).ok()
}

fn secret(r: &mut Reader, name: &'static str) -> Option<SecretString> {
    let file: Option<PathBuf> = r.optional(name);
    let file = r.required(name, file)?;
    read_secret(&file).map_err(|error| r.fault(format!("{name}: {error}"))).ok()
}

/// The key whose value is at fault.
const fn key_of(error: &InvalidAccess) -> &'static str {
    match error {
        InvalidAccess::Key => "sftp.key_file",
        InvalidAccess::HostKey(_) | InvalidAccess::NoHostKey => "sftp.host_keys",
        InvalidAccess::Authorities => "s3.ca_file",
        InvalidAccess::NoSftp => "sftp",
        InvalidAccess::NoS3 => "s3",
        InvalidAccess::Client(_) => "s3.endpoint",
    }
}

/// What can be a part of a signature.
fn word(text: &str) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"/,=".contains(&byte);
    (!text.is_empty() && text.bytes().all(plain)).then(|| text.to_owned())
}
