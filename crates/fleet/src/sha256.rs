//! SHA-256 sums of files: the names that agents and archives are known by.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::Digest;

/// A SHA-256 sum, printed as 64 hexadecimal digits in lower case.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sha256([u8; 32]);

impl Sha256 {
    /// The sum of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// The sum of a file, read on a thread of its own.
    pub async fn of_file(path: &Path) -> io::Result<Self> {
        let path: PathBuf = path.to_owned();
        tokio::task::spawn_blocking(move || Self::of_reader(File::open(path)?)).await.map_err(io::Error::other)?
    }

    fn of_reader(mut reader: impl Read) -> io::Result<Self> {
        let mut hasher = sha2::Sha256::new();
        let mut buffer = vec![0_u8; 1 << 18];
        loop {
            match reader.read(&mut buffer)? {
                0 => return Ok(Self(hasher.finalize().into())),
                count => hasher.update(buffer.get(..count).unwrap_or_default()),
            }
        }
    }

    /// Reads the first word of a line of sha256sum(1).
    pub(super) fn from_sha256sum(line: &str) -> Option<Self> {
        line.split_ascii_whitespace().next()?.parse().ok()
    }
}

/// Text that is not 64 hexadecimal digits in lower case.
#[derive(Debug, thiserror::Error)]
#[error("not a SHA-256 sum: 64 hexadecimal digits in lower case are expected")]
pub struct InvalidSha256;

impl std::str::FromStr for Sha256 {
    type Err = InvalidSha256;
    fn from_str(text: &str) -> Result<Self, InvalidSha256> {
        if text.len() != 64 || !text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(InvalidSha256);
        }
        let mut sum = [0_u8; 32];
        for (index, byte) in sum.iter_mut().enumerate() {
            let digits = text.get(index * 2..index * 2 + 2).ok_or(InvalidSha256)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| InvalidSha256)?;
        }
        Ok(Self(sum))
    }
}

impl std::fmt::Display for Sha256 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let sum = Sha256::of(b"abc");
        assert_eq!(sum.to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(sum.to_string().parse::<Sha256>().unwrap(), sum);
        assert_eq!(Sha256::from_sha256sum(&format!("{sum}  /some/path\n")).unwrap(), sum);
        for bad in ["", "xyz", &"A".repeat(64), &"0".repeat(63), &"é".repeat(32)] {
            assert!(bad.parse::<Sha256>().is_err(), "{bad}");
        }
    }
}
