//! The job that has an address point back to a name: each step fails and is repeated, against a real PowerDNS.

use corpus_api::Principal;
use corpus_api::names::{AttachName, GetName, NamePointer, PointGuest};
use corpus_api::zones::{CreateZone, ZoneAccess, ZoneProjects};
use corpus_domain::{DnsName, DnsNameId, Environment, GuestId, JobId, JobState};
use reqwest::Method;
use serde_json::json;
use sqlx::PgPool;

use super::world::World;
use crate::dns::authority;
use crate::dns::powerdns_server::PowerDnsServer;
use crate::jobs::testing::Fault;

const STEPS: [&str; 3] = ["wanted", "pointer", "answered"];
/// The reverse name of the guest's address, 10.5.0.10, and the zone that holds it.
const REVERSE: &str = "10.0.5.10.in-addr.arpa";
const REVERSE_ZONE: &str = "5.10.in-addr.arpa";

struct Pointing {
    world: World,
    server: PowerDnsServer,
    mia: Principal,
    guest: GuestId,
    site: DnsNameId,
    other: DnsNameId,
}

fn name(text: &str) -> DnsName {
    text.parse().unwrap()
}

/// A guest with two names that are attached.
async fn pointing(db: PgPool) -> Pointing {
    let server = PowerDnsServer::start();
    let world = World::asking(db, &server, World::rules()).await;
    make_zone(&world, "example.org").await;
    let mut mia = world.member("mia", &[]).await;
    let project = world.project(&mut mia, "atlas").await;
    let guest = world.guest(project, Environment::Dev).await;
    let mut names = Vec::new();
    for of in ["shop.example.org", "other.example.org"] {
        names.push(world.ask(&mia, AttachName { guest, name: name(of), wildcard: false }).await.unwrap().name);
    }
    world.run("update dns_names set state = 'attached'").await;
    // No node is there for those that attach.
    world.run("delete from jobs").await;
    Pointing { world, server, mia, guest, site: names[0], other: names[1] }
}

async fn make_zone(world: &World, of: &str) {
    let (access, projects) = (ZoneAccess::All, ZoneProjects::default());
    let zone = CreateZone { name: name(of), access, projects, provider: None, ttl_s: None };
    world.ask(&world.ops().await, zone).await.unwrap();
}

impl Pointing {
    async fn ask(&self, to: Option<DnsNameId>) -> JobId {
        self.world.ask(&self.mia, PointGuest { guest: self.guest, name: to }).await.unwrap().job
    }

    async fn points(&self, to: Option<DnsNameId>) {
        let job = self.ask(to).await;
        let ended = self.world.run_job(job, Fault::None).await;
        assert_eq!(ended.0, JobState::Done, "{ended:?}");
    }

    /// What the server says of the address; nothing where it holds no such zone.
    async fn said(&self) -> Vec<String> {
        authority::pointers(self.server.dns, &name(REVERSE)).await.unwrap_or_default()
    }

    async fn shown(&self, of: DnsNameId) -> Option<NamePointer> {
        self.world.ask(&self.mia, GetName { name: of }).await.unwrap().pointer
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn it_fails_and_repeats_at_every_step(db: PgPool) {
    let all = pointing(db).await;
    make_zone(&all.world, REVERSE_ZONE).await;
    let faults = |step: &str| {
        let step = step.to_owned();
        [Fault::FailBefore(step.clone()), Fault::FailAfter(step.clone()), Fault::Repeat(step)]
    };
    for fault in STEPS.iter().flat_map(|step| faults(step)) {
        let is_repeated = matches!(fault, Fault::Repeat(_));
        // From nothing, from another name, and to nothing.
        for (before, to) in [(None, Some(all.site)), (Some(all.other), Some(all.site)), (Some(all.other), None)] {
            if let Some(before) = before {
                all.points(Some(before)).await;
            }
            let job = all.ask(to).await;
            let ended = all.world.run_job(job, fault.clone()).await;
            let expected = if is_repeated { (JobState::Done, to) } else { (JobState::Undone, before) };
            assert_eq!(ended.0, expected.0, "{fault:?}: {ended:?}");
            let says = expected.1.map(|id| if id == all.site { "shop.example.org" } else { "other.example.org" });
            assert_eq!(all.said().await, says.into_iter().collect::<Vec<_>>(), "{fault:?}: {before:?} to {to:?}");
            for one in [all.site, all.other] {
                let shown = all.shown(one).await;
                assert_eq!(shown.map(|shown| shown.stands), (expected.1 == Some(one)).then_some(true), "{fault:?}");
            }
            if expected.1.is_some() {
                all.points(None).await;
            }
            assert_eq!(all.said().await, [""; 0]);
        }
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn without_a_reverse_zone_and_beside_others_records_it_ends_well(db: PgPool) {
    let all = pointing(db).await;
    all.points(Some(all.site)).await;
    let missing = all.shown(all.site).await.unwrap();
    assert!(!missing.stands && missing.problem.unwrap().contains("no reverse zone of ours holds"));

    // Somebody else's stays, whatever is asked for.
    make_zone(&all.world, REVERSE_ZONE).await;
    let theirs = json!({ "rrsets": [{ "name": format!("{REVERSE}."), "type": "PTR", "ttl": 60, "changetype": "REPLACE",
        "records": [{ "content": "secret.elsewhere.test.", "disabled": false }] }] });
    let path = format!("zones/{REVERSE_ZONE}.");
    assert_eq!(all.server.by_hand(Method::PATCH, &path, theirs).await, 204);
    for to in [Some(all.site), Some(all.other), None] {
        all.points(to).await;
        assert_eq!(all.said().await, ["secret.elsewhere.test"]);
        let Some(to) = to else { continue };
        let shown = all.shown(to).await.unwrap();
        let problem = shown.problem.unwrap();
        assert!(!shown.stands && problem.contains("did not make") && !problem.contains("secret"), "{problem}");
    }

    // Once it is gone, it is tried again by the same.
    let gone = json!({ "rrsets": [{ "name": format!("{REVERSE}."), "type": "PTR", "changetype": "DELETE" }] });
    assert_eq!(all.server.by_hand(Method::PATCH, &path, gone).await, 204);
    all.points(Some(all.site)).await;
    all.points(Some(all.site)).await;
    assert_eq!(all.said().await, ["shop.example.org"]);
    let stands = all.shown(all.site).await.unwrap();
    assert!(stands.stands && stands.problem.is_none() && stands.since.is_some());
}

/// An address that became a node's is the node's.
#[sqlx::test(migrations = "../../migrations")]
async fn the_record_of_a_node_is_left(db: PgPool) {
    let all = pointing(db).await;
    make_zone(&all.world, REVERSE_ZONE).await;
    let job = all.ask(Some(all.site)).await;
    all.world.run("update nodes set public_ip = '10.5.0.10'").await;
    assert_eq!(all.world.run_job(job, Fault::None).await.0, JobState::Done);
    assert_eq!(all.said().await, [""; 0]);
    assert!(all.shown(all.site).await.unwrap().problem.unwrap().contains("of a node"));
}
