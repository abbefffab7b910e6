//! Certificates of names: who may do what, what is refused and why, what is kept and how, and what a node is told.

use chrono::{TimeDelta, Utc};
use corpus_api::certificates::{
    GetCertificate, GetCertificateAuthority, ListCertificates, NameCertificate, RemoveCertificate, RenewCertificate,
    SetNameHttps, UploadCertificate,
};
use corpus_api::{Principal, Problem};
use corpus_certificates::{Authority, Material};
use corpus_domain::{
    CertificateSource, CertificateState, CertifiedName, DnsNameId, Environment, GuestId, NodeId, ProjectRole,
};
use secrecy::ExposeSecret;
use sqlx::PgPool;
use uuid::Uuid;

use super::world::{World, at_field, conflict, forbidden, hidden};
use crate::store::{certificates, plan};

const NAME: &str = "shop.example.org";

/// A name of a project that leads to a guest.
struct Shop {
    world: World,
    mia: Principal,
    guest: GuestId,
    name: DnsNameId,
}

async fn shop(db: PgPool) -> Shop {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let project = world.project(&mut mia, "shop").await;
    let guest = world.guest(project, Environment::Dev).await;
    let name = attached(&world, guest, NAME, false).await;
    Shop { world, mia, guest, name }
}

async fn attached(world: &World, guest: GuestId, name: &str, wildcard: bool) -> DnsNameId {
    let id = Uuid::now_v7();
    sqlx::query(
        "insert into dns_names (id, name, guest_id, state, routed, wildcard, zone_id)
         values ($1, $2, $3, 'attached', true, $4, case when $4 then (select id from zones limit 1) end)",
    )
    .bind(id)
    .bind(name)
    .bind(guest.0)
    .bind(wildcard)
    .execute(&world.db)
    .await
    .unwrap();
    DnsNameId(id)
}

/// One that somebody had signed elsewhere.
fn signed(names: &[&str]) -> Material {
    let names: Vec<CertifiedName> = names.iter().map(|name| name.parse().unwrap()).collect();
    let authority = Authority::make("elsewhere.test", Utc::now()).unwrap();
    authority.sign(&names, Utc::now(), TimeDelta::days(30)).unwrap()
}

fn upload(name: DnsNameId, chain: &str, key: &str) -> UploadCertificate {
    UploadCertificate { name, chain: chain.parse().unwrap(), private_key: key.parse().unwrap() }
}

fn brought(name: DnsNameId, material: &Material) -> UploadCertificate {
    upload(name, &material.chain, material.key.expose_secret())
}

impl Shop {
    async fn shown(&self) -> NameCertificate {
        self.world.ask(&self.mia, GetCertificate { name: self.name }).await.unwrap()
    }

    async fn set(&self, redirect: bool, seen: &NameCertificate) -> Result<(), Problem> {
        let (name, version) = (self.name, seen.version.clone());
        let hsts_s = redirect.then(|| 300_u64.try_into().unwrap());
        self.world.ask(&self.mia, SetNameHttps { name, version, redirect, hsts_s }).await.map(drop)
    }

