//! Names that guests of an environment share: who is given their requests, and what a name may be switched to.

use corpus_api::environments::SetUpEnvironment;
use corpus_api::environments::balance::{AttachEnvironmentName, Balance, GetBalance, SetBalance};
use corpus_api::names::{GetName, SwitchName};
use corpus_api::undoes::{ListUndoes, Undo, Undoable};
use corpus_api::{Principal, Problem};
use corpus_domain::{BalancePolicy, DnsNameId, Environment, GuestId, JobId, ProjectRole, Stickiness};
use corpus_protocol::Pool;
use sqlx::PgPool;
use uuid::Uuid;

use super::world::{World, at_field, conflict, hidden, refusal};
use crate::dns::powerdns_server::PowerDnsServer;
use crate::store::balance::{self, Leaving, Why};
use crate::store::{name_switches, plan};

/// A project with two guests of dev, who share `shop.example.org`.
struct Shop {
    world: World,
    mia: Principal,
    guests: [GuestId; 2],
    name: DnsNameId,
}

impl Shop {
    async fn open(db: PgPool) -> Self {
        Self::of(World::new(db).await).await
    }

    async fn of(world: World) -> Self {
        let mut mia = world.member("mia", &[]).await;
        let project = world.project(&mut mia, "shop").await;
        let leader = world.environment(&mia, project, Environment::Dev).await;
        let follower = world.guest(project, Environment::Dev).await;
        let joins = SetUpEnvironment { project: "shop".parse().unwrap(), environment: None, guest: follower };
        world.ask(&mia, joins).await.unwrap();
        world.run("update environment_guests set state = 'ready'").await;
        world.run("update guests set routed = true").await;
        world.run("delete from jobs").await;
        world.run("insert into zones (id, name, open) values ('0199d3c0-0000-7000-8000-0000000000aa', 'example.org', true)").await;
        let name = world.named("shop.example.org", leader, Some("dev")).await;
        Self { world, mia, guests: [leader, follower], name }
    }

    async fn pools(&self) -> Vec<Pool> {
        let mut conn = self.world.db.acquire().await.unwrap();
        let around = self.world.controller.services.around();
        plan::current(&mut conn, self.world.node_id(), around).await.unwrap().unwrap().pools
    }

    /// Whether each guest, in the order of their names, is given requests.
    async fn active(&self) -> Vec<bool> {
        self.pools().await.remove(0).members.iter().map(|member| member.active).collect()
    }

    async fn leave(&self, at: usize, why: Why<'_>) -> Leaving {
        let mut tx = self.world.db.begin().await.unwrap();
        let left = balance::leave(&mut tx, self.guests[at], why).await.unwrap();
        tx.commit().await.unwrap();
        left
    }

    async fn shown(&self) -> Balance {
        let asked = GetBalance { project: "shop".parse().unwrap(), environment: Environment::Dev };
        self.world.ask(&self.mia, asked).await.unwrap()
    }

    async fn switch(&self, to: (Option<GuestId>, Option<Environment>)) -> Result<JobId, Problem> {
        let asked = SwitchName { name: self.name, guest: to.0, environment: to.1 };
        Ok(self.world.ask(&self.mia, asked).await?.job)
    }

    /// A job that runs, whatever it is.
    async fn job(&self) -> JobId {
        let version = self.shown().await.version;
        let (project, environment) = ("shop".parse().unwrap(), Environment::Dev);
        let (policy, stickiness) = (BalancePolicy::RoundRobin, Stickiness::None);
        self.world.ask(&self.mia, SetBalance { project, environment, policy, stickiness, version }).await.unwrap().job
    }
}

