//! Create, power, destroy.

use std::time::Duration;

use corpus_api::guests::{
    ApplyGuestStates, DestroyGuest, EnlargeGuest, GetGuest, GetGuestLimits, GetGuestSettings, GetGuestStates,
    RequestGuest, RestartGuest, SetGuestLimits, SetGuestSettings, ShrinkGuest, StartGuest, StopGuest, SwitchGuestMode,
};
use corpus_api::keys::RemoveKey;
use corpus_api::lxc_lines::{CreateLxcLine, GetLxcLine, SetLxcLine};
use corpus_api::projects::DestroyProject;
use corpus_api::snapshots::{ListSnapshots, RemoveSnapshot, RestoreSnapshot, TakeSnapshot};
use corpus_domain::{Backing, GuestState, JobState, Mode, SizeProfile, SnapshotState};
use sqlx::PgPool;

use super::share::{faults, some};
use super::world::World;
use crate::jobs::testing::Fault;

const CREATE: [&str; 15] = [
    "ids",
    "allocate",
    "image",
    "spawn",
    "files",
    "hostsfile",
    "sshkeys",
    "initial_setup",
    "start",
    "routes",
    "ping",
    "users",
    "mode",
    "states",
    "ready",
];
const DESTROY: [&str; 5] = ["mark", "routes", "names", "absent", "forget"];
const NAME: &str = "www.trial.corpus.test";
const OTHER: &str = "two.trial.corpus.test";

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn create_fails_and_repeats_at_every_step(db: PgPool) {
    let world = World::new(db).await;
    let node = world.ready_node().await;
    for fault in faults(&CREATE) {
        let (guest, job) = world.ask_guest(NAME).await;
        let ended = world.run(job, fault.clone()).await;
        if matches!(fault, Fault::Repeat(_)) {
            assert_eq!(ended.state(), JobState::Done, "{fault:?}: {}", ended.story());
            let job = world.controller.call(&world.member, DestroyGuest { guest }, None).await.unwrap().job;
            world.done(job).await;
        } else {
            assert_eq!(ended.state(), JobState::Undone, "{fault:?}: {}", ended.story());
        }
        world.assert_no_guest(NAME).await;
        assert!(world.guests().await.is_empty(), "{fault:?} left a row");
    }
    world.leave(node).await;
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn create_survives_the_death_of_the_server(db: PgPool) {
    let world = World::new(db).await;
    let node = world.ready_node().await;
    let (guest, job) = world.ask_guest(NAME).await;
    let events = world.run(job, Fault::None).await.events;
    let job = world.controller.call(&world.member, DestroyGuest { guest }, None).await.unwrap().job;
    world.done(job).await;
    for at in some((0..events).step_by(3)) {
        let (guest, job) = world.ask_guest(NAME).await;
        let ended = world.run(job, Fault::KillAt(at)).await;
        assert_eq!(ended.state(), JobState::Done, "killed at event {at}: {}", ended.story());
        assert_eq!(
            world.controller.call(&world.member, GetGuest { guest }, None).await.unwrap().line.state,
            GuestState::Running
        );
        let job = world.controller.call(&world.member, DestroyGuest { guest }, None).await.unwrap().job;
        world.done(job).await;
        world.assert_no_guest(NAME).await;
    }
    world.leave(node).await;
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn destroy_fails_and_repeats_at_every_step(db: PgPool) {
    let world = World::new(db).await;
    let node = world.ready_node().await;
    for fault in faults(&DESTROY) {
        let (guest, job) = world.ask_guest(NAME).await;
        world.done(job).await;
        let job = world.controller.call(&world.member, DestroyGuest { guest }, None).await.unwrap().job;
        let ended = world.run(job, fault.clone()).await;
        if ended.state() != JobState::Done
            && world.controller.call(&world.member, GetGuest { guest }, None).await.is_ok()
        {
            let state = world.controller.call(&world.member, GetGuest { guest }, None).await.unwrap().line.state;
            assert_eq!(state, GuestState::Failed, "{fault:?}: {}", ended.story());
            let job = world.controller.call(&world.member, DestroyGuest { guest }, None).await.unwrap().job;
            world.done(job).await;
        }
        world.assert_no_guest(NAME).await;
        assert!(world.guests().await.is_empty(), "{fault:?} left a row");
    }
    world.leave(node).await;
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn power_and_keys(db: PgPool) {
    let world = World::new(db).await;
    let node = world.ready_node().await;
    let (guest, job) = world.ask_guest(NAME).await;
    world.done(job).await;
    let state = async || world.controller.call(&world.member, GetGuest { guest }, None).await.unwrap().line.state;
    for step in ["stop", "stopped"] {
        let job = world.controller.call(&world.member, StopGuest { guest }, None).await.unwrap().job;
        let ended = world.run(job, Fault::Repeat(step.to_owned())).await;
        assert_eq!((ended.state(), state().await), (JobState::Done, GuestState::Stopped), "{}", ended.story());
        let job = world.controller.call(&world.member, StartGuest { guest }, None).await.unwrap().job;
        world.done(job).await;
        assert_eq!(state().await, GuestState::Running);
    }
    let job = world.controller.call(&world.member, RestartGuest { guest }, None).await.unwrap().job;
    world.done(job).await;
    assert_eq!(state().await, GuestState::Running);

    let line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl mia@trial";
    let key = world.add_key(line).await;
    let keys = "lxc-attach -n www.trial.corpus.test -- cat /etc/corpus/authorized_keys/sysadmin";
    world.run_open_jobs().await;
    // Whose it is, instead of what the key says of itself.
    let kept = format!("{} {}", line.rsplit_once(' ').unwrap().0, world.member.login);
    assert!(world.on_node(keys).await.contains(&kept), "the key did not arrive");
    world.controller.call(&world.member, RemoveKey { key }, None).await.unwrap();
    world.run_open_jobs().await;
    assert!(!world.on_node(keys).await.contains(&kept), "the key did not leave");

    let job = world.controller.call(&world.member, DestroyGuest { guest }, None).await.unwrap().job;
    world.done(job).await;
    world.leave(node).await;
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn limits_change_while_the_guest_runs(db: PgPool) {
    let world = World::new(db).await;
    let node = world.ready_node().await;
    let (guest, job) = world.ask_guest(NAME).await;
    world.done(job).await;
    let limit = async |memory: &str| {
        let version = world.controller.call(&world.member, GetGuestLimits { guest }, None).await.unwrap().version;
        let (memory, cpu, processes, io_weight) = (memory.parse().ok(), None, None, None);
        let set = SetGuestLimits { guest, version, memory, cpu, processes, io_weight };
        world.controller.call(&world.member, set, None).await.map(|accepted| accepted.job)
    };
    // What the row says, and what holds the guest.
    let has = async || {
        let row =
            world.controller.call(&world.member, GetGuest { guest }, None).await.unwrap().limits.memory.to_string();
        let free = world.on_node("lxc-attach -n www.trial.corpus.test -- free -m | awk '/Mem/ { print $2 }'").await;
        (row, free.trim().to_owned())
    };
    let is = |row: &str, free: &str| (row.to_owned(), free.to_owned());
    assert_eq!(has().await, is("1 GiB", "1024"));
    let (before, after) = (Fault::FailBefore("limit".into()), Fault::FailAfter("limit".into()));
    for (memory, fault, state, row, free) in [
        ("2 GiB", before, JobState::Undone, "1 GiB", "1024"),
        ("2 GiB", after, JobState::Undone, "1 GiB", "1024"),
        ("512 MiB", Fault::Repeat("limit".into()), JobState::Done, "512 MiB", "512"),
        ("1.5 GiB", Fault::KillAt(2), JobState::Done, "1.5 GiB", "1536"),
    ] {
        let ended = world.run(limit(memory).await.unwrap(), fault.clone()).await;
        assert_eq!((ended.state(), has().await), (state, is(row, free)), "{fault:?}: {}", ended.story());
    }
    assert_eq!(limit("1.5 GiB").await.unwrap_err().errors[0].field, "memory", "nothing changes");
    let refused = limit("4096 GiB").await.unwrap_err();
    let message = refused.to_string();
    assert_eq!(refused.errors[0].field, "memory", "{message}");
    assert!(message.contains("free") && message.contains("more are needed"), "{message}");
    let waits = limit("2 GiB").await.unwrap();
    assert_eq!(limit("3 GiB").await.unwrap_err().word(), "conflict", "one change at a time");
    world.done(waits).await;

    let job = world.controller.call(&world.member, RestartGuest { guest }, None).await.unwrap().job;
    world.done(job).await;
    assert_eq!(has().await, is("2 GiB", "2048"), "after a restart");
    let job = world.controller.call(&world.member, DestroyGuest { guest }, None).await.unwrap().job;
    world.done(job).await;
    world.leave(node).await;
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn settings_change_while_the_guest_runs_and_lines_apply_when_it_starts(db: PgPool) {
    let world = World::new(db).await;
    let node = world.ready_node().await;
    let (guest, job) = world.ask_guest(NAME).await;
    world.done(job).await;
    for (name, key, value) in
        [("files", "lxc.prlimit.nofile", "4321"), ("routes", "lxc.sysctl.net.ipv4.ip_forward", "1")]
    {
        let (name, key, value) = (name.parse().unwrap(), key.parse().unwrap(), value.parse().ok());
        world.controller.call(&world.ops, CreateLxcLine { name, key, value, comment: None }, None).await.unwrap();
    }
    let set = async |autostart: bool, conf: &[&str]| {
        let version = world.controller.call(&world.member, GetGuestSettings { guest }, None).await.unwrap().version;
        let conf: Vec<_> = conf.iter().map(|name| name.parse().unwrap()).collect();
        let set = SetGuestSettings { guest, autostart, conf: conf.try_into().unwrap(), version };
        world.controller.call(&world.member, set, None).await.unwrap().job
    };
    // What the row says, and what the node's configuration does.
    let has = async || {
        let row = world.controller.call(&world.member, GetGuestSettings { guest }, None).await.unwrap();
        let config = format!(
            "grep -cE '^lxc.(prlimit|sysctl)' /var/lib/lxc/{NAME}/config; grep ^lxc.start.auto /var/lib/lxc/{NAME}/config"
        );
        (row.autostart, row.conf.len(), world.on_node(&config).await.replace('\n', " ").trim().to_owned())
    };
    let is =
        |autostart: bool, conf: usize| (autostart, conf, format!("{conf} lxc.start.auto = {}", u8::from(autostart)));
    assert_eq!(has().await, is(true, 0));
    let (before, after) = (Fault::FailBefore("configure".into()), Fault::FailAfter("configure".into()));
    for (autostart, conf, fault, state, wanted) in [
        (false, &["files"][..], before, JobState::Undone, is(true, 0)),
        (false, &["files"], after, JobState::Undone, is(true, 0)),
        (false, &["files"], Fault::Repeat("configure".into()), JobState::Done, is(false, 1)),
        (true, &["files", "routes"], Fault::KillAt(2), JobState::Done, is(true, 2)),
    ] {
        let ended = world.run(set(autostart, conf).await, fault.clone()).await;
        assert_eq!((ended.state(), has().await), (state, wanted), "{fault:?}: {}", ended.story());
    }
    let inside = async || {
        let look =
            "cat /proc/sys/net/ipv4/ip_forward; grep ^Max.open.files /proc/1/limits | tr -s \" \" | cut -d \" \" -f 5";
        world.on_node(&format!("lxc-attach -n {NAME} -- sh -c '{look}'")).await.replace('\n', " ")
    };
    assert!(inside().await.starts_with("0 "), "what runs goes on as it is");
    let restart = async || {
        let job = world.controller.call(&world.member, RestartGuest { guest }, None).await.unwrap().job;
        world.done(job).await;
    };
    restart().await;
    assert_eq!(inside().await, "1 4321");
    // What operators make of a line later, a guest has from its next start by Corpus on.
    let line = world.controller.call(&world.ops, GetLxcLine { line: "files".parse().unwrap() }, None).await.unwrap();
    let (key, value, version) = (line.key, "5432".parse().ok(), line.version);
    let change = SetLxcLine { line: line.name, key, value, comment: None, version };
    world.controller.call(&world.ops, change, None).await.unwrap();
    restart().await;
    assert_eq!(inside().await, "1 5432");
    // So it does what somebody wrote on the node.
    world
        .on_node(&format!("sed -i '/ip_forward/d; s/^lxc.start.auto.*/lxc.start.auto = 0/' /var/lib/lxc/{NAME}/config"))
        .await;
    restart().await;
    assert_eq!((inside().await.as_str(), has().await), ("1 5432", is(true, 2)));
    // One that the kernel does not take keeps the guest from starting, says so, and is taken away again.
    let none = CreateLxcLine {
        name: "none".parse().unwrap(),
        key: "lxc.sysctl.net.no.such".parse().unwrap(),
        value: "1".parse().ok(),
        comment: None,
    };
    world.controller.call(&world.ops, none, None).await.unwrap();
    world.done(set(true, &["none"]).await).await;
    let job = world.controller.call(&world.member, RestartGuest { guest }, None).await.unwrap().job;
    let ended = world.run(job, Fault::None).await;
    assert!(ended.state() == JobState::Undone && ended.story().contains("net.no.such"), "{}", ended.story());
    let state = world.controller.call(&world.member, GetGuest { guest }, None).await.unwrap().line.state;
    assert_eq!(state, GuestState::Stopped, "{}", ended.story());
    world.done(set(true, &[]).await).await;
    let job = world.controller.call(&world.member, StartGuest { guest }, None).await.unwrap().job;
    world.done(job).await;
    assert!(inside().await.starts_with("0 "));

    let job = world.controller.call(&world.member, DestroyGuest { guest }, None).await.unwrap().job;
    world.done(job).await;
    world.leave(node).await;
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn storage_grows_while_the_guest_runs(db: PgPool) {
    let world = World::new(db.clone()).await;
    let node = world.ready_node().await;
    let mut wanted = World::plain_request(NAME);
    (wanted.backing, wanted.size) = (Some(Backing::Loop), Some(SizeProfile::Xxxsmall));
    let (guest, job) = world.request(wanted).await.unwrap();
    world.done(job).await;
    let enlarge = async |size| {
        let accepted = world.controller.call(&world.member, EnlargeGuest { guest, size }, None).await;
        accepted.map(|accepted| accepted.job)
    };
    let sizes = async || {
        let row = world.controller.call(&world.member, GetGuest { guest }, None).await.unwrap().line.size;
        let df =
            world.on_node("lxc-attach -n www.trial.corpus.test -- df --block-size=1 --output=size / | tail -n 1").await;
        // A part of a block is lost, no more.
        let of_disk = |size: &&SizeProfile| size.storage().0.abs_diff(df.trim().parse().unwrap_or(0)) < 1 << 16;
        (row, SizeProfile::ALL.iter().find(of_disk).copied())
    };
    assert_eq!(sizes().await, (SizeProfile::Xxxsmall, Some(SizeProfile::Xxxsmall)));

    let too_much = enlarge(SizeProfile::Xxxtrem).await.unwrap_err();
    assert_eq!(too_much.errors[0].field, "size", "the node can't promise it: {too_much:?}");
    sqlx::query("update nodes set storage_overcommit = 10000").execute(&db).await.unwrap();

    let (before, after) = (Fault::FailBefore("enlarge".into()), Fault::FailAfter("enlarge".into()));
    for (size, fault, state, has) in [
        (SizeProfile::Xxsmall, before, JobState::Undone, SizeProfile::Xxxsmall),
        // It does not shrink, and the row says so.
        (SizeProfile::Xxsmall, after, JobState::Undone, SizeProfile::Xxsmall),
        (SizeProfile::Xsmall, Fault::Repeat("enlarge".into()), JobState::Done, SizeProfile::Xsmall),
        (SizeProfile::Small, Fault::KillAt(2), JobState::Done, SizeProfile::Small),
        (SizeProfile::Xxxtrem, Fault::None, JobState::Undone, SizeProfile::Small),
    ] {
        let ended = world.run(enlarge(size).await.unwrap(), fault.clone()).await;
        assert_eq!((ended.state(), sizes().await), (state, (has, Some(has))), "{fault:?}: {}", ended.story());
        if size == SizeProfile::Xxxtrem {
            assert!(ended.story().contains("not enough room in /var/lib/lxc"), "{}", ended.story());
        }
    }
    assert_eq!(enlarge(SizeProfile::Small).await.unwrap_err().errors[0].field, "size");

    // Less again, whatever fails: what is in it stays, and what does not fit is refused by the node itself.
    let inside = async |command: &str| world.on_node(&format!("lxc-attach -n {NAME} -- sh -c '{command}'")).await;
    inside("dd if=/dev/urandom of=/root/much bs=1M count=1200 status=none; sha256sum /root/much > /root/sum; sync")
        .await;
    let shrink = async |size| {
        world.controller.call(&world.member, ShrinkGuest { guest, size }, None).await.map(|accepted| accepted.job)
    };
    assert_eq!(shrink(SizeProfile::Small).await.unwrap_err().errors[0].field, "size");
    for fault in faults(&["shrink", "note"]) {
        let ended = world.run(shrink(SizeProfile::Xsmall).await.unwrap(), fault.clone()).await;
        let is_done = matches!(fault, Fault::Repeat(_) | Fault::KillAt(_)) || fault == Fault::None;
        let has = if is_done { SizeProfile::Xsmall } else { SizeProfile::Small };
        assert_eq!(sizes().await, (has, Some(has)), "{fault:?}: {}", ended.story());
        if is_done {
            world.done(enlarge(SizeProfile::Small).await.unwrap()).await;
        }
    }
    let began = std::time::Instant::now();
    world.done(shrink(SizeProfile::Xsmall).await.unwrap()).await;
    println!("shrinking 5 GB with 1.6 GB in it to 3 GB took {:?}", began.elapsed());
    let ended = world.run(shrink(SizeProfile::Xxsmall).await.unwrap(), Fault::None).await;
    assert_eq!((ended.state(), sizes().await.0), (JobState::Undone, SizeProfile::Xsmall), "{}", ended.story());
    assert!(ended.story().contains("more than fit into xxsmall"), "{}", ended.story());
    assert!(inside("sha256sum -c /root/sum").await.contains("OK"));

    let job = world.controller.call(&world.member, DestroyGuest { guest }, None).await.unwrap().job;
    world.done(job).await;
    world.assert_no_guest(NAME).await;
    let (flat, job) = world.ask_guest(NAME).await;
    world.done(job).await;
    let larger = EnlargeGuest { guest: flat, size: SizeProfile::Large };
    let refused = world.controller.call(&world.member, larger, None).await.unwrap_err();
    assert_eq!(refused.word(), "conflict", "{refused:?}");
    let job = world.controller.call(&world.member, DestroyGuest { guest: flat }, None).await.unwrap().job;
    world.done(job).await;
    world.leave(node).await;
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn a_project_goes_with_its_guests_though_the_server_dies(db: PgPool) {
    let world = World::new(db).await;
    let node = world.ready_node().await;
    for name in [NAME, OTHER] {
        let (_, job) = world.ask_guest(name).await;
        world.done(job).await;
    }
    let destroy = DestroyProject { project: "atlas".parse().unwrap() };
    let job = world.controller.call(&world.member, destroy, None).await.unwrap().job;
    let ended = world.run(job, Fault::KillDuring("guests".to_owned(), Duration::from_millis(200))).await;
    assert_eq!(ended.state(), JobState::Done, "{}", ended.story());
    for name in [NAME, OTHER] {
        world.assert_no_guest(name).await;
    }
    assert!(world.guests().await.is_empty());
    world.leave(node).await;
}

/// Taken, brought back and deleted, with a fault at each step: the guest is what it was before the job, or what the
/// snapshot is, and nothing is left beside.
#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn snapshots_bring_a_guest_back(db: PgPool) {
    let world = World::new(db).await;
    let node = world.ready_node().await;
    let (guest, job) = world.ask_guest(NAME).await;
    world.done(job).await;
    let all = async || world.controller.call(&world.member, ListSnapshots { guest }, None).await.unwrap().items;
    let writes =
        async |text: &str| world.on_node(&format!("lxc-attach -n {NAME} -- sh -c 'echo {text} > /root/it'")).await;
    let reads = async || world.on_node(&format!("lxc-attach -n {NAME} -- cat /root/it")).await;
    let left = async || {
        world.on_node(&format!("cd /var/lib/lxc/{NAME}; ls -A snapshots; ls -d former next 2>/dev/null || true")).await
    };

    writes("one").await;
    for fault in faults(&["snapshot"]) {
        let take = TakeSnapshot { guest, comment: Some("before".parse().unwrap()) };
        let job = world.controller.call(&world.member, take, None).await.unwrap().job;
        let ended = world.run(job, fault.clone()).await;
        let is_done = matches!(fault, Fault::Repeat(_));
        assert_eq!(ended.state() == JobState::Done, is_done, "{fault:?}: {}", ended.story());
        let ids: Vec<String> = all().await.iter().map(|one| one.id.to_string()).collect();
        assert_eq!((ids.len(), left().await), (usize::from(is_done), ids.join("\n")), "{fault:?}");
    }
    let snapshot = all().await[0].id;
    let restore = async || {
        let job = world.controller.call(&world.member, RestoreSnapshot { guest, snapshot }, None).await;
        job.unwrap().job
    };
    let mut tried = faults(&["stop", "restore", "start", "ping", "ready"]);
    tried.extend(some([Fault::Repeat("settle".into()), Fault::KillAt(2), Fault::KillAt(4), Fault::KillAt(8)]));
    for fault in tried {
        writes("two").await;
        let ended = world.run(restore().await, fault.clone()).await;
        let is_done = matches!(fault, Fault::Repeat(_) | Fault::KillAt(_));
        assert_eq!(ended.state() == JobState::Done, is_done, "{fault:?}: {}", ended.story());
        assert_eq!(reads().await.trim(), if is_done { "one" } else { "two" }, "{fault:?}: {}", ended.story());
        let line = world.controller.call(&world.member, GetGuest { guest }, None).await.unwrap().line;
        assert_eq!((line.state, all().await[0].state), (GuestState::Running, SnapshotState::Ready), "{fault:?}");
        assert_eq!(left().await, snapshot.to_string(), "{fault:?}");
    }

    // Another guest has its files, and is somebody of its own; the one that it is of goes on.
    writes("three").await;
    for fault in faults(&["files"]) {
        let wanted = RequestGuest { snapshot: Some(snapshot), ..World::plain_request(OTHER) };
        let (other, job) = world.request(wanted).await.unwrap();
        let ended = world.run(job, fault.clone()).await;
        if matches!(fault, Fault::Repeat(_)) {
            assert_eq!(ended.state(), JobState::Done, "{fault:?}: {}", ended.story());
            let told = world.on_node(&format!("lxc-attach -n {OTHER} -- cat /root/it /etc/hostname")).await;
            assert_eq!(told.trim(), format!("one\n{OTHER}"), "{fault:?}");
            let job = world.controller.call(&world.member, DestroyGuest { guest: other }, None).await.unwrap().job;
            world.done(job).await;
        } else {
            assert_eq!(ended.state(), JobState::Undone, "{fault:?}: {}", ended.story());
        }
        let there = world.on_node("ls -A /var/lib/lxc").await;
        assert!(!there.contains(OTHER), "{fault:?}: {there}");
        assert_eq!((reads().await.trim(), all().await[0].state), ("three", SnapshotState::Ready), "{fault:?}");
    }

    // One that is stopped stays so; a job that was cancelled before it began changed nothing.
    let job = world.controller.call(&world.member, StopGuest { guest }, None).await.unwrap().job;
    world.done(job).await;
    world.cancel(restore().await).await;
    assert_eq!(all().await[0].state, SnapshotState::Ready);
    world.done(restore().await).await;
    let line = world.controller.call(&world.member, GetGuest { guest }, None).await.unwrap().line;
    assert_eq!(line.state, GuestState::Stopped);

    for fault in faults(&["remove"]) {
        let Some(one) = all().await.first().map(|one| one.id) else { continue };
        let remove = RemoveSnapshot { guest, snapshot: one };
        let job = world.controller.call(&world.member, remove, None).await.unwrap().job;
        world.run(job, fault).await;
    }
    assert_eq!((all().await.len(), left().await.as_str()), (0, ""));
    let job = world.controller.call(&world.member, DestroyGuest { guest }, None).await.unwrap().job;
    world.done(job).await;
    world.assert_no_guest(NAME).await;
    world.leave(node).await;
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn modes_are_switched_and_states_applied(db: PgPool) {
    let world = World::salted(db).await;
    let node = world.ready_node().await;
    let (guest, job) = world.ask_guest(NAME).await;
    world.done(job).await;
    let inside = async |script: &str| world.on_node(&format!("lxc-attach -n {NAME} -- sh -c '{script}'")).await;
    let shown = async || world.controller.call(&world.member, GetGuestStates { guest }, None).await.unwrap();
    let switch =
        async |mode| world.controller.call(&world.member, SwitchGuestMode { guest, mode }, None).await.unwrap().job;
    let apply =
        async |test| world.controller.call(&world.member, ApplyGuestStates { guest, test }, None).await.unwrap().job;
    let is_active = async || inside("systemctl is-active corpus-salt-minion corpus-salt-master || true").await;
    let says = |mode| if mode == Mode::Salt { "active\nactive" } else { "inactive\ninactive" };

    // Whatever fails on the way, what runs is what the row says.
    let mut tried = faults(&["mode"]);
    tried.extend([Fault::FailBefore("keep".into()), Fault::KillAt(2), Fault::KillAt(4), Fault::None]);
    for fault in tried {
        let before = shown().await.mode;
        let to = if before == Mode::Salt { Mode::Masterless } else { Mode::Salt };
        let ended = world.run(switch(to).await, fault.clone()).await;
        let now = shown().await.mode;
        let expected = if ended.state() == JobState::Done { to } else { before };
        assert_eq!(now, expected, "{fault:?}: {}", ended.story());
        assert_eq!(is_active().await.trim(), says(now), "{fault:?}: {}", ended.story());
    }
    if shown().await.mode == Mode::Masterless {
        assert_eq!(world.run(switch(Mode::Salt).await, Fault::None).await.state(), JobState::Done);
    }
    // Nothing is for it yet, which is no failure.
    let ended = world.run(apply(false).await, Fault::None).await;
    assert_eq!((ended.state(), shown().await.last.unwrap().ran), (JobState::Done, 0), "{}", ended.story());

    let write = async |file: &str, text: &str| {
        let into = format!("lxc-attach -n {NAME} -- sh -c 'mkdir -p /srv/salt; cat >/srv/salt/{file}'");
        world.on_node(&format!("cat <<'END' | {into}\n{text}\nEND")).await
    };
    write("top.sls", "base:\n  '*':\n    - hello").await;
    write("hello.sls", "/etc/hello:\n  file.managed:\n    - contents: {{ grains['corpus']['node'] }}").await;
    for (fault, test, changed) in [(Fault::None, true, 1), (Fault::KillAt(3), false, 1), (Fault::None, false, 0)] {
        let ended = world.run(apply(test).await, fault.clone()).await;
        let last = shown().await.last.unwrap();
        assert_eq!((ended.state(), last.failed), (JobState::Done, 0), "{fault:?}: {}", ended.story());
        // What was applied by a server that was killed then is so when the next one asks.
        assert!(last.changed == changed || matches!(fault, Fault::KillAt(_)), "{fault:?}: {last:?}");
    }
    assert!(!inside("cat /etc/hello").await.trim().is_empty());
    write("hello.sls", "fails:\n  cmd.run:\n    - name: exit 3").await;
    let ended = world.run(apply(false).await, Fault::None).await;
    assert_eq!(ended.state(), JobState::Undone, "{}", ended.story());
    assert!(ended.story().contains("1 of 1 states failed"), "{}", ended.story());
    let last = shown().await.last.unwrap();
    assert_eq!((last.failed, last.states[0].ok, last.states[0].function.as_str()), (1, false, "cmd.run"));

    let job = world.controller.call(&world.member, DestroyGuest { guest }, None).await.unwrap().job;
    world.done(job).await;
    // One is asked for in that mode; its states are applied before it is ready.
    let wanted = RequestGuest { mode: Some(Mode::Salt), ..World::plain_request(NAME) };
    let (guest, job) = world.request(wanted).await.unwrap();
    world.done(job).await;
    assert_eq!(
        inside("systemctl is-active corpus-salt-minion corpus-salt-master || true").await.trim(),
        "active\nactive"
    );
    let seen = world.controller.call(&world.member, GetGuestStates { guest }, None).await.unwrap();
    assert_eq!((seen.mode, seen.last.map(|last| last.ran)), (Mode::Salt, Some(0)));
    let job = world.controller.call(&world.member, DestroyGuest { guest }, None).await.unwrap().job;
    world.done(job).await;
    world.leave(node).await;
}
