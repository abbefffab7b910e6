//! Backups of a guest on a real node: taken, brought back and deleted, whatever fails in between.

use corpus_api::backups::{CheckBackups, ListBackups, ListProjectBackups, RemoveBackup, RestoreBackup, TakeBackup};
use corpus_api::guests::{DestroyGuest, GetGuest, RequestGuest, StopGuest};
use corpus_domain::{BackupState, GuestState, JobState};
use sqlx::PgPool;

use super::share::{faults, some};
use super::world::World;
use crate::jobs::testing::Fault;

const NAME: &str = "www.trial.corpus.test";
const OTHER: &str = "other.trial.corpus.test";

/// A backup is all files of its guest or none, bringing one back is undone to the last file, and nothing is left beside: no
/// snapshot on the node, and nothing in the repository that is not listed.
#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn backups_bring_a_guest_back(db: PgPool) {
    let world = World::new(db).await;
    let node = world.ready_node().await;
    let (guest, job) = world.ask_guest(NAME).await;
    world.done(job).await;
    let all = async || world.controller.call(&world.member, ListBackups { guest }, None).await.unwrap().items;
    let inside = async |command: &str| world.on_node(&format!("lxc-attach -n {NAME} -- sh -c '{command}'")).await;
    let left = async || {
        world.on_node(&format!("cd /var/lib/lxc/{NAME}; ls -A snapshots; ls -d former next 2>/dev/null || true")).await
    };
    // What no archive of files may lose: owners, capabilities, links of both kinds, holes, odd names, times.
    inside(
        "echo one > /root/it; cd /root; mkdir -p many/of; ln -f it many/of/hard; ln -sf /etc/passwd away; truncate -s 40M hole; \
         touch -d 2001-02-03T04:05:06.789 \"many/a b\"; chown 33:33 many; chmod 2750 many; mkfifo -m 620 pipe; \
         cp /bin/true can; setcap cap_net_raw+ep can || true",
    )
    .await;
    let manifest = async || {
        inside(
            "cd /root; find . -not -name it -not -path ./many/of/hard -printf \"%p %y %m %U %G %s %n %T@ %l\\n\" | sort; \
             find . -type f -not -name it -not -name hard | sort | xargs -d \"\\n\" sha256sum; getcap can",
        )
        .await
    };
    let was = manifest().await;
    assert!(was.contains("many/a b"), "{was}");

    let tried = faults(&["note", "snapshot", "save", "clear", "done"]);
    for fault in [Fault::None].into_iter().chain(tried) {
        let take = TakeBackup { guest, comment: Some("before".parse().unwrap()) };
        let before = all().await.len();
        let job = world.controller.call(&world.member, take, None).await.unwrap().job;
        let ended = world.run(job, fault.clone()).await;
        let is_done = matches!(fault, Fault::None | Fault::Repeat(_));
        assert_eq!(ended.state() == JobState::Done, is_done, "{fault:?}: {}", ended.story());
        let items = all().await;
        assert_eq!(items.len(), before + usize::from(is_done), "{fault:?}");
        assert!(items.iter().all(|one| one.state == BackupState::Ready), "{fault:?}: {items:?}");
        assert_eq!(left().await, "", "{fault:?}");
    }
    let items = all().await;
    let (newest, first) = (items.first().unwrap(), items.last().unwrap());
    assert!(first.files.unwrap() > 1_000 && first.bytes.unwrap().0 > 100_000_000, "{first:?}");
    // What did not change lies there once.
    assert!(newest.added_bytes.unwrap().0 < first.bytes.unwrap().0 / 20, "{newest:?}");
    assert_eq!(repository(&world), items.len(), "of each one, and nothing else");

    let backup = first.id;
    let restore = async || {
        let job = world.controller.call(&world.member, RestoreBackup { guest, backup }, None).await;
        job.unwrap().job
    };
    let mut tried = faults(&["bring", "restore"]);
    tried.extend(some([Fault::Repeat("settle".into()), Fault::KillAt(2), Fault::KillAt(6)]));
    for fault in tried {
        inside("echo two > /root/it; rm -f /root/can /root/pipe; echo new > /root/new").await;
        let ended = world.run(restore().await, fault.clone()).await;
        let is_done = matches!(fault, Fault::Repeat(_) | Fault::KillAt(_));
        assert_eq!(ended.state() == JobState::Done, is_done, "{fault:?}: {}", ended.story());
        let expected = if is_done { "one" } else { "two" };
        assert_eq!(inside("cat /root/it").await.trim(), expected, "{fault:?}: {}", ended.story());
        if is_done {
            assert_eq!(manifest().await, was, "{fault:?}");
            assert_eq!(inside("cat /root/many/of/hard; stat -c %h /root/it").await, "one\n2", "{fault:?}");
        }
        let line = world.controller.call(&world.member, GetGuest { guest }, None).await.unwrap().line;
        assert_eq!((line.state, left().await.as_str()), (GuestState::Running, ""), "{fault:?}");
    }

    // One that is stopped stays so; a job that was cancelled before it began changed nothing.
    let job = world.controller.call(&world.member, StopGuest { guest }, None).await.unwrap().job;
    world.done(job).await;
    world.cancel(restore().await).await;
    world.done(restore().await).await;
    let line = world.controller.call(&world.member, GetGuest { guest }, None).await.unwrap().line;
    assert_eq!(line.state, GuestState::Stopped);

    // Another guest has its files, and is somebody of its own.
    for fault in faults(&["files"]) {
        let wanted = RequestGuest { backup: Some(backup), ..World::plain_request(OTHER) };
        let (other, job) = world.request(wanted).await.unwrap();
        let ended = world.run(job, fault.clone()).await;
        if !matches!(fault, Fault::Repeat(_)) {
            assert_eq!(ended.state(), JobState::Undone, "{fault:?}: {}", ended.story());
            world.assert_no_guest(OTHER).await;
            continue;
        }
        assert_eq!(ended.state(), JobState::Done, "{fault:?}: {}", ended.story());
        let told = "cat /root/it /etc/hostname; stat -c %U:%h /root/it; ls /root/new; ls -A /var/lib/lxc/";
        let told = world.on_node(&format!("lxc-attach -n {OTHER} -- sh -c '{told} 2>/dev/null; true'")).await;
        assert_eq!(told, format!("one\n{OTHER}\nroot:2"), "{fault:?}");
        let job = world.controller.call(&world.member, DestroyGuest { guest: other }, None).await.unwrap().job;
        world.done(job).await;
    }

    let checked = async || {
        let list = ListProjectBackups { project: "atlas".parse().unwrap(), gone: None, cursor: None, limit: None };
        world.controller.call(&world.member, list, None).await.unwrap().check
    };
    let check = async || {
        let ask = CheckBackups { project: "atlas".parse().unwrap() };
        world.controller.call(&world.member, ask, None).await.unwrap().job
    };
    assert_eq!(checked().await, None);
    world.done(check().await).await;
    assert_eq!(checked().await.unwrap().damage, None);

    // A repository that was damaged gives nothing, and says so; the guest is as it was.
    damage(&world);
    let ended = world.run(restore().await, Fault::None).await;
    assert_eq!(ended.state(), JobState::Undone, "{}", ended.story());
    assert_eq!(left().await, "");
    let ended = world.run(check().await, Fault::None).await;
    assert_eq!(ended.state(), JobState::Undone, "{}", ended.story());
    assert!(ended.story().contains("not what was written"), "{}", ended.story());
    assert!(checked().await.unwrap().damage.is_some());

    for fault in faults(&["remove"]) {
        let Some(one) = all().await.first().map(|one| one.id) else { continue };
        let remove = RemoveBackup { guest, backup: one };
        let job = world.controller.call(&world.member, remove, None).await.unwrap().job;
        world.run(job, fault).await;
    }
    let job = world.controller.call(&world.member, DestroyGuest { guest }, None).await.unwrap().job;
    world.done(job).await;
    world.assert_no_guest(NAME).await;
    world.leave(node).await;
}

/// The one repository that there is.
fn folder(world: &World) -> std::path::PathBuf {
    let mut all = std::fs::read_dir(world.files.path().join("backups")).unwrap().map(|one| one.unwrap().path());
    let one = all.next().unwrap();
    assert!(all.next().is_none(), "one project has a repository");
    one
}

/// How many backups lie in it.
fn repository(world: &World) -> usize {
    std::fs::read_dir(folder(world).join("snapshots")).unwrap().count()
}

/// Turns bits in everything that holds contents.
fn damage(world: &World) {
    for part in std::fs::read_dir(folder(world).join("data")).unwrap() {
        for pack in std::fs::read_dir(part.unwrap().path()).unwrap() {
            let pack = pack.unwrap().path();
            let mut bytes = std::fs::read(&pack).unwrap();
            for at in (0..bytes.len()).step_by(4_096) {
                bytes[at] ^= 0x10;
            }
            std::fs::write(&pack, bytes).unwrap();
        }
    }
}
