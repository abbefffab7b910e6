//! Names that are switched between guests and environments on different nodes: what each node is told on the way there and
//! back, and where the name leads.

use corpus_api::names::{GetName, SwitchName};
use corpus_domain::{Environment, GuestId, PoolId, ProjectId};
use corpus_protocol::{HttpRoute, NodePlan};
use sqlx::PgPool;

use super::spread::{Shop, shop};
use super::world::{at_field, conflict, hidden};
use crate::store::name_switches::{self, Former};
use crate::store::spread;

const NAME: &str = "shop.example.org";
/// Of the shop's dev, of prod.
const BLUE: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
const GREEN: [&str; 1] = ["192.0.2.3"];

fn route(plan: &NodePlan) -> Option<&HttpRoute> {
    plan.http_routes.iter().find(|route| route.name.as_str() == NAME)
}

/// Where the pool's members are: their address, and whether that is another node's.
fn members(plan: &NodePlan, id: &PoolId) -> Vec<(String, bool)> {
    let pool = plan.pools.iter().find(|pool| pool.id == *id);
    let members = pool.into_iter().flat_map(|pool| &pool.members);
    members.map(|member| (member.ip.to_string(), member.via.is_some())).collect()
}

impl Shop {
    /// An environment, or a guest by itself, on the third node.
    async fn elsewhere(&self, environment: Option<Environment>) -> GuestId {
        let project = sqlx::query_scalar("select id from projects").fetch_one(&self.world.db).await.unwrap();
        let guest = match environment {
            Some(environment) => self.world.environment(&self.mia, ProjectId(project), environment).await,
            None => self.world.guest(ProjectId(project), Environment::Dev).await,
        };
        let ip = if environment.is_some() { "10.5.0.10" } else { "10.5.0.11" };
        let moved = sqlx::query("update guests set node_id = $1, ip = $3, routed = true where id = $2");
        moved.bind(self.nodes[2].0).bind(guest.0).bind(ip).execute(&self.world.db).await.unwrap();
        guest
    }

    async fn plans(&self) -> [NodePlan; 3] {
        [self.plan(0).await, self.plan(1).await, self.plan(2).await]
    }

    async fn prepare(&self, to: (GuestId, Option<Environment>)) {
        name_switches::prepare(&mut self.world.db.acquire().await.unwrap(), self.name, to).await.unwrap();
    }

    async fn switch(&self, from: GuestId, to: (GuestId, Option<Environment>)) {
        let mut conn = self.world.db.acquire().await.unwrap();
        assert!(name_switches::switch(&mut conn, self.name, from, to, true).await.unwrap());
    }

