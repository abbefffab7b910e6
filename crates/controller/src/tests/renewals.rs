//! Directories that are asked again when certificates should be renewed.

use chrono::{DateTime, TimeDelta, Utc};
use corpus_acme::ProofKind;
use corpus_acme::renewal_server::{RenewalServer, Said};
use corpus_domain::{DnsNameId, Environment};
use sqlx::PgPool;
use uuid::Uuid;

use super::world::World;
use crate::{AcmeSettings, CertificateSettings, Issuer};

const JOBS: &str = "select count(*) from jobs where kind = 'certificate_issue'";

/// A name with a certificate of a directory that is asked again now, and would be renewed in 60 days.
struct Site {
    world: World,
    directory: RenewalServer,
    name: DnsNameId,
}

impl Site {
    async fn new(db: PgPool) -> Self {
        let directory = RenewalServer::start();
        let acme = AcmeSettings { directory: directory.settings(), profile: None, challenge: ProofKind::Http01 };
        let settings = CertificateSettings { issuer: Issuer::Acme, acme: Some(acme) };
        let world = World::certified(db, settings).await;
        let mut mia = world.member("mia", &[]).await;
        let project = world.project(&mut mia, "shop").await;
        let guest = world.guest(project, Environment::Dev).await;
        world.run("update nodes set reachability = 'reachable'").await;
        let name = DnsNameId(Uuid::now_v7());
        sqlx::query(
            "insert into dns_names (id, name, guest_id, state, routed) values ($1, 'www.example.org', $2, 'attached', true)",
        )
        .bind(name.0)
        .bind(guest.0)
        .execute(&world.db)
        .await
        .unwrap();
        let site = Self { world, directory, name };
        site.sign().await;
        site.world
            .run(
                "update certificates set source = 'acme', not_before = now() - interval '30 days',
                     renew_at = now() + interval '60 days', renewal_ask_at = now()",
            )
            .await;
        site
    }

    /// Its certificate is of the internal authority; what is asked about one does not depend on that.
    async fn sign(&self) {
        let mut tx = self.world.controller.services.begin().await.unwrap();
        let names = "www.example.org".parse().unwrap();
        self.world.controller.services.sign_certificate(&mut tx, self.name, names).await.unwrap();
        tx.commit().await.unwrap();
    }

    fn say(&self, from: TimeDelta, retry_after: Option<&'static str>) {
        let start = Utc::now() + from;
        self.directory.say(Said::Window { start, end: start + TimeDelta::hours(1), retry_after });
    }

    async fn look(&self) {
        self.world.controller.issue_due().await.unwrap();
    }

    /// As if the time had come to ask again.
    async fn wait(&self) {
        self.world.run("update certificates set renewal_ask_at = now() where renewal_ask_at is not null").await;
    }

    /// In how many hours it is renewed, and the directory is asked again; rounded.
    async fn times(&self) -> (i64, i64) {
        let (renew_at, ask_at): (DateTime<Utc>, DateTime<Utc>) = sqlx::query_as(
            "select c.renew_at, c.renewal_ask_at from certificates c join dns_names n on n.certificate_id = c.id",
        )
        .fetch_one(&self.world.db)
        .await
        .unwrap();
        let hours = |at: DateTime<Utc>| (at - Utc::now() + TimeDelta::minutes(5)).num_hours();
        (hours(renew_at), hours(ask_at))
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn one_that_is_to_be_revoked_is_renewed_before(db: PgPool) {
    let site = Site::new(db).await;
    site.say(TimeDelta::days(50), Some("25200"));
    site.look().await;
    let (renewed, asked) = site.times().await;
    assert!((50 * 24..=50 * 24 + 1).contains(&renewed), "{renewed}");
    assert_eq!(asked, 7, "when the directory wants it");
    site.look().await;
    assert_eq!(site.directory.asked(), 1, "not before");

    site.wait().await;
    site.look().await;
    assert_eq!((site.times().await.0, site.directory.asked()), (renewed, 2), "it says the same: nothing moves");
    assert_eq!(site.world.count(JOBS).await, 0);

    // It has found something out, and will revoke it.
    site.say(TimeDelta::hours(-2), None);
    site.wait().await;
    site.look().await;
    assert_eq!(site.times().await.1, 6, "where it does not say");
    assert_eq!(site.world.count(JOBS).await, 1, "another one is ordered with the same look");
    site.wait().await;
    site.look().await;
    assert_eq!((site.world.count(JOBS).await, site.directory.asked()), (1, 3), "while it is ordered nobody asks");

    // The next one takes its place; the one before is asked about no more.
    site.sign().await;
    let left = "select count(*) from certificates where renewal_ask_at is not null";
    assert_eq!(site.world.count(left).await, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_directory_in_trouble_is_asked_once_a_day(db: PgPool) {
    let site = Site::new(db).await;
    for (number, line) in ["HTTP/1.1 503 Busy", "HTTP/1.1 404 Not Found", "HTTP/1.1 200 OK"].into_iter().enumerate() {
        site.directory.say(Said::Status(line));
        site.wait().await;
        site.look().await;
        assert_eq!(site.times().await, (60 * 24, 24), "{line}: what was chosen holds");
        site.look().await;
        assert_eq!(site.directory.asked(), number + 1, "{line}");
    }
    // One that would have it end.
    site.say(TimeDelta::days(900), Some("99999999999999999999"));
    site.wait().await;
    site.look().await;
    let (renewed, asked) = site.times().await;
    assert!((77 * 24..79 * 24).contains(&renewed), "it is renewed while it is good: {renewed}");
    assert_eq!(asked, 6, "a number that is none is not said");
    assert_eq!(site.world.count(JOBS).await, 0);
}

/// What somebody brought is theirs to renew, and what is not served is nobody's.
#[sqlx::test(migrations = "../../migrations")]
async fn only_what_is_served_and_a_directorys_is_asked_about(db: PgPool) {
    let site = Site::new(db).await;
    site.say(TimeDelta::hours(-2), None);
    for (other, back) in [
        ("update certificates set source = 'uploaded'", "update certificates set source = 'acme'"),
        ("update dns_names set state = 'detaching'", "update dns_names set state = 'attached'"),
        (
            "update dns_names set certificate_id = null",
            "update dns_names set certificate_id = (select id from certificates)",
        ),
    ] {
        site.world.run(other).await;
        site.look().await;
        assert_eq!(site.directory.asked(), 0, "{other}");
        site.world.run("delete from certificate_orders").await;
        site.world.run(back).await;
    }
    site.look().await;
    assert_eq!(site.directory.asked(), 1, "it is asked about again");
}
