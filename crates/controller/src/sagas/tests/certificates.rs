//! Certificates of a real directory, for names that lead to a real node.

use std::time::Duration;

use corpus_acme::ProofKind;
use corpus_acme::pebble_server::PebbleServer;
use corpus_api::certificates::{GetCertificate, NameCertificate, RenewCertificate};
use corpus_api::names::{AttachName, DetachName};
use corpus_domain::{CertificateSource, CertificateState, DnsName, DnsNameId, GuestId, JobId, JobState, NodeId};
use sqlx::PgPool;

use super::share::{faults, some};
use super::world::{World, ZONE, fact};
use crate::dns::Challenge;
use crate::dns::authority::says;
use crate::jobs::testing::Fault;
use crate::{AcmeSettings, CertificateSettings, Issuer};

const ISSUE: [&str; 5] = ["ordered", "challenge", "validated", "issued", "served"];
const GUEST: &str = "www.trial.corpus.test";
const NAME: &str = "shop.trial.corpus.test";

fn settings(pebble: &PebbleServer) -> CertificateSettings {
    let acme = AcmeSettings { directory: pebble.settings(), profile: None, challenge: ProofKind::Http01 };
    CertificateSettings { issuer: Issuer::Acme, acme: Some(acme) }
}

/// A name on a guest of a ready node, whose certificate is issued or not.
struct Site {
    world: World,
    pebble: PebbleServer,
    node: NodeId,
    guest: GuestId,
    name: DnsNameId,
}

impl Site {
    async fn new(db: PgPool, http_port: u16) -> Self {
        let pebble = PebbleServer::of_world(fact("CORPUS_LAB_DNS").parse().unwrap(), http_port);
        let world = World::issuing(db, settings(&pebble)).await;
        let node = world.ready_node().await;
        world.zone().await;
        let (guest, job) = world.ask_guest(GUEST).await;
        world.done(job).await;
        let name = attach(&world, guest, NAME, false).await;
        Self { world, pebble, node, guest, name }
    }

    async fn shown(&self) -> NameCertificate {
        self.world.ask(GetCertificate { name: self.name }).await.unwrap()
    }

    async fn serial(&self) -> Option<String> {
        self.shown().await.served.map(|served| served.serial)
    }

    async fn renew(&self) -> JobId {
        // As if the ones before were long ago: a project may not ask that often.
        let age = "update jobs set created_at = created_at - interval '2 hours' where kind = 'certificate_issue'";
        let mut conn = self.world.controller.services.db.acquire().await.unwrap();
        sqlx::query(age).execute(&mut *conn).await.unwrap();
        drop(conn);
        self.world.ask(RenewCertificate { name: self.name }).await.unwrap().job
    }

    /// Whether the node shows a certificate of the directory for the name.
    async fn answers_https(&self) -> bool {
        let root = reqwest::Certificate::from_pem(self.pebble.authority().await.as_bytes()).unwrap();
        let node = format!("{}:443", self.world.node_address).parse().unwrap();
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([root]).resolve(NAME, node);
        let client = client.timeout(Duration::from_secs(10)).build().unwrap();
        client.get(format!("https://{NAME}/")).send().await.is_ok()
    }

    /// Nothing of what proved the name is left, neither in the rows nor on the node.
    async fn assert_no_challenge(&self, after: &Fault) {
        let mut conn = self.world.controller.services.db.acquire().await.unwrap();
        let left: i64 = sqlx::query_scalar("select count(*) from http_challenges").fetch_one(&mut *conn).await.unwrap();
        assert_eq!(left, 0, "{after:?} left a challenge");
        let on_node = self.world.on_node("find /etc/corpus /run -name challenges.map -exec cat {} +").await;
        assert_eq!(on_node, "", "{after:?} left a challenge on the node");
    }

    async fn leave(self) {
        let job = self.world.ask(DetachName { name: self.name }).await.unwrap().job;
        self.world.done(job).await;
        let destroy = corpus_api::guests::DestroyGuest { guest: self.guest };
        let job = self.world.ask(destroy).await.unwrap().job;
        self.world.done(job).await;
        self.world.leave(self.node).await;
    }
}

