//! What is signed in the background: names without a certificate, and certificates that are due.

use corpus_domain::{Environment, GuestId};
use sqlx::PgPool;

use super::world::World;

async fn guest(world: &World) -> GuestId {
    let mut mia = world.member("mia", &[]).await;
    let project = world.project(&mut mia, "shop").await;
    let guest = world.guest(project, Environment::Dev).await;
    world.run("update nodes set reachability = 'reachable'").await;
    guest
}

async fn names(world: &World, guest: GuestId, count: i32) {
    sqlx::query(
        "insert into dns_names (id, name, guest_id, state, routed)
         select gen_random_uuid(), 'n' || n || '.example.org', $1, 'attached', true from generate_series(1, $2) n",
    )
    .bind(guest.0)
    .bind(count)
    .execute(&world.db)
    .await
    .unwrap();
}

const SERVED: &str = "select count(*) from dns_names where certificate_id is not null";
const KEPT: &str = "select count(*) from certificates";

#[sqlx::test(migrations = "../../migrations")]
async fn names_without_a_certificate_get_one_bit_by_bit(db: PgPool) {
    let world = World::new(db).await;
    let guest = guest(&world).await;
    names(&world, guest, 60).await;
    world.run("update nodes set reachability = 'unreachable'").await;
    world.controller.issue_due().await.unwrap();
    assert_eq!(world.count(SERVED).await, 0, "the node is waited for");
    world.run("update nodes set reachability = 'reachable'").await;
    world.controller.issue_due().await.unwrap();
    assert_eq!(world.count(SERVED).await, 50);
    world.controller.issue_due().await.unwrap();
    assert_eq!(world.count(SERVED).await, 60);
    world.controller.issue_due().await.unwrap();
    assert_eq!(world.count(KEPT).await, 60, "none is signed twice");
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_is_due_is_renewed_but_what_was_brought(db: PgPool) {
    let world = World::new(db).await;
    let guest = guest(&world).await;
    names(&world, guest, 3).await;
    world.controller.issue_due().await.unwrap();
    world.run("update certificates set renew_at = now() + interval '1 minute'").await;
    world.controller.issue_due().await.unwrap();
    assert_eq!(world.count(KEPT).await, 3, "none is due");
    world.run("update certificates set source = 'uploaded' where names = '{n1.example.org}'").await;
    world.run("update certificates set renew_at = now() - interval '1 minute'").await;
    world.controller.issue_due().await.unwrap();
    assert_eq!(world.count(KEPT).await, 5, "two were renewed");
    let old =
        "select count(*) from dns_names n join certificates c on c.id = n.certificate_id where c.renew_at < now()";
    assert_eq!(world.count(old).await, 1, "what was brought stays");
    // The one before is kept, and is not renewed again.
    world.controller.issue_due().await.unwrap();
    assert_eq!(world.count(KEPT).await, 5);
}

#[sqlx::test(migrations = "../../migrations")]
async fn one_server_at_a_time(db: PgPool) {
    let world = World::new(db).await;
    let guest = guest(&world).await;
    names(&world, guest, 1).await;
    world
        .run("insert into leases (name, owner, until) values ('certificates', gen_random_uuid(), now() + interval '1 hour')")
        .await;
    world.controller.issue_due().await.unwrap();
    assert_eq!(world.count(SERVED).await, 0);
}
