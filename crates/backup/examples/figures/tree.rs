//! A tree to measure with: always the same, so that figures of two days can be compared.
//!
//! Most files are small and most bytes lie in large ones, as on a server: of a hundred files 97 have about 50 bytes to
//! 100 kB, nearly all others up to 3 MB, and one of a thousand up to 25 MB. Every second file is noise, which nothing makes
//! smaller, as images and archives are; the others are words. No two are the same, so nothing is gained by keeping what is
//! there twice once.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

const SEED: u64 = 2_026;
/// Folders in the root, in each of these, and in each of those.
const FOLDERS: [u64; 3] = [20, 25, 10];
const WORDS: [&str; 32] = [
    "the",
    "of",
    "and",
    "a",
    "to",
    "in",
    "is",
    "that",
    "it",
    "was",
    "for",
    "on",
    "are",
    "as",
    "with",
    "they",
    "GET",
    "POST",
    "200",
    "304",
    "index.html",
    "error",
    "request",
    "response",
    "server",
    "client",
    "session",
    "value",
    "name",
    "return",
    "function",
    "const",
];
/// Of so many files four are rewritten, two are removed, and two are added: as many with noise as with words.
const TURN: u64 = 400;

/// Makes it.
pub fn make(folder: &Path, files: u64, bytes: u64) -> io::Result<()> {
    for (number, size) in (0..).zip(sizes(files, bytes)) {
        let path = path(folder, number);
        if let Some(above) = path.parent() {
            fs::create_dir_all(above)?;
        }
        write(&path, number, SEED + number, size)?;
    }
    Ok(())
}

/// Rewrites, removes and adds.
pub fn change(folder: &Path, files: u64, bytes: u64) -> io::Result<()> {
    let moved = SEED + files;
    for (number, size) in (0..).zip(sizes(files, bytes)) {
        let path = path(folder, number);
        match number % TURN {
            7 | 106 | 207 | 306 => write(&path, number, moved + number, size)?,
            13 | 212 => fs::remove_file(&path)?,
            29 | 228 => write(&path.with_extension("new"), number, moved + number, size)?,
            _ => {}
        }
    }
    Ok(())
}

fn path(folder: &Path, number: u64) -> PathBuf {
    let [first, second, third] = FOLDERS;
    let (a, b, c) = (number % first, number / first % second, number / first / second % third);
    folder.join(format!("area-{a:02}/part-{b:02}/group-{c:02}/file-{number:06}"))
}

/// How long each file is; all together are so many bytes.
fn sizes(files: u64, bytes: u64) -> Vec<u64> {
    let mut chance = Chance(SEED);
    let raw: Vec<u64> = (0..files).map(|_| about(&mut chance)).collect();
    let sum = raw.iter().sum::<u64>().max(1);
    let scaled = |size: &u64| u64::try_from(u128::from(*size) * u128::from(bytes) / u128::from(sum)).unwrap_or(0);
    let mut sizes: Vec<u64> = raw.iter().map(scaled).collect();
    let rest = bytes - sizes.iter().sum::<u64>();
    if let Some(last) = sizes.last_mut() {
        *last += rest;
    }
    sizes
}

/// Each power of two in its range is as likely as another.
fn about(chance: &mut Chance) -> u64 {
    let (from, to) = match chance.below(1_000) {
        0 => (22, 25),
        1..30 => (17, 22),
        _ => (6, 17),
    };
    let power = 1 << (from + chance.below(to - from));
    power + chance.below(power)
}

fn write(path: &Path, number: u64, seed: u64, size: u64) -> io::Result<()> {
    let mut chance = Chance(seed);
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut left = usize::try_from(size).map_err(io::Error::other)?;
    while left > 0 {
        let drawn = chance.next();
        let noise = drawn.to_le_bytes();
        let piece = if number.is_multiple_of(2) { &noise } else { word(drawn) };
        let piece = piece.get(..left).unwrap_or(piece);
        file.write_all(piece)?;
        left -= piece.len();
        if !number.is_multiple_of(2) && left > 0 {
            file.write_all(b" ")?;
            left -= 1;
        }
    }
    file.flush()
}

/// Words at the front are more likely than those at the back.
fn word(drawn: u64) -> &'static [u8] {
    let most = usize::try_from(drawn % 32).unwrap_or(0) + 1;
    let at = usize::try_from(drawn >> 32).unwrap_or(0) % most;
    WORDS.get(at).map_or(b"", |word| word.as_bytes())
}

/// `SplitMix64`: the same on each machine and with each release of a library.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, most: u64) -> u64 {
        self.next() % most.max(1)
    }
}
