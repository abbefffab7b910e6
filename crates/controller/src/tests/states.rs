//! How guests are managed: who switches and applies, in which state, and what is shown of a run.

use corpus_api::guests::{ApplyGuestStates, GetGuestStates, RequestGuest, SwitchGuestMode};
use corpus_domain::{Environment, GuestId, JobKind, Mode, ProjectRole, SizeProfile};
use corpus_protocol::{SaltState, StatesRun};
use sqlx::PgPool;
use uuid::Uuid;

use super::world::{World, at_field, conflict, forbidden, hidden};
use crate::store::guest_states;
use crate::store::salt_masters::{self, NewMaster};

#[sqlx::test(migrations = "../../migrations")]
async fn who_may_has_them_applied(db: PgPool) {
    let world = World::new(db).await;
    world.run("update nodes set slots = 4096, reachability = 'reachable'").await;
    let mut mia = world.member("mia", &[]).await;
    let eve = world.member("eve", &[]).await;
    let atlas = world.project(&mut mia, "atlas").await;
    let dan = world.member("dan", &[("atlas", ProjectRole::Developer)]).await;
    let guest = world.guest(atlas, Environment::Dev).await;
    let switch = |mode| SwitchGuestMode { guest, mode };
    let apply = |test| ApplyGuestStates { guest, test };
    let shown = || GetGuestStates { guest };

    hidden(world.ask(&eve, shown()).await);
    hidden(world.ask(&eve, switch(Mode::Salt)).await);
    hidden(world.ask(&eve, apply(true)).await);
    forbidden(world.ask(&dan, switch(Mode::Salt)).await);
    forbidden(world.ask(&dan, apply(true)).await);
    hidden(world.ask(&mia, ApplyGuestStates { guest: GuestId(Uuid::nil()), test: true }).await);
    let now = world.ask(&dan, shown()).await.unwrap();
    assert_eq!((now.mode, now.last, now.may_change), (Mode::Masterless, None, false));
    at_field(world.ask(&mia, switch(Mode::Mastersalt)).await, "mode", "No Salt master");

    // It is the guest that does it, so it must run; and one after the other.
    world.run("update guests set state = 'stopped'").await;
    conflict(world.ask(&mia, switch(Mode::Salt)).await, "is stopped now");
    conflict(world.ask(&mia, apply(false)).await, "is stopped now");
    world.run("update guests set state = 'running'").await;
    world.ask(&mia, switch(Mode::Salt)).await.unwrap();
    conflict(world.ask(&mia, apply(false)).await, "Its states are just being applied");
    conflict(world.ask(&mia, switch(Mode::Salt)).await, "Its mode is just being switched");
    assert_eq!(world.ask(&mia, shown()).await.unwrap().mode, Mode::Masterless, "not before it is so");
    world.run("delete from jobs").await;
    world.ask(&mia, apply(true)).await.unwrap();
    conflict(world.ask(&mia, apply(true)).await, "just being applied");
    let kinds = [JobKind::GuestMode, JobKind::GuestStates].map(JobKind::as_str);
    assert_eq!(kinds, ["guest_mode", "guest_states"]);
    let written = "select count(*) from audit where action in ('guest.mode', 'guest.states') and door is not null";
    assert_eq!(world.count(written).await, 2);

    // A guest is asked for with a mode.
    let wanted = |mode| RequestGuest {
        mode: Some(mode),
        ..RequestGuest::new(
            "atlas".parse().unwrap(),
            Environment::Dev,
            "salted.test".parse().unwrap(),
            SizeProfile::Small,
        )
    };
    at_field(world.ask(&mia, wanted(Mode::Mastersalt)).await, "mode", "No Salt master");
    let asked = world.ask(&mia, wanted(Mode::Salt)).await.unwrap().guest;
    assert_eq!(world.ask(&mia, GetGuestStates { guest: asked }).await.unwrap().mode, Mode::Salt);
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_they_came_to_last_is_shown(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let atlas = world.project(&mut mia, "atlas").await;
    let guest = world.guest(atlas, Environment::Dev).await;
    let state = |name: &str, ok| SaltState {
        id: "a".to_owned(),
        function: "file.managed".to_owned(),
        name: name.to_owned(),
        ok,
        changed: true,
        comment: "\u{e4}\u{0}".replace('\u{0}', ""),
        elapsed_ms: 7,
    };
    for (test, names) in [(true, vec!["/one"]), (false, vec!["/one", "/two"])] {
        let states: Vec<SaltState> = names.iter().map(|name| state(name, *name == "/one")).collect();
        let (ran, failed) = (states.len() as u64, states.iter().filter(|one| !one.ok).count() as u64);
        let run = StatesRun { states, ran, failed, changed: ran };
        let mut conn = world.db.acquire().await.unwrap();
        guest_states::keep(&mut conn, guest, (Mode::Salt, test), &run).await.unwrap();
        let last = world.ask(&mia, GetGuestStates { guest }).await.unwrap().last.unwrap();
        assert_eq!((last.test, last.mode, last.ran, last.failed, last.changed), (test, Mode::Salt, ran, failed, ran));
        assert_eq!(last.states.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), names);
    }
    // They go with their guest; and of one that is gone nothing is kept.
    world.run("delete from guests").await;
    let mut conn = world.db.acquire().await.unwrap();
    let nothing = StatesRun { states: Vec::new(), ran: 0, failed: 0, changed: 0 };
    guest_states::keep(&mut conn, guest, (Mode::Salt, false), &nothing).await.unwrap();
    assert_eq!(world.count("select count(*) from guest_states").await, 0);
}

