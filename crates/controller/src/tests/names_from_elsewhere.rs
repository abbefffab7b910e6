//! Names of zones that others hold: who gets one, and who does not. A real PowerDNS plays the world.

use corpus_api::Principal;
use corpus_api::claims::{AskNameClaim, ClaimName, GetNameClaim, ListNameClaims, NameClaim, WithdrawNameClaim};
use corpus_api::names::{DetachName, ListNames};
use corpus_api::zones::{CreateZone, ZoneAccess, ZoneProjects};
use corpus_domain::{DnsName, Environment, GuestId, NameClaimId, ProjectRole};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::PgPool;

use super::world::{World, at_field, forbidden, refusal};
use crate::Rules;
use crate::dns::powerdns_server::PowerDnsServer;

const NAME: &str = "www.elsewhere.test";
const NODE: &str = "192.0.2.7";

fn name(text: &str) -> DnsName {
    text.parse().unwrap()
}

/// Two projects with a guest each on one node, a zone of ours, and one of others.
struct Two {
    world: World,
    server: PowerDnsServer,
    mia: Principal,
    bob: Principal,
    of_mia: GuestId,
    of_bob: GuestId,
}

async fn two(db: PgPool) -> Two {
    let server = PowerDnsServer::start();
    let rules = Rules { own_hosts: vec![name("corpus.owner.test")], ..World::rules() };
    let world = World::asking(db, &server, rules).await;
    let ours = CreateZone {
        name: name("example.org"),
        access: ZoneAccess::All,
        projects: ZoneProjects::default(),
        provider: None,
        ttl_s: None,
    };
    world.ask(&world.ops().await, ours).await.unwrap();
    let theirs = json!({ "name": "elsewhere.test.", "kind": "Native", "nameservers": ["ns1.elsewhere.test."] });
    assert_eq!(server.by_hand(Method::POST, "zones", theirs).await, 201);
    let (mut mia, mut bob) = (world.member("mia", &[]).await, world.member("bob", &[]).await);
    let (atlas, borealis) = (world.project(&mut mia, "atlas").await, world.project(&mut bob, "borealis").await);
    let of_mia = world.guest(atlas, Environment::Dev).await;
    let of_bob = world.guest(borealis, Environment::Dev).await;
    world.run("update nodes set public_ip = '192.0.2.7'").await;
    Two { world, server, mia, bob, of_mia, of_bob }
}

fn set(of: &str, kind: &str, content: &str) -> Value {
    json!({ "name": format!("{of}."), "type": kind, "ttl": 60, "changetype": "REPLACE",
            "records": [{ "content": content, "disabled": false }] })
}

impl Two {
    /// What others write into their zone.
    async fn writes(&self, sets: &[Value]) {
        let sets = json!({ "rrsets": sets });
        assert_eq!(self.server.by_hand(Method::PATCH, "zones/elsewhere.test.", sets).await, 204);
    }

    async fn proves(&self, claim: &NameClaim) {
        self.writes(&[set(&claim.proof_name, "TXT", &format!("\"{}\"", claim.proof))]).await;
    }

    async fn claims(&self, who: &Principal, guest: GuestId, of: &str) -> Result<NameClaimId, corpus_api::Problem> {
        Ok(self.world.ask(who, ClaimName { guest, name: name(of) }).await?.claim)
    }

    async fn asks(&self) {
        self.world.run("update name_claims set due_at = now()").await;
        self.world.controller.ask_for_claims().await.unwrap();
    }

    async fn shown(&self, who: &Principal, claim: NameClaimId) -> NameClaim {
        self.world.ask(who, GetNameClaim { claim }).await.unwrap()
    }

