//! Who enters which guest, and who decides about which job.

use corpus_api::guests::{DestroyGuest, StopGuest};
use corpus_api::jobs::{AbandonJob, GetJob, ListJobs, ReadJobLog, RetryJob};
use corpus_api::projects::members::{RemoveMember, SetMember};
use corpus_api::projects::{CreateProject, GetProdEntry, SetProdEntry};
use corpus_domain::{Environment, GuestId, ProjectName, ProjectRole, UserName};
use sqlx::PgPool;

use super::upgrade;
use super::world::{KEY, World, forbidden, hidden, refusal};
use crate::Rules;
use crate::store::keys;
use corpus_api::{Principal, Role, Scope};

const DEVELOPER: (&str, ProjectRole) = ("shop", ProjectRole::Developer);
const MAINTAINER: (&str, ProjectRole) = ("shop", ProjectRole::Maintainer);

async fn entered_by(world: &World, guest: GuestId) -> usize {
    let mut conn = world.db.acquire().await.unwrap();
    let lines = keys::lines_for_guest(&mut conn, guest).await.unwrap();
    let on_node = keys::lines_on_node(&mut conn, world.node_id()).await.unwrap();
    let same = on_node.iter().filter(|(on, _)| *on == guest).count();
    assert_eq!(lines.len(), same, "what is brought is what drift looks for");
    lines.len()
}

async fn syncs(world: &World) -> i64 {
    let count = world.count("select count(*) from jobs where kind = 'keys_sync'").await;
    world.run("delete from jobs").await;
    count
}

/// Shop with a guest of dev and one of prod, its maintainer mia, and dev, a developer who has a key.
async fn shop(world: &World) -> (Principal, Principal, [GuestId; 2]) {
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let dev = world.member("dev", &[DEVELOPER]).await;
    let guests =
        [world.environment(&mia, shop, Environment::Dev).await, world.environment(&mia, shop, Environment::Prod).await];
    world.add_key(&dev, KEY).await.unwrap();
    world.run("delete from jobs").await;
    (mia, dev, guests)
}

#[sqlx::test(migrations = "../../migrations")]
async fn developers_enter_prod_only_where_the_project_says_so(db: PgPool) {
    let world = World::new(db).await;
    let (mia, dev, [of_dev, of_prod]) = shop(&world).await;
    let enters = async || (entered_by(&world, of_dev).await, entered_by(&world, of_prod).await);
    assert_eq!(enters().await, (1, 0));

    forbidden(world.set_prod_entry(&dev, "shop", true).await);
    let bob = world.member("bob", &[]).await;
    hidden(world.set_prod_entry(&bob, "shop", true).await);
    let shop: ProjectName = "shop".parse().unwrap();
    let before = world.ask(&mia, GetProdEntry { project: shop.clone() }).await.unwrap();
    world.set_prod_entry(&mia, "shop", true).await.unwrap();
    assert_eq!((enters().await, syncs(&world).await), ((1, 1), 1));
    world.set_prod_entry(&mia, "shop", true).await.unwrap();
    assert_eq!(syncs(&world).await, 0, "nothing has changed");
    let now = world.ask(&dev, GetProdEntry { project: shop.clone() }).await.unwrap();
    assert!(now.developers && !before.developers);
    // Who did not see that it was changed meanwhile changes nothing.
    let stale = SetProdEntry { project: shop, developers: false, version: before.version };
    assert_eq!(refusal(world.ask(&mia, stale).await).status, 412);
    world.set_prod_entry(&mia, "shop", false).await.unwrap();
    assert_eq!((enters().await, syncs(&world).await), ((1, 0), 1), "the keys are taken at once");
    assert_eq!(
        world.count("select count(*) from audit where action = 'project.prod_entry' and actor = 'mia'").await,
        2
    );
}

