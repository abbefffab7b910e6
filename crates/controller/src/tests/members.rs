//! Who is what in a project: roles of the directory and roles given here, and the strongest counts.

use corpus_api::Role;
use corpus_api::mail::{GetMail, GetMailRelay, MailRelay, SetMail};
use corpus_api::me::{GetMe, OwnRole};
use corpus_api::projects::members::{ListMembers, Member, RemoveMember, SetMember};
use corpus_api::projects::{CreateProject, DestroyProject, ListProjects};
use corpus_api::{Principal, Problem};
use corpus_domain::{Environment, MailDelivery, MailPreference, ProjectRole};
use sqlx::PgPool;

use super::world::{KEY, World, at_field, forbidden, hidden};
use crate::store::keys;

const VIEWER: (&str, ProjectRole) = ("shop", ProjectRole::Viewer);
const DEVELOPER: (&str, ProjectRole) = ("shop", ProjectRole::Developer);

/// Gives a member of shop a role, or takes it.
async fn set(world: &World, who: &Principal, login: &str, role: Option<ProjectRole>) -> Result<(), Problem> {
    let (project, login) = ("shop".parse().unwrap(), login.parse().unwrap());
    match role {
        Some(role) => world.ask(who, SetMember { project, login, role }).await.map(drop),
        None => world.ask(who, RemoveMember { project, login }).await.map(drop),
    }
}

/// The members of shop.
async fn members(world: &World, who: &Principal) -> Vec<Member> {
    let asked = ListMembers { project: "shop".parse().unwrap(), cursor: None, limit: None };
    world.ask(who, asked).await.unwrap().items
}

