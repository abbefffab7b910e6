//! Quotas: that no more is taken than is left, by whichever way and however many ask at once; and who sets them.

use std::sync::Arc;

use corpus_api::guests::{
    DestroyGuest, EnlargeGuest, GetGuestLimits, GuestRequested, PreviewGuest, RequestGuest, SetGuestLimits, StopGuest,
};
use corpus_api::jobs::CancelJob;
use corpus_api::names::AttachName;
use corpus_api::quotas::{
    GetQuota, GetQuotaPolicy, ListQuotas, ProjectQuota, QuotaPolicy, SetQuota, SetQuotaPolicy, Unlimited,
};
use corpus_api::zones::{CreateZone, ZoneAccess, ZoneProjects};
use corpus_api::{Principal, Problem};
use corpus_domain::{Backing, Environment, GuestId, JobId, ProjectId, ProjectRole, QuotaOf, SizeProfile};
use futures::future::join_all;
use sqlx::PgPool;

use super::upgrade;
use super::world::{World, at_field, conflict, forbidden, hidden, refusal};
use crate::dns::powerdns_server::PowerDnsServer;
use crate::store::{beside, counts, guests};

const GIB: u64 = 1 << 30;
const GB: u64 = 1_000_000_000;

/// Each has connections of its own, as requests have.
async fn at_once<F: Future>(asked: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    join_all(asked.into_iter().map(beside)).await
}

struct Shop {
    world: World,
    mia: Principal,
    ops: Principal,
    project: ProjectId,
}

/// Mia's shop, and a node that has room for all.
async fn shop(db: PgPool) -> Shop {
    let world = World::new(db).await;
    world.run("update nodes set slots = 4096, reachability = 'reachable'").await;
    let mut mia = world.member("mia", &[]).await;
    let project = world.project(&mut mia, "shop").await;
    let ops = world.ops().await;
    Shop { world, mia, ops, project }
}

fn wanted(name: &str) -> RequestGuest {
    RequestGuest::new("shop".parse().unwrap(), Environment::Dev, name.parse().unwrap(), SizeProfile::Small)
}

impl Shop {
    async fn request(&self, wanted: RequestGuest) -> Result<GuestRequested, Problem> {
        self.world.ask(&self.mia, wanted).await
    }

    /// So much of one thing for all projects, and of nothing else a limit.
    async fn allow(&self, of: QuotaOf, limit: u64) -> QuotaPolicy {
        let version = self.world.ask(&self.ops, GetQuotaPolicy {}).await.unwrap().version;
        self.world.ask(&self.ops, policy(of, limit, version)).await.unwrap()
    }

    async fn quota(&self) -> ProjectQuota {
        self.world.ask(&self.mia, GetQuota { project: "shop".parse().unwrap() }).await.unwrap()
    }

    async fn used(&self, of: QuotaOf) -> u64 {
        self.quota().await.of_thing(of).used
    }
}

fn policy(of: QuotaOf, limit: u64, version: corpus_api::Version) -> SetQuotaPolicy {
    let only = |one: QuotaOf| (one == of).then_some(limit);
    SetQuotaPolicy {
        guests: only(QuotaOf::Guests).map(|limit| limit.try_into().unwrap()),
        memory: only(QuotaOf::Memory).map(|limit| limit.try_into().unwrap()),
        cpu: only(QuotaOf::Cpu).map(|limit| limit.try_into().unwrap()),
        storage: only(QuotaOf::Storage).map(|limit| limit.try_into().unwrap()),
        names: only(QuotaOf::Names).map(|limit| limit.try_into().unwrap()),
        ports: only(QuotaOf::Ports).map(|limit| limit.try_into().unwrap()),
        backups: only(QuotaOf::Backups).map(|limit| limit.try_into().unwrap()),
        version,
    }
}

/// A quota of its own that is as the policy says but for what the test sets.
fn own(version: corpus_api::Version) -> SetQuota {
    SetQuota {
        project: "shop".parse().unwrap(),
        guests: None,
        memory: None,
        cpu: None,
        storage: None,
        names: None,
        ports: None,
        backups: None,
        unlimited: Unlimited::default(),
        version,
    }
}