/// A minion is known by the master that was asked for last, by the key that was told last; and no more when its guest is gone.
#[sqlx::test(migrations = "../../migrations")]
async fn a_master_knows_who_is_to_be_known(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let atlas = world.project(&mut mia, "atlas").await;
    let guest = world.guest(atlas, Environment::Dev).await;
    let mut conn = world.db.acquire().await.unwrap();
    let key = |letter: &str| letter.repeat(300);
    let master = async |conn: &mut sqlx::PgConnection, name, key: &str| {
        let new = NewMaster { name, address: "192.0.2.10", ports: (4505, 4506), public_key: key, follows_git: false };
        salt_masters::register(conn, &new).await.unwrap();
    };
    assert_eq!(salt_masters::pick(&mut conn).await.unwrap(), None);
    master(&mut conn, "one", &key("m")).await;
    master(&mut conn, "two", &key("n")).await;
    assert_eq!(salt_masters::pick(&mut conn).await.unwrap().as_deref(), Some("one"));
    salt_masters::follow(&mut conn, guest, "one", &key("a")).await.unwrap();
    assert_eq!(salt_masters::pick(&mut conn).await.unwrap().as_deref(), Some("two"), "it has fewer minions");
    let followed = async |conn: &mut sqlx::PgConnection| salt_masters::of(conn, guest).await.unwrap().unwrap();
    assert!(!followed(&mut conn).await.is_known);
    salt_masters::knows(&mut conn, "two", &[(guest, &key("a"))]).await.unwrap();
    assert!(!followed(&mut conn).await.is_known, "another master knows nothing of it");
    salt_masters::knows(&mut conn, "one", &[(guest, &key("z"))]).await.unwrap();
    assert!(!followed(&mut conn).await.is_known, "by another key it knows nobody");
    salt_masters::knows(&mut conn, "one", &[(guest, &key("a"))]).await.unwrap();
    let now = followed(&mut conn).await;
    assert_eq!((now.is_known, now.place.key, now.master.as_str()), (true, key("m"), "one"));
    let minions = salt_masters::minions(&mut conn, "one").await.unwrap();
    assert_eq!((minions.len(), minions[0].project.as_str(), minions[0].is_known), (1, "atlas", true));
    // The same again is known still; another key, or another master, is not yet.
    salt_masters::follow(&mut conn, guest, "one", &key("a")).await.unwrap();
    assert!(followed(&mut conn).await.is_known);
    salt_masters::follow(&mut conn, guest, "one", &key("b")).await.unwrap();
    assert!(!followed(&mut conn).await.is_known);
    salt_masters::knows(&mut conn, "one", &[(guest, &key("b"))]).await.unwrap();
    salt_masters::follow(&mut conn, guest, "two", &key("b")).await.unwrap();
    assert!(!followed(&mut conn).await.is_known && salt_masters::minions(&mut conn, "one").await.unwrap().is_empty());
    world.run("update salt_masters set seen_at = now() - interval '2 minutes'").await;
    assert_eq!(salt_masters::pick(&mut conn).await.unwrap(), None, "one that is away gets nobody");
    world.run("delete from guests").await;
    assert_eq!(salt_masters::of(&mut conn, guest).await.unwrap(), None);
}
