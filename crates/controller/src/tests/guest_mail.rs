//! Mail from guests: whose is taken by default, who switches it, what nodes are told, and what they are believed.

use corpus_api::guest_mail::{GetEnvironmentMail, GetGuestMail, GuestMail, SetEnvironmentMail, SetGuestMail};
use corpus_api::jobs::CancelJob;
use corpus_api::{Principal, Problem, Version};
use corpus_domain::{Environment, EnvironmentMailSwitch, GuestId, GuestMailSwitch, JobId, ProjectId, ProjectRole};
use corpus_protocol::MailCount;
use sqlx::PgPool;

use super::world::{World, conflict, forbidden, hidden, refusal};
use crate::store::firewall::{RuleChange, left_by};
use crate::store::guest_mail::{self, MailSwitched};
use crate::store::plan;
use crate::{GuestMailSettings, Surroundings};

/// Two projects on one node: mia's has a guest of dev and one of prod, bob's one of prod.
struct Post {
    world: World,
    mia: Principal,
    bob: Principal,
    atlas: ProjectId,
    dev: GuestId,
    prod: GuestId,
    of_bob: GuestId,
}

async fn post(db: PgPool) -> Post {
    let mail = GuestMailSettings {
        relay: "192.0.2.25:25".parse().unwrap(),
        messages_per_hour: 100,
        max_message_bytes: 1 << 20,
    };
    opened(db, Some(mail)).await
}

async fn opened(db: PgPool, mail: Option<GuestMailSettings>) -> Post {
    let world = World::around(db, Surroundings { mail, ..Surroundings::default() }, World::rules()).await;
    let (mut mia, mut bob) = (world.member("mia", &[]).await, world.member("bob", &[]).await);
    let (atlas, borealis) = (world.project(&mut mia, "atlas").await, world.project(&mut bob, "borealis").await);
    let dev = world.guest(atlas, Environment::Dev).await;
    let prod = world.guest(atlas, Environment::Prod).await;
    let of_bob = world.guest(borealis, Environment::Prod).await;
    world.run("update guests set routed = true, mac = '00:16:3e:05:00:' || lpad(split_part(ip, '.', 4), 2, '0')").await;
    Post { world, mia, bob, atlas, dev, prod, of_bob }
}

impl Post {
    /// The guests whose mail the node takes.
    async fn taken(&self) -> Vec<String> {
        let mut conn = self.world.db.acquire().await.unwrap();
        let around = self.world.controller.services.around();
        let plan = plan::current(&mut conn, self.world.node_id(), around).await.unwrap().unwrap();
        plan.mail.unwrap().guests.into_iter().map(|one| one.guest.to_string()).collect()
    }

    async fn shown(&self, guest: GuestId) -> GuestMail {
        self.world.ask(&self.mia, GetGuestMail { guest }).await.unwrap()
    }

    async fn set(&self, who: &Principal, guest: GuestId, mail: GuestMailSwitch) -> Result<JobId, Problem> {
        let version = Version::of(&self.world.ask(who, GetGuestMail { guest }).await?.mail);
        Ok(self.world.ask(who, SetGuestMail { guest, mail, version }).await?.job)
    }