/// How many were taken; all others were refused at this field.
#[track_caller]
fn taken<T>(outcomes: Vec<Result<T, Problem>>, field: &str) -> usize {
    let all = outcomes.len();
    let refused: Vec<Problem> = outcomes.into_iter().filter_map(Result::err).collect();
    for problem in &refused {
        assert_eq!((problem.word(), problem.errors[0].field.as_str()), ("fields", field), "{problem:?}");
        assert!(problem.errors[0].detail.contains("has taken"), "{problem:?}");
    }
    all - refused.len()
}

#[sqlx::test(migrations = "../../migrations")]
async fn without_a_quota_nothing_is_limited(db: PgPool) {
    let shop = shop(db).await;
    for number in 0..5 {
        shop.request(wanted(&format!("g{number}.test"))).await.unwrap();
    }
    let quota = shop.quota().await;
    let uses: Vec<u64> = QuotaOf::ALL.iter().map(|of| quota.of_thing(*of).used).collect();
    assert_eq!(uses, [5, 5 * GIB, 5000, 10 * GB, 0, 0, 0]);
    assert!(QuotaOf::ALL.iter().all(|of| quota.of_thing(*of).limit.is_none() && !quota.of_thing(*of).is_own));
}

#[sqlx::test(migrations = "../../migrations")]
async fn of_many_at_once_as_many_get_a_guest_as_are_left(db: PgPool) {
    let shop = shop(db).await;
    shop.allow(QuotaOf::Guests, 2).await;
    let asked = (0..20).map(|number| shop.request(wanted(&format!("g{number}.test"))));
    assert_eq!(taken(at_once(asked).await, "project"), 2);
    assert_eq!((shop.used(QuotaOf::Guests).await, shop.world.count("select count(*) from guests").await), (2, 2));
    let told = refusal(shop.request(wanted("one.test")).await);
    let expected = "project shop has taken 2 of 2 guests, and this takes 1 more: nothing is left. Destroy a guest that is not \
                    needed any more, or ask an operator to raise its quota.";
    assert_eq!((told.status, told.errors[0].detail.as_str()), (422, expected));
    let told = refusal(shop.world.ask(&shop.ops, wanted("one.test")).await);
    assert!(told.errors[0].detail.ends_with("or raise its quota on its page."), "{told:?}");
}

/// What all take of one amount, by requests, other limits and larger storage at once.
#[sqlx::test(migrations = "../../migrations")]
async fn whatever_takes_of_a_quota_takes_no_more_than_is_left(db: PgPool) {
    let shop = shop(db).await;
    let mut made = Vec::new();
    for number in 0..6 {
        let looped = RequestGuest { backing: Some(Backing::Loop), ..wanted(&format!("g{number}.test")) };
        made.push(shop.request(looped).await.unwrap().guest);
    }
    shop.world.run("update guests set state = 'running'").await;
    shop.world.run("delete from jobs").await;

    shop.allow(QuotaOf::Memory, 9 * GIB).await;
    let more = made.iter().map(|guest| limit(&shop, *guest, "2 GiB"));
    let new = (0..6).map(|number| shop.request(wanted(&format!("h{number}.test"))));
    let (more, new) = tokio::join!(at_once(more), at_once(new));
    assert_eq!(taken(more, "memory") + taken(new, "memory"), 3);
    assert_eq!(shop.used(QuotaOf::Memory).await, 9 * GIB);

    shop.world.run("delete from guests where name like 'h%'").await;
    shop.allow(QuotaOf::Storage, 41 * GB).await;
    let larger = made.iter().map(|guest| enlarge(&shop, *guest));
    let new = (0..6).map(|number| shop.request(wanted(&format!("h{number}.test"))));
    let (larger, new) = tokio::join!(at_once(larger), at_once(new));
    let (larger, new) = (taken(larger, "size") as u64, taken(new, "size") as u64);
    assert_eq!(shop.used(QuotaOf::Storage).await, 30 * GB + larger * 5 * GB + new * 2 * GB);
    assert!(larger * 5 + new * 2 >= 10 && larger * 5 + new * 2 <= 11, "{larger} {new}");
}

async fn limit(shop: &Shop, guest: GuestId, memory: &str) -> Result<(), Problem> {
    let version = shop.world.ask(&shop.mia, GetGuestLimits { guest }).await?.version;
    let memory = memory.parse().ok();
    let set = SetGuestLimits { guest, version, memory, cpu: None, processes: None, io_weight: None };
    shop.world.ask(&shop.mia, set).await.map(drop)
}

