//! Which packages of a guest are older than in a newer image.
//!
//! Guests reach no mirror unless their project lets them, and a guest's own lists of what there is are as old as somebody
//! made them. Images are built anew with what is new, though, and the newest lies on the node: what it has in a newer version
//! is what the guest lacks. So nothing is asked of anybody but two files, and what a guest has beyond its image is not judged.
//!
//! Both files are a guest's word (an image may be one of a guest): they are read as far as they are not too long, and of their
//! names only those are told that packages can have.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use corpus_domain::{GuestName, ImageName};
use corpus_protocol::{GuestUpdates, MAX_UPDATES};

use crate::drivers;
use crate::failure::Failure;
use crate::guest_root::{GuestPath, GuestRoot};
use crate::host::Host;
use crate::task::Task;

/// Where dpkg keeps what is installed.
const STATUS: &str = "/var/lib/dpkg/status";
/// How much of it is read, in bytes: that of a guest with everything installed is a few millions long.
const MOST: u64 = 16 << 20;
/// The longest name of a package that is told.
const LONGEST: usize = 80;

/// Packages and their versions.
type Packages = BTreeMap<String, String>;

/// Of each guest that runs, compared with this image. One whose files, or whose image's, tell of no packages is left out.
pub fn read(task: &Task<'_>, guests: &[(GuestName, ImageName)]) -> Result<Vec<GuestUpdates>, Failure> {
    let mut images: HashMap<&ImageName, Packages> = HashMap::new();
    let mut told = Vec::new();
    for (name, image) in guests {
        task.go_on()?;
        let there = images.entry(image).or_insert_with(|| of_image(task.host, image));
        if there.is_empty() {
            continue;
        }
        let Some(has) = of_guest(task.host, name) else { continue };
        let lacking: Vec<&String> = there
            .iter()
            .filter(|(package, version)| has.get(*package).is_some_and(|has| compare(has, version) == Ordering::Less))
            .map(|(package, _)| package)
            .collect();
        told.push(GuestUpdates {
            name: name.clone(),
            image: image.clone(),
            count: u32::try_from(lacking.len()).unwrap_or(u32::MAX),
            packages: lacking.into_iter().take(MAX_UPDATES).cloned().collect(),
        });
    }
    Ok(told)
}

fn of_image(host: &Host, image: &ImageName) -> Packages {
    GuestRoot::folder(&host.image(image).join("rootfs")).ok().and_then(|root| installed(&root)).unwrap_or_default()
}

/// One that does not run, or is no guest of ours, is not looked at.
fn of_guest(host: &Host, name: &GuestName) -> Option<Packages> {
    let root = drivers::that_made(host, name).ok()??.running_root(host, name).ok()??;
    installed(&root)
}

fn installed(root: &GuestRoot) -> Option<Packages> {
    let status: GuestPath = STATUS.parse().ok()?;
    let packages = packages(&root.read_most(&status, MOST).ok()??.text);
    (!packages.is_empty()).then_some(packages)
}

/// What is installed, as dpkg writes it: a paragraph a package.
fn packages(status: &str) -> Packages {
    let paragraph = |text: &str| {
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        field("Status: ").filter(|status| status.ends_with(" installed"))?;
        let (package, version) = (field("Package: ")?, field("Version: ")?);
        // Libraries of two architectures are two.
        let name = match field("Architecture: ") {
            Some(architecture) if field("Multi-Arch: ") == Some("same") => format!("{package}:{architecture}"),
            _ => package.to_owned(),
        };
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.:".contains(&byte);
        (name.len() <= LONGEST && name.bytes().all(is_name)).then(|| (name, version.to_owned()))
    };
    status.split("\n\n").filter_map(paragraph).collect()
}

/// Which version is older, by Debian's rules (deb-version(7)).
fn compare(one: &str, other: &str) -> Ordering {
    let parts = |version: &str| -> (u64, String, String) {
        let (epoch, rest) = version.split_once(':').unwrap_or(("0", version));
        let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
        (epoch.parse().unwrap_or(0), upstream.to_owned(), revision.to_owned())
    };
    let (one, other) = (parts(one), parts(other));
    let epoch = one.0.cmp(&other.0);
    epoch.then_with(|| part(&one.1, &other.1)).then_with(|| part(&one.2, &other.2))
}

