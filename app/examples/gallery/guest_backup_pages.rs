//! The pages of backups of guests, with sample values.

use corpus_api::Cursor;
use corpus_api::Version;
use corpus_api::backup_files::{BackupFile, BackupFiles};
use corpus_api::backups::{
    Backup, BackupDump, BackupProof, BackupSchedule, Backups, BackupsChecked, MOST_BACKUPS, ProjectBackup,
    ProjectBackups, ProvenRestore,
};
use corpus_api::environments::backups::{ChosenBackup, EnvironmentBackup, EnvironmentBackups, MOST_RESTORED};
use corpus_app::FormState;
use corpus_app::layout::Page;
use corpus_app::pages::{backup_files, environment_backups, guest_backups, project_backups};
use corpus_app::route::Route;
use corpus_domain::{BackupEvery, BackupId, BackupState, Bytes, Environment, FileKind, GuestId, GuestState};

use crate::project_samples::{before, id, word};

/// The page of a route, if it is this one; `variant` is `empty` where there is none.
pub fn page(route: &Route, variant: &str) -> Option<Page> {
    if let Route::ProjectBackups(project) = route {
        let page = of_project(variant == "empty");
        let (form, key) = (FormState::default(), None);
        let view = project_backups::backups_view(&project_backups::Shown {
            project,
            page: &page,
            only_gone: false,
            key,
            form: &form,
        });
        return Some(Page::new("project-backups", "Backups", view).under("Projects", "/projects"));
    }
    if let Route::BackupFiles(project, id) = route {
        let files = files(variant == "empty");
        let view = backup_files::files_view(backup_files::Backup { project, id: *id }, &files, &FormState::default());
        return Some(Page::new("backup-files", "Files", view).under("Projects", "/projects"));
    }
    if let Route::EnvironmentBackups(..) = route {
        let (all, form) = (of_environment(variant == "empty"), FormState::default());
        let view =
            environment_backups::backups_view(&environment_backups::Shown { all: &all, filter: &form, form: &form });
        return Some(Page::new("environment-backups", "Backups", view).under("Projects", "/projects"));
    }
    let Route::GuestBackups(_) = route else { return None };
    let view =
        guest_backups::backups_view(&all(variant == "empty"), &schedule(variant == "empty"), &FormState::default());
    Some(Page::new("guest-backups", "Backups", view).under("Guests", "/guests"))
}

/// Those of a project, one of a guest that is gone.
pub fn of_project(is_empty: bool) -> ProjectBackups {
    let one = |(number, backup)| ProjectBackup {
        guest: GuestId(id(11)),
        name: word("web.carto.example.net"),
        environment: Environment::Prod,
        gone: number == 1,
        may_read: true,
        backup,
    };
    let items = all(is_empty).items.into_iter().enumerate().map(one).collect();
    let check = (!is_empty).then(|| BackupsChecked { at: before(200_000), damage: None });
    ProjectBackups { items, taken: Bytes(1_268_000_000), check, may_change: true, next: None }
}

/// Those that an environment would be brought back to; one of its guests has none.
pub fn of_environment(is_empty: bool) -> EnvironmentBackups {
    let samples = all(false).items;
    let backup = |ago: i64, of: &Backup| ChosenBackup {
        id: of.id,
        comment: of.comment.clone(),
        taken_at: before(ago),
        bytes: of.bytes,
        dump: of.dump.clone(),
        proof: of.proof.clone(),
    };
    let one = |number, name: &str, state, backup| EnvironmentBackup {
        guest: GuestId(id(number)),
        name: word(name),
        state,
        backup,
    };
    let items = vec![
        one(12, "db.carto.example.net", GuestState::Running, samples.get(2).map(|of| backup(97_200, of))),
        one(13, "queue.carto.example.net", GuestState::Failed, None),
        one(11, "web.carto.example.net", GuestState::Running, samples.get(1).map(|of| backup(90_000, of))),
    ];
    EnvironmentBackups {
        project: word("carto"),
        environment: Environment::Prod,
        problem: None,
        guests: if is_empty { 0 } else { 3 },
        backed_up: if is_empty { 0 } else { 2 },
        earliest: (!is_empty).then(|| before(97_200)),
        latest: (!is_empty).then(|| before(90_000)),
        items: if is_empty { Vec::new() } else { items },
        most: MOST_RESTORED,
        may_change: true,
        next: None,
    }
}

