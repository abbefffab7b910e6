//! What the page of a guest's backups says, and offers to whom.

use corpus_api::backups::{BackupKeyRevealed, Backups, BackupsChecked, ProjectBackups};
use corpus_app::FormState;
use corpus_app::pages::guest_backups::backups_view;
use corpus_app::pages::project_backups::{Shown, backups_view as backups_of};

use crate::{guest_backup_pages, html};

fn page(all: &Backups) -> String {
    let schedule = guest_backup_pages::schedule(all.items.is_empty());
    html(|| backups_view(all, &schedule, &FormState::default()))
}

#[test]
fn only_one_that_is_ready_can_be_brought_back_or_deleted() {
    let shown = page(&guest_backup_pages::all(false));
    for text in [
        "before &lt;the&gt; move",
        "Being taken",
        "Being deleted",
        "1.2 GB",
        "34.0 MB",
        "31000 files",
        "3 of 100",
        "stands still",
        "By schedule",
    ] {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    for what in ["/restore\"", "/delete\""] {
        assert_eq!(shown.matches(what).count(), 1, "{what}\n{shown}");
    }
}

#[test]
fn who_may_not_is_offered_nothing() {
    let all = Backups { may_take: false, may_change: false, ..guest_backup_pages::all(false) };
    let shown = page(&all);
    assert_eq!(shown.matches("<form").count(), 0);
    assert!(shown.contains("Each day, the last 14 are kept."), "{shown}");
    let developer = Backups { may_change: false, ..guest_backup_pages::all(true) };
    let shown = page(&developer);
    assert_eq!(shown.matches("<form").count(), 1);
    assert!(shown.contains("There is none") && shown.contains("The guest goes on meanwhile."), "{shown}");
}

#[test]
fn where_none_are_kept_that_is_said_and_none_is_taken() {
    let shown = page(&Backups {
        problem: Some("The operators have not said where.".to_owned()),
        ..guest_backup_pages::all(false)
    });
    assert!(shown.contains("None is taken") && shown.contains("have not said where"), "{shown}");
    // What is there can be deleted still.
    assert_eq!((shown.matches("/restore\"").count(), shown.matches("/delete\"").count()), (0, 1), "{shown}");
    assert!(!shown.contains("Take a backup"), "{shown}");
}

fn of_project(page: &ProjectBackups, key: Option<&BackupKeyRevealed>) -> String {
    let (project, form) = ("carto".parse().unwrap(), FormState::default());
    html(|| backups_of(&Shown { project: &project, page, only_gone: false, key, form: &form }))
}

#[test]
fn what_is_left_of_a_guest_that_is_gone_can_be_another() {
    let shown = of_project(&guest_backup_pages::of_project(false), None);
    assert!(shown.contains("is gone") && shown.contains("They added 1.2 GB"), "{shown}");
    assert_eq!(shown.matches("/guests/new?project=carto").count(), 1, "{shown}");
    assert_eq!(shown.matches("/delete\"").count(), 1, "{shown}");
    let seen = ProjectBackups { may_change: false, ..guest_backup_pages::of_project(false) };
    let shown = of_project(&seen, None);
    assert_eq!((shown.matches("<form").count(), shown.matches("/guests/new").count()), (0, 0), "{shown}");
}

#[test]
fn a_repository_says_whether_it_is_whole_and_hides_its_password() {
    let whole = guest_backup_pages::of_project(false);
    let shown = of_project(&whole, None);
    assert!(
        shown.contains("Whole") && shown.contains("/backups/check\"") && shown.contains("/backups/key/reveal\""),
        "{shown}"
    );
    assert!(!shown.contains("banner fail") && !shown.contains("restic -r"), "{shown}");
    let check = whole.check.clone().map(|check| BackupsChecked { damage: Some("<pack> is short".to_owned()), ..check });
    let shown = of_project(&ProjectBackups { check, ..whole.clone() }, None);
    assert!(
        shown.contains("Damaged") && shown.contains("&lt;pack&gt; is short") && !shown.contains("Whole"),
        "{shown}"
    );
    let never = of_project(&ProjectBackups { check: None, ..whole.clone() }, None);
    assert!(never.contains("not yet"), "{never}");
    let (project, repository) = ("carto".parse().unwrap(), corpus_domain::ProjectId(uuid::Uuid::nil()));
    let key = BackupKeyRevealed { project, repository, password: "correct<horse".to_owned() };
    let shown = of_project(&whole, Some(&key));
    assert!(shown.contains("correct&lt;horse") && !shown.contains("/backups/key/reveal\""), "{shown}");
    assert!(shown.contains("restic -r PLACE/00000000-0000-0000-0000-000000000000"), "{shown}");
    let none = of_project(&guest_backup_pages::of_project(true), None);
    assert!(!none.contains("/backups/key/reveal\""), "there is none yet: {none}");
}