    async fn plan(&self, node: NodeId) -> corpus_protocol::NodePlan {
        let mut conn = self.world.db.acquire().await.unwrap();
        plan::current(&mut conn, node, self.world.controller.services.around()).await.unwrap().unwrap()
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn who_may_do_what(db: PgPool) {
    let Shop { world, mia, name, .. } = shop(db).await;
    let stranger = world.member("eve", &[]).await;
    let viewer = world.member("vera", &[("shop", ProjectRole::Viewer)]).await;
    let developer = world.member("dan", &[("shop", ProjectRole::Developer)]).await;
    let material = signed(&[NAME]);
    let version = world.ask(&viewer, GetCertificate { name }).await.unwrap().version;
    let https = SetNameHttps { name, version, redirect: true, hsts_s: None };

    hidden(world.ask(&stranger, GetCertificate { name }).await);
    hidden(world.ask(&stranger, brought(name, &material)).await);
    hidden(world.ask(&stranger, RemoveCertificate { name }).await);
    hidden(world.ask(&stranger, RenewCertificate { name }).await);
    hidden(world.ask(&stranger, https.clone()).await);
    for who in [&viewer, &developer] {
        world.ask(who, GetCertificate { name }).await.unwrap();
        forbidden(world.ask(who, brought(name, &material)).await);
        forbidden(world.ask(who, RemoveCertificate { name }).await);
        forbidden(world.ask(who, RenewCertificate { name }).await);
        forbidden(world.ask(who, https.clone()).await);
        forbidden(world.ask(who, ListCertificates::default()).await);
    }
    assert_eq!(world.count("select count(*) from certificates").await, 0);
    world.ask(&mia, brought(name, &material)).await.unwrap();
    forbidden(world.ask(&mia, ListCertificates::default()).await);
    let root = world.ask(&stranger, GetCertificateAuthority {}).await.unwrap();
    assert_eq!(root.certificate, world.controller.certificate_root());
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_is_no_certificate_of_the_name_is_refused_at_its_field(db: PgPool) {
    let shop = shop(db).await;
    let (world, mia, name) = (&shop.world, &shop.mia, shop.name);
    let (good, other) = (signed(&[NAME]), signed(&["www.example.org", "*.shop.example.org"]));
    let key = good.key.expose_secret();
    at_field(world.ask(mia, upload(name, "hello", key)).await, "chain", "There is no certificate in it");
    at_field(world.ask(mia, upload(name, &good.chain, "hello")).await, "private_key", "There is no private key");
    let wrong = world.ask(mia, upload(name, &good.chain, other.key.expose_secret())).await;
    at_field(wrong, "private_key", "is not the certificate's");
    let says = "www.example.org, *.shop.example.org: get one for shop.example.org";
    at_field(world.ask(mia, brought(name, &other)).await, "chain", says);
    assert_eq!(world.count("select count(*) from certificates").await, 0);
    assert_eq!(shop.shown().await.state, CertificateState::None);

    world.ask(mia, brought(name, &good)).await.unwrap();
    let shown = shop.shown().await;
    let served = shown.served.unwrap();
    assert_eq!((shown.state, served.source), (CertificateState::Served, CertificateSource::Uploaded));
    assert_eq!((served.serial, served.renew_at), (good.serial.clone(), None), "nobody renews it");
    conflict(world.ask(mia, RenewCertificate { name }).await, "upload another one");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_key_is_kept_sealed_and_told_nowhere(db: PgPool) {
    let shop = shop(db).await;
    let material = signed(&[NAME]);
    shop.world.ask(&shop.mia, brought(shop.name, &material)).await.unwrap();
    let sealed: Vec<u8> =
        sqlx::query_scalar("select key_sealed from certificates").fetch_one(&shop.world.db).await.unwrap();
    assert!(!sealed.windows(11).any(|part| part == b"PRIVATE KEY"));
    let line = material.key.expose_secret().lines().nth(1).unwrap();
    for told in [
        "select coalesce(string_agg(to_jsonb(a)::text, ''), '') from audit a",
        "select coalesce(string_agg(to_jsonb(j)::text, ''), '') from jobs j",
    ] {
        let told: String = sqlx::query_scalar(told).fetch_one(&shop.world.db).await.unwrap();
        assert!(told.contains("certificate.upload") || told.contains("name_configure"), "{told}");
        assert!(!told.contains("PRIVATE KEY") && !told.contains(line), "{told}");
    }
    // It is opened for the row that it was sealed for, and for no other.
    let services = &shop.world.controller.services;
    let mut conn = shop.world.db.acquire().await.unwrap();
    let id = shop.plan(shop.world.node_id()).await.certificates[0].id;
    let files = services.certificate_files(&mut conn, &[id]).await.unwrap();
    assert_eq!(files[0].pem.0, material.pem().expose_secret());
    let of_name =
        sqlx::query("update certificates set key_sealed = set_byte(key_sealed, 40, 255 - get_byte(key_sealed, 40))");
    of_name.execute(&mut *conn).await.unwrap();
    assert!(services.certificate_files(&mut conn, &[id]).await.unwrap().is_empty(), "what was changed is not served");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_node_is_told_of_its_own_names_only(db: PgPool) {
    let shop = shop(db).await;
    let world = &shop.world;
    // For another name too, which is somebody else's on the same node.
    let (mut bob, material) = (world.member("bob", &[]).await, signed(&[NAME, "bank.example.org", "*.example.org"]));
    let bank = world.project(&mut bob, "bank").await;
    let of_bob = world.guest(bank, Environment::Dev).await;
    attached(world, of_bob, "bank.example.org", false).await;
    world.ask(&shop.mia, brought(shop.name, &material)).await.unwrap();
    let plan = shop.plan(world.node_id()).await;
    assert_eq!(plan.certificates.len(), 1);
    assert_eq!(plan.certificates[0].names, [NAME.parse().unwrap()], "it is shown for its own name only");
    assert_eq!(plan.certificates[0].digest, material.digest());
    assert_eq!(plan.http_routes.len(), 2);

    sqlx::query(
        "insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, network, bridge)
         select gen_random_uuid(), '192.0.2.9', 22, 'root', host_key, '{dev}', 'ready', '10.6.0.1/16', 'lxcbr1' from nodes",
    )
    .execute(&world.db)
    .await
    .unwrap();
    let other: Uuid =
        sqlx::query_scalar("select id from nodes where address = '192.0.2.9'").fetch_one(&world.db).await.unwrap();
    assert!(shop.plan(other.into()).await.certificates.is_empty());

    sqlx::query("insert into http_challenges (token, dns_name_id, answer) values ('tok-1', $1, 'tok-1.print')")
        .bind(shop.name.0)
        .execute(&world.db)
        .await
        .unwrap();
    let told = shop.plan(world.node_id()).await.challenges;
    assert_eq!(
        (told[0].name.as_str(), told[0].token.as_str(), told[0].answer.as_str()),
        (NAME, "tok-1", "tok-1.print")
    );
    assert!(shop.plan(other.into()).await.challenges.is_empty());

    world.run("update dns_names set routed = false").await;
    assert!(shop.plan(world.node_id()).await.certificates.is_empty(), "a name that is not routed serves nothing");
}

#[sqlx::test(migrations = "../../migrations")]
async fn who_comes_by_http_is_sent_on_while_a_certificate_is_served(db: PgPool) {
    let shop = shop(db).await;
    let before = shop.shown().await;
    shop.set(true, &before).await.unwrap();
    let https = |plan: corpus_protocol::NodePlan| plan.http_routes[0].https;
    let told = https(shop.plan(shop.world.node_id()).await);
    assert_eq!((told.redirect, told.hsts_s), (false, None), "nobody is sent to where no certificate is");
    shop.world.ask(&shop.mia, RenewCertificate { name: shop.name }).await.unwrap();
    let told = https(shop.plan(shop.world.node_id()).await);
    assert_eq!((told.redirect, told.hsts_s), (true, Some(300)));

    let late = shop.set(false, &before).await.unwrap_err();
    assert_eq!(late.status, 412);
    assert!(late.text().contains("the redirect was off and is on"), "{}", late.text());
    let now = shop.shown().await;
    at_field(shop.set(true, &now).await, "redirect", "This is so already");
    shop.set(false, &now).await.unwrap();
    assert_eq!(shop.shown().await.https().hsts_s, None);
}

#[sqlx::test(migrations = "../../migrations")]
async fn the_internal_authority_signs_anew_and_two_are_kept(db: PgPool) {
    let shop = shop(db).await;
    let (world, name) = (&shop.world, shop.name);
    for _ in 0..3 {
        world.ask(&shop.mia, RenewCertificate { name }).await.unwrap();
    }
    world.controller.renew_internal(name).await.unwrap();
    assert_eq!(world.count("select count(*) from certificates").await, 2);
    let served = shop.shown().await.served.unwrap();
    assert_eq!((served.source, served.names), (CertificateSource::Internal, vec![NAME.parse().unwrap()]));
    let (due, third) = (served.renew_at.unwrap(), served.not_before + (served.not_after - served.not_before) / 3 * 2);
    assert!(due >= third && due < served.not_after, "{due}");

    world.ask(&shop.mia, brought(name, &signed(&[NAME]))).await.unwrap();
    world.controller.renew_internal(name).await.unwrap();
    assert_eq!(shop.shown().await.served.unwrap().source, CertificateSource::Uploaded, "what was brought stays");
    world.ask(&shop.mia, RemoveCertificate { name }).await.unwrap();
    assert_eq!(shop.shown().await.served.unwrap().source, CertificateSource::Internal);
    conflict(world.ask(&shop.mia, RemoveCertificate { name }).await, "no certificate that was brought");

    world.run("delete from dns_names").await;
    assert_eq!(world.count("select count(*) from certificates").await, 0, "nothing is left of a name");
    world.controller.renew_internal(name).await.unwrap();
    let mut conn = world.db.acquire().await.unwrap();
    assert_eq!(certificates::hold(&mut conn, name).await.unwrap(), None);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_wildcard_has_one_for_the_names_below_it(db: PgPool) {
    let shop = shop(db).await;
    shop.world.run("insert into zones (id, name, open) values (gen_random_uuid(), 'example.org', true)").await;
    let name = attached(&shop.world, shop.guest, "all.example.org", true).await;
    shop.world.controller.renew_internal(name).await.unwrap();
    let shown = shop.world.ask(&shop.mia, GetCertificate { name }).await.unwrap().served.unwrap();
    assert_eq!(shown.names, ["*.all.example.org".parse().unwrap()]);
    let told = shop.plan(shop.world.node_id()).await.certificates;
    assert_eq!(told[0].names, ["*.all.example.org".parse().unwrap()]);
    let narrow = shop.world.ask(&shop.mia, brought(name, &signed(&["x.all.example.org"]))).await;
    at_field(narrow, "chain", "get one for *.all.example.org");
}

#[sqlx::test(migrations = "../../migrations")]
async fn operators_see_which_ends_first(db: PgPool) {
    let shop = shop(db).await;
    let world = &shop.world;
    let long = attached(world, shop.guest, "long.example.org", false).await;
    world.controller.renew_internal(long).await.unwrap();
    world.ask(&shop.mia, brought(shop.name, &signed(&[NAME]))).await.unwrap();
    let (ops, one) = (world.ops().await, Some(1_u64.try_into().unwrap()));
    let first = world.ask(&ops, ListCertificates { cursor: None, limit: one }).await.unwrap();
    assert_eq!(first.items[0].shown(), NAME);
    let next = world.ask(&ops, ListCertificates { cursor: first.next, limit: one }).await.unwrap();
    assert_eq!((next.items[0].shown().as_str(), next.next.is_none()), ("long.example.org", true));
}

/// All servers of one database sign by one authority.
#[sqlx::test(migrations = "../../migrations")]
async fn the_authority_is_made_once(db: PgPool) {
    let files = tempfile::tempdir().unwrap();
    let seal = crate::seal::SealKeys::load_or_create(&files.path().join("seal.key")).unwrap();
    let mut both = Vec::new();
    for _ in 0..2 {
        let db: crate::store::Db = db.clone().into();
        both.push(crate::server_keys::authority(&mut db.acquire().await.unwrap(), &seal, "corpus").await.unwrap());
    }
    assert_eq!(both[0].fingerprint(), both[1].fingerprint());
}