impl World {
    pub async fn named(&self, name: &str, guest: GuestId, environment: Option<&str>) -> DnsNameId {
        let id = Uuid::now_v7();
        sqlx::query(
            "insert into dns_names (id, name, zone_id, guest_id, environment, state, routed)
             select $1, $2, id, $3, $4, 'attached', true from zones",
        )
        .bind(id)
        .bind(name)
        .bind(guest.0)
        .bind(environment)
        .execute(&self.db)
        .await
        .unwrap();
        DnsNameId(id)
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn guests_share_a_name_and_one_at_a_time_is_out(db: PgPool) {
    let shop = Shop::open(db).await;
    assert_eq!(shop.active().await, [true, true]);
    let (one, other) = (shop.job().await, shop.job().await);
    assert!(matches!(shop.leave(0, Why::Works(one, "it deploys")).await, Leaving::Out(..)));
    assert_eq!(shop.active().await, [false, true]);
    assert!(matches!(shop.leave(0, Why::Works(one, "it deploys")).await, Leaving::Out(..)), "told again after a crash");
    assert_eq!(shop.leave(1, Why::Works(other, "it deploys")).await, Leaving::Wait, "never are both out");
    let shown = shop.shown().await;
    assert_eq!((shown.members[0].in_balance, shown.members[0].why.as_deref()), (false, Some("it deploys")));
    assert!(shown.members[1].in_balance && shown.is_shared());

    let mut conn = shop.world.db.acquire().await.unwrap();
    assert_eq!(balance::come_back_from(&mut conn, other).await.unwrap(), []);
    assert_eq!(balance::come_back_from(&mut conn, one).await.unwrap(), [shop.guests[0]]);
    drop(conn);
    assert_eq!(shop.active().await, [true, true]);

    // A job that is over keeps nobody out, however it ended.
    for over in ["done", "undone", "stuck", "abandoned"] {
        shop.world.run("update jobs set state = 'waiting', ended_at = null, comment = null").await;
        assert!(matches!(shop.leave(1, Why::Works(other, "it deploys")).await, Leaving::Out(..)));
        assert_eq!(shop.active().await, [true, false]);
        let end = "update jobs set state = $1, ended_at = case when $1 <> 'stuck' then now() end,
             comment = case when $1 = 'abandoned' then 'enough' end";
        sqlx::query(end).bind(over).execute(&shop.world.db).await.unwrap();
        assert_eq!(shop.active().await, [true, true], "{over}");
        shop.world.run("update environment_guests set out_since = null, out_reason = null, out_job = null").await;
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn one_that_goes_is_out_until_it_proves_and_the_last_one_stays(db: PgPool) {
    let shop = Shop::open(db).await;
    let job = shop.job().await;
    assert!(matches!(shop.leave(1, Why::Goes("it was stopped")).await, Leaving::Out(..)));
    shop.world.run("delete from jobs").await;
    assert_eq!(shop.active().await, [true, false]);
    assert_eq!(shop.leave(0, Why::Works(job, "it deploys")).await, Leaving::Last);
    assert_eq!(shop.active().await, [true, false]);
    let mut conn = shop.world.db.acquire().await.unwrap();
    assert!(balance::come_back(&mut conn, shop.guests[1]).await.unwrap());
    assert!(!balance::come_back(&mut conn, shop.guests[1]).await.unwrap());
    drop(conn);
    assert_eq!(shop.active().await, [true, true]);
    // What is live on the leader is not live there.
    shop.world.run("update environment_guests set live = '{\"deployment\": \"0199d3c0-0000-7000-8000-0000000000bb\", \"commit\": null, \"pillar\": null, \"since_ms\": 1}' where role = 'leader'").await;
    assert_eq!(shop.active().await, [true, false]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_name_of_one_guest_has_no_pool_and_stays_with_it_when_the_environment_goes(db: PgPool) {
    let shop = Shop::open(db).await;
    assert_eq!(shop.pools().await.len(), 1);
    shop.world.run("delete from environment_guests where role = 'follower'").await;
    assert_eq!(shop.pools().await, []);
    shop.world.run("delete from environment_guests").await;
    let kept = "select count(*) from dns_names where environment is null and project_id = (select id from projects)";
    assert_eq!(shop.world.count(kept).await, 1);
    let other = shop.guests[1];
    let stray = sqlx::query("update dns_names set environment = 'dev', guest_id = $1").bind(other.0);
    assert!(stray.execute(&shop.world.db).await.is_err(), "an environment's name leads to its leader");
}

#[sqlx::test(migrations = "../../migrations")]
async fn how_requests_are_spread_is_set_by_maintainers_who_saw_it(db: PgPool) {
    let shop = Shop::open(db).await;
    let version = shop.shown().await.version;
    let set = |who: Principal, version| {
        let world = &shop.world;
        async move {
            let (project, environment) = ("shop".parse().unwrap(), Environment::Dev);
            let (policy, stickiness) = (BalancePolicy::FewestConnections, Stickiness::Cookie);
            world.ask(&who, SetBalance { project, environment, policy, stickiness, version }).await
        }
    };
    let tom = shop.world.member("tom", &[("shop", ProjectRole::Developer)]).await;
    let eve = shop.world.member("eve", &[]).await;
    assert_eq!(refusal(set(tom, version.clone()).await).status, 403);
    hidden(set(eve.clone(), version.clone()).await);
    set(shop.mia.clone(), version.clone()).await.unwrap();
    assert_eq!(refusal(set(shop.mia.clone(), version).await).status, 412);
    let pool = shop.pools().await.remove(0);
    assert_eq!((pool.policy, pool.stickiness), (BalancePolicy::FewestConnections, Stickiness::Cookie));
    let name = "more.example.org".parse().unwrap();
    let asked = AttachEnvironmentName { project: "shop".parse().unwrap(), environment: Environment::Dev, name };
    hidden(shop.world.ask(&eve, asked).await);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_name_is_switched_within_its_project_and_back(db: PgPool) {
    let shop = Shop::open(db).await;
    let mut eve = shop.world.member("eve", &[]).await;
    let theirs = shop.world.project(&mut eve, "theirs").await;
    let foreign = shop.world.guest(theirs, Environment::Dev).await;
    let mallory = shop.world.member("mallory", &[("shop", ProjectRole::Viewer)]).await;
    hidden(shop.switch((Some(foreign), None)).await);
    hidden(shop.world.ask(&eve, SwitchName { name: shop.name, guest: Some(foreign), environment: None }).await);
    let as_viewer = SwitchName { name: shop.name, guest: Some(shop.guests[1]), environment: None };
    assert_eq!(refusal(shop.world.ask(&mallory, as_viewer).await).status, 403);
    hidden(shop.switch((None, Some(Environment::Prod))).await);
    at_field(shop.switch((None, None)).await, "guest", "guest or an environment");
    conflict(shop.switch((None, Some(Environment::Dev))).await, "there already");
    assert_eq!(shop.world.count("select count(*) from jobs where kind = 'name_switch'").await, 0);

    shop.world.run("update dns_names set environment = null, wildcard = true").await;
    conflict(shop.switch((Some(shop.guests[1]), None)).await, "*.shop.example.org is all names below one");
    conflict(shop.switch((None, Some(Environment::Dev))).await, "an environment's guests share no such names");
    let both = sqlx::query("update dns_names set environment = 'dev'").execute(&shop.world.db).await;
    assert!(both.is_err(), "an environment's name is no wildcard");
    shop.world.run("update dns_names set environment = 'dev', wildcard = false").await;

    shop.switch((Some(shop.guests[1]), None)).await.unwrap();
    let asked = ListUndoes { of: Some(Undoable::Switch), ..ListUndoes::default() };
    let told = shop.world.ask(&shop.mia, asked).await.unwrap().items;
    assert!(told[0].said.contains("was switched from dev of shop to guest"), "{}", told[0].said);
    // As the job does it.
    shop.world.run("delete from jobs").await;
    let mut conn = shop.world.db.acquire().await.unwrap();
    let [leader, follower] = shop.guests;
    let there = (follower, None);
    assert!(name_switches::switch(&mut conn, shop.name, leader, there, false).await.unwrap());
    assert!(!name_switches::switch(&mut conn, shop.name, leader, there, false).await.unwrap(), "once");
    drop(conn);
    let line = shop.world.ask(&shop.mia, GetName { name: shop.name }).await.unwrap();
    assert_eq!((line.guest, line.environment), (follower, None));
    assert_eq!(shop.pools().await, []);
    shop.world.ask(&shop.mia, Undo { undo: told[0].id }).await.unwrap();
    assert_eq!(shop.world.count("select count(*) from jobs where kind = 'name_switch'").await, 1);
    assert_eq!(shop.world.count("select count(*) from undoes where kind = 'switch'").await, 0);
}

/// To another node its record moves too: that must be ours to change, and those who have the former one gone soon.
#[sqlx::test(migrations = "../../migrations")]
async fn a_name_moves_to_another_node_only_where_its_record_can(db: PgPool) {
    let server = PowerDnsServer::start();
    let shop = Shop::of(World::asking(db, &server, World::rules()).await).await;
    let world = &shop.world;
    world
        .run(
            "insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, network, bridge)
             select '0199d3c0-0000-7000-8000-0000000000cc', '192.0.2.2', ssh_port, ssh_user, host_key, environments, state,
                 '10.6.0.1/16', bridge from nodes",
        )
        .await;
    let there = (Some(shop.guests[1]), None);
    // On the same node nothing of that counts.
    for odd in
        ["update zones set ttl_s = 86400", "update zones set provider = 'gone'", "update dns_names set zone_id = null"]
    {
        world.run(odd).await;
        shop.switch(there).await.unwrap();
        world.run("delete from jobs").await;
    }
    let away = "update guests set node_id = '0199d3c0-0000-7000-8000-0000000000cc' where ip = '10.5.0.11'";
    world.run(away).await;
    world.run("delete from environment_guests where role = 'follower'").await;
    conflict(shop.switch(there).await, "a zone that others hold, so its record stays as it is");
    world.run("update dns_names set zone_id = (select id from zones)").await;
    conflict(shop.switch(there).await, "The DNS server gone is not in Corpus' configuration any more");
    world.run("update zones set provider = 'powerdns'").await;
    conflict(shop.switch(there).await, "may be kept for 86400 s");
    world.run("update zones set ttl_s = 301").await;
    conflict(shop.switch(there).await, "once that is 300 s or less");
    assert_eq!(world.count("select count(*) from jobs where kind = 'name_switch'").await, 0);
    assert_eq!(world.count("select count(*) from dns_names where former_guest_id is not null").await, 0);
    world.run("update zones set ttl_s = 300").await;
    shop.switch(there).await.unwrap();
    assert_eq!(world.count("select count(*) from jobs where kind = 'name_switch'").await, 1);
    // Who may not switch it learns nothing of why it can't be.
    let eve = world.member("eve", &[]).await;
    world.run("update zones set ttl_s = 86400").await;
    hidden(world.ask(&eve, SwitchName { name: shop.name, guest: there.0, environment: None }).await);
}
