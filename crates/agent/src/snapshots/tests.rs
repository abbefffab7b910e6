//! Files that are written to be a guest's, on what needs no tools of a node.

use corpus_domain::{Backing as Kind, GuestNetwork, MacAddress, SizeProfile};
use corpus_protocol::{GuestNet, GuestPlan};
use uuid::Uuid;

use super::*;
use crate::guest_root::{GuestPath, Owner};
use crate::host::Host;
use crate::task::test::with_task;

/// A guest on this backing.
pub fn plan(backing: Kind) -> GuestPlan {
    let ip = [10, 5, 0, 77].into();
    GuestPlan {
        name: "tree.example.org".parse().unwrap(),
        id: None,
        driver: corpus_domain::Driver::Lxc,
        image: "debian-12".parse().unwrap(),
        backing,
        size: SizeProfile::Small,
        limits: SizeProfile::Small.limits(),
        net: GuestNet { bridge: "lxcbr1".into(), network: GuestNetwork::DEFAULT, ip, mac: MacAddress::for_ip(ip) },
        autostart: false,
        lines: Vec::new(),
        // Who maps ids is the agent itself, which a test is not.
        ids: None,
    }
}

const FILE: &str = "/etc/told";
const LARGE: u64 = 64 << 20;

fn path() -> GuestPath {
    FILE.parse().unwrap()
}

fn says(root: &GuestRoot) -> String {
    root.read(&path()).unwrap().unwrap().text
}

fn conforms(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::below(folder.path());
    let plan = plan(kind);
    let name = &plan.name;
    fs::create_dir_all(host.image(&plan.image).join("rootfs/etc")).unwrap();
    fs::write(host.image(&plan.image).join("rootfs/etc/told"), "image").unwrap();
    with_task(&host, |task| {
        drivers::ensure(task, &plan).unwrap();
        let Kept { backing, store, .. } = kept(task, name).unwrap().1;
        let now = || says(&backing.open(task, &store).unwrap());
        let tell =
            |text: &'static str| move |root: &GuestRoot| root.ensure(&path(), text, Owner::root(0o644)).map(|_| ());
        tell("own")(&backing.open(task, &store).unwrap()).unwrap();
        let (id, job) = (SnapshotId(Uuid::from_u128(1)), JobId(Uuid::from_u128(2)));
        let missing = open(task, name, Files::Snapshot(id)).err().unwrap();
        assert!(matches!(missing, Failure::Missing(_)), "{missing}");
        take(task, name, id).unwrap();
        tell("later")(&backing.open(task, &store).unwrap()).unwrap();
        let kept = store.folder.join(SNAPSHOTS).join(id.to_string());
        assert_eq!(says(&open(task, name, Files::Snapshot(id)).unwrap()), "own");
        assert_eq!(fs::read_dir(kept).unwrap().count(), 1, "looking at it leaves nothing");

        let next = store.folder.join(NEXT);
        let missing = replace(task, name, job).unwrap_err();
        assert!(matches!(missing, Failure::Missing(_)), "{missing}");
        let failed = write(task, name, (job, Bytes(1)), |root| {
            tell("half")(root)?;
            Err::<(), _>(Failure::Cancelled)
        });
        assert!(matches!(failed, Err(Failure::Cancelled)) && !next.exists());
        let full = write(task, name, (job, Bytes(u64::MAX)), |_| Ok(()));
        assert!(matches!(full, Err(Failure::NoSpace { .. })) && !next.exists());

        write(task, name, (job, Bytes(1)), |root| {
            assert_eq!(says(root), "image", "it begins as the guest did");
            tell("written")(root)
        })
        .unwrap();
        assert_eq!(now(), "later");
        let other = JobId(Uuid::from_u128(3));
        goes_on(task, &plan, (job, other));
        assert!(matches!(replace(task, name, other), Err(Failure::Missing(_))));
        assert!(replace(task, name, job).unwrap() && !replace(task, name, job).unwrap());
        assert!(now() == "written" && !next.exists());
        assert!(!go_back(task, name, other).unwrap() && now() == "written");
        assert!(go_back(task, name, job).unwrap() && !go_back(task, name, job).unwrap());
        assert_eq!(now(), "later");

        // One that is cut in the middle of the swap goes on.
        write(task, name, (job, Bytes(1)), tell("again")).unwrap();
        let former = store.folder.join(FORMER);
        files::write(&former.join(JOB), &job.to_string(), 0o600).unwrap();
        fs::rename(store.folder.join(backing.piece()), former.join(backing.piece())).unwrap();
        assert!(replace(task, name, job).unwrap());
        assert_eq!(now(), "again");
        assert!(settle(task, name).unwrap() && !settle(task, name).unwrap());
        assert!(!go_back(task, name, job).unwrap() && now() == "again");

        // What was written and not wanted goes with whatever ends the job.
        write(task, name, (job, Bytes(1)), tell("never")).unwrap();
        assert!(!go_back(task, name, job).unwrap() && !next.exists());
        write(task, name, (job, Bytes(1)), tell("never")).unwrap();
        settle(task, name).unwrap();
        assert!(!next.exists() && now() == "again");
        restore(task, name, id, job).unwrap();
        assert_eq!(now(), "own");
    });
}

