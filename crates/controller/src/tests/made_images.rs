//! Images of projects: who makes and sees them, whose guests are made of them, and what of them is kept.

use corpus_api::guests::{GetGuest, RequestGuest};
use corpus_api::images::made::{ListProjectImages, MOST_IMAGES, MakeImage, ProjectImages, RemoveImage};
use corpus_api::jobs::CancelJob;
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
        Made { image, sha256: &sha256, bytes, unpacked, guest: &guest, folder: None, comment: None, by: None };
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