    async fn former(&self) -> Option<Former> {
        name_switches::former(&mut self.world.db.acquire().await.unwrap(), self.name).await.unwrap()
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn nodes_of_both_ends_bring_visitors_to_what_the_name_leads_to(db: PgPool) {
    let shop = shop(db).await;
    let green = shop.elsewhere(Some(Environment::Prod)).await;
    let (leader, project) = (shop.guests[0], sqlx::query_scalar("select id from projects"));
    let project = ProjectId(project.fetch_one(&shop.world.db).await.unwrap());
    let [dev, prod] = [Environment::Dev, Environment::Prod].map(|of| PoolId::of(project, of));
    let before = shop.plans().await;
    assert!(route(&before[2]).is_none() && before[2].links.is_none());

    // Before it leads there, the new node is ready, and brings who comes to where it leads still.
    let to = (green, Some(Environment::Prod));
    shop.prepare(to).await;
    assert_eq!(shop.leads().await, BLUE);
    let plans = shop.plans().await;
    for plan in &plans[..2] {
        assert_eq!(route(plan).unwrap().pool.as_ref(), Some(&dev));
        assert_eq!(members(plan, &prod), [(GREEN[0].to_owned(), true)], "it is known, and nobody is brought there yet");
        assert!(plan.links.as_ref().unwrap().peers.contains(&GREEN[0].parse().unwrap()));
    }
    assert_eq!(route(&plans[2]).unwrap().pool.as_ref(), Some(&dev));
    assert_eq!(members(&plans[2], &dev), BLUE.map(|at| (at.to_owned(), true)));
    let links = plans[2].links.as_ref().unwrap();
    assert_eq!(links.lent[0].to, shop.nodes[..2]);
    assert_eq!(links.peers.iter().map(ToString::to_string).collect::<Vec<_>>(), BLUE);

    shop.switch(leader, to).await;
    assert_eq!(shop.leads().await, GREEN);
    let plans = shop.plans().await;
    for (at, plan) in plans[..2].iter().enumerate() {
        let own = route(plan).unwrap();
        assert_eq!(own.pool.as_ref(), Some(&prod));
        assert_eq!(own.guest, route(&before[at]).unwrap().guest, "where there is no way, it serves what it did");
    }
    let own = route(&plans[2]).unwrap();
    assert_eq!((own.pool.as_ref(), own.ip.to_string()), (None, "10.5.0.10".to_owned()), "it has the guest itself");
    assert_eq!(shop.former().await.unwrap().environment, Some(Environment::Dev));

    // Led back at once, it is as it was before it was switched.
    shop.switch(green, (leader, Some(Environment::Dev))).await;
    let plans = shop.plans().await;
    assert_eq!(shop.leads().await, BLUE);
    assert_eq!(plans.iter().map(|plan| route(plan).unwrap().pool.clone()).collect::<Vec<_>>(), vec![Some(dev); 3]);

    // Once resolvers have forgotten it the other end is nothing to the name any more, and its nodes are told so.
    let mut conn = shop.world.db.acquire().await.unwrap();
    name_switches::settle_at(&mut conn, shop.name, 60.0).await.unwrap();
    assert!(name_switches::over(&mut conn, 10).await.unwrap().is_empty());
    assert!(!name_switches::end(&mut conn, shop.name).await.unwrap());
    name_switches::settle_at(&mut conn, shop.name, 0.0).await.unwrap();
    assert_eq!(name_switches::over(&mut conn, 10).await.unwrap(), [shop.name]);
    drop(conn);
    shop.world.controller.end_switches().await.unwrap();
    assert_eq!(shop.former().await, None);
    let missed = "select count(*) from nodes where plan_missed > plan_revision";
    assert_eq!(shop.world.count(missed).await, 3);
    let plans = shop.plans().await;
    assert!(route(&plans[2]).is_none() && plans[2].links.is_none() && plans[2].pools.is_empty());
    for at in [0, 1] {
        assert_eq!((&plans[at].http_routes, &plans[at].pools), (&before[at].http_routes, &before[at].pools));
        assert_eq!(plans[at].links, before[at].links);
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_guest_by_itself_is_reached_from_the_other_nodes_too(db: PgPool) {
    let shop = shop(db).await;
    let alone = shop.elsewhere(None).await;
    let (leader, pool) = (shop.guests[0], PoolId::of_guest(alone));
    shop.prepare((alone, None)).await;
    assert_eq!(members(&shop.plan(0).await, &pool), [(GREEN[0].to_owned(), true)]);
    shop.switch(leader, (alone, None)).await;
    let plans = shop.plans().await;
    for plan in &plans[..2] {
        assert_eq!(route(plan).unwrap().pool.as_ref(), Some(&pool));
        assert_eq!(plan.pools.len(), 2, "what it led to goes on to be reached, to be led back to");
    }
    assert_eq!(route(&plans[2]).unwrap().pool, None);
    // A guest that goes takes nothing with it that others serve.
    let mut conn = shop.world.db.acquire().await.unwrap();
    sqlx::query("delete from environment_guests").execute(&mut *conn).await.unwrap();
    sqlx::query("delete from guests where id <> $1").bind(alone.0).execute(&mut *conn).await.unwrap();
    drop(conn);
    assert_eq!(shop.former().await, None);
    assert!(route(&shop.plan(2).await).is_some() && route(&shop.plan(0).await).is_none());
}

#[sqlx::test(migrations = "../../migrations")]
async fn it_is_asked_for_and_shown(db: PgPool) {
    let shop = shop(db).await;
    let green = shop.elsewhere(Some(Environment::Prod)).await;
    let asked = SwitchName { name: shop.name, guest: None, environment: Some(Environment::Prod) };
    shop.world.run("update zones set ttl_s = 301").await;
    conflict(shop.world.ask(&shop.mia, asked.clone()).await, "once that is 300 s or less");
    shop.world.run("update zones set ttl_s = 300").await;
    shop.world.run("update dns_names set zone_id = null").await;
    conflict(shop.world.ask(&shop.mia, asked.clone()).await, "what is on the same nodes only");
    shop.world.run("update dns_names set zone_id = (select id from zones)").await;
    let eve = shop.world.member("eve", &[]).await;
    hidden(shop.world.ask(&eve, asked.clone()).await);
    let job = shop.world.ask(&shop.mia, asked).await.unwrap().job;
    let params: serde_json::Value = sqlx::query_scalar("select params from jobs where id = $1")
        .bind(job.0)
        .fetch_one(&shop.world.db)
        .await
        .unwrap();
    assert_eq!((&params["moves"], &params["spread"]), (&true.into(), &true.into()), "{params}");

    let shown = async || shop.world.ask(&shop.mia, GetName { name: shop.name }).await.unwrap().addresses;
    shop.world.controller.spread_all().await.unwrap();
    assert_eq!(shown().await, BLUE);
    shop.switch(shop.guests[0], (green, Some(Environment::Prod))).await;
    shop.world.controller.spread_all().await.unwrap();
    assert_eq!(shown().await, GREEN);
    shop.world.controller.spread_all().await.unwrap();
    assert!(spread::noted(&mut shop.world.db.acquire().await.unwrap(), 10).await.unwrap().is_empty());
    drop(shop.server);
}

/// By names below `node.internal` nodes know each other.
#[sqlx::test(migrations = "../../migrations")]
async fn nobody_has_a_name_of_nodes(db: PgPool) {
    use corpus_api::claims::ClaimName;
    use corpus_api::names::AttachName;
    use corpus_api::zones::{CreateZone, ZoneAccess, ZoneProjects};
    let shop = shop(db).await;
    let (world, ops) = (&shop.world, shop.world.ops().await);
    let zone = |name: &str| CreateZone {
        name: name.parse().unwrap(),
        access: ZoneAccess::All,
        projects: ZoneProjects::default(),
        provider: None,
        ttl_s: None,
    };
    at_field(world.ask(&ops, zone("node.internal")).await, "name", "kept for what nodes are called");
    at_field(world.ask(&ops, zone("x.node.internal")).await, "name", "kept for what nodes are called");
    // Of an earlier release, there may be one.
    world.run("insert into zones (id, name, open) values (gen_random_uuid(), 'node.internal', true)").await;
    let name = corpus_protocol::link_name(shop.nodes[0]);
    for who in [&shop.mia, &ops] {
        let attach = |name: &str, wildcard| AttachName { guest: shop.guests[0], name: name.parse().unwrap(), wildcard };
        at_field(world.ask(who, attach(&name, false)).await, "name", "kept for what nodes are called");
        at_field(world.ask(who, attach(&name, true)).await, "name", "kept for what nodes are called");
        at_field(world.ask(who, attach("node.internal", true)).await, "name", "kept for what nodes are called");
    }
    world.run("delete from zones where name = 'node.internal'").await;
    let claim = ClaimName { guest: shop.guests[0], name: name.parse().unwrap() };
    at_field(world.ask(&shop.mia, claim).await, "name", "kept for what nodes are called");
}

/// Two that are not of one name are nothing to each other.
#[sqlx::test(migrations = "../../migrations")]
async fn others_are_lent_nothing(db: PgPool) {
    let shop = shop(db).await;
    let green = shop.elsewhere(Some(Environment::Prod)).await;
    let other = shop.elsewhere(None).await;
    shop.prepare((green, Some(Environment::Prod))).await;
    let plan = shop.plan(2).await;
    let guest: String = sqlx::query_scalar("select name from guests where id = $1")
        .bind(other.0)
        .fetch_one(&shop.world.db)
        .await
        .unwrap();
    assert!(plan.links.unwrap().lent.iter().all(|one| one.guest.as_str() != guest));
}