#[sqlx::test(migrations = "../../migrations")]
async fn the_keys_of_prod_follow_the_role(db: PgPool) {
    let world = World::new(db).await;
    let (mia, _, [of_dev, of_prod]) = shop(&world).await;
    let enters = async || (entered_by(&world, of_dev).await, entered_by(&world, of_prod).await);
    world.member("dev", &[MAINTAINER]).await;
    assert_eq!((enters().await, syncs(&world).await), ((1, 1), 1));
    world.member("dev", &[DEVELOPER]).await;
    assert_eq!((enters().await, syncs(&world).await), ((1, 0), 1));
    let (project, login): (ProjectName, UserName) = ("shop".parse().unwrap(), "dev".parse().unwrap());
    let more = SetMember { project: project.clone(), login: login.clone(), role: ProjectRole::Maintainer };
    world.ask(&mia, more).await.unwrap();
    assert_eq!((enters().await, syncs(&world).await), ((1, 1), 1));
    world.ask(&mia, RemoveMember { project, login }).await.unwrap();
    assert_eq!((enters().await, syncs(&world).await), ((1, 0), 1));
    // A guest that is of another environment now is entered by who enters that.
    world.run("with gone as (delete from environment_guests) delete from environments").await;
    world.run("update guests set environment = case environment when 'dev' then 'prod' else 'dev' end").await;
    assert_eq!(enters().await, (0, 1));
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_starts_a_job_is_needed_to_decide_about_it(db: PgPool) {
    let world = World::new(db).await;
    let (mia, dev, [of_dev, of_prod]) = shop(&world).await;
    let cancel = async |who: &Principal, job| world.cancel(who, job).await;
    let to_prod = world.deploy(&mia, "shop", Environment::Prod).await.unwrap().job;
    forbidden(cancel(&dev, to_prod).await);
    forbidden(world.ask(&dev, AbandonJob { job: to_prod, comment: "x".parse().unwrap() }).await);
    forbidden(world.ask(&dev, RetryJob { job: to_prod }).await);
    let to_dev = world.deploy(&mia, "shop", Environment::Dev).await.unwrap().job;
    cancel(&dev, to_dev).await.unwrap();
    cancel(&mia, to_prod).await.unwrap();

    world.run("with gone as (delete from environment_guests) delete from environments").await;
    let destroy = world.controller.call(&mia, DestroyGuest { guest: of_dev }, None).await.unwrap().job;
    forbidden(cancel(&dev, destroy).await);
    cancel(&mia, destroy).await.unwrap();
    let stop = world.controller.call(&mia, StopGuest { guest: of_prod }, None).await.unwrap().job;
    cancel(&dev, stop).await.unwrap();

    world.set_prod_entry(&mia, "shop", true).await.unwrap();
    let keys = world.ask(&world.ops().await, ListJobs::default()).await.unwrap().items;
    let keys = keys.iter().find(|job| job.kind == corpus_domain::JobKind::KeysSync).unwrap().id;
    assert!(cancel(&mia, keys).await.is_err(), "jobs of nodes are not even theirs to see");
    cancel(&world.ops().await, keys).await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn who_left_a_project_sees_no_job_of_it_not_even_their_own(db: PgPool) {
    let world = World::new(db).await;
    let (mia, dev, _) = shop(&world).await;
    world.run("delete from jobs").await;
    let job = world.deploy(&dev, "shop", Environment::Dev).await.unwrap().job;
    let get = || GetJob { job, wait: None };
    world.ask(&dev, get()).await.unwrap();
    let dev = world.member("dev", &[]).await;
    hidden(world.controller.call(&dev, get(), None).await);
    hidden(world.controller.call(&dev, ReadJobLog { job, after: None, before: None, limit: None }, None).await);
    hidden(world.cancel(&dev, job).await);
    let seen = async |who: &Principal| world.controller.call(who, ListJobs::default(), None).await.unwrap().items;
    assert!(seen(&dev).await.iter().all(|row| row.id != job));
    assert!(seen(&mia).await.iter().any(|row| row.id == job));
}

/// Of the release before, developers' keys are on guests of prod: they are taken when the node is
/// read next, as from one that was away.
#[sqlx::test(migrations = false)]
async fn an_upgrade_takes_developers_keys_from_prod(db: PgPool) {
    const THIS: i64 = 16;
    upgrade::until(&db, THIS).await;
    for (number, environment) in [(1, "prod"), (2, "dev")] {
        sqlx::query(
            "with n as (insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, network, bridge,
                     reachability)
                 values (gen_random_uuid(), '192.0.2.' || $1, 22, 'root', 'k', '{dev}', 'ready', '10.5.0.1/16', 'lxcbr1',
                     'reachable') returning id),
             p as (insert into projects (id, name) values (gen_random_uuid(), 'shop' || $1) returning id)
             insert into guests (id, name, node_id, project_id, environment, driver, image, backing, size, mode, state)
             select gen_random_uuid(), 'guest' || $1, n.id, p.id, $2, 'lxc', 'debian', 'dir', 'small', 'masterless', 'running'
             from n, p",
        )
        .bind(number.to_string())
        .bind(environment)
        .execute(&db)
        .await
        .unwrap();
    }
    upgrade::since(&db, THIS).await;
    let away: Vec<String> = sqlx::query_scalar("select address from nodes where reachability = 'unreachable'")
        .fetch_all(&db)
        .await
        .unwrap();
    assert_eq!(away, ["192.0.2.1"]);
    let open: i64 =
        sqlx::query_scalar("select count(*) from projects where developers_enter_prod").fetch_one(&db).await.unwrap();
    assert_eq!(open, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn who_may_not_is_told_who_may(db: PgPool) {
    let world = World::with(db, None, None, Rules::default()).await;
    let ops = world.ops().await;
    world.ask(&ops, CreateProject { name: "shop".parse().unwrap() }).await.unwrap();
    let [mia, _, vic, eve] = [
        world.member("mia", &[MAINTAINER]).await,
        world.member("max", &[MAINTAINER]).await,
        world.member("vic", &[("shop", ProjectRole::Viewer)]).await,
        world.member("eve", &[]).await,
    ];
    let may = async |who: &Principal, role, about| world.controller.may(who, role, &about).await;
    let shop = || Scope::Project("shop".parse().unwrap());
    may(&mia, Role::Maintainer, shop()).await.unwrap();
    let text = may(&vic, Role::Maintainer, shop()).await.unwrap_err().text().to_owned();
    let told = "This takes the role maintainer in shop, and you are viewer there. max, mia and ops have that role.";
    assert_eq!(text, told);
    hidden(may(&eve, Role::Viewer, shop()).await);
    for (who, role, about) in [(&vic, Role::Ops, Scope::Site), (&eve, Role::Member, Scope::NewProject)] {
        let text = may(who, role, about).await.unwrap_err().text().to_owned();
        assert_eq!(text, "Only operators may do this. ops is an operator.");
    }
    for login in ["a", "b", "c", "d", "e"] {
        world.sign_in(&format!("ops-{login}"), true, &[]).await;
    }
    world.run("update users set disabled_at = now() where login = 'ops-a'").await;
    let text = may(&vic, Role::Ops, Scope::Site).await.unwrap_err().text().to_owned();
    assert_eq!(text, "Only operators may do this. ops, ops-b, ops-c, ops-d and ops-e are operators.");
    may(&ops, Role::Ops, Scope::Site).await.unwrap();
}
