//! Images and their versions: what is found in the folder, what new guests are clones of, and which nodes are due.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

use corpus_api::guests::{GetGuest, Guest, RequestGuest};
use corpus_api::images::{BringImages, Image, ListImages};
use corpus_api::sizes::ListSizes;
use corpus_domain::{Bytes, Environment, GuestId, SizeProfile};
use corpus_protocol::{Reading, Storage};
use sqlx::PgPool;

use super::world::{World, at_field, conflict, forbidden};
use crate::ImageNames;
use crate::store::{images, nodes};

/// An archive of a system, as little as it takes.
fn system(content: &str, without: &str) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for path in ["./etc/passwd", "./etc/shadow", "./usr/sbin/init", "./usr/sbin/sshd"] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        if path != without {
            archive.append_data(&mut header, path, content.as_bytes()).unwrap();
        }
    }
    zstd::encode_all(archive.into_inner().unwrap().as_slice(), 3).unwrap()
}

/// Puts a file there that was made so many hours ago.
fn put_file(folder: &Path, image: &str, content: &[u8], hours: u64) {
    let mut file = File::create(folder.join(format!("{image}.tar.zst"))).unwrap();
    file.write_all(content).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_hours(hours)).unwrap();
}

fn put(folder: &Path, image: &str, content: &str, hours: u64) {
    put_file(folder, image, &system(content, ""), hours);
}

/// The node was read, and has these.
async fn reads(world: &World, images: &[&str]) {
    let storage = Storage { total: Bytes(1), used: Bytes(0), promised: Bytes(0) };
    let (memory_total, memory_used, guests, members) = (Bytes(1), Bytes(0), Vec::new(), Vec::new());
    let images = images.iter().map(|image| image.parse().unwrap()).collect();
    let reading =
        Reading { load: 0.0, uptime_s: 1, memory_total, memory_used, storage, guests, images, members, clock_ms: None };
    let mut conn = world.db.acquire().await.unwrap();
    nodes::set_reading(&mut conn, world.node_id(), &reading).await.unwrap();
}

fn wanted(name: &str, image: Option<&str>) -> RequestGuest {
    let image = image.map(|image| image.parse().unwrap());
    let (project, name) = ("shop".parse().unwrap(), name.parse().unwrap());
    RequestGuest { image, ..RequestGuest::new(project, Environment::Dev, name, SizeProfile::Small) }
}

#[sqlx::test(migrations = "../../migrations")]
async fn new_guests_are_clones_of_the_newest_and_nodes_get_it(db: PgPool) {
    let folder = tempfile::tempdir().unwrap();
    let names = ["debian-12", "debian-13"].map(|name| name.parse().unwrap());
    let world = World::with_images(db, folder.path().to_owned(), ImageNames::new(names.to_vec()).unwrap()).await;
    world.run("update nodes set slots = 4096, reachability = 'reachable'").await;
    let mut mia = world.member("mia", &[]).await;
    world.project(&mut mia, "shop").await;
    let ops = world.ops().await;
    let all = async || -> Vec<Image> { world.ask(&ops, ListImages {}).await.unwrap().items };
    let guest = async |guest: GuestId| -> Guest { world.ask(&mia, GetGuest { guest }).await.unwrap() };
    let made = async |name: &str, image| guest(world.ask(&mia, wanted(name, image)).await.unwrap().guest).await;
    let jobs = async || world.count("select count(*) from jobs where kind = 'node_images'").await;
    forbidden(world.ask(&mia, ListImages {}).await);

    // Without an archive nodes make the first image themselves.
    world.controller.bring_new_images().await.unwrap();
    assert!(all().await.iter().all(|image| image.versions.is_empty()));
    let first = made("first.test", None).await;
    assert_eq!((first.image.as_str(), first.image_made_at, first.image_is_old), ("debian-12", None, false));
    at_field(world.ask(&mia, wanted("x.test", Some("debian-13"))).await, "image", "no archive of the image debian-13");
    at_field(world.ask(&mia, wanted("x.test", Some("debian-11"))).await, "image", "There is no image debian-11");
    assert_eq!(jobs().await, 0, "a node that was not read is not due");

    put(folder.path(), "debian-12", "the first", 5);
    put(folder.path(), "debian-11", "is not in the configuration", 5);
    reads(&world, &["debian-12"]).await;
    world.controller.bring_new_images().await.unwrap();
    world.controller.bring_new_images().await.unwrap();
    assert_eq!(jobs().await, 1, "one at a time");
    let old = made("old.test", None).await;
    assert!(old.image.as_str().starts_with("debian-12-") && old.image.as_str().len() == "debian-12-".len() + 12);
    assert!(old.image_made_at.is_some() && !old.image_is_old);
    let locks = world.count("select count(*) from job_locks where resource like 'images:%'").await;
    assert_eq!(locks, 2 + 1, "two guests whose image is not there, and what brings it");

    put(folder.path(), "debian-12", "the second", 1);
    put(folder.path(), "debian-13", "another", 1);
    world.controller.bring_new_images().await.unwrap();
    let new = made("new.test", None).await;
    assert_ne!(new.image, old.image);
    assert!(guest(old.line.id).await.image_is_old && !guest(new.line.id).await.image_is_old);
    assert!(made("other.test", Some("debian-13")).await.image.as_str().starts_with("debian-13-"));
    let items = all().await;
    let labels: Vec<_> = items[0].versions.iter().map(|one| (&one.label, one.guests)).collect();
    assert_eq!(labels, [(&new.image, 1), (&old.image, 1)]);
    let offers = world.ask(&mia, ListSizes {}).await.unwrap().images;
    assert!(offers.iter().map(|one| one.name.as_str()).eq(["debian-12", "debian-13"]));

    // What is cut short, or is no system, is told and keeps nobody from new guests.
    let whole = system("the third", "");
    for (wrong, said) in [
        (whole[..whole.len() / 2].to_vec(), "no whole tar"),
        (system("no accounts", "./etc/shadow"), "it has no /etc/shadow"),
        (b"rubbish".to_vec(), "no whole tar"),
    ] {
        put_file(folder.path(), "debian-12", &wrong, 0);
        world.controller.bring_new_images().await.unwrap();
        let problem = all().await.remove(0).problem.unwrap();
        assert!(problem.contains(said), "{problem}");
        assert_eq!(all().await[0].versions.len(), 2);
    }
    // The way back is the older archive, made the newest.
    put(folder.path(), "debian-12", "the first", 0);
    world.controller.bring_new_images().await.unwrap();
    assert_eq!(made("back.test", None).await.image, old.image);
}

