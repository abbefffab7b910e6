//! Certificates of a directory, as far as they are asked for: who may how often, what follows from attaching, and who we
//! are there. No job runs here.

use corpus_acme::pebble_server::PebbleServer;
use corpus_acme::{DirectorySettings, ProofKind};
use corpus_api::certificates::RenewCertificate;
use corpus_domain::{CertifiedName, DnsNameId, Environment};
use sqlx::PgPool;
use uuid::Uuid;

use super::world::{World, conflict};
use crate::{AcmeSettings, CertificateSettings, Issuer};

fn settings(directory: DirectorySettings) -> CertificateSettings {
    let acme = AcmeSettings { directory, profile: None, challenge: ProofKind::Http01 };
    CertificateSettings { issuer: Issuer::Acme, acme: Some(acme) }
}

fn nowhere() -> DirectorySettings {
    DirectorySettings { directory: "https://127.0.0.1:9/dir".parse().unwrap(), contact: None, eab: None, root: None }
}

const JOBS: &str = "select count(*) from jobs where kind = 'certificate_issue'";

#[sqlx::test(migrations = "../../migrations")]
async fn nobody_uses_up_what_a_directory_gives_to_all(db: PgPool) {
    let world = World::certified(db, settings(nowhere())).await;
    let mut mia = world.member("mia", &[]).await;
    let project = world.project(&mut mia, "shop").await;
    let guest = world.guest(project, Environment::Dev).await;
    world.run("update nodes set reachability = 'reachable'").await;
    let name = DnsNameId(Uuid::now_v7());
    sqlx::query(
        "insert into dns_names (id, name, guest_id, state, routed) values ($1, 'a.example.org', $2, 'attached', true)",
    )
    .bind(name.0)
    .bind(guest.0)
    .execute(&world.db)
    .await
    .unwrap();
    for _ in 0..30 {
        world.ask(&mia, RenewCertificate { name }).await.unwrap();
    }
    conflict(world.ask(&mia, RenewCertificate { name }).await, "30 certificates in an hour");
    assert_eq!(world.count(JOBS).await, 30);
    world.run("update jobs set created_at = now() - interval '2 hours'").await;
    world.ask(&mia, RenewCertificate { name }).await.unwrap();

    // What follows from attaching waits once there was too much of it.
    let follow = async || {
        let mut tx = world.controller.services.begin().await.unwrap();
        let (dns, of) = ("a.example.org".parse().unwrap(), (world.node_id(), project));
        world.controller.certificate_follows(&mut tx, (name, &dns), of).await.unwrap();
        tx.commit().await.unwrap();
    };
    for _ in 0..70 {
        follow().await;
    }
    assert_eq!(world.count(JOBS).await, 30 + 60);
    let waits = "select count(*) from certificate_orders where next_try_at > now() + interval '50 minutes'";
    assert_eq!(world.count(waits).await, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn the_account_is_made_once_and_kept_sealed(db: PgPool) {
    let pebble = PebbleServer::start();
    let world = World::certified(db, settings(pebble.settings())).await;
    let services = &world.controller.services;
    let names: [CertifiedName; 1] = ["a.example.org".parse().unwrap()];
    for _ in 0..2 {
        services.order(&names).await.unwrap();
    }
    assert_eq!(pebble.log().matches("POST /sign-me-up").count(), 1, "{}", pebble.log());
    let asked = || pebble.log().matches("GET /dir ").count();
    let before = asked();
    services.order(&names).await.unwrap();
    assert_eq!((before, asked()), (1, 1), "who is signed in does not sign in again: {}", pebble.log());
    services.signed_in.forget();
    services.order(&names).await.unwrap();
    assert_eq!(asked(), 2, "after a failure it is asked again where everything is: {}", pebble.log());
    let kept: Vec<u8> = sqlx::query_scalar("select sealed from acme_accounts").fetch_one(&world.db).await.unwrap();
    assert!(!String::from_utf8_lossy(&kept).contains("key_pkcs8"));
    // It opens for no other directory.
    world.run("update acme_accounts set directory = 'https://elsewhere.test/dir'").await;
    world.run("insert into acme_accounts (directory, sealed) select 'x', sealed from acme_accounts").await;
    world.run("update acme_accounts set sealed = substring(sealed for 20)").await;
    services.order(&names).await.unwrap();
    assert_eq!(world.count("select count(*) from acme_accounts").await, 3, "another one was made");
}
