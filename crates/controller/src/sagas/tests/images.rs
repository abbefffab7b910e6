//! An image of a guest: made while it goes on, whatever fails on the way, and what a guest that is made of it is.

use bytes::Bytes;
use corpus_api::guests::{DestroyGuest, GetGuest, RequestGuest};
use corpus_api::images::made::{ListProjectImages, MakeImage, ProjectImage, RemoveImage};
use corpus_api::images::upload::{SentArchive, UploadImage};
use corpus_domain::{GuestState, JobState};
use sqlx::PgPool;

use super::share::{faults, some};
use super::world::World;
use crate::jobs::testing::Fault;

const NAME: &str = "golden.lab.test";
const OTHER: &str = "clone.lab.test";

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn images_are_made_of_guests(db: PgPool) {
    let world = World::new(db).await;
    let node = world.ready_node().await;
    let (guest, job) = world.ask_guest(NAME).await;
    world.done(job).await;
    let inside =
        async |guest: &str, script: &str| world.on_node(&format!("lxc-attach -n {guest} -- sh -c '{script}'")).await;
    let images = async || -> Vec<ProjectImage> {
        let list = ListProjectImages { project: "atlas".parse().unwrap() };
        world.controller.call(&world.member, list, None).await.unwrap().items
    };
    let make = async |name: &str, folder: Option<&str>| {
        let (project, name) = ("atlas".parse().unwrap(), name.parse().unwrap());
        let folder = folder.map(|folder| folder.parse().unwrap());
        let make = MakeImage { project, name, guest, folder, comment: None };
        world.controller.call(&world.member, make, None).await.unwrap().job
    };
    let archives = || {
        let folder = std::fs::read_dir(&world.controller.services.settings.made_images);
        folder.into_iter().flatten().count()
    };
    let left = async || world.on_node(&format!("ls -A /var/lib/lxc/{NAME}/snapshots 2>/dev/null || true")).await;

    let fill = "mkdir -p /opt/app /srv/projects/secret && echo kept > /opt/app/it && ln /opt/app/it /opt/app/same && \
                ln -s it /opt/app/link && chown 33:44 /opt/app/it && chmod 4750 /opt/app/it && \
                echo no > /srv/projects/secret/pillar && echo no > /root/.ssh_history && mkdir -p /root/.ssh && echo no > /root/.ssh/id";
    inside(NAME, fill).await;
    let mut tried = faults(&["snapshot", "pack", "clear"]);
    tried.extend(some([Fault::KillAt(2), Fault::KillAt(4), Fault::KillAt(6), Fault::Repeat("keep".into())]));
    let (mut versions, mut done) = (0, 0);
    for fault in tried {
        let ended = world.run(make("web", None).await, fault.clone()).await;
        let is_done = matches!(fault, Fault::Repeat(_) | Fault::KillAt(_));
        assert_eq!(ended.state() == JobState::Done, is_done, "{fault:?}: {}", ended.story());
        done += usize::from(is_done);
        let all = images().await;
        assert!(all.iter().all(|image| !image.is_being_made), "{fault:?}: {all:?}");
        versions = all.first().map_or(0, |image| image.versions.len());
        // What was written twice may be the same to a byte.
        assert!(versions <= done && versions >= usize::from(done > 0), "{fault:?}: {all:?}");
        assert_eq!((archives(), left().await.as_str()), (versions, ""), "{fault:?}");
        let line = world.controller.call(&world.member, GetGuest { guest }, None).await.unwrap().line;
        assert_eq!(line.state, GuestState::Running, "{fault:?}");
    }
    assert!(versions > 0);

    let wanted = RequestGuest { image: Some("web".parse().unwrap()), ..World::plain_request(OTHER) };
    let (other, job) = world.request(wanted).await.unwrap();
    world.done(job).await;
    let told = "cat /opt/app/it /opt/app/link /etc/hostname; stat -c %u:%g:%a:%h /opt/app/it; ls -A /srv/projects; \
                test -e /root/.ssh/id || echo nobody; test -e /root/.ssh_history || echo nothing; getcap /usr/bin/ping";
    let told = inside(OTHER, told).await;
    let expected = format!("kept\nkept\n{OTHER}\n33:44:4750:2\nnobody\nnothing");
    assert!(told.trim().starts_with(&expected), "{told}");
    let ids = [inside(NAME, "cat /etc/machine-id").await, inside(OTHER, "cat /etc/machine-id").await];
    assert_ne!(ids[0], ids[1], "each guest is somebody of its own");
    let host_keys = "cat /etc/ssh/ssh_host_ed25519_key.pub";
    assert_ne!(inside(NAME, host_keys).await, inside(OTHER, host_keys).await);
    let job = world.controller.call(&world.member, DestroyGuest { guest: other }, None).await.unwrap().job;
    world.done(job).await;

    // What was made of it comes back as an archive that somebody sent.
    let sent = images().await[0].versions[0].sha256.clone();
    let sent = tokio::fs::read(world.controller.services.made_archive(&sent)).await.unwrap();
    let (project, image) = ("atlas".parse().unwrap(), "sent".parse().unwrap());
    let upload = UploadImage { project, image, comment: None, archive: SentArchive(uuid::Uuid::now_v7()) };
    let pieces: Vec<Result<Bytes, ()>> = sent.chunks(64 << 10).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    let held = world.controller.receive_image(&world.member, &upload, futures::stream::iter(pieces)).await.unwrap();
    world.controller.call(&world.member, upload, None).await.unwrap();
    drop(held);
    let wanted = RequestGuest { image: Some("sent".parse().unwrap()), ..World::plain_request(OTHER) };
    let (other, job) = world.request(wanted).await.unwrap();
    world.done(job).await;
    let told = "cat /opt/app/it /opt/app/link; stat -c %u:%g:%a:%h /opt/app/it; getcap /usr/bin/ping";
    let told = inside(OTHER, told).await;
    assert!(told.trim().starts_with("kept\nkept\n33:44:4750:2"), "{told}");
    let job = world.controller.call(&world.member, DestroyGuest { guest: other }, None).await.unwrap().job;
    world.done(job).await;

    // Of a folder that a script filled; one that is no system is no image.
    inside(NAME, "mkdir -p /srv/image /srv/none && cp -a /bin /etc /lib /lib64 /sbin /usr /srv/image/ 2>/dev/null; mkdir -p \
                  /srv/image/var /srv/image/root /srv/image/home /srv/image/tmp; cp -a /var/lib /srv/image/var/; echo scratch > /srv/image/etc/made").await;
    let ended = world.run(make("empty", Some("/srv/none")).await, Fault::None).await;
    assert_eq!(ended.state(), JobState::Undone, "{}", ended.story());
    assert!(
        ended.story().contains("no such folder") || ended.story().contains("it has no /etc/passwd"),
        "{}",
        ended.story()
    );
    let ended = world.run(make("scratch", Some("/srv/image")).await, Fault::None).await;
    assert_eq!(ended.state(), JobState::Done, "{}", ended.story());
    let wanted = RequestGuest { image: Some("scratch".parse().unwrap()), ..World::plain_request(OTHER) };
    let (other, job) = world.request(wanted).await.unwrap();
    world.done(job).await;
    assert_eq!(inside(OTHER, "cat /etc/made").await.trim(), "scratch");
    for guest in [other, guest] {
        let job = world.controller.call(&world.member, DestroyGuest { guest }, None).await.unwrap().job;
        world.done(job).await;
    }
    for name in ["web", "sent", "scratch"] {
        let (project, image) = ("atlas".parse().unwrap(), name.parse().unwrap());
        world.controller.call(&world.member, RemoveImage { project, image }, None).await.unwrap();
    }
    assert!(images().await.is_empty());
    world.assert_no_guest(NAME).await;
    world.leave(node).await;
}