    async fn attached(&self, to: GuestId) -> i64 {
        let found = sqlx::query_scalar("select count(*) from dns_names where guest_id = $1 and zone_id is null");
        found.bind(to.0).fetch_one(&self.world.db).await.unwrap()
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_name_is_taken_once_the_world_answers_it_and_the_proof(db: PgPool) {
    let two = two(db).await;
    let claim = two.claims(&two.mia, two.of_mia, NAME).await.unwrap();
    at_field(two.claims(&two.mia, two.of_mia, NAME).await, "name", "claimed for this project already");
    let before = two.shown(&two.mia, claim).await;
    assert_eq!(before.target.as_deref(), Some(NODE));
    assert_eq!((before.proof.len(), before.proof_name.as_str()), (32, "_corpus-challenge.www.elsewhere.test"));
    assert!(before.asked_at.is_none());

    two.asks().await;
    let neither = two.shown(&two.mia, claim).await;
    assert!(!neither.leads && !neither.proven && neither.asked_at.is_some() && neither.answered.is_empty());

    two.writes(&[set(NAME, "A", "198.51.100.1")]).await;
    two.proves(&before).await;
    two.asks().await;
    let elsewhere = two.shown(&two.mia, claim).await;
    assert_eq!(
        (elsewhere.leads, elsewhere.proven, elsewhere.answered.as_slice()),
        (false, true, &["198.51.100.1".to_owned()][..])
    );
    assert_eq!(two.attached(two.of_mia).await, 0);

    two.writes(&[
        set("shop.elsewhere.test", "A", NODE),
        json!({ "name": format!("{NAME}."), "type": "A", "changetype": "DELETE" }),
    ])
    .await;
    two.writes(&[set(NAME, "CNAME", "shop.elsewhere.test.")]).await;
    two.asks().await;
    assert_eq!(two.attached(two.of_mia).await, 1, "an alias does as well");
    let jobs = "select count(*) from jobs where kind = 'name_attach' and title like 'Attach www.elsewhere.test%'";
    assert_eq!(two.world.count(jobs).await, 1);
    let told = "select count(*) from audit where action = 'name.attach' and detail ->> 'proven' = 'true'";
    assert_eq!(two.world.count(told).await, 1);
    // Until the job is over nothing more is made of the claim.
    two.asks().await;
    assert_eq!(two.world.count(jobs).await, 1);

    let line = two.world.ask(&two.mia, ListNames::default()).await.unwrap().items.remove(0);
    assert!(line.zone.is_none() && line.zone_name.is_none());
    two.world.run("update dns_names set state = 'attached'").await;
    two.world.ask(&two.mia, DetachName { name: line.id }).await.unwrap();
    assert_eq!(two.world.count("select count(*) from undoes where kind = 'name'").await, 0, "it is to be proven again");
}

#[sqlx::test(migrations = "../../migrations")]
async fn another_project_can_not_take_it(db: PgPool) {
    let two = two(db).await;
    // A guest that is called so, and a claim, keep nobody from what is theirs.
    let squat = two.claims(&two.bob, two.of_bob, NAME).await.unwrap();
    let called = sqlx::query("update guests set name = $1 where id = $2").bind(NAME).bind(two.of_bob.0);
    called.execute(&two.world.db).await.unwrap();
    let claim = two.claims(&two.mia, two.of_mia, NAME).await.unwrap();
    let (of_bob, of_mia) = (two.shown(&two.bob, squat).await, two.shown(&two.mia, claim).await);
    assert_ne!(of_bob.proof, of_mia.proof);
    assert_eq!(refusal(two.world.ask(&two.bob, GetNameClaim { claim }).await).status, 404);
    assert_eq!(refusal(two.world.ask(&two.bob, WithdrawNameClaim { claim }).await).status, 404);
    assert_eq!(refusal(two.world.ask(&two.bob, AskNameClaim { claim }).await).status, 404);
    assert_eq!(two.world.ask(&two.bob, ListNameClaims::default()).await.unwrap().items.len(), 1);

    two.writes(&[set(NAME, "A", NODE)]).await;
    two.proves(&of_mia).await;
    two.asks().await;
    assert_eq!((two.attached(two.of_mia).await, two.attached(two.of_bob).await), (1, 0));
    two.proves(&of_bob).await;
    two.asks().await;
    assert_eq!(two.attached(two.of_bob).await, 0, "it is in use");
    assert!(two.shown(&two.bob, squat).await.problem.unwrap().contains("not free"));
    let late = two.claims(&two.bob, two.of_bob, NAME).await;
    at_field(late, "name", "is not free");
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_is_ours_is_not_claimed_and_who_may_not_claims_nothing(db: PgPool) {
    let two = two(db).await;
    at_field(two.claims(&two.mia, two.of_mia, "shop.example.org").await, "name", "which is ours");
    for own in ["corpus.owner.test", "x.corpus.owner.test", "owner.test"] {
        at_field(two.claims(&two.mia, two.of_mia, own).await, "name", "an operator can claim it");
    }
    two.world.run("update zones set open = false").await;
    let closed = two.claims(&two.mia, two.of_mia, "shop.example.org").await;
    let text = refusal(closed).to_string();
    assert!(text.contains("is not free") && !text.contains("ours"), "{text}");
    assert_eq!(refusal(two.claims(&two.bob, two.of_mia, NAME).await).status, 404);
    let dan = two.world.member("dan", &[("atlas", ProjectRole::Developer)]).await;
    forbidden(two.claims(&dan, two.of_mia, NAME).await);
    for number in 0..20 {
        two.claims(&two.mia, two.of_mia, &format!("w{number}.elsewhere.test")).await.unwrap();
    }
    at_field(two.claims(&two.mia, two.of_mia, NAME).await, "name", "at most 20 claims");

    // A zone that is made meanwhile is ours.
    let claim = two.world.ask(&two.mia, ListNameClaims::default()).await.unwrap().items.remove(0);
    two.writes(&[set(claim.name.as_str(), "A", NODE)]).await;
    two.proves(&claim).await;
    two.world.run("insert into zones (id, name, open) values (gen_random_uuid(), 'elsewhere.test', true)").await;
    two.asks().await;
    let shown = two.shown(&two.mia, claim.id).await;
    assert!(shown.leads && shown.proven && shown.problem.unwrap().contains("zone of ours"));
    assert_eq!(two.attached(two.of_mia).await, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_claim_lapses_and_a_circle_is_told(db: PgPool) {
    let two = two(db).await;
    two.writes(&[set(NAME, "CNAME", "b.elsewhere.test."), set("b.elsewhere.test", "CNAME", "www.elsewhere.test.")])
        .await;
    let claim = two.claims(&two.mia, two.of_mia, NAME).await.unwrap();
    two.asks().await;
    let shown = two.shown(&two.mia, claim).await;
    assert!(!shown.leads && shown.problem.is_some(), "{shown:?}");
    two.world.run("update name_claims set expires_at = now()").await;
    two.asks().await;
    assert_eq!(refusal(two.world.ask(&two.mia, GetNameClaim { claim }).await).status, 404);
    assert_eq!(two.world.count("select count(*) from audit where action = 'name_claim.lapse'").await, 1);
}

/// Who is told of claims that lapsed, by what: the key of the event and the login name.
async fn told(two: &Two) -> Vec<(String, String)> {
    let told = "select q.key, u.login from mail_queue q join users u on u.id = q.user_id
        where q.letter ->> 'type' = 'claim_lapsed' and q.kind = 'expiry' order by u.login";
    sqlx::query_as(told).fetch_all(&two.world.db).await.unwrap()
}

#[sqlx::test(migrations = "../../migrations")]
async fn who_claimed_what_lapsed_is_told_once_and_nobody_else(db: PgPool) {
    let two = two(db).await;
    two.world.run("update users set mail = login || '@example.org'").await;
    let claim = two.claims(&two.mia, two.of_mia, NAME).await.unwrap();
    let of_bob = two.claims(&two.bob, two.of_bob, "www2.elsewhere.test").await.unwrap();
    two.asks().await;
    assert_eq!(told(&two).await, [], "they last");
    two.world.run("update users set disabled_at = now() where login = 'bob'").await;
    two.world.run("update name_claims set expires_at = now()").await;
    two.asks().await;
    two.asks().await;
    let by = format!("name_claim:{claim}:lapsed:{}", two.mia.id);
    assert_eq!(told(&two).await, [(by, "mia".to_owned())], "{of_bob} was of one who is no member any more");
    let of_project = "select count(*) from mail_queue q join projects p on p.id = q.project_id
        where q.letter ->> 'type' = 'claim_lapsed' and p.name = 'atlas'";
    assert_eq!(two.world.count(of_project).await, 1, "it is for members of the project alone");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_claim_whose_name_is_being_attached_does_not_lapse(db: PgPool) {
    let two = two(db).await;
    let claim = two.claims(&two.mia, two.of_mia, NAME).await.unwrap();
    let proof = two.shown(&two.mia, claim).await;
    two.writes(&[set(NAME, "A", NODE)]).await;
    two.proves(&proof).await;
    two.asks().await;
    assert_eq!(two.attached(two.of_mia).await, 1);
    two.world.run("update name_claims set expires_at = now()").await;
    two.asks().await;
    two.shown(&two.mia, claim).await;
    // Its job failed, and took the name back.
    two.world.run("delete from dns_names").await;
    two.asks().await;
    assert_eq!(refusal(two.world.ask(&two.mia, GetNameClaim { claim }).await).status, 404);
    assert_eq!(told(&two).await, [], "who has no address has no letter");
}
