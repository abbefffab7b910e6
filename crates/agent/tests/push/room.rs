//! Storage that has too little room: for an archive, and for what a deployment must be told.

use std::time::{Duration, Instant};

use corpus_domain::{DeploymentId, DeploymentState, Phase};
use corpus_protocol::{DeploymentEvent, Request, Role, Stream};

use crate::guest::{Guest, soon};
use crate::two::{RECIPE, decide, events, is_as_before, is_live, is_prepared, pushes, role, state, terminal};

const SMALL: u64 = 14 << 20;

/// The project's storage is so large; the first time it is put there.
fn storage(guest: &Guest, bytes: u64) {
    guest.root_does(&format!(
        "cd /; if mountpoint -q /srv/projects/room; then mount -o remount,size={bytes} /srv/projects/room; exit; fi
        cp -a /srv/projects/room /root/aside; mount -t tmpfs -o size={bytes},mode=755 none /srv/projects/room
        cp -a /root/aside/. /srv/projects/room/"
    ));
}

fn archives(guest: &Guest) -> String {
    guest.root_does("ls /srv/projects/room/archives")
}

fn needs(guest: &Guest, id: DeploymentId) -> Option<u64> {
    let bytes = |event| if let DeploymentEvent::NeedsRoom { bytes } = event { Some(bytes) } else { None };
    events(guest, "room", id).into_iter().find_map(bytes)
}

fn notes(guest: &Guest, id: DeploymentId) -> String {
    let text = |event| match event {
        DeploymentEvent::Line { stream: Stream::Note, text } => Some(text + "\n"),
        _ => None,
    };
    events(guest, "room", id).into_iter().filter_map(text).collect()
}

/// A guest whose storage grows says what it lacks, and goes on when it has that.
pub fn for_an_archive(guest: &Guest) {
    guest.project("room", None);
    guest.commit("room", RECIPE);
    for _ in 0..3 {
        guest.commit("room", "date +%N > now");
        guest.push("room", "origin main").good();
    }
    let mut plan = guest.plan("room");
    plan.storage_grows = true;
    guest.ensure(plan.clone());
    let before = archives(guest);
    storage(guest, SMALL);
    let (mut push, id) = pushes(guest, "room", "true");
    soon("what it needs", || needs(guest, id).is_some());
    let bytes = needs(guest, id).unwrap();
    // Twice a margin of 8 MiB, and little else.
    assert!((1 << 20..8 << 20).contains(&bytes), "{bytes}");
    soon("the pusher to be told", || terminal(guest).contains("MiB more storage"));
    assert_eq!((archives(guest), push.try_wait().unwrap()), (before.clone(), None));
    storage(guest, SMALL + bytes + (256 << 10));
    assert_eq!(push.wait().unwrap().code(), Some(0), "{}", terminal(guest));
    assert!(terminal(guest).contains("there is room now"), "{}", terminal(guest));
    is_live(guest, "room", id);
    assert_eq!(archives(guest), format!("{before}{id}\n"));

    // Given up while it waits: at once, and no old archive goes for it.
    storage(guest, SMALL);
    let (before, archived) = (state(guest, "room"), archives(guest));
    let (mut push, id) = pushes(guest, "room", "true");
    soon("what it needs", || needs(guest, id).is_some());
    let began = Instant::now();
    let cancel = Request::CancelDeployment { project: "room".parse().unwrap(), id };
    guest.ask(&cancel).unwrap();
    assert_eq!(push.wait().unwrap().code(), Some(1));
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    let report = guest.report("room", &id.to_string());
    assert_eq!((report.state, report.fault.unwrap().phase), (DeploymentState::RolledBack, Phase::Archive));
    assert_eq!((state(guest, "room"), archives(guest)), (before, archived.clone()));
    let said = notes(guest, id);
    assert!(!said.contains("archives go first") && !said.contains("archives were removed"), "{said}");

    // It did not grow: as where nothing grows. A short phase is not all spent on waiting.
    plan.settings.insert("limits".into(), serde_json::json!({"archive": 20}));
    guest.ensure(plan);
    let (mut push, id) = pushes(guest, "room", "true");
    assert_eq!(push.wait().unwrap().code(), Some(0), "{}", terminal(guest));
    let said = notes(guest, id);
    assert!(said.contains("the storage did not grow for 10 s") && said.contains("old archives go first"), "{said}");
    is_live(guest, "room", id);
    assert_eq!(archives(guest), format!("{id}\n"));
}

/// What is decided while the disk is full is done: the room for that was kept.
pub fn for_decisions(guest: &Guest) {
    storage(guest, SMALL << 2);
    role(guest, "room", Role::Leader { followers: vec!["web-2.example.org".parse().unwrap()] });
    let cancel = |id| Request::CancelDeployment { project: "room".parse().unwrap(), id };
    for how in ["commit", "abort", "cancel"] {
        let before = state(guest, "room");
        let (mut push, id) = pushes(guest, "room", "true");
        is_prepared(guest, "room", id, 1);
        guest.root_does("cat /dev/zero > /srv/projects/room/data/all 2>/dev/null || true");
        match how {
            "cancel" => drop(guest.ask(&cancel(id)).unwrap()),
            how => assert!(decide(guest, "room", id, (how == "abort").then_some("web-2: prove failed"))),
        }
        assert_eq!(push.wait().unwrap().code(), Some(i32::from(how != "commit")), "{how}: {}", terminal(guest));
        if how == "commit" {
            is_live(guest, "room", id);
        } else {
            is_as_before(guest, "room", id, &before);
        }
        let left = guest.root_does(&format!("rm /srv/projects/room/data/all; ls /srv/projects/room/deployments/{id}"));
        assert!(!left.contains("reserve") && !left.contains(".new") && !left.contains(".first"), "{left}");
    }
}