async fn enlarge(shop: &Shop, guest: GuestId) -> Result<(), Problem> {
    shop.world.ask(&shop.mia, EnlargeGuest { guest, size: SizeProfile::Medium }).await.map(drop)
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_is_being_enlarged_is_promised_until_it_is_done_or_undone(db: PgPool) {
    let shop = shop(db).await;
    let looped = RequestGuest { backing: Some(Backing::Loop), ..wanted("a.test") };
    let guest = shop.request(looped).await.unwrap().guest;
    conflict(enlarge(&shop, guest).await, "creating");
    shop.world.run("update guests set state = 'running'").await;
    shop.allow(QuotaOf::Storage, 10 * GB).await;
    enlarge(&shop, guest).await.unwrap();
    assert_eq!(shop.used(QuotaOf::Storage).await, 10 * GB);
    conflict(enlarge(&shop, guest).await, "just being enlarged");
    at_field(shop.request(wanted("b.test")).await, "size", "nothing is left");
    // As the undo does it.
    let mut conn = shop.world.db.acquire().await.unwrap();
    guests::settle_storage(&mut conn, guest).await.unwrap();
    assert_eq!(shop.used(QuotaOf::Storage).await, 5 * GB);
    // And as the job does it that grew.
    shop.world.run("update jobs set state = 'undone', ended_at = now()").await;
    enlarge(&shop, guest).await.unwrap();
    guests::set_size(&mut conn, guest, SizeProfile::Medium).await.unwrap();
    guests::settle_storage(&mut conn, guest).await.unwrap();
    assert_eq!(shop.used(QuotaOf::Storage).await, 10 * GB);
}

#[sqlx::test(migrations = "../../migrations")]
async fn each_thing_is_held_at_its_field(db: PgPool) {
    let shop = shop(db).await;
    for (of, limit, field) in [
        (QuotaOf::Guests, 0, "project"),
        (QuotaOf::Memory, GIB - 1, "memory"),
        (QuotaOf::Cpu, 999, "cpu"),
        (QuotaOf::Storage, 2 * GB - 1, "size"),
        (QuotaOf::Names, 1, "names"),
    ] {
        shop.allow(of, limit).await;
        let names = vec!["a.test".parse().unwrap(), "b.test".parse().unwrap()].try_into().unwrap();
        let asked = RequestGuest { names, ..wanted("a.test") };
        at_field(shop.request(asked.clone()).await, field, "ask an operator");
        if of != QuotaOf::Names {
            let preview = PreviewGuest {
                name: None,
                project: asked.project,
                environment: asked.environment,
                profile: None,
                size: asked.size,
                node: None,
                memory: None,
                cpu: None,
                processes: None,
                io_weight: None,
                backing: None,
            };
            let preview = shop.world.ask(&shop.mia, preview).await.unwrap();
            assert_eq!((preview.wrong.len(), preview.wrong[0].field.as_str()), (1, field));
            assert_eq!(preview.quota.of_thing(of).limit, Some(limit));
        }
    }
    assert_eq!(shop.world.count("select count(*) from guests").await, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_is_lowered_takes_nothing_away_and_gives_nothing_more(db: PgPool) {
    let shop = shop(db).await;
    for name in ["a.test", "b.test", "c.test"] {
        shop.request(wanted(name)).await.unwrap();
    }
    shop.world.run("update guests set state = 'running'").await;
    shop.world.run("delete from jobs").await;
    shop.allow(QuotaOf::Guests, 1).await;
    let quota = shop.quota().await;
    assert_eq!((quota.guests.used, quota.guests.limit, quota.guests.left), (3, Some(1), Some(0)));
    at_field(shop.request(wanted("d.test")).await, "project", "3 of 1 guest");
    shop.allow(QuotaOf::Memory, GIB).await;
    let id = sqlx::query_scalar("select id from guests where name = 'a.test'").fetch_one(&shop.world.db).await.unwrap();
    at_field(limit(&shop, GuestId(id), "2 GiB").await, "memory", "3 GiB of 1 GiB");
    limit(&shop, GuestId(id), "512 MiB").await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_is_given_back_can_be_taken_again(db: PgPool) {
    let shop = shop(db).await;
    shop.allow(QuotaOf::Guests, 1).await;
    // Of a request that fails nothing is taken.
    let elsewhere = RequestGuest { ip: "10.6.0.1".parse().ok(), ..wanted("a.test") };
    at_field(shop.request(elsewhere).await, "ip", "not an address");
    for _ in 0..3 {
        let guest = shop.request(wanted("a.test")).await.unwrap().guest;
        at_field(shop.request(wanted("b.test")).await, "project", "1 of 1 guest");
        // It counts until its row is gone: as the undo of its making and the job that destroys it do it.
        shop.world.run("update guests set state = 'destroying'").await;
        at_field(shop.request(wanted("b.test")).await, "project", "1 of 1 guest");
        shop.world.run("delete from jobs").await;
        guests::delete(&mut shop.world.db.acquire().await.unwrap(), guest).await.unwrap();
        counts::fold(&mut shop.world.db.acquire().await.unwrap()).await.unwrap();
    }
    let uses = shop.quota().await;
    assert!(QuotaOf::ALL.iter().all(|of| uses.of_thing(*of).used == 0), "{uses:?}");
}

/// Nothing of it began, so no undo takes back what the request noted.
#[sqlx::test(migrations = "../../migrations")]
async fn what_is_cancelled_before_it_begins_is_free_again(db: PgPool) {
    let shop = shop(db).await;
    shop.world.run("insert into zones (id, name, open) values (gen_random_uuid(), 'example.org', true)").await;
    let uses = async || {
        let quota = shop.quota().await;
        QuotaOf::ALL.iter().map(|of| quota.of_thing(*of).used).collect::<Vec<_>>()
    };
    let cancel = async |job| shop.world.ask(&shop.mia, CancelJob { job }).await.unwrap();
    let names = vec!["a.example.org".parse().unwrap()].try_into().unwrap();
    let looped = RequestGuest { backing: Some(Backing::Loop), names, ..wanted("a.test") };
    let made = shop.request(looped.clone()).await.unwrap();
    assert_eq!(uses().await, [1, GIB, 1000, 5 * GB, 1, 0, 0]);
    cancel(made.job).await;
    assert_eq!(uses().await, [0; 7]);
    let guest = shop.request(looped).await.unwrap().guest;
    shop.world.run("delete from jobs where kind = 'guest_create'").await;
    shop.world.run("update guests set state = 'running', should_run = true").await;
    let newest = async || {
        sqlx::query_scalar::<_, uuid::Uuid>(
            "select id from jobs where state = 'waiting' order by queue_order desc limit 1",
        )
        .fetch_one(&shop.world.db)
        .await
        .unwrap()
    };
    enlarge(&shop, guest).await.unwrap();
    limit(&shop, guest, "2 GiB").await.unwrap();
    assert_eq!(uses().await, [1, 2 * GIB, 1000, 10 * GB, 1, 0, 0]);
    cancel(JobId(newest().await)).await;
    cancel(JobId(newest().await)).await;
    assert_eq!(uses().await, [1, GIB, 1000, 5 * GB, 1, 0, 0]);
    cancel(JobId(newest().await)).await;
    assert_eq!(uses().await, [1, GIB, 1000, 5 * GB, 0, 0, 0], "the name that it was to get");
    let state = "select count(*) from guests where state = 'running'";
    for _ in 0..2 {
        let job = shop.world.ask(&shop.mia, DestroyGuest { guest }).await.unwrap().job;
        assert_eq!(shop.world.count(state).await, 0);
        cancel(job).await;
        assert_eq!(shop.world.count(state).await, 1, "it can be destroyed yet");
    }
    let job = shop.world.ask(&shop.mia, StopGuest { guest }).await.unwrap().job;
    cancel(job).await;
    assert_eq!(shop.world.count(state).await, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn of_many_at_once_as_many_get_a_name_as_are_left(db: PgPool) {
    let server = PowerDnsServer::start();
    let world = World::with(db, Some(Arc::new(server.provider())), None, World::rules()).await;
    let ops = world.ops().await;
    let zone = CreateZone {
        name: "example.org".parse().unwrap(),
        access: ZoneAccess::All,
        projects: ZoneProjects::default(),
        provider: None,
        ttl_s: None,
    };
    world.ask(&ops, zone).await.unwrap();
    let mut mia = world.member("mia", &[]).await;
    let project = world.project(&mut mia, "shop").await;
    let shop = Shop { world, mia, ops, project };
    let guest = shop.world.guest(shop.project, Environment::Dev).await;
    shop.allow(QuotaOf::Names, 3).await;
    let attach = |number: usize| {
        let name = format!("w{number}.example.org").parse().unwrap();
        shop.world.ask(&shop.mia, AttachName { guest, name, wildcard: false })
    };
    assert_eq!(taken(at_once((0..12).map(attach)).await, "name"), 3);
    assert_eq!((shop.used(QuotaOf::Names).await, shop.world.count("select count(*) from dns_names").await), (3, 3));
    let told = refusal(attach(99).await);
    assert!(told.errors[0].detail.starts_with("project shop has taken 3 of 3 DNS names"), "{told:?}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn operators_set_quotas_and_others_see_their_own(db: PgPool) {
    let shop = shop(db).await;
    let world = &shop.world;
    let mut bob = world.member("bob", &[]).await;
    world.project(&mut bob, "other").await;
    let eva = world.member("eva", &[("shop", ProjectRole::Viewer)]).await;
    let of_shop = || GetQuota { project: "shop".parse().unwrap() };
    let version = world.ask(&eva, of_shop()).await.unwrap().version;
    hidden(world.ask(&bob, of_shop()).await);
    hidden(world.ask(&bob, own(version.clone())).await);
    forbidden(world.ask(&shop.mia, own(version.clone())).await);
    let of_policy = world.ask(&bob, GetQuotaPolicy {}).await.unwrap().version;
    forbidden(world.ask(&shop.mia, policy(QuotaOf::Guests, 99, of_policy)).await);

    shop.allow(QuotaOf::Guests, 1).await;
    let both = vec![QuotaOf::Memory, QuotaOf::Guests].try_into().unwrap();
    let twice = SetQuota { guests: 5_u64.try_into().ok(), unlimited: both, ..own(version.clone()) };
    at_field(world.ask(&shop.ops, twice).await, "guests", "choose one");
    let unlimited: Unlimited = vec![QuotaOf::Memory].try_into().unwrap();
    let more = SetQuota { guests: 2_u64.try_into().ok(), unlimited: unlimited.clone(), ..own(version.clone()) };
    let set = world.ask(&shop.ops, more.clone()).await.unwrap();
    assert_eq!((set.guests.limit, set.guests.is_own), (Some(2), true));
    assert_eq!((set.memory.limit, set.memory.is_own), (None, true));
    assert_eq!((set.cpu.limit, set.cpu.is_own), (None, false));
    // Another tab, which saw what was before.
    let late = world.ask(&shop.ops, SetQuota { guests: 9_u64.try_into().ok(), ..own(version) }).await.unwrap_err();
    assert_eq!(late.status, 412, "{late:?}");
    assert!(late.text().contains("Changed by ops"), "{late:?}");
    // The same again changes nothing, and is no change in the audit.
    world.ask(&shop.ops, SetQuota { version: set.version.clone(), ..more }).await.unwrap();
    let audited = "select count(*) from audit where action = 'project.quota' and subject = 'shop'
                   and detail -> 'to' = '{\"guests\": 2, \"memory\": \"no limit\"}'";
    assert_eq!(world.count(audited).await, 1);
    assert_eq!(world.count("select count(*) from audit where action like '%quota%'").await, 2);

    // A quota of its own goes before the default, until it is given up.
    shop.allow(QuotaOf::Memory, 0).await;
    shop.request(wanted("a.test")).await.unwrap();
    let names = async |who: &Principal, own| {
        let asked = ListQuotas { own, ..ListQuotas::default() };
        let page = world.ask(who, asked).await.unwrap();
        page.items.into_iter().map(|one| one.project.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(&shop.ops, None).await, ["other", "shop"]);
    assert_eq!(names(&shop.ops, Some(true)).await, ["shop"]);
    assert_eq!(names(&shop.mia, None).await, ["shop"]);
    assert_eq!(names(&bob, None).await, ["other"]);
    assert_eq!(names(&bob, Some(true)).await, Vec::<String>::new());
    world.ask(&shop.ops, own(set.version)).await.unwrap();
    assert_eq!(names(&shop.ops, Some(true)).await, Vec::<String>::new());
    at_field(shop.request(wanted("b.test")).await, "memory", "of 0 MiB");
    let first = world.ask(&shop.ops, ListQuotas { limit: 1.try_into().ok(), ..ListQuotas::default() }).await.unwrap();
    let second = world.ask(&shop.ops, ListQuotas { cursor: first.next, ..ListQuotas::default() }).await.unwrap();
    let (first, second) = (first.items[0].project.to_string(), second.items[0].project.to_string());
    assert_eq!((first.as_str(), second.as_str()), ("other", "shop"));
    let of_role = ListQuotas { role: Some(ProjectRole::Maintainer), ..ListQuotas::default() };
    assert!(world.ask(&eva, of_role).await.unwrap().items.is_empty());
}

#[sqlx::test(migrations = "../../migrations")]
async fn the_policy_is_not_changed_unseen(db: PgPool) {
    let shop = shop(db).await;
    let seen = shop.world.ask(&shop.ops, GetQuotaPolicy {}).await.unwrap().version;
    shop.allow(QuotaOf::Guests, 3).await;
    let late = shop.world.ask(&shop.ops, policy(QuotaOf::Guests, 9, seen)).await.unwrap_err();
    assert!(late.status == 412 && late.text().contains("Changed by ops"), "{late:?}");
    assert_eq!(shop.world.ask(&shop.ops, GetQuotaPolicy {}).await.unwrap().guests, Some(3));
    assert!(sqlx::query("insert into quota_policy default values").execute(&shop.world.db).await.is_err());
    assert!(sqlx::query("update quota_policy set memory = -1").execute(&shop.world.db).await.is_err());
}

/// A project that is destroyed leaves no quota; one of that name made anew begins with the policy's.
#[sqlx::test(migrations = "../../migrations")]
async fn a_quota_ends_with_its_project(db: PgPool) {
    let shop = shop(db).await;
    let version = shop.quota().await.version;
    let set = SetQuota { guests: 2_u64.try_into().ok(), ..own(version) };
    shop.world.ask(&shop.ops, set).await.unwrap();
    super::ending::destroyed(&shop.world, &shop.mia).await;
    assert_eq!(shop.world.count("select count(*) from project_quotas").await, 0);
}

/// Whoever had guests before there were quotas has no limit now, and what is taken is counted.
#[sqlx::test(migrations = false)]
async fn an_upgrade_limits_nobody_and_counts_what_is_there(pool: PgPool) {
    const THIS: i64 = 49;
    upgrade::until(&pool, THIS).await;
    let fill = "
        insert into projects (id, name) values ('00000000-0000-0000-0000-000000000001', 'atlas'),
            ('00000000-0000-0000-0000-000000000002', 'empty');
        insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, network, bridge)
            values ('00000000-0000-0000-0000-000000000003', '192.0.2.1', 22, 'root', 'k', '{dev}', 'ready',
                '10.5.0.1/16', 'lxcbr1');
        insert into guests (id, name, node_id, project_id, environment, driver, image, backing, size, mode, state,
                memory, cpu_millis, storage)
            select gen_random_uuid(), 'g' || n || '.test', '00000000-0000-0000-0000-000000000003',
                '00000000-0000-0000-0000-000000000001', 'dev', 'lxc', 'debian-12', 'overlayfs', 'small', 'masterless',
                'creating', 1073741824::bigint * n, 1000 * n, 2000000000
            from generate_series(1, 3) n;
        select fold_tallies();
        update guests set state = 'failed'";
    sqlx::raw_sql(fill).execute(&pool).await.unwrap();
    upgrade::since(&pool, THIS).await;
    let mut conn = pool.acquire().await.unwrap();
    let all = [1, 2].map(uuid::Uuid::from_u128);
    for _ in 0..2 {
        let quotas = crate::store::quotas::of(&mut conn, &all).await.unwrap();
        let uses: Vec<Vec<u64>> =
            quotas.iter().map(|quota| QuotaOf::ALL.iter().map(|of| quota.of_thing(*of).used).collect()).collect();
        assert_eq!(uses, [vec![3, 6 * GIB, 6000, 6 * GB, 0, 0, 0], vec![0; 7]]);
        assert!(quotas.iter().all(|quota| quota.limited(QuotaOf::ALL).is_none()));
        sqlx::raw_sql("select fold_tallies()").execute(&mut *conn).await.unwrap();
    }
}
