//! What the page of Corpus' own backups says.

use corpus_api::controller_backups::ControllerBackups;
use corpus_app::FormState;
use corpus_app::pages::controller_backups::backups_view;

use crate::{backup_samples, html};

fn page(all: &ControllerBackups) -> String {
    html(|| backups_view(all, &FormState::default()))
}

#[test]
fn it_says_whether_there_is_a_recent_one_and_why_not() {
    let all = backup_samples::of_controller(false);
    let shown = page(&all);
    for text in
        ["Recent", "each 24 hours", "Being taken", "No space left on device", "48.2 MB", "412 kB", "brought back"]
    {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    assert_eq!(shown.matches("<form").count(), 1, "{shown}");
    let old = ControllerBackups { is_old: true, restored: None, ..all };
    let shown = page(&old);
    assert!(shown.contains(">Old<") && !shown.contains("brought back"), "{shown}");
}

#[test]
fn without_a_place_it_says_what_to_do() {
    let shown = page(&backup_samples::of_controller(true));
    assert!(shown.contains("[backup]") && shown.matches("<form").count() == 0, "{shown}");
}