/// Words and numbers, one after the other.
fn part(one: &str, other: &str) -> Ordering {
    let (mut one, mut other) = (one.as_bytes(), other.as_bytes());
    while !one.is_empty() || !other.is_empty() {
        let (word, rest) = split(one, |byte| !byte.is_ascii_digit());
        let (other_word, other_rest) = split(other, |byte| !byte.is_ascii_digit());
        let (number, after) = split(rest, |byte| byte.is_ascii_digit());
        let (other_number, other_after) = split(other_rest, |byte| byte.is_ascii_digit());
        let ordering = words(word, other_word).then_with(|| numbers(number, other_number));
        if ordering != Ordering::Equal {
            return ordering;
        }
        (one, other) = (after, other_after);
    }
    Ordering::Equal
}

fn split(text: &[u8], belongs: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !belongs(*byte)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, &[]))
}

/// A tilde is before the end, the end before letters, and these before all else.
fn words(one: &[u8], other: &[u8]) -> Ordering {
    let weight = |byte: Option<&u8>| match byte {
        Some(b'~') => (0, 0),
        None => (1, 0),
        Some(byte) if byte.is_ascii_alphabetic() => (2, *byte),
        Some(byte) => (3, *byte),
    };
    let length = one.len().max(other.len());
    let at = |index: usize| weight(one.get(index)).cmp(&weight(other.get(index)));
    (0..length).map(at).find(|ordering| *ordering != Ordering::Equal).unwrap_or(Ordering::Equal)
}

/// Of any length.
fn numbers(one: &[u8], other: &[u8]) -> Ordering {
    let (_, one) = split(one, |byte| byte == b'0');
    let (_, other) = split(other, |byte| byte == b'0');
    one.len().cmp(&other.len()).then_with(|| one.cmp(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each is older than the next one; `dpkg --compare-versions` agrees with all of them.
    #[test]
    fn versions_are_compared_as_dpkg_does() {
        let rising = [
            "0~",
            "0",
            "0.1~rc1",
            "0.1~rc1+b1",
            "0.1",
            "0.1-1",
            "0.1-1+b1",
            "0.1-1+deb12u1",
            "0.1-1+deb12u10",
            "0.1-2",
            "0.1a",
            "0.1.1",
            "0.2",
            "0.10",
            "0.0010.1",
            "1",
            "1.0-1~bpo12+1",
            "1.0-1",
            "3.0.15-1~deb12u1",
            "3.0.17-1~deb12u2",
            "99999999999999999999999",
            "1:0.1",
            "2:0.0",
        ];
        for (place, one) in rising.iter().enumerate() {
            for (other_place, other) in rising.iter().enumerate() {
                assert_eq!(compare(one, other), place.cmp(&other_place), "{one} {other}");
            }
        }
        for (one, other) in [("1.0", "1.00"), ("0:1", "1"), ("1-0", "1"), ("", "")] {
            assert_eq!(compare(one, other), Ordering::Equal, "{one} {other}");
        }
    }

    #[test]
    fn what_is_installed_is_told_and_nothing_else() {
        let status = "Package: libssl3\nStatus: install ok installed\nMulti-Arch: same\nArchitecture: amd64\nVersion: 3.0.15-1\n\
                      Description: x\n Package: trap\n\nPackage: gone\nStatus: deinstall ok config-files\nVersion: 1\n\n\
                      Package: held\nStatus: hold ok installed\nArchitecture: all\nVersion: 2:4-1\n\nPackage: <b>\n\
                      Status: install ok installed\nVersion: 1\n\nVersion: 7\n\n";
        let told: Vec<(String, String)> = packages(status).into_iter().collect();
        let expected = [("held", "2:4-1"), ("libssl3:amd64", "3.0.15-1")];
        assert_eq!(told, expected.map(|(name, version)| (name.to_owned(), version.to_owned())));
        assert!(packages("\u{0}\n\n\n\n").is_empty());
    }
}
