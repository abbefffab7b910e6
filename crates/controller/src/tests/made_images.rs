//! Images of projects: who makes and sees them, whose guests are made of them, and what of them is kept.

use corpus_api::guests::{GetGuest, RequestGuest};
use corpus_api::images::made::{ListProjectImages, MOST_IMAGES, MakeImage, ProjectImages, RemoveImage};
use corpus_api::images::upload::{SentArchive, UploadImage};
use corpus_api::jobs::CancelJob;
use corpus_api::{Principal, Problem};
use corpus_domain::{Bytes, Environment, GuestId, ProjectRole, SizeProfile};
use sqlx::PgPool;
use uuid::Uuid;

use super::world::{World, at_field, conflict, forbidden, hidden};
use crate::store::images;
use crate::store::made_images::{self, Made};

fn make(project: &str, name: &str, guest: GuestId) -> MakeImage {
    let (project, name) = (project.parse().unwrap(), name.parse().unwrap());
    MakeImage { project, name, guest, folder: None, comment: Some("with nginx".parse().unwrap()) }
}

fn list(project: &str) -> ListProjectImages {
    ListProjectImages { project: project.parse().unwrap() }
}

fn remove(project: &str, name: &str) -> RemoveImage {
    RemoveImage { project: project.parse().unwrap(), image: name.parse().unwrap() }
}

fn wanted(project: &str, name: &str, image: &str) -> RequestGuest {
    let (project, name) = (project.parse().unwrap(), name.parse().unwrap());
    let image = Some(image.parse().unwrap());
    RequestGuest { image, ..RequestGuest::new(project, Environment::Dev, name, SizeProfile::Small) }
}

