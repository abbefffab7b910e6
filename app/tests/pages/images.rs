//! What the page of images says.

use corpus_app::pages::images::images_view;

use crate::{html, image_samples};

#[test]
fn it_says_what_new_guests_are_made_from_and_where_it_is() {
    let shown = html(|| images_view(&image_samples::of_controller(false)));
    for text in [
        "/var/lib/corpus/images",
        "debian-12-1f0c9a3b7d52",
        "2 of 3",
        "75.3 MB",
        "debian-13.tar.zst",
        "41",
        "no /etc/shadow",
    ] {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    assert_eq!(shown.matches("New guests<").count(), 1, "{shown}");
    assert_eq!(shown.matches("Unless a request says otherwise<").count(), 1, "{shown}");
}

#[test]
fn without_archives_it_says_what_happens_then() {
    let shown = html(|| images_view(&image_samples::of_controller(true)));
    assert!(shown.contains("Nodes build it themselves until debian-12.tar.zst"), "{shown}");
    assert!(shown.contains("Guests can be clones of it when debian-13.tar.zst"), "{shown}");
}
