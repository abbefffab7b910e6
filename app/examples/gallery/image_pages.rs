//! The page of a project's images, with sample values.

use corpus_api::images::made::{ImageGuest, MOST_IMAGES, ProjectImage, ProjectImageVersion, ProjectImages};
use corpus_app::FormState;
use corpus_app::layout::Page;
use corpus_app::pages::project_images;
use corpus_app::route::Route;
use corpus_domain::{Bytes, GuestId};

use crate::project_samples::{before, id, word};

/// The page of a route, if it is this one; `variant` is `empty` where there is none.
pub fn page(route: &Route, variant: &str) -> Option<Page> {
    let Route::ProjectImages(_) = route else { return None };
    let view = project_images::images_view(&all(variant == "empty"), &FormState::default());
    Some(Page::new("project-images", "Images of atlas", view).under("atlas", "/projects/atlas"))
}

/// Those of a project.
pub fn all(is_empty: bool) -> ProjectImages {
    let version = |label: &str, ago: i64, guests| ProjectImageVersion {
        label: word(label),
        sha256: "0f".repeat(32),
        bytes: Bytes(212_000_000),
        unpacked: Bytes(812_000_000),
        made_at: before(ago),
        guest: Some(word("golden.lab.test")),
        folder: None,
        made_by: Some(word("mia")),
        comment: Some(word("Debian 12 with <PostgreSQL> 16")),
        guests,
    };
    let built = ProjectImageVersion {
        folder: Some(word("/srv/image")),
        comment: None,
        made_by: None,
        ..version("scratch-0f0f0f0f0f0f", 900_000, 0)
    };
    let sent = ProjectImageVersion { guest: None, ..version("sent-0f0f0f0f0f0f", 600_000, 0) };
    let image = |name: &str, is_being_made, versions| ProjectImage { name: word(name), is_being_made, versions };
    let items = vec![
        image(
            "database",
            true,
            vec![version("database-0f0f0f0f0f0f", 7_200, 2), version("database-1f0f0f0f0f0f", 90_000, 5)],
        ),
        image("scratch", false, vec![built, sent]),
        image("web", true, Vec::new()),
    ];
    let guest = |number, name: &str| ImageGuest { id: GuestId(id(number)), name: word(name) };
    ProjectImages {
        project: word("atlas"),
        items: if is_empty { Vec::new() } else { items },
        guests: vec![guest(11, "golden.lab.test"), guest(12, "web.lab.test")],
        most: MOST_IMAGES,
        may_change: true,
    }
}
