//! Previews: what a push of a branch asks for, how many there may be whoever asks at once, whose they are, and their end.

use std::sync::Arc;
use std::time::Duration;

use corpus_api::guests::RequestGuest;
use corpus_api::jobs::{CancelJob, JobAccepted};
use corpus_api::previews::{
    GetPreviewRules, KeepPreview, ListPreviews, MakePreview, PreviewAccepted, PreviewRules, RemovePreview,
    SetPreviewRules,
};
use corpus_api::projects::members::SetMember;
use corpus_api::projects::{CreateProject, DestroyProject, ListProjects};
use corpus_api::quotas::GetQuota;
use corpus_api::robots::CreateRobot;
use corpus_api::zones::{CreateZone, ZoneAccess, ZoneProjects};
use corpus_api::{Principal, Problem};
use corpus_domain::{
    CommitId, Environment, JobId, PreviewName, ProjectName, ProjectRole, QuotaOf, SizeProfile, UserId,
};
use futures::future::join_all;
use sqlx::PgPool;
use uuid::Uuid;

use super::world::{World, at_field, conflict, forbidden, hidden, refusal};
use crate::dns::powerdns_server::PowerDnsServer;
use crate::jobs::testing::Trial;
use crate::services::Services;
use crate::store::beside;

struct Shop {
    world: World,
    _dns: PowerDnsServer,
    /// Its maintainer.
    mia: Principal,
    /// A developer of it.
    dan: Principal,
}

fn named(name: &str) -> ProjectName {
    name.parse().unwrap()
}

fn preview(name: &str) -> PreviewName {
    name.parse().unwrap()
}

fn commit(digit: &str) -> CommitId {
    digit.repeat(40).parse().unwrap()
}

impl Shop {
    /// Shop with a dev, a node with room, and a zone.
    async fn new(db: PgPool) -> Self {
        let dns = PowerDnsServer::start();
        let world = World::with(db, Some(Arc::new(dns.provider())), None, World::rules()).await;
        world.run("update nodes set slots = 4096, reachability = 'reachable'").await;
        let mut mia = world.member("mia", &[]).await;
        let id = world.project(&mut mia, "shop").await;
        world.environment(&mia, id, Environment::Dev).await;
        let dan = world.member("dan", &[("shop", ProjectRole::Developer)]).await;
        let zone = CreateZone {
            name: "example.org".parse().unwrap(),
            access: ZoneAccess::All,
            projects: ZoneProjects::default(),
            provider: None,
            ttl_s: None,
        };
        world.ask(&world.ops().await, zone).await.unwrap();
        Self { world, _dns: dns, mia, dan }
    }

    async fn allow(&self, who: &Principal, most: u64, domain: Option<&str>) -> Result<PreviewRules, Problem> {
        let version = self.world.ask(who, GetPreviewRules { project: named("shop") }).await?.version;
        let asked = SetPreviewRules {
            project: named("shop"),
            most: most.try_into().unwrap(),
            domain: domain.map(|domain| domain.parse().unwrap()),
            size: SizeProfile::Xsmall,
            days: 7_u64.try_into().unwrap(),
            version,
        };
        self.world.ask(who, asked).await
    }

    async fn make(&self, who: &Principal, name: &str, digit: &str) -> Result<PreviewAccepted, Problem> {
        let asked = MakePreview { project: named("shop"), preview: preview(name), commit: commit(digit) };
        self.world.ask(who, asked).await
    }

    async fn remove(&self, who: &Principal, name: &str) -> Result<JobAccepted, Problem> {
        self.world.ask(who, RemovePreview { project: named("shop"), preview: preview(name) }).await
    }

    async fn keep(&self, name: &str) -> Result<(), Problem> {
        let asked = KeepPreview { project: named("shop"), preview: preview(name) };
        self.world.ask(&self.dan, asked).await.map(drop)
    }