/// What was written for the first job, "written", is written on.
fn goes_on(task: &Task<'_>, plan: &GuestPlan, (job, other): (JobId, JobId)) {
    let name = &plan.name;
    let Kept { backing, store, .. } = kept(task, name).unwrap().1;
    let next = store.folder.join(NEXT);
    let written = || says(&open(task, name, Files::Written(job)).unwrap());
    let tell = |text: &'static str| move |root: &GuestRoot| root.ensure(&path(), text, Owner::root(0o644)).map(|_| ());
    // What is refused changes nothing.
    let missing = write_onto(task, name, (other, Bytes(1)), tell("other's"));
    assert!(matches!(missing, Err(Failure::Missing(_))));
    let full = write_onto(task, name, (job, Bytes(u64::MAX)), tell("too much"));
    assert!(matches!(full, Err(Failure::NoSpace { .. })));
    assert!(matches!(open(task, name, Files::Written(other)), Err(Failure::Missing(_))));
    assert_eq!(written(), "written");
    write_onto(task, name, (job, Bytes(1)), |root| {
        assert_eq!(says(root), "written", "it begins as what was written");
        assert!(!is_of(&next, job)? && next.join(backing.piece()).exists(), "it is nobody's meanwhile");
        let large = File::create(root.path().join("etc/large")).unwrap();
        rustix::fs::fallocate(large, rustix::fs::FallocateFlags::empty(), 0, LARGE).unwrap();
        tell("on")(root)
    })
    .unwrap();
    assert!(is_of(&next, job).unwrap() && written() == "on");
    let free = || crate::facts::storage(task.host).unwrap().free().0;
    // Room is needed for what is not there yet; what others write meanwhile moves what is free.
    let fits = || write_onto(task, name, (job, Bytes(free() + LARGE / 2)), tell("on and on"));
    assert!((0..20).any(|_| fits().inspect_err(|_| std::thread::sleep(Duration::from_millis(100))).is_ok()));
    let full = write_onto(task, name, (job, Bytes(free() + (1 << 40))), tell("too much"));
    assert!(matches!(full, Err(Failure::NoSpace { .. })));
    assert_eq!(written(), "on and on");
    // What fails leaves nothing.
    let failed = write_onto(task, name, (job, Bytes(1)), |root| {
        tell("half")(root)?;
        Err::<(), _>(Failure::Cancelled)
    });
    assert!(matches!(failed, Err(Failure::Cancelled)) && !next.exists());
    assert!(matches!(replace(task, name, job), Err(Failure::Missing(_))));
    write(task, name, (job, Bytes(1)), tell("written")).unwrap();
}

#[test]
fn on_a_folder() {
    conforms(Kind::Dir);
}

#[test]
fn on_an_overlay() {
    conforms(Kind::Overlayfs);
}