/// A version was made, with this in each digit of its sum.
async fn made(world: &World, digit: char) -> String {
    let mut conn = world.db.acquire().await.unwrap();
    let image: Uuid =
        sqlx::query_scalar("select id from made_images where is_being_made").fetch_one(&mut *conn).await.unwrap();
    let sha256 = digit.to_string().repeat(64);
    let guest = "golden.test".parse().unwrap();
    let (bytes, unpacked) = (Bytes(5), Bytes(7));
    let version =
        Made { image, sha256: &sha256, bytes, unpacked, guest: Some(&guest), folder: None, comment: None, by: None };
    made_images::keep(&mut conn, &version).await.unwrap();
    made_images::settle(&mut conn, image).await.unwrap();
    sha256
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_project_has_its_own(db: PgPool) {
    let world = World::new(db).await;
    world.run("update nodes set slots = 4096, reachability = 'reachable'").await;
    let mut mia = world.member("mia", &[]).await;
    let mut eve = world.member("eve", &[]).await;
    let atlas = world.project(&mut mia, "atlas").await;
    let borealis = world.project(&mut eve, "borealis").await;
    let dan = world.member("dan", &[("atlas", ProjectRole::Developer)]).await;
    let guest = world.guest(atlas, Environment::Dev).await;
    let theirs = world.guest(borealis, Environment::Dev).await;
    let shown = async || -> ProjectImages { world.ask(&mia, list("atlas")).await.unwrap() };

    forbidden(world.ask(&dan, make("atlas", "web", guest)).await);
    hidden(world.ask(&eve, make("atlas", "web", guest)).await);
    hidden(world.ask(&eve, list("atlas")).await);
    // No image is made of a guest of others, which is as one that is not there.
    at_field(world.ask(&eve, make("borealis", "web", guest)).await, "guest", "no such guest in borealis");
    at_field(world.ask(&mia, make("atlas", "web", GuestId(Uuid::nil()))).await, "guest", "no such guest in atlas");
    at_field(world.ask(&mia, make("atlas", "debian-12", guest)).await, "name", "for everybody");
    let long = "a2345678901234567890123456789";
    at_field(world.ask(&mia, make("atlas", long, guest)).await, "name", "27 characters");

    let job = world.ask(&mia, make("atlas", "web", guest)).await.unwrap().job;
    conflict(world.ask(&mia, make("atlas", "web", guest)).await, "is being made");
    conflict(world.ask(&mia, remove("atlas", "web")).await, "is being made");
    assert!(shown().await.items[0].is_being_made && shown().await.items[0].versions.is_empty());
    at_field(world.ask(&mia, wanted("atlas", "a.test", "web")).await, "image", "There is no image web");
    // One that was cancelled before it began is none.
    world.ask(&mia, CancelJob { job }).await.unwrap();
    assert!(shown().await.items.is_empty());

    world.ask(&mia, make("atlas", "web", guest)).await.unwrap();
    let first = made(&world, 'a').await;
    let asked = world.ask(&mia, wanted("atlas", "a.test", "web")).await.unwrap();
    let clone = world.ask(&mia, GetGuest { guest: asked.guest }).await.unwrap();
    assert_eq!((clone.image.as_str(), clone.image_is_old), ("web-aaaaaaaaaaaa", false));
    // Nobody else has it, and what others call the same is another one.
    at_field(world.ask(&eve, wanted("borealis", "b.test", "web")).await, "image", "There is no image web");
    world.run("delete from jobs").await;
    world.ask(&eve, make("borealis", "web", theirs)).await.unwrap();
    made(&world, 'b').await;
    assert_eq!(shown().await.items[0].versions.len(), 1);
    let clone = world.ask(&mia, GetGuest { guest: asked.guest }).await.unwrap();
    assert!(!clone.image_is_old);
    forbidden(world.ask(&dan, remove("atlas", "web")).await);
    hidden(world.ask(&eve, remove("atlas", "web")).await);

    // A newer version is for new guests; while a guest stands on an older one it is kept.
    world
        .run("update image_versions set found_at = now() - interval '2 hours', made_at = now() - interval '2 hours'")
        .await;
    world.ask(&mia, make("atlas", "web", guest)).await.unwrap();
    made(&world, 'c').await;
    let clone = world.ask(&mia, GetGuest { guest: asked.guest }).await.unwrap();
    assert!(clone.image_is_old);
    let labels = async || -> Vec<String> {
        shown().await.items[0].versions.iter().map(|version| version.label.to_string()).collect()
    };
    world.run("update image_versions set found_at = now() - interval '90 minutes' where sha256 like 'c%'").await;
    world.controller.services.forget_archives().await.unwrap();
    assert_eq!(labels().await, ["web-cccccccccccc", "web-aaaaaaaaaaaa"]);
    conflict(world.ask(&mia, remove("atlas", "web")).await, "1 guests are clones of web");
    world.run("delete from jobs").await;
    world.run("delete from guests where name = 'a.test'").await;
    world.controller.services.forget_archives().await.unwrap();
    assert_eq!(labels().await, ["web-cccccccccccc"]);
    assert!(!made_images::is_kept(&mut world.db.acquire().await.unwrap(), &first).await.unwrap());

    world.ask(&mia, remove("atlas", "web")).await.unwrap();
    assert!(shown().await.items.is_empty());
    assert_eq!(world.ask(&eve, list("borealis")).await.unwrap().items.len(), 1);
}

/// An archive that is no version's goes when it is old enough; what nodes have of an image that was removed goes too.
#[sqlx::test(migrations = "../../migrations")]
async fn nothing_is_left_of_what_was_removed(db: PgPool) {
    let world = World::new(db).await;
    world.run("update nodes set slots = 4096, reachability = 'reachable'").await;
    let mut mia = world.member("mia", &[]).await;
    let atlas = world.project(&mut mia, "atlas").await;
    let guest = world.guest(atlas, Environment::Dev).await;
    world.ask(&mia, make("atlas", "web", guest)).await.unwrap();
    let sha256 = made(&world, 'a').await;
    let folder = world.controller.services.settings.made_images.clone();
    std::fs::create_dir_all(&folder).unwrap();
    let put = |name: &str, hours: u64| {
        let file = std::fs::File::create(folder.join(name)).unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_hours(hours)).unwrap();
    };
    put(&format!("{sha256}.tar.zst"), 30);
    put(&format!("{}.tar.zst", "b".repeat(64)), 30);
    put(&format!("{}.tar.zst", "c".repeat(64)), 1);
    put(".0199d3c0-0000-7000-8000-000000000001", 30);
    world.controller.services.forget_archives().await.unwrap();
    let mut left: Vec<String> =
        std::fs::read_dir(&folder).unwrap().map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
    left.sort();
    assert_eq!(left, [format!("{sha256}.tar.zst"), format!("{}.tar.zst", "c".repeat(64))]);

    let reading = r#"update nodes set reading = '{"images": ["web-aaaaaaaaaaaa", "web-dddddddddddd", "debian-12"]}'"#;
    world.run(reading).await;
    let needless = async || -> Vec<String> {
        let found = images::needless(&mut world.db.acquire().await.unwrap(), world.node_id()).await.unwrap();
        found.into_iter().map(|label| label.to_string()).collect()
    };
    assert_eq!(needless().await, ["web-dddddddddddd"]);
    world.ask(&mia, remove("atlas", "web")).await.unwrap();
    assert_eq!(needless().await, ["web-aaaaaaaaaaaa", "web-dddddddddddd"]);

    // A project has so many at most; a new version of one that is there is none more.
    for number in 0..MOST_IMAGES {
        world.run("delete from jobs").await;
        world.ask(&mia, make("atlas", &format!("web{number}"), guest)).await.unwrap();
        made(&world, char::from_digit(number, 16).unwrap()).await;
    }
    conflict(world.ask(&mia, make("atlas", "more", guest)).await, "has 10 images already");
    world.ask(&mia, make("atlas", "web3", guest)).await.unwrap();
    world.run("delete from jobs").await;
    world.run("delete from guests").await;
    world.run("delete from projects").await;
    assert_eq!(world.count("select count(*) from image_versions").await, 0);
}