    async fn set_dev(&self, who: &Principal, mail: EnvironmentMailSwitch) -> Result<JobId, Problem> {
        let (project, environment) = ("atlas".parse().unwrap(), Environment::Dev);
        let version = self.world.ask(who, GetEnvironmentMail { project, environment }).await?.version;
        let asked = SetEnvironmentMail { project: "atlas".parse().unwrap(), environment, mail, version };
        Ok(self.world.ask(who, asked).await?.job)
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn dev_is_off_and_a_guest_may_differ(db: PgPool) {
    let post = post(db).await;
    assert_eq!(post.taken().await.len(), 2, "prod of both projects");
    let shown = post.shown(post.dev).await;
    assert!(!shown.is_on && shown.mail == GuestMailSwitch::Environment && shown.may_change);
    assert_eq!(shown.environment_mail, EnvironmentMailSwitch::Off);

    post.set_dev(&post.mia, EnvironmentMailSwitch::On).await.unwrap();
    assert_eq!(post.taken().await.len(), 3);
    let later = post.world.guest(post.atlas, Environment::Dev).await;
    assert!(post.shown(later).await.is_on, "it is of those too that come later");
    post.set(&post.mia, post.dev, GuestMailSwitch::Off).await.unwrap();
    assert_eq!(post.taken().await.len(), 2);
    assert!(!post.shown(post.dev).await.is_on);
    post.set(&post.mia, post.dev, GuestMailSwitch::Environment).await.unwrap();
    assert!(post.shown(post.dev).await.is_on);
    assert_eq!(
        post.world.count("select count(*) from audit where action in ('guest.mail', 'environment.mail')").await,
        3
    );
}

#[sqlx::test(migrations = "../../migrations")]
async fn only_maintainers_of_the_project_switch_it(db: PgPool) {
    let post = post(db).await;
    let developer = post.world.member("dan", &[("atlas", ProjectRole::Developer)]).await;
    assert!(!post.world.ask(&developer, GetGuestMail { guest: post.prod }).await.unwrap().may_change);
    forbidden(post.set(&developer, post.prod, GuestMailSwitch::Off).await);
    forbidden(post.set_dev(&developer, EnvironmentMailSwitch::On).await);
    hidden(post.set(&post.bob, post.prod, GuestMailSwitch::Off).await);
    hidden(post.set_dev(&post.bob, EnvironmentMailSwitch::On).await);
    let asked =
        SetGuestMail { guest: post.prod, mail: GuestMailSwitch::Off, version: Version::of(&GuestMailSwitch::On) };
    hidden(post.world.ask(&post.bob, asked.clone()).await);
    refusal(post.world.ask(&post.mia, asked).await);
    assert_eq!(post.taken().await.len(), 2, "nothing was switched");
}

#[sqlx::test(migrations = "../../migrations")]
async fn without_a_relay_nothing_is_taken_or_switched(db: PgPool) {
    let post = opened(db, None).await;
    let shown = post.shown(post.prod).await;
    assert!(!shown.is_on && shown.limits.is_none());
    conflict(post.set(&post.mia, post.prod, GuestMailSwitch::On).await, "configures a relay");
    conflict(post.set_dev(&post.mia, EnvironmentMailSwitch::On).await, "configures a relay");
    let mut conn = post.world.db.acquire().await.unwrap();
    let around = post.world.controller.services.around();
    assert_eq!(plan::current(&mut conn, post.world.node_id(), around).await.unwrap().unwrap().mail, None);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_switch_that_a_node_can_not_have_is_turned_back(db: PgPool) {
    let post = post(db).await;
    let job = post.set_dev(&post.mia, EnvironmentMailSwitch::On).await.unwrap();
    assert_eq!(post.taken().await.len(), 3);
    post.world.ask(&post.mia, CancelJob { job }).await.unwrap();
    assert_eq!(post.taken().await.len(), 2, "a job that is cancelled before it began takes the switch back");
    let (project, environment) = (post.atlas, Environment::Dev);
    let (was, is) = (EnvironmentMailSwitch::Off, EnvironmentMailSwitch::On);
    let back =
        RuleChange { mail: Some(MailSwitched::Environment { project, environment, was, is }), ..RuleChange::default() };
    let mut conn = post.world.db.acquire().await.unwrap();
    left_by(&mut conn, back.clone()).await.unwrap();
    left_by(&mut conn, back).await.unwrap();
    drop(conn);
    assert_eq!(post.taken().await.len(), 2);

    // What somebody turned further meanwhile stays.
    post.set(&post.mia, post.dev, GuestMailSwitch::On).await.unwrap();
    let (guest, was, is) = (post.dev, GuestMailSwitch::Environment, GuestMailSwitch::Off);
    let mut conn = post.world.db.acquire().await.unwrap();
    let back = MailSwitched::Guest { guest, was, is };
    left_by(&mut conn, RuleChange { mail: Some(back), ..RuleChange::default() }).await.unwrap();
    drop(conn);
    assert!(post.shown(post.dev).await.is_on);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_node_tells_of_its_own_guests_and_of_what_can_be(db: PgPool) {
    let post = post(db).await;
    let now = chrono::Utc::now();
    let hour = now.timestamp() / 3600;
    let (dev, prod) = (post.shown(post.dev).await.name, post.shown(post.prod).await.name);
    let count = |guest: &corpus_domain::GuestName, hour, accepted| MailCount {
        guest: guest.clone(),
        hour,
        accepted,
        limited: 1,
        refused: 0,
        failed: 0,
        bytes: u64::MAX,
    };
    let told = [
        count(&prod, hour, 5),
        count(&prod, hour, 7),
        count(&prod, hour + 1000, 1),
        count(&prod, hour - 47, 1),
        count(&prod, i64::MAX, 1),
        count(&prod, i64::MIN, 1),
        count(&dev, hour, u64::MAX),
        count(&"stranger.example.org".parse().unwrap(), hour, 1),
    ];
    let mut conn = post.world.db.acquire().await.unwrap();
    guest_mail::keep(&mut conn, post.world.node_id(), now, &told).await.unwrap();
    // Later it has begun at nothing: what was told does not become less.
    guest_mail::keep(&mut conn, post.world.node_id(), now, &[count(&prod, hour, 2)]).await.unwrap();
    let elsewhere = corpus_domain::NodeId(uuid::Uuid::now_v7());
    guest_mail::keep(&mut conn, elsewhere, now, &[count(&prod, hour, 999)]).await.unwrap();
    drop(conn);
    let shown = post.shown(post.prod).await;
    assert_eq!(shown.hours.len(), 1, "hours before the guest was there, and hours to come: {:?}", shown.hours);
    assert_eq!((shown.hours[0].counts.accepted, shown.month.accepted), (7, 7));
    assert!(shown.read_at.is_some());
    assert_eq!(post.world.count("select count(*) from guest_mail_counts").await, 2);
    let asked = GetEnvironmentMail { project: "atlas".parse().unwrap(), environment: Environment::Prod };
    let day = post.world.ask(&post.mia, asked).await.unwrap();
    assert_eq!((day.day.accepted, day.guests.len(), day.guests[0].guest), (7, 1, post.prod));
    assert!(post.world.ask(&post.bob, GetGuestMail { guest: post.of_bob }).await.unwrap().hours.is_empty());

    post.world.run("update guest_mail_counts set hour = hour - interval '31 days'").await;
    let mut conn = post.world.db.acquire().await.unwrap();
    guest_mail::forget_old(&mut conn).await.unwrap();
    drop(conn);
    assert_eq!(post.world.count("select count(*) from guest_mail_counts").await, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_node_is_asked_now_and_then(db: PgPool) {
    let post = post(db).await;
    post.world.run("update nodes set reachability = 'reachable'").await;
    let mut conn = post.world.db.acquire().await.unwrap();
    assert_eq!(guest_mail::take_due(&mut conn, 16).await.unwrap(), [post.world.node_id()]);
    assert_eq!(guest_mail::take_due(&mut conn, 16).await.unwrap(), []);
}