/// One that is kept to, or none.
pub fn schedule(is_never: bool) -> BackupSchedule {
    let every = if is_never { BackupEvery::Never } else { BackupEvery::Day };
    BackupSchedule {
        every,
        keep: word("14"),
        next_at: (!is_never).then(|| before(-3_600)),
        problem: None,
        prove: !is_never,
        prove_at: (!is_never).then(|| before(-86_400)),
        prove_problem: None,
        version: Version::of(&every),
    }
}

/// Those of a guest.
pub fn all(is_empty: bool) -> Backups {
    let one = |number, comment: Option<&str>, state, ago: i64| {
        let is_there = state != BackupState::Taking;
        Backup {
            id: BackupId(id(number)),
            comment: comment.map(word),
            state,
            taken_at: is_there.then(|| before(ago)),
            snapshot: is_there.then(|| "a1b2".repeat(16)),
            bytes: is_there.then_some(Bytes(1_234_000_000)),
            files: is_there.then_some(31_000),
            added_bytes: is_there.then_some(Bytes(34_000_000)),
            took_ms: is_there.then_some(4_200),
            dump: (number == 0xd6).then_some(BackupDump { bytes: Bytes(12_000_000), problem: None }),
            proof: (number == 0xd6).then(|| BackupProof {
                began_at: before(80_041),
                ended_at: Some(before(80_000)),
                passed: Some(true),
                told: Some("31000 files, 1.2 GB, brought in 12 s, are as they were saved\n<it> boots".to_owned()),
            }),
            asked_at: before(ago),
            by: (number != 0xd6).then(|| "mia".to_owned()),
        }
    };
    let items = vec![
        one(0xd5, Some("before <the> move"), BackupState::Taking, 2),
        one(0xd6, None, BackupState::Ready, 90_000),
        one(0xd7, Some("old"), BackupState::Removing, 900_000),
    ];
    Backups {
        guest: GuestId(id(11)),
        name: word("web.carto.example.net"),
        project: word("carto"),
        environment: Environment::Prod,
        problem: None,
        proven: (!is_empty).then(|| ProvenRestore { at: before(80_000), taken_at: before(90_000), took_ms: 41_000 }),
        unproven: None,
        items: if is_empty { Vec::new() } else { items },
        most: MOST_BACKUPS,
        at_once: is_empty,
        may_take: true,
        may_change: true,
        may_read: true,
    }
}

/// What is in a folder of one, with names as a guest may choose them.
pub fn files(is_empty: bool) -> BackupFiles {
    let path = if is_empty { "/srv/<data>/empty" } else { "/srv/<data>" };
    let one = |name: &str, kind, is_named: bool, target: Option<&str>| BackupFile {
        name: name.to_owned(),
        kind,
        path: is_named.then(|| word(&format!("{path}/{name}"))),
        bytes: (kind == FileKind::File).then_some(Bytes(34_000_000)),
        mode: "0644".to_owned(),
        uid: 33,
        gid: 7,
        modified_at: before(90_000),
        target: target.map(str::to_owned),
    };
    let items = vec![
        one("a & b", FileKind::Folder, true, None),
        one("odd\u{fffd}", FileKind::Folder, false, None),
        one("<b>shop</b>.sql", FileKind::File, true, None),
        one("two\u{fffd}lines", FileKind::File, false, None),
        one("current", FileKind::Link, false, Some("../../<etc>")),
        one("pipe", FileKind::Other, false, None),
    ];
    BackupFiles {
        guest: GuestId(id(11)),
        name: word("web.carto.example.net"),
        environment: Environment::Prod,
        taken_at: Some(before(90_000)),
        path: word(path),
        items: if is_empty { Vec::new() } else { items },
        next: (!is_empty).then(|| Cursor::after("files", &6)),
    }
}