/// Attaches a name, and runs what follows from that.
async fn attach(world: &World, guest: GuestId, name: &str, wildcard: bool) -> DnsNameId {
    let attach = AttachName { guest, name: name.parse().unwrap(), wildcard };
    let accepted = world.controller.call(&world.ops, attach, None).await.unwrap();
    world.run_open_jobs().await;
    accepted.name
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn issuing_fails_and_repeats_at_every_step(db: PgPool) {
    let site = Site::new(db, 80).await;
    let shown = site.shown().await;
    assert_eq!(shown.state, CertificateState::Served, "{shown:?}");
    assert_eq!(shown.served.unwrap().source, CertificateSource::Acme);
    assert!(site.answers_https().await, "the node shows another certificate");
    site.assert_no_challenge(&Fault::None).await;

    for fault in faults(&ISSUE) {
        let before = site.serial().await.unwrap();
        let job = site.renew().await;
        let ended = site.world.run(job, fault.clone()).await;
        let shown = site.shown().await;
        let is_another = shown.served.as_ref().unwrap().serial != before;
        match &fault {
            Fault::Repeat(_) => {
                assert_eq!(ended.state(), JobState::Done, "{fault:?}: {}", ended.story());
                assert!(is_another, "{fault:?} issued none");
                assert_eq!(shown.state, CertificateState::Served);
            }
            Fault::FailBefore(step) | Fault::FailAfter(step) => {
                assert_eq!(ended.state(), JobState::Undone, "{fault:?}: {}", ended.story());
                // What was kept is served with the next plan; what was not is ordered again later.
                let is_kept = step == "served" || fault == Fault::FailAfter("issued".to_owned());
                assert_eq!(is_another, is_kept, "{fault:?}");
                // What never began is wanted still, and due at once.
                let is_failed = !is_kept && fault != Fault::FailBefore("ordered".to_owned());
                assert_eq!(shown.state == CertificateState::Failed, is_failed, "{fault:?}: {shown:?}");
                assert_eq!(shown.next_try_at.is_some(), is_failed, "{fault:?}");
            }
            _ => unreachable!(),
        }
        assert!(site.answers_https().await, "{fault:?}: no certificate is served any more");
        site.assert_no_challenge(&fault).await;
    }
    site.leave().await;
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn a_server_that_dies_in_the_middle_leaves_nothing(db: PgPool) {
    let site = Site::new(db, 80).await;
    let job = site.renew().await;
    let events = site.world.run(job, Fault::None).await.events;
    assert!(events >= 2 * ISSUE.len(), "{events} events");
    for event in some(0..events) {
        let before = site.serial().await;
        let job = site.renew().await;
        let ended = site.world.run(job, Fault::KillAt(event)).await;
        assert_eq!(ended.state(), JobState::Done, "event {event}: {}", ended.story());
        assert_ne!(site.serial().await, before, "event {event}");
        assert!(site.answers_https().await, "event {event}");
        site.assert_no_challenge(&Fault::KillAt(event)).await;
    }
    site.leave().await;
}

/// The directory asks a port at which nobody answers.
#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn a_name_that_the_directory_can_not_see_says_so(db: PgPool) {
    let site = Site::new(db, 81).await;
    let shown = site.shown().await;
    assert_eq!((shown.state, shown.served.is_some()), (CertificateState::Failed, false), "{shown:?}");
    let problem = shown.problem.unwrap();
    assert!(problem.contains(NAME) && problem.contains("port 80"), "it says what to do: {problem}");
    let wait = shown.next_try_at.unwrap() - chrono::Utc::now();
    assert!((9..=10).contains(&wait.num_minutes()), "{wait}");
    site.assert_no_challenge(&Fault::None).await;

    // Not before it is due.
    site.world.controller.issue_due().await.unwrap();
    site.world.run_open_jobs().await;
    assert_eq!(attempts(&site).await, 1);
    let due = "update certificate_orders set next_try_at = now() - interval '1 second'";
    let mut conn = site.world.controller.services.db.acquire().await.unwrap();
    sqlx::query(due).execute(&mut *conn).await.unwrap();
    drop(conn);
    site.world.controller.issue_due().await.unwrap();
    site.world.run_open_jobs().await;
    assert_eq!(attempts(&site).await, 2);
    let wait = site.shown().await.next_try_at.unwrap() - chrono::Utc::now();
    assert!((19..=20).contains(&wait.num_minutes()), "twice as long: {wait}");
    site.leave().await;
}

async fn attempts(site: &Site) -> i32 {
    let mut conn = site.world.controller.services.db.acquire().await.unwrap();
    sqlx::query_scalar("select attempts from certificate_orders").fetch_one(&mut *conn).await.unwrap()
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn a_wildcard_is_proven_in_its_zone(db: PgPool) {
    let site = Site::new(db, 80).await;
    let below = format!("pages.{ZONE}");
    let name = attach(&site.world, site.guest, &below, true).await;
    let shown: NameCertificate = site.world.ask(GetCertificate { name }).await.unwrap();
    assert_eq!(shown.state, CertificateState::Served, "{shown:?}");
    let names: Vec<String> = shown.served.unwrap().names.iter().map(ToString::to_string).collect();
    assert_eq!(names, [format!("*.{below}")]);
    let challenge =
        Challenge { zone: ZONE.parse().unwrap(), name: below.parse::<DnsName>().unwrap(), value: String::new() };
    assert!(!says(fact("CORPUS_LAB_DNS").parse().unwrap(), &challenge).await.unwrap());
    let job = site.world.ask(DetachName { name }).await.unwrap().job;
    site.world.done(job).await;
    site.leave().await;
}
