//! Names that are another name for one of the same project: which can be, and that they go along with it.

use corpus_api::Principal;
use corpus_api::Problem;
use corpus_api::guests::DestroyGuest;
use corpus_api::names::{AttachAlias, AttachName, DetachName, GetName, ListNames, NameLine, PointGuest, SwitchName};
use corpus_api::zones::{CreateZone, ZoneAccess, ZoneProjects};
use corpus_domain::{DnsName, DnsNameId, Environment, GuestId, JobId, JobState, ProjectRole};
use reqwest::Method;
use serde_json::json;
use sqlx::PgPool;

use super::world::{World, at_field, conflict, forbidden, hidden};
use crate::dns::authority;
use crate::dns::powerdns_server::PowerDnsServer;
use crate::jobs::testing::Fault;
use crate::store::{evidence, name_switches, names};

struct Aliases {
    world: World,
    server: PowerDnsServer,
    mia: Principal,
    bob: Principal,
    guests: [GuestId; 2],
    site: DnsNameId,
}

fn name(text: &str) -> DnsName {
    text.parse().unwrap()
}

/// Two guests of one project, a name of the first that is attached, and another project.
async fn aliases(db: PgPool) -> Aliases {
    let server = PowerDnsServer::start();
    let world = World::asking(db, &server, World::rules()).await;
    let (access, projects) = (ZoneAccess::All, ZoneProjects::default());
    let zone = CreateZone { name: name("example.org"), access, projects, provider: None, ttl_s: None };
    world.ask(&world.ops().await, zone).await.unwrap();
    let (mut mia, mut bob) = (world.member("mia", &[]).await, world.member("bob", &[]).await);
    let atlas = world.project(&mut mia, "atlas").await;
    world.project(&mut bob, "borealis").await;
    let guests = [world.guest(atlas, Environment::Dev).await, world.guest(atlas, Environment::Dev).await];
    world.run("update nodes set public_ip = '192.0.2.7'").await;
    let attach = AttachName { guest: guests[0], name: name("www.example.org"), wildcard: false };
    let site = world.ask(&mia, attach).await.unwrap().name;
    world.run("update dns_names set state = 'attached'").await;
    world.run("delete from jobs").await;
    Aliases { world, server, mia, bob, guests, site }
}

impl Aliases {
    async fn attach(&self, who: &Principal, of: DnsNameId, alias: &str) -> Result<(DnsNameId, JobId), Problem> {
        let accepted = self.world.ask(who, AttachAlias { name: of, alias: name(alias) }).await?;
        Ok((accepted.name, accepted.job))
    }

    async fn attached(&self, alias: &str) -> DnsNameId {
        let (id, _) = self.attach(&self.mia, self.site, alias).await.unwrap();
        self.world.run("update dns_names set state = 'attached'").await;
        id
    }