#[sqlx::test(migrations = "../../migrations")]
async fn any_member_makes_a_project_and_maintains_it(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let bob = world.member("bob", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    assert_eq!(mia.roles.get(&shop), Some(&ProjectRole::Maintainer));
    at_field(world.ask(&bob, CreateProject { name: "shop".parse().unwrap() }).await, "name", "already");
    at_field(world.ask(&bob, CreateProject { name: "new".parse().unwrap() }).await, "name", "word of Corpus");

    let seen = world.ask(&mia, ListProjects::default()).await.unwrap().items;
    assert_eq!((seen.len(), seen[0].role, seen[0].members), (1, Some(ProjectRole::Maintainer), 1));
    assert!(world.ask(&bob, ListProjects::default()).await.unwrap().items.is_empty());
    hidden(world.seen(&bob, "shop").await);
    hidden(world.seen(&mia, "nothing").await);
    let ops = world.ops().await;
    assert_eq!(world.ask(&ops, ListProjects::default()).await.unwrap().items[0].role, None);
    assert_eq!(world.counts(&mia).await.projects, 1);
    assert_eq!(world.counts(&bob).await.projects, 0);
    assert_eq!(world.count("select count(*) from audit where action = 'project.create' and actor = 'mia'").await, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn maintainers_destroy_their_project(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    world.project(&mut mia, "shop").await;
    let dev = world.member("dev", &[DEVELOPER]).await;
    let bob = world.member("bob", &[]).await;
    forbidden(world.ask(&dev, DestroyProject { project: "shop".parse().unwrap() }).await);
    hidden(world.ask(&bob, DestroyProject { project: "shop".parse().unwrap() }).await);
    world.ask(&mia, DestroyProject { project: "shop".parse().unwrap() }).await.unwrap();
    assert_eq!(world.count("select count(*) from audit where action = 'project.destroy' and actor = 'mia'").await, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn the_strongest_of_two_roles_counts_everywhere(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let dev = world.member("dev", &[VIEWER]).await;
    let guest = world.guest(shop, Environment::Dev).await;
    world.add_key(&dev, KEY).await.unwrap();
    world.run("delete from jobs").await;
    let mut conn = world.db.acquire().await.unwrap();
    assert!(keys::lines_for_guest(&mut conn, guest).await.unwrap().is_empty());

    let role = Some(ProjectRole::Developer);
    set(&world, &mia, "dev", role).await.unwrap();
    assert_eq!(world.principal(dev.id).await.roles.get(&shop), Some(&ProjectRole::Developer));
    assert!(world.principal(dev.id).await.judge(Role::Developer, Some(shop)).is_ok());
    assert_eq!(keys::lines_for_guest(&mut conn, guest).await.unwrap().len(), 1);
    assert_eq!(world.count("select count(*) from jobs where kind = 'keys_sync'").await, 1, "the key follows");
    // The next login, by which the directory says less, takes nothing that was given here.
    world.member("dev", &[VIEWER]).await;
    let projects = world.ask(&world.principal(dev.id).await, ListProjects::default()).await.unwrap().items;
    assert_eq!((projects.len(), projects[0].role, projects[0].members), (1, role, 2));
    let before = members(&world, &mia).await;
    let shown = before.iter().find(|member| member.login.as_str() == dev.login.as_str()).unwrap();
    assert_eq!((shown.role, shown.given_here), (ProjectRole::Developer, true));
    // What the directory gives counts when it is more.
    world.member("dev", &[("shop", ProjectRole::Maintainer)]).await;
    assert_eq!(world.principal(dev.id).await.roles.get(&shop), Some(&ProjectRole::Maintainer));
    let now = members(&world, &mia).await;
    assert!(!now.iter().find(|member| member.login.as_str() == dev.login.as_str()).unwrap().given_here);
    // Taking the one leaves the other.
    set(&world, &mia, "dev", None).await.unwrap();
    assert_eq!(world.principal(dev.id).await.roles.get(&shop), Some(&ProjectRole::Maintainer));
    world.controller.directory_says(dev.id, None).await.unwrap();
    assert!(world.controller.principal(dev.id).await.unwrap().is_none());
    assert!(keys::lines_for_guest(&mut conn, guest).await.unwrap().is_empty());
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_role_given_here_is_worth_nothing_while_the_account_is_disabled(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let guest = world.guest(shop, Environment::Dev).await;
    world.add_key(&mia, KEY).await.unwrap();
    let mut conn = world.db.acquire().await.unwrap();
    world.controller.directory_says(mia.id, None).await.unwrap();
    assert!(keys::lines_for_guest(&mut conn, guest).await.unwrap().is_empty());
    assert!(keys::lines_on_node(&mut conn, world.node_id()).await.unwrap().is_empty());
    let key: crate::ssh_keys::MemberKey = KEY.parse().unwrap();
    assert!(world.controller.key_holders(&[key.fingerprint().to_owned()]).await.unwrap().is_empty());
    let ops = world.ops().await;
    assert_eq!(world.ask(&ops, ListProjects::default()).await.unwrap().items[0].members, 0);
    let mia = world.member("mia", &[]).await;
    assert_eq!(mia.roles.get(&shop), Some(&ProjectRole::Maintainer), "it is back with the account");
}

#[sqlx::test(migrations = "../../migrations")]
async fn members_are_changed_by_maintainers_as_far_as_the_directory_lets_them(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    world.project(&mut mia, "shop").await;
    let dev = world.member("dev", &[DEVELOPER]).await;
    let bob = world.member("bob", &[]).await;
    let set = async |who: &Principal, login: &str, role| set(&world, who, login, role).await;
    let viewer = Some(ProjectRole::Viewer);
    forbidden(set(&dev, "bob", viewer).await);
    hidden(set(&bob, "bob", viewer).await);
    at_field(set(&mia, "nobody", viewer).await, "login", "signed in");
    at_field(set(&mia, "bob", None).await, "login", "no member");
    at_field(set(&mia, "dev", None).await, "login", "directory");
    at_field(set(&mia, "dev", viewer).await, "role", "directory");
    at_field(set(&mia, "mia", None).await, "role", "needs a maintainer");
    at_field(set(&mia, "mia", viewer).await, "role", "needs a maintainer");
    assert_eq!(world.count("select count(*) from memberships").await, 2, "nothing was changed");
    set(&mia, "dev", Some(ProjectRole::Maintainer)).await.unwrap();
    set(&mia, "mia", None).await.unwrap();
    let dev = world.principal(dev.id).await;
    set(&dev, "bob", viewer).await.unwrap();
    set(&dev, "bob", Some(ProjectRole::Developer)).await.unwrap();
    set(&dev, "bob", None).await.unwrap();
    assert_eq!(world.count("select count(*) from audit where action = 'project.member'").await, 5);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_member_says_which_mail_comes(db: PgPool) {
    let world = World::new(db).await;
    let (mia, bob) = (world.member("mia", &[]).await, world.member("bob", &[]).await);
    let read = async |who| world.controller.call(who, GetMail {}, None).await.unwrap();
    let set = async |wants, version| world.controller.call(&mia, SetMail::wanting(wants, version), None).await;
    let first = read(&mia).await;
    assert_eq!(first.wants, MailPreference::Own);
    let now = set(MailPreference::All, first.version.clone()).await.unwrap();
    assert_eq!((read(&mia).await, read(&bob).await.wants), (now, MailPreference::Own));
    let late = set(MailPreference::Nothing, first.version).await.unwrap_err();
    assert_eq!((late.status, read(&mia).await.wants), (412, MailPreference::All));
    let audited: i64 =
        sqlx::query_scalar("select count(*) from audit where action = 'mail.preference' and detail ->> 'wants' = $1")
            .bind("all")
            .fetch_one(&world.db)
            .await
            .unwrap();
    assert_eq!(audited, 1);
    let version = read(&mia).await.version;
    let daily = SetMail { guest_ready: Some(MailDelivery::Digest), ..SetMail::wanting(MailPreference::All, version) };
    let now = world.controller.call(&mia, daily, None).await.unwrap();
    assert_eq!((now.guest_ready, now.deployment), (MailDelivery::Digest, MailDelivery::AtOnce));
    let kept = set(MailPreference::Own, now.version).await.unwrap();
    assert_eq!(kept.guest_ready, MailDelivery::Digest, "what is left out stays");
    assert_eq!(read(&bob).await.guest_ready, MailDelivery::AtOnce, "each their own");
    let late = set(MailPreference::Own, read(&bob).await.version).await.unwrap_err();
    assert!(late.text().contains("1 kind once a day"), "{}", late.text());
}

#[sqlx::test(migrations = "../../migrations")]
async fn how_mail_goes_is_for_operators(db: PgPool) {
    let world = World::new(db).await;
    let (mia, ops) = (world.member("mia", &[]).await, world.ops().await);
    assert_eq!(world.ask(&ops, GetMailRelay {}).await.unwrap(), MailRelay::default());
    assert_eq!(world.ask(&mia, GetMailRelay {}).await.unwrap_err().status, 403);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_member_reads_who_they_are(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    world.project(&mut mia, "shop").await;
    let me = world.controller.call(&mia, GetMe {}, None).await.unwrap();
    assert_eq!((me.id, me.login, me.ops, me.token), (mia.id, mia.login.clone(), false, None));
    assert_eq!(me.roles, [OwnRole { project: "shop".parse().unwrap(), role: ProjectRole::Maintainer }]);
}