/// A system as small as one may be.
fn system() -> Vec<u8> {
    let mut tar = tar::Builder::new(zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap());
    for path in ["etc/passwd", "etc/shadow", "sbin/init", "usr/sbin/sshd"] {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o755);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(2);
        tar.append_data(&mut header, path, b"x\n".as_slice()).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

impl World {
    /// Sends an archive, in pieces; what lies in the folder meanwhile is told.
    async fn send(
        &self,
        who: &Principal,
        project: &str,
        image: &str,
        pieces: Vec<Result<Vec<u8>, ()>>,
    ) -> Result<String, Problem> {
        let (project, image) = (project.parse().unwrap(), image.parse().unwrap());
        let asked = UploadImage { project, image, comment: None, archive: SentArchive(Uuid::now_v7()) };
        let body = futures::stream::iter(pieces.into_iter().map(|piece| piece.map(bytes::Bytes::from)));
        let held = self.controller.receive_image(who, &asked, body).await?;
        let label = self.ask(who, asked.clone()).await.map(|kept| kept.label.to_string());
        drop(held);
        // It can't be had twice.
        at_field(self.ask(who, asked).await, "archive", "Send the archive itself");
        label
    }

    /// What lies in the folder of archives, but for whole ones.
    fn unfinished(&self) -> usize {
        let folder = std::fs::read_dir(&self.controller.services.settings.made_images).into_iter().flatten();
        folder.filter(|one| one.as_ref().unwrap().file_name().to_string_lossy().starts_with('.')).count()
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn one_comes_as_an_archive(db: PgPool) {
    let world = World::new(db).await;
    world.run("update nodes set slots = 4096, reachability = 'reachable'").await;
    let mut mia = world.member("mia", &[]).await;
    let mut eve = world.member("eve", &[]).await;
    world.project(&mut mia, "atlas").await;
    world.project(&mut eve, "borealis").await;
    let dan = world.member("dan", &[("atlas", ProjectRole::Developer)]).await;
    let whole = || system().chunks(20).map(|piece| Ok(piece.to_vec())).collect::<Vec<_>>();

    // Who may not is refused before anything of it is read.
    let poisoned = || vec![Err(())];
    forbidden(world.send(&dan, "atlas", "web", poisoned()).await);
    hidden(world.send(&eve, "atlas", "web", poisoned()).await);
    at_field(world.send(&mia, "atlas", "debian-12", poisoned()).await, "image", "for everybody");
    assert!(!world.controller.services.settings.made_images.exists(), "nothing was written");

    let mut cut = whole();
    cut.truncate(2);
    at_field(world.send(&mia, "atlas", "web", cut.clone()).await, "archive", "no whole tar");
    cut.push(Err(()));
    at_field(world.send(&mia, "atlas", "web", cut).await, "archive", "did not come whole");
    at_field(world.send(&mia, "atlas", "web", vec![Ok(b"no archive".to_vec())]).await, "archive", "no whole tar");
    let none = zstd::encode_all([0_u8; 1024].as_slice(), 1).unwrap();
    at_field(world.send(&mia, "atlas", "web", vec![Ok(none)]).await, "archive", "no /etc/passwd");
    let shown = async || world.ask(&mia, list("atlas")).await.unwrap().items;
    assert!(shown().await.is_empty() && world.unfinished() == 0);

    let first = world.send(&mia, "atlas", "web", whole()).await.unwrap();
    let images = shown().await;
    let version = &images[0].versions[0];
    assert_eq!((version.label.as_str(), version.guest.as_ref(), version.unpacked), (first.as_str(), None, Bytes(8)));
    let archive = world.controller.services.made_archive(&version.sha256);
    assert_eq!((archive.exists(), world.unfinished()), (true, 0));
    let asked = world.ask(&mia, wanted("atlas", "a.test", "web")).await.unwrap();
    assert_eq!(world.ask(&mia, GetGuest { guest: asked.guest }).await.unwrap().image.as_str(), first);
    // The same once more is a version of its own, and what new guests are made from.
    let second = world.send(&mia, "atlas", "web", whole()).await.unwrap();
    assert_ne!(first, second);
    assert!(world.ask(&mia, GetGuest { guest: asked.guest }).await.unwrap().image_is_old);
    assert_eq!(world.count("select count(*) from audit where action = 'image.upload' and detail ? 'sha256'").await, 2);
    at_field(world.ask(&eve, wanted("borealis", "b.test", "web")).await, "image", "There is no image web");

    // While a version is made of a guest, and beyond as many as there may be.
    world.run("update made_images set is_being_made = true").await;
    conflict(world.send(&mia, "atlas", "web", poisoned()).await, "is being made");
    world.run("update made_images set is_being_made = false").await;
    for number in 1..MOST_IMAGES {
        world.send(&mia, "atlas", &format!("web{number}"), whole()).await.unwrap();
    }
    conflict(world.send(&mia, "atlas", "more", poisoned()).await, "has 10 images already");
    assert_eq!(world.unfinished(), 0);
}
