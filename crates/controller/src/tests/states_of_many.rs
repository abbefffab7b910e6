//! States of many guests and the users that they are to have: asked for at once, done a few at a time; and what operators want
//! of nodes.

use corpus_api::baseline::{ApplyNodeBaseline, Baseline, GetBaseline, GetNodeBaseline, SetBaseline};
use corpus_api::guest_users::{ListGuestUsers, RemoveGuestUser, SetGuestUser};
use corpus_api::salt_masters::ListSaltMasters;
use corpus_api::states::{
    ApplyAllStates, ApplyProjectStates, GetStatesSchedule, ListStates, SetStatesSchedule, StatesPage,
};
use corpus_domain::{Environment, Mode, NodeId, ProjectRole, StatesEvery, StatesOutcome};
use corpus_protocol::StatesRun;
use sqlx::PgPool;
use uuid::Uuid;

use super::world::{World, at_field, forbidden, hidden};
use crate::drift::authorized_keys;
use crate::store::salt_masters::{self, NewMaster};
use crate::store::{chores, drift, guest_states, guest_users};

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIK0wmN/Cr3JXqmLW7u+g9pTh+wyqDHpSQEIQczXkVx9q backup@store";
const JOBS: &str = "select count(*) from jobs where kind = 'guest_states'";

async fn ready(db: PgPool) -> World {
    let world = World::new(db).await;
    world.run("update nodes set slots = 4096, reachability = 'reachable', state = 'ready'").await;
    world
}

