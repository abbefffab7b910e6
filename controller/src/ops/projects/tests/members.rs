//! Who is what in a project: roles of the directory and roles given here, and the strongest counts.

use corpus_domain::{Environment, MailPreference, ProjectRole};
use sqlx::PgPool;

use super::world::{KEY, World, at_field, conflict, forbidden, hidden};
use crate::authz::Operation;
use crate::store::keys;

const VIEWER: (&str, ProjectRole) = ("shop", ProjectRole::Viewer);
const DEVELOPER: (&str, ProjectRole) = ("shop", ProjectRole::Developer);

#[sqlx::test(migrations = "../migrations")]
async fn any_member_makes_a_project_and_maintains_it(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let bob = world.member("bob", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    assert_eq!(mia.roles.get(&shop), Some(&ProjectRole::Maintainer));
    at_field(world.controller.create_project(&bob, "shop".parse().unwrap()).await, "name", "already");
    at_field(world.controller.create_project(&bob, "new".parse().unwrap()).await, "name", "word of Corpus");

    let seen = world.controller.project_list(&mia).await.unwrap();
    assert_eq!((seen.len(), seen[0].role, seen[0].members), (1, Some(ProjectRole::Maintainer), 1));
    assert!(world.controller.project_list(&bob).await.unwrap().is_empty());
    hidden(world.controller.project_detail(&bob, &"shop".parse().unwrap()).await);
    hidden(world.controller.project_detail(&mia, &"nothing".parse().unwrap()).await);
    let ops = world.ops().await;
    assert_eq!(world.controller.project_list(&ops).await.unwrap()[0].role, None);
    assert_eq!(world.controller.counts(&mia).await.unwrap().projects, 1);
    assert_eq!(world.controller.counts(&bob).await.unwrap().projects, 0);
    assert_eq!(world.count("select count(*) from audit where action = 'project.create' and actor = 'mia'").await, 1);
}

#[sqlx::test(migrations = "../migrations")]
async fn a_project_with_guests_is_not_destroyed(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let dev = world.member("dev", &[DEVELOPER]).await;
    let bob = world.member("bob", &[]).await;
    forbidden(world.controller.destroy_project(&dev, shop).await);
    hidden(world.controller.destroy_project(&bob, shop).await);
    world.guest(shop, Environment::Dev).await;
    conflict(world.controller.destroy_project(&mia, shop).await, "guest0.example.org");
    world.run("delete from guests").await;
    world.controller.destroy_project(&mia, shop).await.unwrap();
    assert_eq!(world.count("select count(*) from memberships").await, 0);
    hidden(world.controller.destroy_project(&mia, shop).await);
    assert_eq!(world.count("select count(*) from audit where action = 'project.destroy'").await, 1);
}

#[sqlx::test(migrations = "../migrations")]
async fn the_strongest_of_two_roles_counts_everywhere(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let dev = world.member("dev", &[VIEWER]).await;
    let guest = world.guest(shop, Environment::Dev).await;
    world.controller.add_key(&dev, KEY).await.unwrap();
    world.run("delete from jobs").await;
    let mut conn = world.db.acquire().await.unwrap();
    assert!(keys::lines_for_guest(&mut conn, guest).await.unwrap().is_empty());

    let role = Some(ProjectRole::Developer);
    world.controller.set_member(&mia, shop, &dev.login, role).await.unwrap();
    assert_eq!(world.principal(dev.id).await.roles.get(&shop), Some(&ProjectRole::Developer));
    assert!(world.principal(dev.id).await.may(Operation::Deploy, Some(shop)));
    assert_eq!(keys::lines_for_guest(&mut conn, guest).await.unwrap().len(), 1);
    assert_eq!(world.count("select count(*) from jobs where kind = 'keys_sync'").await, 1, "the key follows");
    // The next login, by which the directory says less, takes nothing that was given here.
    world.member("dev", &[VIEWER]).await;
    let projects = world.controller.project_list(&world.principal(dev.id).await).await.unwrap();
    assert_eq!((projects.len(), projects[0].role, projects[0].members), (1, role, 2));
    let members = world.controller.project_detail(&mia, &"shop".parse().unwrap()).await.unwrap().members;
    let shown = members.iter().find(|member| member.login == dev.login).unwrap();
    assert_eq!((shown.role, shown.given_here), (ProjectRole::Developer, true));
    // What the directory gives counts when it is more.
    world.member("dev", &[("shop", ProjectRole::Maintainer)]).await;
    assert_eq!(world.principal(dev.id).await.roles.get(&shop), Some(&ProjectRole::Maintainer));
    let members = world.controller.project_detail(&mia, &"shop".parse().unwrap()).await.unwrap().members;
    assert!(!members.iter().find(|member| member.login == dev.login).unwrap().given_here);
    // Taking the one leaves the other.
    world.controller.set_member(&mia, shop, &dev.login, None).await.unwrap();
    assert_eq!(world.principal(dev.id).await.roles.get(&shop), Some(&ProjectRole::Maintainer));
    world.controller.directory_says(dev.id, None).await.unwrap();
    assert!(world.controller.principal(dev.id).await.unwrap().is_none());
    assert!(keys::lines_for_guest(&mut conn, guest).await.unwrap().is_empty());
}

#[sqlx::test(migrations = "../migrations")]
async fn a_role_given_here_is_worth_nothing_while_the_account_is_disabled(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let guest = world.guest(shop, Environment::Dev).await;
    world.controller.add_key(&mia, KEY).await.unwrap();
    let mut conn = world.db.acquire().await.unwrap();
    world.controller.directory_says(mia.id, None).await.unwrap();
    assert!(keys::lines_for_guest(&mut conn, guest).await.unwrap().is_empty());
    assert!(keys::lines_on_node(&mut conn, world.node_id()).await.unwrap().is_empty());
    let key: crate::ssh_keys::MemberKey = KEY.parse().unwrap();
    assert!(world.controller.key_holders(&[key.fingerprint().to_owned()]).await.unwrap().is_empty());
    let ops = world.ops().await;
    assert_eq!(world.controller.project_list(&ops).await.unwrap()[0].members, 0);
    let mia = world.member("mia", &[]).await;
    assert_eq!(mia.roles.get(&shop), Some(&ProjectRole::Maintainer), "it is back with the account");
}

#[sqlx::test(migrations = "../migrations")]
async fn members_are_changed_by_maintainers_as_far_as_the_directory_lets_them(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let dev = world.member("dev", &[DEVELOPER]).await;
    let bob = world.member("bob", &[]).await;
    let set = async |who: &crate::authz::Principal, login: &str, role| {
        world.controller.set_member(who, shop, &login.parse().unwrap(), role).await
    };
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

#[sqlx::test(migrations = "../migrations")]
async fn a_member_says_which_mail_comes(db: PgPool) {
    let world = World::new(db).await;
    let (mia, bob) = (world.member("mia", &[]).await, world.member("bob", &[]).await);
    let wants = async |who| world.controller.mail_preference(who).await.unwrap();
    assert_eq!(wants(&mia).await, MailPreference::Own);
    world.controller.set_mail_preference(&mia, MailPreference::All).await.unwrap();
    assert_eq!((wants(&mia).await, wants(&bob).await), (MailPreference::All, MailPreference::Own));
    let audited: i64 =
        sqlx::query_scalar("select count(*) from audit where action = 'mail.preference' and detail ->> 'wants' = $1")
            .bind("all")
            .fetch_one(&world.db)
            .await
            .unwrap();
    assert_eq!(audited, 1);
}
