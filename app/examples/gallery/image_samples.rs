//! Images that guests are clones of.

use chrono::{TimeDelta, Utc};
use corpus_api::images::{Image, ImageVersion, Images};
use corpus_domain::Bytes;

/// One with a version that is new and one that most guests stand on, and one of which there is no archive; or none of any.
pub fn of_controller(empty: bool) -> Images {
    let version = |hash: &str, days, guests, nodes| {
        let made_at = Utc::now() - TimeDelta::days(days);
        ImageVersion {
            label: format!("debian-12-{hash}").parse().unwrap_or_else(|_| unreachable!("a label")),
            sha256: format!("{hash}{}", "0".repeat(52)),
            bytes: Bytes(75_300_000),
            made_at,
            found_at: made_at,
            guests,
            nodes,
        }
    };
    let versions = vec![version("1f0c9a3b7d52", 2, 3, 2), version("77b02de0c4f1", 9, 41, 3)];
    let image = |name: &str, versions| Image {
        name: name.parse().unwrap_or_else(|_| unreachable!("a name")),
        problem: (name == "debian-13" && !empty).then(|| "it has no /etc/shadow".to_owned()),
        versions: if empty { Vec::new() } else { versions },
    };
    Images {
        folder: "/var/lib/corpus/images".to_owned(),
        nodes: 3,
        items: vec![image("debian-12", versions), image("debian-13", Vec::new())],
    }
}
