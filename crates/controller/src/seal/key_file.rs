//! Where the seal keys are kept: a file that only its owner may read, or a variable.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, ExposeSecretMut, SecretBox, SecretString};

use super::{KEY_LENGTH, KeyId, SealError, SealKey, SealKeys};

impl SealKeys {
    /// Reads the key file; makes it with a new key, readable by its owner only, when there is none.
    pub fn load_or_create(path: &Path) -> Result<Self, SealError> {
        let failed = |source| SealError::File { path: path.display().to_string(), source };
        match File::open(path) {
            Ok(file) => Self::read(file, path),
            Err(error) if error.kind() == ErrorKind::NotFound => match create(path) {
                Ok(()) => Self::read(File::open(path).map_err(failed)?, path),
                // Another server made it just now.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    Self::read(File::open(path).map_err(failed)?, path)
                }
                Err(error) => Err(failed(error)),
            },
            Err(error) => Err(failed(error)),
        }
    }

    /// The keys in a variable's or a file's text: a key a line (or separated by commas), the first one seals.
    pub fn parse(text: &SecretString, place: &str) -> Result<Self, SealError> {
        let mut keys = Vec::new();
        for (index, line) in text.expose_secret().split(['\n', ',']).enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let invalid = || SealError::KeysInvalid { place: place.to_owned(), line: index + 1 };
            let key = SealKey::parse(line).ok_or_else(invalid)?;
            if keys.iter().any(|other: &SealKey| other.id == key.id) {
                return Err(invalid());
            }
            keys.push(key);
        }
        let mut keys = keys.into_iter();
        let first = keys.next().ok_or_else(|| SealError::NoKey(place.to_owned()))?;
        Ok(Self { first, others: keys.collect() })
    }

    fn read(mut file: File, path: &Path) -> Result<Self, SealError> {
        let place = path.display().to_string();
        let failed = |source| SealError::File { path: path.display().to_string(), source };
        let mode = file.metadata().map_err(failed)?.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(SealError::TooOpen { path: place, mode });
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        Self::parse(&SecretString::from(text), &place)
    }
}

/// Writes a new key to a temporary file and links it to its place, so that the file is never
/// there half-written, and one that another server made is never replaced.
fn create(path: &Path) -> std::io::Result<()> {
    let temporary = path.with_extension(format!("new-{:08x}", rand::random::<u32>()));
    let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary).and_then(|mut file| {
        file.write_all(SealKey::generate().line().expose_secret().as_bytes())?;
        file.sync_all()
    });
    let linked = written.and_then(|()| std::fs::hard_link(&temporary, path));
    let removed = std::fs::remove_file(&temporary);
    linked.and(removed)
}

impl SealKey {
    fn line(&self) -> SecretString {
        let key = SecretString::from(STANDARD.encode(self.key.expose_secret()));
        SecretString::from(format!("{} {}\n", self.id, key.expose_secret()))
    }

    fn parse(line: &str) -> Option<Self> {
        let (id, key) = line.split_once(char::is_whitespace)?;
        let is_id = id.len() == 8 && id.bytes().all(|b| b.is_ascii_hexdigit());
        let id = is_id.then(|| u32::from_str_radix(id, 16).ok()).flatten()?;
        let mut bytes = SecretBox::new(Box::new([0; KEY_LENGTH]));
        let length = STANDARD.decode_slice(key.trim(), bytes.expose_secret_mut()).ok()?;
        (length == KEY_LENGTH).then(|| Self { id: KeyId(id.to_be_bytes()), key: bytes })
    }
}
