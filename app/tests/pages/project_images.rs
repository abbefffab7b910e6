//! What the page of a project's images says, and offers to whom.

use corpus_api::images::made::ProjectImages;
use corpus_app::FormState;
use corpus_app::pages::project_images::images_view;

use crate::{html, image_pages};

fn page(all: &ProjectImages) -> String {
    html(|| images_view(all, &FormState::default()))
}

#[test]
fn only_what_no_guest_is_a_clone_of_can_be_removed() {
    let shown = page(&image_pages::all(false));
    for text in [
        "3 of 10",
        "database-0f0f0f0f0f0f",
        "Debian 12 with &lt;PostgreSQL&gt; 16",
        "A version is being made",
        "No version yet",
        "/srv/image",
        "212.0 MB",
        "image=database",
        "golden.lab.test",
        "An archive",
        "corpus image upload atlas web --archive system.tar.zst",
    ] {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    assert_eq!(shown.matches("/delete\"").count(), 1, "{shown}");
    assert!(shown.contains("/projects/atlas/images/scratch/delete"), "{shown}");
}

#[test]
fn who_may_not_is_offered_nothing() {
    let shown = page(&ProjectImages { may_change: false, ..image_pages::all(false) });
    let offered = ["<form", "New guest\"", "corpus image upload"].map(|text| shown.matches(text).count());
    assert_eq!(offered, [0, 0, 0], "{shown}");
    let shown = page(&ProjectImages { may_change: false, ..image_pages::all(true) });
    assert!(shown.contains("There is none") && shown.contains("Maintainers make one"), "{shown}");
    let shown = page(&ProjectImages { guests: Vec::new(), ..image_pages::all(true) });
    assert!(shown.contains("There is no guest to make one of") && !shown.contains("<form"), "{shown}");
}
