//! What the pages of backups of guests say, and offer to whom.

use corpus_api::backups::{BackupDump, BackupKeyRevealed, Backups, BackupsChecked, ProjectBackups};
use corpus_api::environments::backups::EnvironmentBackups;
use corpus_app::FormState;
use corpus_app::pages::backup_files::{Backup, files_view};
use corpus_app::pages::environment_backups::{self, backups_view as backups_of_environment};
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
    let all = Backups { may_take: false, may_change: false, may_read: false, ..guest_backup_pages::all(false) };
    let shown = page(&all);
    assert_eq!((shown.matches("<form").count(), shown.matches("/files\"").count()), (0, 0), "{shown}");
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

#[test]
fn what_was_not_dumped_for_the_latest_is_said() {
    let mut all = guest_backup_pages::all(false);
    assert!(page(&all).contains("With dumps of 12.0 MB"));
    let problem = Some("backup: exit status 1: <no> server".to_owned());
    all.items[1].dump = Some(BackupDump { bytes: corpus_domain::Bytes(0), problem });
    let shown = page(&all);
    for text in ["Nothing was dumped", "the guest's files only: ", "exit status 1: &lt;no&gt; server."] {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    // That of one that is being deleted is nobody's concern.
    all.items[1].state = corpus_domain::BackupState::Removing;
    assert!(!page(&all).contains("the guest's files only"));
}

fn of_project(page: &ProjectBackups, key: Option<&BackupKeyRevealed>) -> String {
    let (project, form) = ("carto".parse().unwrap(), FormState::default());
    html(|| backups_of(&Shown { project: &project, page, only_gone: false, key, form: &form }))
}

#[test]
fn what_is_left_of_a_guest_that_is_gone_can_be_another() {
    let shown = of_project(&guest_backup_pages::of_project(false), None);
    assert!(shown.contains("is gone") && shown.contains("repository takes 1.2 GB"), "{shown}");
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

#[test]
fn what_is_in_one_that_is_ready_is_a_link_for_who_may_read_it() {
    let of_guest = page(&guest_backup_pages::all(false));
    let all = guest_backup_pages::of_project(false);
    for shown in [of_guest, of_project(&all, None)] {
        assert_eq!(shown.matches("/files\"").count(), 1, "{shown}");
        assert!(
            shown.contains("/projects/carto/backups/") && shown.contains("aria-label=\"Files of that of"),
            "{shown}"
        );
    }
    let mut closed = all;
    closed.items.iter_mut().for_each(|one| one.may_read = false);
    let shown = of_project(&closed, None);
    assert_eq!(shown.matches("/files\"").count(), 0, "{shown}");
}

#[test]
fn what_came_of_trying_one_is_told_and_what_to_rely_on() {
    let all = guest_backup_pages::all(false);
    let shown = page(&all);
    for text in ["Proven", "as it was", "31000 files", "&lt;it&gt; boots", "/prove\"", "aria-label=\"Try that of"] {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    assert!(!shown.contains("<it>") && !shown.contains("rely on them"), "{shown}");
    // Only what is there can be tried.
    assert_eq!(shown.matches("/prove\"").count(), 1, "{shown}");
    let never = Backups { proven: None, unproven: Some("a check fails: <x>.".to_owned()), ..all.clone() };
    let shown = page(&never);
    assert!(shown.contains("Not proven") && shown.contains("rely on them") && shown.contains("&lt;x&gt;"), "{shown}");
    let mut tried = all.clone();
    let proof = tried.items[1].proof.as_mut().unwrap();
    (proof.ended_at, proof.passed, proof.told) = (None, None, None);
    let shown = page(&tried);
    assert!(shown.contains("Being tried") && !shown.contains("/prove\""), "{shown}");
    let shown = page(&Backups { may_change: false, ..all });
    assert!(!shown.contains("/prove\"") && shown.contains("What was seen"), "{shown}");
    let none = page(&guest_backup_pages::all(true));
    assert!(!none.contains("Not proven"), "{none}");
}

fn files(is_empty: bool) -> String {
    let (project, id) = ("carto".parse().unwrap(), "0199d3c0-0000-7000-8000-000000000001".parse().unwrap());
    let files = guest_backup_pages::files(is_empty);
    html(|| files_view(Backup { project: &project, id }, &files, &FormState::default()))
}

#[test]
fn a_folder_is_shown_with_the_way_to_it_and_names_are_text() {
    const AT: &str = "/projects/carto/backups/0199d3c0-0000-7000-8000-000000000001/files";
    let shown = files(false);
    for text in [
        "&lt;b&gt;shop&lt;/b&gt;.sql",
        "to ",
        "../../&lt;etc&gt;",
        "34.0 MB",
        "0644",
        "33:7",
        "Link",
        "aria-current=\"page\"",
    ] {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    assert!(!shown.contains("<b>") && !shown.contains("<etc>") && !shown.contains("<data>"), "{shown}");
    // The way up, a folder below, and the next page.
    for link in [
        "?path=%2F\"",
        "?path=%2Fsrv\"",
        "?path=%2Fsrv%2F%3Cdata%3E%2Fa+%26+b\"",
        "?path=%2Fsrv%2F%3Cdata%3E&amp;cursor=",
    ] {
        assert!(shown.contains(&format!("href=\"{AT}{link}")), "{link}\n{shown}");
    }
    assert_eq!(shown.matches("<a ").count(), 4, "{shown}");
}

/// Each by a form of its own, which works without scripts and tells a screen reader what comes; what can't be asked for
/// is said to come with its folder.
#[test]
fn files_and_folders_are_fetched_and_links_are_not() {
    let shown = files(false);
    let action = "action=\"/projects/carto/backups/0199d3c0-0000-7000-8000-000000000001/fetch\"";
    // This folder, the one below, and the file.
    assert_eq!(shown.matches(action).count(), 3, "{shown}");
    assert_eq!(shown.matches("<form").count(), shown.matches("target=\"_self\"").count(), "{shown}");
    for label in ["Fetch as .tar: a &amp; b", "Fetch &lt;b&gt;shop&lt;/b&gt;.sql", "Fetch as .tar: /srv/&lt;data&gt;"] {
        assert!(shown.contains(&format!("aria-label=\"{label}\"")), "{label}\n{shown}");
    }
    assert!(shown.contains("name=\"path\" value=\"/srv/&lt;data&gt;/&lt;b&gt;shop&lt;/b&gt;.sql\""), "{shown}");
    assert_eq!(shown.matches("it comes with its folder").count(), 2, "{shown}");
    let empty = files(true);
    assert!(empty.contains("Nothing is here") && !empty.contains("Next page"), "{empty}");
}

fn of_environment(all: &EnvironmentBackups, filter: &FormState, form: &FormState) -> String {
    html(|| backups_of_environment(&environment_backups::Shown { all, filter, form }))
}

#[test]
fn an_environment_is_brought_back_to_what_is_shown() {
    let (all, none) = (guest_backup_pages::of_environment(false), FormState::default());
    let shown = of_environment(&all, &none, &none);
    for text in ["2 of 3 guests", "they are 2 h apart", "None", "Failed", "31000 files", "Not tried", "old"] {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    assert!(shown.contains("action=\"/projects/carto/environments/prod/backups/restore\""), "{shown}");
    // The moment of the latest one, to the last digit: one that is taken meanwhile is not meant.
    let latest = String::from(corpus_api::words::When::Instant(all.latest.unwrap()));
    assert!(shown.contains(&format!("name=\"at\" value=\"{latest}\"")), "{shown}");
    assert!(shown.contains("name=\"without\"") && shown.contains("2 guests become what they were then"), "{shown}");
    // It is asked first.
    assert!(shown.contains("<details class=\"confirm\"><summary"), "{shown}");
    let whole = EnvironmentBackups { backed_up: 3, ..all };
    assert!(!of_environment(&whole, &none, &none).contains("name=\"without\""));
}

#[test]
fn an_environment_is_brought_back_by_who_may_where_something_is_there() {
    let none = FormState::default();
    let offers = |all: &EnvironmentBackups| of_environment(all, &none, &none).contains("method=\"post\"");
    let all = || guest_backup_pages::of_environment(false);
    assert!(offers(&all()));
    assert!(!offers(&EnvironmentBackups { may_change: false, ..all() }));
    let problem = Some("The operators have <not> said where.".to_owned());
    let closed = EnvironmentBackups { problem, ..all() };
    assert!(!offers(&closed) && of_environment(&closed, &none, &none).contains("have &lt;not&gt; said where"));
    assert!(!offers(&EnvironmentBackups { backed_up: 0, earliest: None, latest: None, ..all() }));
    let many = EnvironmentBackups { guests: 51, ..all() };
    assert!(!offers(&many) && of_environment(&many, &none, &none).contains("50 guests at most"));
    let empty = guest_backup_pages::of_environment(true);
    assert!(!offers(&empty) && of_environment(&empty, &none, &none).contains("No guest is in it"));
}

/// What was asked stays: the moment in its box and in the address, the answer in the question, which is open.
#[test]
fn a_refused_one_keeps_what_was_typed_beside_the_list() {
    let (mut all, none) = (guest_backup_pages::of_environment(false), FormState::default());
    all.next = Some(corpus_api::Cursor::after("environment-backups", &"x"));
    let values =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    let filter = FormState { values: values(&[("at", "2026-11-02")]), ..FormState::default() };
    let sent = values(&[("at", "2026-11-02T01:00:00Z"), ("without", "true")]);
    let refused = FormState::new("restore", sent).message("queue.carto.example.net is stopping now.").status(409);
    let shown = of_environment(&all, &filter, &refused);
    for text in [
        "queue.carto.example.net is stopping now.",
        "id=\"f-at\" name=\"at\" type=\"text\" value=\"2026-11-02\"",
        "name=\"_page\" value=\"/projects/carto/prod/backups?at=2026-11-02\"",
        "/projects/carto/prod/backups?at=2026-11-02&amp;cursor=",
        "<details open class=\"confirm\">",
        "value=\"true\" checked",
        "db.carto.example.net",
        "As of now",
    ] {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    let lacking = FormState::new("restore", values(&[])).error("without", "queue has no backup");
    let shown = of_environment(&all, &none, &lacking);
    assert!(shown.contains("href=\"#f-without\"") && shown.contains("id=\"f-without\""), "{shown}");
    // What is no moment is said at its box, and nothing is brought back to what was not asked.
    let wrong =
        FormState { values: values(&[("at", "<soon>")]), ..FormState::default() }.error("at", "no time").status(422);
    let shown = of_environment(&all, &wrong, &none);
    assert!(shown.contains("value=\"&lt;soon&gt;\"") && shown.contains("href=\"#f-at\""), "{shown}");
    assert!(!shown.contains("method=\"post\""), "{shown}");
}