    async fn shown(&self, of: DnsNameId) -> NameLine {
        self.world.ask(&self.mia, GetName { name: of }).await.unwrap()
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn an_alias_is_a_name_that_leads_where_another_leads(db: PgPool) {
    let all = aliases(db).await;
    let (world, mia) = (&all.world, &all.mia);
    let docs = all.attached("docs.example.org").await;
    let shown = all.shown(docs).await;
    let of = shown.alias_of.clone().unwrap();
    assert_eq!((of.id, of.name, shown.guest), (all.site, name("www.example.org"), all.guests[0]));
    let asked = ListNames { alias_of: Some(all.site), ..ListNames::default() };
    let listed = world.ask(mia, asked).await.unwrap().items;
    assert_eq!(listed.iter().map(|line| line.id).collect::<Vec<_>>(), [docs]);
    let titled = "select count(*) from jobs where title = 'Attach docs.example.org as an alias of www.example.org'";
    assert_eq!(world.count(titled).await, 1);
    let told = "select count(*) from audit where action = 'name.attach' and detail ->> 'alias_of' = 'www.example.org'";
    assert_eq!(world.count(told).await, 1);
    at_field(all.attach(mia, all.site, "docs.example.org").await, "alias", "attached to a guest already");

    // What it is an alias of stays as long as it does, and is told by whom.
    conflict(world.ask(mia, DetachName { name: all.site }).await, "detach docs.example.org first");
    assert_eq!(all.shown(all.site).await.state, corpus_domain::NameState::Attached, "nothing was begun");
    world.ask(mia, DetachName { name: docs }).await.unwrap();
    assert_eq!(world.count("select count(*) from undoes where kind = 'name'").await, 0, "an alias is asked for as one");
    world.run("delete from dns_names where alias_of is not null").await;
    world.ask(mia, DetachName { name: all.site }).await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn who_may_not_and_what_can_not_be(db: PgPool) {
    let all = aliases(db).await;
    let (world, mia, bob) = (&all.world, &all.mia, &all.bob);
    hidden(all.attach(bob, all.site, "docs.example.org").await);
    let dan = world.member("dan", &[("atlas", ProjectRole::Developer)]).await;
    forbidden(all.attach(&dan, all.site, "docs.example.org").await);
    at_field(all.attach(mia, all.site, "docs.elsewhere.test").await, "alias", "no zone takes");
    at_field(all.attach(mia, all.site, "4.3.2.1.in-addr.arpa").await, "alias", "no zone takes");
    at_field(all.attach(mia, all.site, "www.example.org").await, "alias", "already");
    at_field(all.attach(&world.ops().await, all.site, "example.org").await, "alias", "the zone itself");
    world.run("insert into node_dns_names (node_id, name, zone_id) select n.id, 'node.example.org', z.id from nodes n, zones z").await;
    at_field(all.attach(mia, all.site, "node.example.org").await, "alias", "is not free");
    // What others made by hand is in the way, whatever it is.
    let sets = json!({ "rrsets": [{ "name": "known.example.org.", "type": "TXT", "ttl": 60, "changetype": "REPLACE",
        "records": [{ "content": "\"v=spf1 -all\"", "disabled": false }] }] });
    assert_eq!(all.server.by_hand(Method::PATCH, "zones/example.org.", sets).await, 204);
    at_field(all.attach(mia, all.site, "known.example.org").await, "alias", "known.example.org");

    let docs = all.attached("docs.example.org").await;
    conflict(all.attach(mia, docs, "more.example.org").await, "is an alias itself, of www.example.org");
    let point = PointGuest { guest: all.guests[0], name: Some(docs) };
    at_field(world.ask(mia, point).await, "name", "points to the name itself, www.example.org");
    world.run("update dns_names set state = 'failed' where alias_of is null").await;
    conflict(all.attach(mia, all.site, "more.example.org").await, "once it is attached");
    world.run("update dns_names set state = 'attached'").await;
    for number in 1..20 {
        all.attach(mia, all.site, &format!("a{number}.example.org")).await.unwrap();
    }
    conflict(all.attach(mia, all.site, "a20.example.org").await, "20 aliases, which is the most");

    world.run("delete from dns_names where alias_of is not null").await;
    world.run("update dns_names set wildcard = true").await;
    conflict(all.attach(mia, all.site, "docs.example.org").await, "all names below one");
    world.run("update dns_names set wildcard = false, zone_id = null").await;
    conflict(all.attach(mia, all.site, "docs.example.org").await, "that others hold");
}

#[sqlx::test(migrations = "../../migrations")]
async fn the_database_knows_no_alias_of_an_alias_and_no_circle(db: PgPool) {
    let all = aliases(db).await;
    let docs = all.attached("docs.example.org").await;
    let refused = async |statement: &'static str, rule: &str| {
        let error =
            sqlx::query(statement).bind(docs.0).bind(all.site.0).bind(all.guests[1].0).execute(&all.world.db).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains(rule), "{statement}: {error}");
    };
    let alias = "insert into dns_names (id, name, zone_id, guest_id, state, alias_of)
        select gen_random_uuid(), 'x.example.org', zone_id, guest_id, 'wanted', $1 from dns_names
        where id = $2 and guest_id <> $3";
    refused(alias, "is an alias itself").await;
    refused("update dns_names set alias_of = $1 where id = $2 and guest_id <> $3", "stays").await;
    refused("update dns_names set alias_of = null where id = $1 and id <> $2 and guest_id <> $3", "stays").await;
    let apart = "update dns_names set guest_id = $3 where id = $1 and id <> $2";
    refused(apart, "dns_names_alias_leads_along").await;
    refused("update dns_names set guest_id = $3 where id = $2 and id <> $1", "dns_names_alias_leads_along").await;
    refused("delete from dns_names where id = $2 and id <> $1 and guest_id <> $3", "dns_names_alias_leads_along").await;
    let wildcard = "update dns_names set wildcard = true where id = $1 and id <> $2 and guest_id <> $3";
    refused(wildcard, "dns_names_alias_is_of_ours").await;
    let elsewhere = "insert into dns_names (id, name, zone_id, guest_id, state, alias_of)
        select gen_random_uuid(), 'x.example.org', zone_id, $3, 'wanted', id from dns_names where id = $2 and id <> $1";
    refused(elsewhere, "dns_names_alias_leads_along").await;
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_switch_takes_its_aliases_along(db: PgPool) {
    let all = aliases(db).await;
    let (world, mia, [from, to]) = (&all.world, &all.mia, all.guests);
    let docs = all.attached("docs.example.org").await;
    let switch = |name| SwitchName { name, guest: Some(to), environment: None };
    conflict(world.ask(mia, switch(docs)).await, "is an alias of www.example.org");
    let job = world.ask(mia, switch(all.site)).await.unwrap().job;
    let locked: i64 = sqlx::query_scalar("select count(*) from job_locks where job_id = $1 and resource = $2")
        .bind(job.0)
        .bind(format!("name:{docs}"))
        .fetch_one(&world.db)
        .await
        .unwrap();
    assert_eq!(locked, 1, "what is done with its aliases waits");
    // As the job does it.
    let mut conn = world.db.acquire().await.unwrap();
    name_switches::prepare(&mut conn, all.site, (to, None)).await.unwrap();
    assert!(name_switches::switch(&mut conn, all.site, from, (to, None), true).await.unwrap());
    assert!(!name_switches::switch(&mut conn, all.site, from, (to, None), true).await.unwrap(), "once");
    let former = "select count(*) from dns_names where former_guest_id is not null";
    assert_eq!(world.count(former).await, 2);
    name_switches::settle_at(&mut conn, all.site, 0.0).await.unwrap();
    let over = "select count(*) from dns_names where former_until is not null";
    assert_eq!(world.count(over).await, 2);
    assert!(name_switches::end(&mut conn, all.site).await.unwrap());
    assert!(!name_switches::end(&mut conn, all.site).await.unwrap(), "once");
    assert_eq!(world.count(former).await, 0);
    drop(conn);
    assert_eq!([all.shown(all.site).await.guest, all.shown(docs).await.guest], [to, to]);
    world.ask(mia, DestroyGuest { guest: to }).await.unwrap();
    let mut conn = world.db.acquire().await.unwrap();
    names::delete_of_guest(&mut conn, to).await.unwrap();
    assert_eq!(world.count("select count(*) from dns_names").await, 0, "both go with their guest");
}

/// Up to where the node is needed.
#[sqlx::test(migrations = "../../migrations")]
async fn its_record_is_written_answered_and_taken_back(db: PgPool) {
    let all = aliases(db).await;
    let said = async || authority::aliases(all.server.dns, &name("docs.example.org")).await.unwrap();
    for step in ["wanted", "record", "answered"] {
        for fault in [Fault::FailBefore(step.to_owned()), Fault::FailAfter(step.to_owned())] {
            let (_, job) = all.attach(&all.mia, all.site, "docs.example.org").await.unwrap();
            let (state, why) = all.world.run_job(job, fault.clone()).await;
            assert_eq!(state, JobState::Undone, "{fault:?}: {why:?}");
            assert!(!why.clone().unwrap_or_default().contains("still answers"), "{fault:?}: {why:?}");
            assert_eq!(said().await, [""; 0], "{fault:?}");
            assert_eq!(all.world.count("select count(*) from dns_names").await, 1, "{fault:?}");
        }
    }
}

/// What it is another name for may be answered by another server: the alias is asked for by itself.
#[sqlx::test(migrations = "../../migrations")]
async fn it_is_looked_whether_it_is_answered(db: PgPool) {
    let all = aliases(db).await;
    let docs = all.attached("docs.example.org").await;
    let set = async |kind: &str, content: &str| {
        let set = json!({ "name": "docs.example.org.", "type": kind, "ttl": 60, "changetype": "REPLACE",
            "records": [{ "content": content, "disabled": false }] });
        assert_eq!(all.server.by_hand(Method::PATCH, "zones/example.org.", json!({ "rrsets": [set] })).await, 204);
    };
    let looked = async || {
        let mut conn = all.world.db.acquire().await.unwrap();
        let seen = evidence::these(&mut conn, &[docs.0]).await.unwrap();
        assert_eq!(seen[0].alias_of, Some(name("www.example.org")));
        drop(conn);
        all.world.controller.look_up_shown(&[docs.0]).await.unwrap();
        all.shown(docs).await.unanswered_reason
    };
    assert!(looked().await.unwrap().contains("does not answer that it is an alias of www.example.org"));
    set("CNAME", "www.example.org.").await;
    assert_eq!(looked().await, None);
    set("CNAME", "other.example.net.").await;
    assert!(looked().await.unwrap().contains("an alias of other.example.net, not of www.example.org"));
}