#[sqlx::test(migrations = "../../migrations")]
async fn nodes_keep_what_guests_are_clones_of(db: PgPool) {
    let folder = tempfile::tempdir().unwrap();
    let world = World::with_images(db, folder.path().to_owned(), ImageNames::default()).await;
    let ops = world.ops().await;
    let mut mia = world.member("mia", &[]).await;
    world.project(&mut mia, "shop").await;
    world.run("update nodes set slots = 4096, reachability = 'reachable'").await;
    put(folder.path(), "debian-12", "the first", 5);
    world.controller.bring_new_images().await.unwrap();
    let kept = world.ask(&mia, wanted("kept.test", None)).await.unwrap().guest;
    put(folder.path(), "debian-12", "the second", 4);
    world.controller.bring_new_images().await.unwrap();
    put(folder.path(), "debian-12", "the third", 3);
    world.controller.bring_new_images().await.unwrap();
    let labels: Vec<String> =
        sqlx::query_scalar("select label from image_versions").fetch_all(&world.db).await.unwrap();
    let mut there = vec!["debian-12", "of-others"];
    there.extend(labels.iter().map(String::as_str));
    reads(&world, &there).await;
    let needless = async || {
        let mut conn = world.db.acquire().await.unwrap();
        images::needless(&mut conn, world.node_id()).await.unwrap()
    };
    // What was asked for a moment ago may be made of what is the newest no more.
    let before: Vec<String> = needless().await.iter().map(ToString::to_string).collect();
    assert_eq!(before, ["debian-12"]);
    world.run("update image_versions set found_at = found_at - interval '2 hours'").await;
    let all = world.ask(&ops, ListImages {}).await.unwrap().items.remove(0).versions;
    assert_eq!(all.iter().map(|one| (one.nodes, one.guests)).collect::<Vec<_>>(), [(1, 0), (1, 0), (1, 1)]);
    let second = all[1].label.clone();
    assert_eq!(needless().await, ["debian-12".parse().unwrap(), second]);

    // The node is due for that alone, and not again where it failed a moment ago.
    world.run("delete from jobs").await;
    let due = async || {
        let mut conn = world.db.acquire().await.unwrap();
        images::due(&mut conn, &"debian-12".parse().unwrap(), 4).await.unwrap()
    };
    assert_eq!(due().await, [world.node_id()]);
    world.ask(&ops, BringImages { node: world.node_id() }).await.unwrap();
    assert_eq!(due().await, []);
    world.run("update jobs set state = 'undone', ended_at = now() where kind = 'node_images'").await;
    assert_eq!(due().await, []);
    world.run("update jobs set ended_at = now() - interval '1 hour' where kind = 'node_images'").await;
    assert_eq!(due().await, [world.node_id()]);
    world.run("update nodes set state = 'linked'").await;
    assert_eq!(due().await, []);
    conflict(world.ask(&ops, BringImages { node: world.node_id() }).await, "nodes in service");
    let _ = kept;
}