#[sqlx::test(migrations = "../../migrations")]
async fn those_of_a_project_are_seen_to_a_few_at_a_time(db: PgPool) {
    let world = ready(db).await;
    let admin = world.ops().await;
    let mut mia = world.member("mia", &[]).await;
    let eve = world.member("eve", &[]).await;
    let atlas = world.project(&mut mia, "atlas").await;
    let dan = world.member("dan", &[("atlas", ProjectRole::Developer)]).await;
    for _ in 0..6 {
        world.guest(atlas, Environment::Dev).await;
    }
    world.guest(atlas, Environment::Prod).await;
    world.run("update guests set state = 'running'").await;
    let apply = |environment, test| ApplyProjectStates { project: "atlas".parse().unwrap(), environment, test };
    hidden(world.ask(&eve, apply(None, true)).await);
    forbidden(world.ask(&dan, apply(None, true)).await);
    forbidden(world.ask(&mia, ApplyAllStates { environment: None, test: true }).await);
    let list = async |outcome| -> StatesPage {
        world.ask(&dan, ListStates { outcome, ..ListStates::default() }).await.unwrap()
    };
    assert_eq!(list(Some(StatesOutcome::Never)).await.items.len(), 7);
    assert!(world.ask(&eve, ListStates::default()).await.unwrap().items.is_empty());

    // Six of dev, of which one does not run.
    world
        .run("update guests set state = 'stopped' where id = (select id from guests where environment = 'dev' limit 1)")
        .await;
    assert_eq!(world.ask(&mia, apply(Some(Environment::Dev), false)).await.unwrap().guests, 5);
    assert_eq!(list(None).await.items.iter().filter(|one| one.asked_at.is_some()).count(), 5);
    // Asked for once more, only tried: applied is what counts.
    world.ask(&mia, apply(Some(Environment::Dev), true)).await.unwrap();
    assert_eq!(world.count("select count(*) from guest_chores where test").await, 0);
    let look = async || world.controller.do_due_chores().await.unwrap();
    look().await;
    assert_eq!(world.count(JOBS).await, 4, "as many as a node has at a time");
    look().await;
    assert_eq!(world.count(JOBS).await, 4);
    assert_eq!(world.count("select count(*) from jobs where created_by is null").await, 0, "who asked is told");
    world.run("update jobs set state = 'done', ended_at = now() where kind = 'guest_states'").await;
    look().await;
    assert_eq!((world.count(JOBS).await, world.count("select count(*) from guest_chores").await), (5, 0));

    // One that is being seen to, or whose node is away, waits for its turn.
    world.run("update nodes set reachability = 'unreachable'").await;
    world.ask(&admin, ApplyAllStates { environment: None, test: true }).await.unwrap();
    look().await;
    assert_eq!(world.count(JOBS).await, 5);
    world.run("update nodes set reachability = 'reachable'").await;
    look().await;
    assert!(world.count(JOBS).await > 5);
    assert_eq!(world.count("select count(*) from audit where action in ('project.states', 'states.all')").await, 3);

    // Of what schedules had done well, nothing is left after a while; who asked can look it up.
    world.run("update jobs set state = 'done', ended_at = now() - interval '8 days'").await;
    world
        .run("update jobs set created_by = null where id = (select id from jobs where kind = 'guest_states' limit 1)")
        .await;
    let before = world.count(JOBS).await;
    world.controller.forget_once().await.unwrap();
    assert_eq!(world.count(JOBS).await, before - 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_many_came_to_is_told_by_outcome(db: PgPool) {
    let world = ready(db).await;
    let mut mia = world.member("mia", &[]).await;
    let atlas = world.project(&mut mia, "atlas").await;
    let mut conn = world.db.acquire().await.unwrap();
    for (test, failed, changed) in [(true, 0, 0), (true, 0, 2), (false, 0, 2), (false, 1, 0)] {
        let guest = world.guest(atlas, Environment::Dev).await;
        let run = StatesRun { states: Vec::new(), ran: 5, failed, changed };
        guest_states::keep(&mut conn, guest, (Mode::Masterless, test), &run).await.unwrap();
    }
    world.guest(atlas, Environment::Dev).await;
    let of =
        async |outcome| world.ask(&mia, ListStates { outcome: Some(outcome), ..ListStates::default() }).await.unwrap();
    for (outcome, many) in
        [(StatesOutcome::Right, 2), (StatesOutcome::Differs, 1), (StatesOutcome::Failed, 1), (StatesOutcome::Never, 1)]
    {
        let found = of(outcome).await.items;
        assert_eq!(found.len(), many, "{outcome}");
        let said =
            |one: &corpus_api::states::StatesOfGuest| one.last.map_or(StatesOutcome::Never, |last| last.outcome());
        assert!(found.iter().all(|one| said(one) == outcome), "{outcome}");
    }
    // A page at a time, each guest once.
    let (mut cursor, mut names) = (None, Vec::new());
    loop {
        let asked = ListStates { cursor, limit: 2.try_into().ok(), ..ListStates::default() };
        let page = world.ask(&mia, asked).await.unwrap();
        names.extend(page.items.iter().map(|one| one.name.to_string()));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let mut sorted = names.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!((names.len(), &names), (5, &sorted));
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_schedule_of_states_is_kept_to(db: PgPool) {
    let world = ready(db).await;
    let mut mia = world.member("mia", &[]).await;
    let dan_of = [("atlas", ProjectRole::Developer)];
    let atlas = world.project(&mut mia, "atlas").await;
    let dan = world.member("dan", &dan_of).await;
    world.guest(atlas, Environment::Dev).await;
    world.run("update guests set state = 'running'").await;
    let project = || "atlas".parse().unwrap();
    let now = async || world.ask(&dan, GetStatesSchedule { project: project() }).await.unwrap();
    let set = async |every, test| {
        let version = now().await.version;
        SetStatesSchedule { project: project(), every, test, version }
    };
    assert_eq!((now().await.every, now().await.may_change), (StatesEvery::Never, false));
    forbidden(world.ask(&dan, set(StatesEvery::Day, true).await).await);
    let stale = set(StatesEvery::Day, true).await;
    world.ask(&mia, stale.clone()).await.unwrap();
    let late = world.ask(&mia, SetStatesSchedule { every: StatesEvery::Hour, ..stale }).await.unwrap_err();
    assert!(late.to_string().contains("every was never and is day"), "{late}");
    let look = async || world.controller.do_due_chores().await.unwrap();
    look().await;
    look().await;
    assert_eq!(world.count(JOBS).await, 1, "once");
    assert_eq!(world.count("select count(*) from audit where action = 'guest.states'").await, 0, "it only looks");
    let next = now().await.next_at.unwrap() - chrono::Utc::now();
    assert!((23..=24).contains(&next.num_hours()), "{next}");
    world.ask(&mia, set(StatesEvery::Hour, false).await).await.unwrap();
    world.run("update jobs set state = 'done', ended_at = now()").await;
    world.run("update states_schedules set next_at = now() - interval '3 days'").await;
    look().await;
    assert_eq!(world.count(JOBS).await, 2);
    assert_eq!(world.count("select count(*) from audit where action = 'guest.states' and actor = 'corpus'").await, 1);
    world.ask(&mia, set(StatesEvery::Never, true).await).await.unwrap();
    assert_eq!(world.count("select count(*) from states_schedules").await, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn guests_have_the_users_that_their_project_wants(db: PgPool) {
    let world = ready(db).await;
    let mut mia = world.member("mia", &[]).await;
    let eve = world.member("eve", &[]).await;
    let atlas = world.project(&mut mia, "atlas").await;
    let dan = world.member("dan", &[("atlas", ProjectRole::Developer)]).await;
    let dev = world.guest(atlas, Environment::Dev).await;
    let prod = world.guest(atlas, Environment::Prod).await;
    world.run("update guests set state = 'running'").await;
    let project = || "atlas".parse().unwrap();
    let set = |user: &str, environments: &[Environment], keys: &str| SetGuestUser {
        project: project(),
        user: user.parse().unwrap(),
        environments: environments.to_vec().try_into().unwrap(),
        sudo: true,
        keys: keys.parse().unwrap(),
    };
    hidden(world.ask(&eve, set("deploy", &[], KEY)).await);
    forbidden(world.ask(&dan, set("deploy", &[], KEY)).await);
    for (user, keys, why) in [
        ("root", KEY, "an account of guests already"),
        ("sysadmin", KEY, "an account of guests already"),
        ("deploy", "  \n", "at least one public key"),
        ("deploy", "ssh-ed25519 nonsense", "Key 1"),
        ("deploy", "command=\"/bin/sh\" ssh-ed25519 AAAA", "Key 1"),
    ] {
        let wrong = world.ask(&mia, set(user, &[], keys)).await.unwrap_err();
        assert!(format!("{wrong:?}").contains(why), "{user} {keys}: {wrong:?}");
    }
    assert_eq!(world.ask(&mia, set("deploy", &[], KEY)).await.unwrap().guests, 2);
    world.ask(&mia, set("monitor", &[Environment::Prod, Environment::Prod], &format!("{KEY}\n{KEY}"))).await.unwrap();
    let users = world.ask(&dan, ListGuestUsers { project: project() }).await.unwrap();
    assert_eq!((users.items.len(), users.waiting, users.may_change), (2, 2, false));
    assert_eq!((users.items[1].keys.len(), users.items[1].environments.as_slice()), (1, &[Environment::Prod][..]));

    let mut conn = world.db.acquire().await.unwrap();
    let names = async |conn: &mut sqlx::PgConnection, guest| -> Vec<String> {
        guest_users::of_guest(conn, guest).await.unwrap().iter().map(|user| user.name.to_string()).collect()
    };
    assert_eq!(names(&mut conn, dev).await, ["deploy"]);
    assert_eq!(names(&mut conn, prod).await, ["deploy", "monitor"]);
    // Their keys are wanted on the node, so that it is seen when one is missing.
    let id: Uuid = sqlx::query_scalar("select node_id from guests limit 1").fetch_one(&mut *conn).await.unwrap();
    let wanted = drift::wanted(&mut conn, NodeId(id)).await.unwrap();
    let of_prod = wanted.iter().find(|guest| guest.id == prod).unwrap();
    let keys = authorized_keys("control", &[], of_prod.users.clone());
    let accounts: Vec<String> = keys.keys().map(ToString::to_string).collect();
    assert_eq!(accounts, ["deploy", "monitor", "root", "sysadmin"]);

    world.controller.do_due_chores().await.unwrap();
    assert_eq!(world.count("select count(*) from jobs where kind = 'guest_users'").await, 2);
    assert_eq!(world.ask(&dan, ListGuestUsers { project: project() }).await.unwrap().waiting, 0);
    // What is brought back from a backup has those of then.
    chores::ask_users_of(&mut conn, dev).await.unwrap();
    assert_eq!(world.count("select count(*) from guest_chores where chore = 'users'").await, 1);
    let remove = |user: &str| RemoveGuestUser { project: project(), user: user.parse().unwrap() };
    world.ask(&mia, remove("deploy")).await.unwrap();
    hidden(world.ask(&mia, remove("deploy")).await);
    assert!(names(&mut conn, dev).await.is_empty());
    // What is brought back later may have them still; where there never were any, there is nothing to look for.
    assert!(guest_users::may_be_on(&mut conn, dev).await.unwrap());
    world.run("delete from guest_chores").await;
    chores::ask_users_of(&mut conn, dev).await.unwrap();
    assert_eq!(world.count("select count(*) from guest_chores").await, 1);
    world.run("delete from guest_chores").await;
    world.run("update projects set had_guest_users = false").await;
    chores::ask_users_of(&mut conn, dev).await.unwrap();
    assert_eq!(world.count("select count(*) from guest_chores").await, 0);
    assert!(!guest_users::may_be_on(&mut conn, dev).await.unwrap());
    assert_eq!(world.count("select count(*) from audit where action like 'guest_user.%'").await, 3);
}

#[sqlx::test(migrations = "../../migrations")]
async fn operators_say_what_every_node_is_to_be(db: PgPool) {
    let world = ready(db).await;
    let admin = world.ops().await;
    let mia = world.member("mia", &[]).await;
    let mut conn = world.db.acquire().await.unwrap();
    let node = NodeId(sqlx::query_scalar("select id from nodes limit 1").fetch_one(&mut *conn).await.unwrap());
    forbidden(world.ask(&mia, GetBaseline {}).await);
    let now = async || -> Baseline { world.ask(&admin, GetBaseline {}).await.unwrap() };
    let operators = format!("ann {KEY}\nann {KEY}");
    let set = async |operators: &str, root_mail: &str, test| SetBaseline {
        packages: "htop".parse().ok(),
        operators: operators.parse().ok(),
        password_login: false,
        time_servers: "192.0.2.1".parse().ok(),
        root_mail: root_mail.parse().ok(),
        every: StatesEvery::Day,
        test,
        version: now().await.version,
    };
    forbidden(world.ask(&mia, set(&operators, "", true).await).await);
    at_field(world.ask(&admin, set("root x", "", true).await).await, "operators", "an account of nodes already");
    at_field(world.ask(&admin, set("", "|/bin/sh", true).await).await, "root_mail", "no mail address");
    let stale = set(&operators, "ops@example.org", true).await;
    let kept = world.ask(&admin, stale.clone()).await.unwrap();
    assert_eq!((kept.operators.lines().count(), kept.packages.as_str(), kept.test), (1, "htop", true));
    let late = world.ask(&admin, SetBaseline { test: false, ..stale }).await.unwrap_err();
    assert!(late.to_string().contains("packages was"), "{late}");

    world.controller.do_due_chores().await.unwrap();
    let jobs = "select count(*) from jobs where kind = 'node_baseline'";
    let nodes = world.count("select count(*) from nodes where state in ('ready', 'draining')").await;
    assert_eq!(world.count(jobs).await, nodes.min(4), "by schedule, soon");
    world.controller.do_due_chores().await.unwrap();
    assert_eq!(world.count(jobs).await, nodes.min(8), "once");
    world.ask(&admin, ApplyNodeBaseline { node, test: false }).await.unwrap();
    forbidden(world.ask(&mia, ApplyNodeBaseline { node, test: true }).await);
    let shown = world.ask(&admin, GetNodeBaseline { node }).await.unwrap();
    assert!(shown.last.is_none() && !shown.is_old);
    let run = StatesRun { states: Vec::new(), ran: 5, failed: 0, changed: 2 };
    crate::store::baselines::keep(&mut conn, node, false, &run).await.unwrap();
    world.run("update baseline set set_at = now() + interval '1 minute'").await;
    let shown = world.ask(&admin, GetNodeBaseline { node }).await.unwrap();
    assert!(shown.is_old && shown.last.unwrap().changed == 2);
}

/// A guest's name with another key is told once a day; names of nobody are kept, and not without bound.
#[sqlx::test(migrations = "../../migrations")]
async fn who_asks_a_master_in_vain_is_told(db: PgPool) {
    let world = ready(db).await;
    let admin = world.ops().await;
    let mut mia = world.member("mia", &[]).await;
    let atlas = world.project(&mut mia, "atlas").await;
    let guest = world.guest(atlas, Environment::Dev).await;
    let mut conn = world.db.acquire().await.unwrap();
    let key = "k".repeat(300);
    let register = async |conn: &mut sqlx::PgConnection, follows_git| {
        let (address, ports) = ("192.0.2.10", (4505, 4506));
        let new = NewMaster { name: "one", address, ports, public_key: &key, follows_git };
        salt_masters::register(conn, &new).await.unwrap();
    };
    register(&mut conn, true).await;
    let before = salt_masters::revision(&mut conn, "one").await.unwrap();
    salt_masters::follow(&mut conn, guest, "one", &key).await.unwrap();
    let after = salt_masters::revision(&mut conn, "one").await.unwrap();
    assert!(after > before);
    salt_masters::knows(&mut conn, "one", &[(guest, &key)]).await.unwrap();
    assert_eq!(salt_masters::revision(&mut conn, "one").await.unwrap(), after, "what it says itself is no change");
    world.run("update guests set memory = memory").await;
    assert_eq!(salt_masters::revision(&mut conn, "one").await.unwrap(), after);
    world.run("update guests set environment = 'prod'").await;
    assert!(salt_masters::revision(&mut conn, "one").await.unwrap() > after, "its pillar is another one");

    let name: String = sqlx::query_scalar("select name from guests").fetch_one(&mut *conn).await.unwrap();
    let told = async |conn: &mut sqlx::PgConnection, minions: &[String]| {
        salt_masters::note_strangers(conn, "one", minions).await.unwrap().len()
    };
    assert_eq!(told(&mut conn, &[name.clone(), "nobody".to_owned()]).await, 1);
    assert_eq!(told(&mut conn, std::slice::from_ref(&name)).await, 0, "once a day");
    for round in 0..5 {
        let many: Vec<String> = (0..50).map(|number| format!("x{round}-{number}")).collect();
        assert_eq!(told(&mut conn, &many).await, 0);
    }
    assert_eq!(world.count("select count(*) from salt_strangers").await, 100);
    told(&mut conn, std::slice::from_ref(&name)).await;
    salt_masters::has_tree(&mut conn, "one", (Some(&"a".repeat(40)), None)).await.unwrap();
    salt_masters::has_tree(&mut conn, "one", (None, Some("it is away"))).await.unwrap();
    forbidden(world.ask(&mia, ListSaltMasters::default()).await);
    register(&mut conn, true).await;
    let shown = async || world.ask(&admin, ListSaltMasters::default()).await.unwrap().items.remove(0);
    let with_git = shown().await;
    register(&mut conn, false).await;
    assert!(shown().await.tree.is_none(), "it has its states from a folder now");
    let shown = with_git;
    let tree = shown.tree.unwrap();
    assert_eq!((tree.commit.map(|commit| commit.len()), tree.problem.as_deref()), (Some(40), Some("it is away")));
    assert_eq!((shown.guests, shown.strangers.len()), (1, 10));
    let first = &shown.strangers[0];
    assert_eq!((first.minion.as_str(), first.is_known), (name.as_str(), true));
    world.run("delete from guests").await;
    assert!(salt_masters::minions(&mut conn, "one").await.unwrap().is_empty());
    hidden(world.ask(&admin, ApplyNodeBaseline { node: NodeId(Uuid::nil()), test: true }).await);
}