    /// Who they are now, with their roles in what was made meanwhile.
    async fn now(&self, who: &Principal) -> Principal {
        self.world.principal(who.id).await
    }

    async fn jobs(&self) -> Vec<String> {
        let all = "select kind from jobs order by queue_order";
        sqlx::query_scalar(all).fetch_all(&self.world.db).await.unwrap()
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_branch_gets_a_project_with_all_that_it_needs(db: PgPool) {
    let shop = Shop::new(db).await;
    conflict(shop.make(&shop.dan, "login", "1").await, "has no previews");
    forbidden(shop.allow(&shop.dan, 2, Some("preview.example.org")).await);
    at_field(shop.allow(&shop.mia, 2, None).await, "domain", "need a name");
    at_field(shop.allow(&shop.mia, 2, Some("example.net")).await, "domain", "no zone");
    shop.allow(&shop.mia, 2, Some("preview.example.org")).await.unwrap();

    let made = shop.make(&shop.dan, "login", "1").await.unwrap();
    assert_eq!((made.project.as_str(), made.name.as_str()), ("shop--login", "login.preview.example.org"));
    assert_eq!(shop.jobs().await, ["guest_create", "name_attach", "environment_set_up", "deploy"]);
    let ordered: serde_json::Value =
        sqlx::query_scalar("select ordered -> 'source' from deployments").fetch_one(&shop.world.db).await.unwrap();
    assert_eq!((ordered["type"].as_str(), ordered["commit"].as_str()), (Some("release"), Some(&*"1".repeat(40))));

    // Its members are those of the project, and nobody else knows of it.
    let (mia, dan, bob) = (shop.now(&shop.mia).await, shop.now(&shop.dan).await, shop.world.member("bob", &[]).await);
    let seen = shop.world.seen(&dan, "shop--login").await.unwrap();
    let of = seen.preview.unwrap();
    assert_eq!((seen.role, of.project.as_str(), seen.members), (Some(ProjectRole::Developer), "shop", 2));
    assert_eq!(shop.world.seen(&mia, "shop--login").await.unwrap().role, Some(ProjectRole::Maintainer));
    hidden(shop.world.seen(&bob, "shop--login").await);
    hidden(shop.make(&bob, "login", "1").await);
    let entrants = "select count(*) from guest_entrants e join guests g on g.id = e.guest_id
        join projects p on p.id = g.project_id where p.parent_id is not null";
    assert_eq!(shop.world.count(entrants).await, 3, "mia, dan and the operator enter its guest");
    let listed = shop.world.ask(&mia, ListProjects::default()).await.unwrap().items;
    assert_eq!(listed.iter().map(|line| line.name.as_str()).collect::<Vec<_>>(), ["shop"]);
    let previews = shop.world.ask(&dan, ListPreviews { project: named("shop") }).await.unwrap();
    let line = &previews.items[0];
    assert_eq!((line.branch.as_str(), line.by.as_ref().unwrap().as_str()), ("preview/login", "dan"));

    // What it takes is taken of the project.
    for project in ["shop", "shop--login"] {
        let quota = shop.world.ask(&mia, GetQuota { project: named(project) }).await.unwrap();
        assert_eq!((quota.project.as_str(), quota.of_thing(QuotaOf::Guests).used), ("shop", 2), "{project}");
    }

    // Pushed again it is deployed again, and nothing else is made.
    let again = shop.make(&dan, "login", "2").await.unwrap();
    assert_eq!((&again.project, &again.name), (&made.project, &made.name));
    assert_eq!(shop.jobs().await[4..], ["deploy"]);
    assert_eq!(shop.world.count("select count(*) from guests").await, 2);
    let told = "select count(*) from audit where action = 'preview.make' and actor = 'dan' and project = 'shop'";
    assert_eq!(shop.world.count(told).await, 2);
}

#[sqlx::test(migrations = "../../migrations")]
async fn no_more_are_made_than_may_be_however_many_ask_at_once(db: PgPool) {
    let shop = Shop::new(db).await;
    shop.allow(&shop.mia, 2, Some("preview.example.org")).await.unwrap();
    let names = ["a", "b", "c", "d", "e", "f"];
    let asked = join_all(names.map(|name| beside(shop.make(&shop.dan, name, "1")))).await;
    assert_eq!(asked.iter().filter(|made| made.is_ok()).count(), 2);
    for refused in asked.into_iter().filter(Result::is_err) {
        conflict(refused, "has 2 of 2 previews");
    }
    let previews = "select count(*) from projects where parent_id is not null";
    assert_eq!(shop.world.count(previews).await, 2);
    assert_eq!(shop.world.count("select count(*) from guests").await, 3);
    // What is there is pushed to still.
    let there: String = sqlx::query_scalar("select preview from projects where parent_id is not null limit 1")
        .fetch_one(&shop.world.db)
        .await
        .unwrap();
    shop.make(&shop.dan, &there, "2").await.unwrap();

    // The project's quota holds for them, and of what is refused nothing is left.
    shop.allow(&shop.mia, 20, Some("preview.example.org")).await.unwrap();
    shop.world.run("update quota_policy set guests = 3").await;
    let refused = refusal(shop.make(&shop.dan, "g", "1").await);
    assert!(refused.errors[0].detail.contains("shop has taken 3 of 3 guests"), "{refused:?}");
    assert_eq!(shop.world.count(previews).await, 2);
    shop.allow(&shop.mia, 0, None).await.unwrap();
    conflict(shop.make(&shop.dan, &there, "3").await, "has no previews");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_preview_takes_no_name_of_others_and_is_nothing_else(db: PgPool) {
    let shop = Shop::new(db).await;
    shop.allow(&shop.mia, 5, Some("preview.example.org")).await.unwrap();
    at_field(shop.world.ask(&shop.mia, CreateProject { name: named("a--b") }).await, "name", "two hyphens");
    shop.world.run("insert into projects (id, name) values (gen_random_uuid(), 'shop--taken')").await;
    conflict(shop.make(&shop.dan, "taken", "1").await, "taken or reserved");
    assert_eq!(shop.world.count("select count(*) from guests").await, 1);
    assert_eq!(shop.world.count("select count(*) from jobs").await, 0);

    shop.make(&shop.dan, "login", "1").await.unwrap();
    let (mia, dan) = (shop.now(&shop.mia).await, shop.now(&shop.dan).await);
    let nested = MakePreview { project: named("shop--login"), preview: preview("x"), commit: commit("1") };
    conflict(shop.world.ask(&dan, nested).await, "preview of shop");
    let project = || named("shop--login");
    let name = "more.example.org".parse().unwrap();
    let guest = RequestGuest::new(project(), Environment::Dev, name, SizeProfile::Xsmall);
    conflict(shop.world.ask(&mia, guest).await, "preview of shop");
    let member = SetMember { project: project(), login: "dan".parse().unwrap(), role: ProjectRole::Maintainer };
    conflict(shop.world.ask(&mia, member).await, "preview of shop");
    let environments = || vec![Environment::Dev].try_into().unwrap();
    let robot = CreateRobot {
        project: project(),
        robot: "ci".parse().unwrap(),
        role: ProjectRole::Developer,
        environments: environments(),
        until: None,
    };
    conflict(shop.world.ask(&mia, robot.clone()).await, "preview of shop");
    let second =
        "insert into guests (id, name, node_id, project_id, environment, driver, image, backing, size, mode, state)
        select gen_random_uuid(), 'x.test', (select id from nodes), id, 'dev', 'lxc', 'debian-12', 'dir', 'small',
            'masterless', 'running' from projects where name = 'shop--login'";
    let refused = sqlx::query(second).execute(&shop.world.db).await.unwrap_err();
    assert!(refused.to_string().contains("a preview has one guest"), "{refused}");

    // A robot of the project, within its bounds.
    let viewer = shop.world.member("vera", &[("shop", ProjectRole::Viewer)]).await;
    forbidden(shop.make(&viewer, "other", "1").await);
    shop.world.ask(&mia, CreateRobot { project: named("shop"), ..robot }).await.unwrap();
    let id: Uuid = sqlx::query_scalar("select user_id from robots").fetch_one(&shop.world.db).await.unwrap();
    let ci = shop.world.principal(UserId(id)).await;
    shop.make(&ci, "by-robot", "1").await.unwrap();
    shop.world.run("update robots set environments = '{staging}'").await;
    let ci = shop.world.principal(UserId(id)).await;
    forbidden(shop.make(&ci, "by-robot", "2").await);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_preview_whose_guest_was_not_made_is_made_again(db: PgPool) {
    let shop = Shop::new(db).await;
    shop.allow(&shop.mia, 1, Some("preview.example.org")).await.unwrap();
    shop.make(&shop.dan, "login", "1").await.unwrap();
    let job: Uuid =
        sqlx::query_scalar("select id from jobs where kind = 'guest_create'").fetch_one(&shop.world.db).await.unwrap();
    let mia = shop.now(&shop.mia).await;
    shop.world.ask(&mia, CancelJob { job: JobId(job) }).await.unwrap();
    assert_eq!(shop.world.count("select count(*) from guests").await, 1, "of dev");
    let dan = shop.now(&shop.dan).await;
    shop.make(&dan, "login", "1").await.unwrap();
    let whole = "select count(*) from environment_guests e join dns_names n on n.guest_id = e.guest_id
        join projects p on p.id = e.project_id where p.name = 'shop--login'";
    assert_eq!(shop.world.count(whole).await, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_preview_ends_when_its_time_is_over_and_with_its_project(db: PgPool) {
    let shop = Shop::new(db).await;
    shop.allow(&shop.mia, 5, Some("preview.example.org")).await.unwrap();
    shop.make(&shop.dan, "login", "1").await.unwrap();
    shop.make(&shop.dan, "other", "1").await.unwrap();
    shop.world.run("delete from jobs").await;
    shop.world.controller.end_expired().await.unwrap();
    assert!(shop.jobs().await.is_empty(), "their time is not over");
    shop.world.run("update projects set expires_at = now() - interval '1 s' where preview in ('login', 'other')").await;
    shop.keep("other").await.unwrap();
    shop.world.controller.end_expired().await.unwrap();
    shop.world.controller.end_expired().await.unwrap();
    assert_eq!(shop.jobs().await, ["project_destroy"], "once, and not what was kept");
    conflict(shop.make(&shop.dan, "login", "2").await, "being destroyed");
    conflict(shop.keep("login").await, "being destroyed");
    conflict(shop.remove(&shop.dan, "login").await, "being destroyed");

    // With the project its other previews go, before it.
    let mia = shop.now(&shop.mia).await;
    let job = shop.world.ask(&mia, DestroyProject { project: named("shop") }).await.unwrap().job;
    assert_eq!(shop.jobs().await, ["project_destroy"; 3]);
    hidden(shop.remove(&shop.world.member("bob", &[]).await, "other").await);
    shop.world.run("delete from dns_names").await;
    shop.world.run("with gone as (delete from environment_guests) delete from environments").await;
    shop.world.run("delete from guests").await;
    let engine = shop.world.controller.engine(&Trial::<Services>::config(Arc::default()));
    let began = std::time::Instant::now();
    while !shop.world.controller.jobs.get(job).await.unwrap().job.state.is_over() {
        assert!(began.elapsed() < Duration::from_mins(1), "{:?}", shop.jobs().await);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    engine.shutdown(Duration::from_secs(5)).await;
    assert_eq!(shop.world.count("select count(*) from projects").await, 0);
    assert_eq!(shop.world.count("select count(*) from jobs where state = 'done'").await, 3);
}
