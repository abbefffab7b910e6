//! A disk that forgets a bit is found out.

use std::path::Path;

use super::known::{Tree, noise};
use super::{files, repository};
use crate::{BackupError, Reading};

fn flip(file: &Path, byte: usize, bit: u8) {
    let mut bytes = std::fs::read(file).unwrap();
    bytes[byte] ^= 1 << bit;
    std::fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::write(file, bytes).unwrap();
}

#[test]
fn any_flipped_bit_is_found() {
    let at = tempfile::tempdir().unwrap();
    let ours = repository(at.path());
    let tree = (0..20).fold(Tree::new(), |tree, number| tree.file(1, &format!("{number:02}"), &noise(number, 30_000)));
    tree.file(1, "large", &noise(99, 3 << 20)).folder(1, "some").file(2, "text", b"text").save(&ours, "guest").unwrap();
    let all = files(&at.path().join("repository"));
    let of = |folder: &'static str| {
        all.iter().filter(move |file| file.parent().unwrap().components().any(|part| part.as_os_str() == folder))
    };
    let mut packs: Vec<_> = of("data").collect();
    packs.sort_unstable_by_key(|pack| pack.metadata().unwrap().len());
    assert!(packs.len() >= 2, "contents and folders lie apart");
    let mut places = Vec::new();
    for file in packs.iter().copied().chain(of("index")).chain(of("snapshots")) {
        let length = usize::try_from(file.metadata().unwrap().len()).unwrap();
        // The begin, the length of a pack's header at its end, what is before it, and anywhere.
        places.extend([0, length - 1, length - 4, length - 5, length - 40].map(|byte| (file, byte)));
        let anywhere = noise(length as u64, 3 * 8);
        places.extend(anywhere.chunks(8).map(|eight| {
            (file, usize::try_from(u64::from_le_bytes(eight.try_into().unwrap()) % length as u64).unwrap())
        }));
    }
    for (number, (file, byte)) in places.iter().enumerate() {
        let bit = u8::try_from(number % 8).unwrap();
        flip(file, *byte, bit);
        let found = ours.check(Reading::All);
        let found = found.expect_err(&format!("byte {byte} of {}", file.display()));
        assert!(matches!(found, BackupError::Damaged { .. } | BackupError::Failed { .. }), "{found}");
        if packs.contains(file) {
            assert!(matches!(found, BackupError::Damaged { .. }), "{found}");
        }
        flip(file, *byte, bit);
    }
    ours.check(Reading::All).unwrap();
    std::fs::remove_file(packs[0]).unwrap();
    ours.check(Reading::Index).unwrap_err();
}
