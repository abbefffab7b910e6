//! What can be undone, by whom, how often, and what it takes.

use std::sync::Arc;

use corpus_api::environments::{EnvironmentSettings, GetEnvironmentSettings, SetEnvironmentSettings};
use corpus_api::names::{AttachName, DetachName};
use corpus_api::projects::members::{ListMembers, RemoveMember, SetMember};
use corpus_api::undoes::{ListUndoes, Undo, UndoLine, Undoable, Undone};
use corpus_api::zones::{CreateZone, ZoneAccess, ZoneProjects};
use corpus_api::{Principal, Problem};
use corpus_domain::{Environment, Grant, ProjectRole, UndoId};
use sqlx::PgPool;

use super::world::{KEY, World, conflict, hidden, refusal};
use crate::dns::powerdns_server::PowerDnsServer;

impl World {
    async fn undoes(&self, who: &Principal, of: Undoable) -> Vec<UndoLine> {
        self.ask(who, ListUndoes { of: Some(of), ..ListUndoes::default() }).await.unwrap().items
    }

    async fn undo(&self, who: &Principal, undo: UndoId) -> Result<Undone, Problem> {
        self.ask(who, Undo { undo }).await
    }

    async fn roles(&self, who: &Principal) -> Vec<(String, ProjectRole)> {
        let asked = ListMembers { project: "shop".parse().unwrap(), cursor: None, limit: None };
        let members = self.ask(who, asked).await.unwrap().items.into_iter();
        members.map(|member| (member.login.to_string(), member.role)).collect()
    }

    async fn give(&self, who: &Principal, login: &str, role: ProjectRole) {
        let asked = SetMember { project: "shop".parse().unwrap(), login: login.parse().unwrap(), role };
        self.ask(who, asked).await.unwrap();
    }

    async fn take(&self, who: &Principal, login: &str) -> UndoId {
        let asked = RemoveMember { project: "shop".parse().unwrap(), login: login.parse().unwrap() };
        self.ask(who, asked).await.unwrap();
        self.undoes(who, Undoable::Member).await[0].id
    }

    async fn dev_settings(&self, who: &Principal) -> EnvironmentSettings {
        let asked = GetEnvironmentSettings { project: "shop".parse().unwrap(), environment: Environment::Dev };
        self.ask(who, asked).await.unwrap()
    }

    async fn set_dev(&self, who: &Principal, text: &str) {
        let version = self.dev_settings(who).await.version;
        let (project, settings) = ("shop".parse().unwrap(), Some(text.parse().unwrap()));
        let asked = SetEnvironmentSettings { project, environment: Environment::Dev, settings, version };
        self.ask(who, asked).await.unwrap();
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_key_comes_back_as_it_was_once_and_for_its_member(db: PgPool) {
    let world = World::new(db).await;
    let (mut mia, tom) = (world.member("mia", &[]).await, world.member("tom", &[]).await);
    let shop = world.project(&mut mia, "shop").await;
    world.guest(shop, Environment::Dev).await;
    world.add_key(&mia, KEY).await.unwrap();
    let before = world.my_keys(&mia).await;
    world.remove_key(&mia, before[0].id).await;
    world.run("delete from jobs").await;

    let told = world.undoes(&mia, Undoable::Key).await;
    assert_eq!((told.len(), told[0].said.as_str(), told[0].ready), (1, "The key mia@laptop was removed.", true));
    assert_eq!(world.undoes(&tom, Undoable::Key).await, [], "nobody else sees it");
    hidden(world.undo(&tom, told[0].id).await);
    let weak = Principal { token: Some(Grant::Operate), ..mia.clone() };
    assert_eq!(refusal(world.undo(&weak, told[0].id).await).status, 403, "it takes what to add a key takes");

    assert_eq!(world.undo(&mia, told[0].id).await.unwrap().path, "/keys");
    let after = world.my_keys(&mia).await;
    let what = |keys: &[corpus_api::keys::OwnKey]| (keys[0].fingerprint.clone(), keys[0].comment.clone());
    assert_eq!((after.len(), what(&after)), (1, what(&before)));
    assert_eq!(
        world.count("select count(*) from jobs where kind = 'keys_sync'").await,
        1,
        "it is brought to the guests"
    );
    let audit = "select count(*) from audit where actor = 'mia' and action in ('key.add', 'undo')";
    assert_eq!(world.count(audit).await, 3, "added, removed and added again, and that it was undone");
    hidden(world.undo(&mia, told[0].id).await);
    assert_eq!(world.undoes(&mia, Undoable::Key).await, [], "to undo is no change that can be undone");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_key_that_others_added_meanwhile_stays_theirs(db: PgPool) {
    let world = World::new(db).await;
    let (mia, tom) = (world.member("mia", &[]).await, world.member("tom", &[]).await);
    world.add_key(&mia, KEY).await.unwrap();
    let key = world.my_keys(&mia).await[0].id;
    world.remove_key(&mia, key).await;
    let undo = world.undoes(&mia, Undoable::Key).await[0].id;
    world.add_key(&mia, KEY).await.unwrap();
    assert_eq!(world.undoes(&mia, Undoable::Key).await, [], "it was added by hand");
    conflict(world.undo(&mia, undo).await, "again already");
    let key = world.my_keys(&mia).await[0].id;
    world.remove_key(&mia, key).await;
    let undo = world.undoes(&mia, Undoable::Key).await[0].id;
    world.add_key(&tom, KEY).await.unwrap();
    conflict(world.undo(&mia, undo).await, "another account");
    assert_eq!(world.count("select count(*) from key_claims").await, 0, "no claim is begun");
    let key = world.my_keys(&tom).await[0].id;
    world.remove_key(&tom, key).await;
    world.undo(&mia, undo).await.unwrap();

    let key = world.my_keys(&mia).await[0].id;
    world.remove_key(&mia, key).await;
    world.run("update undoes set expires_at = now()").await;
    assert_eq!(world.undoes(&mia, Undoable::Key).await, []);
    let late: uuid::Uuid = sqlx::query_scalar("select id from undoes where user_id = $1")
        .bind(mia.id.0)
        .fetch_one(&world.db)
        .await
        .unwrap();
    hidden(world.undo(&mia, UndoId(late)).await);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_member_gets_the_role_again_if_that_is_still_ones_to_give(db: PgPool) {
    let world = World::new(db).await;
    let (mut mia, ops) = (world.member("mia", &[]).await, world.ops().await);
    world.project(&mut mia, "shop").await;
    for login in ["tom", "kim"] {
        world.member(login, &[]).await;
    }
    world.give(&mia, "tom", ProjectRole::Developer).await;
    world.give(&mia, "kim", ProjectRole::Maintainer).await;
    let undo = world.take(&mia, "tom").await;
    assert_eq!(world.undoes(&mia, Undoable::Member).await[0].said, "tom was removed from shop.");
    world.undo(&mia, undo).await.unwrap();
    let all = [("kim", ProjectRole::Maintainer), ("mia", ProjectRole::Maintainer), ("tom", ProjectRole::Developer)];
    assert_eq!(world.roles(&mia).await, all.map(|(login, role)| (login.to_owned(), role)));

    // Somebody else decided otherwise.
    let undo = world.take(&mia, "tom").await;
    world.give(&ops, "tom", ProjectRole::Viewer).await;
    assert_eq!(world.undoes(&mia, Undoable::Member).await, [], "what is given back is not offered");
    conflict(world.undo(&mia, undo).await, "viewer of shop meanwhile");

    // Who is no maintainer any more may not, and who is no member does not learn anything.
    let undo = world.take(&mia, "tom").await;
    world.give(&ops, "mia", ProjectRole::Developer).await;
    mia = world.principal(mia.id).await;
    assert_eq!(refusal(world.undo(&mia, undo).await).status, 403);
    world.take(&ops, "mia").await;
    mia = world.principal(mia.id).await;
    assert_eq!(world.undoes(&mia, Undoable::Member).await, []);
    hidden(world.undo(&mia, undo).await);
    assert_eq!(world.roles(&ops).await.len(), 1, "nothing was undone");
}

#[sqlx::test(migrations = "../../migrations")]
async fn settings_come_back_unless_somebody_changed_them_since(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let tom = world.member("tom", &[("shop", ProjectRole::Maintainer)]).await;
    world.environment(&mia, shop, Environment::Dev).await;
    world.set_dev(&mia, "greeting: hello").await;
    world.set_dev(&mia, "greeting: bye\nlevel: 3").await;
    let told = world.undoes(&mia, Undoable::Settings).await;
    assert_eq!((told.len(), told[0].said.as_str()), (1, "The settings of shop dev were changed."), "the last change");
    world.set_dev(&mia, "greeting: bye\nlevel: 3").await;
    assert_eq!(world.undoes(&mia, Undoable::Settings).await[0].id, told[0].id, "nothing was changed");
    world.undo(&mia, told[0].id).await.unwrap();
    assert_eq!(
        serde_json::to_value(world.dev_settings(&mia).await.settings).unwrap(),
        serde_json::json!({ "greeting": "hello" })
    );
    assert!(world.count("select count(*) from jobs where kind = 'environment_configure'").await > 0);

    world.set_dev(&mia, "greeting: ciao").await;
    let undo = world.undoes(&mia, Undoable::Settings).await[0].id;
    world.set_dev(&tom, "greeting: ahoy").await;
    let refused = refusal(world.undo(&mia, undo).await);
    assert_eq!(refused.status, 412);
    let said = refused.text().to_owned();
    assert!(said.contains("tom") && said.contains("greeting was ciao and is ahoy"), "{said}");
    assert!(said.contains("nothing was undone") && !said.contains("typed"), "{said}");
    assert_eq!(world.undoes(&tom, Undoable::Settings).await.len(), 1, "each has their own");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_name_is_attached_again_when_it_is_detached(db: PgPool) {
    let server = PowerDnsServer::start();
    let world = World::with(db, Some(Arc::new(server.provider())), None, World::rules()).await;
    let ops = world.ops().await;
    let (name, access, projects) = ("example.org".parse().unwrap(), ZoneAccess::All, ZoneProjects::default());
    world.ask(&ops, CreateZone { name, access, projects, provider: None, ttl_s: None }).await.unwrap();
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let guest = world.guest(shop, Environment::Dev).await;
    let name = "web.shop.example.org";
    let attached = world.ask(&mia, AttachName { guest, name: name.parse().unwrap(), wildcard: false }).await.unwrap();
    world.run("update dns_names set state = 'attached'").await;
    world.run("delete from jobs").await;
    world.ask(&mia, DetachName { name: attached.name }).await.unwrap();
    let told = world.undoes(&mia, Undoable::Name).await;
    assert_eq!((told.len(), told[0].ready), (1, false), "it is on its way");
    conflict(world.undo(&mia, told[0].id).await, "not detached yet");
    for state in ["failed", "wanted", "attached"] {
        sqlx::query("update dns_names set state = $1").bind(state).execute(&world.db).await.unwrap();
        assert_eq!(world.undoes(&mia, Undoable::Name).await, [], "it is there, and nothing takes it away: {state}");
    }
    world.run("update dns_names set state = 'detaching'").await;
    assert_eq!(world.undoes(&mia, Undoable::Name).await[0].id, told[0].id);

    world.run("delete from dns_names").await;
    world.run("delete from jobs").await;
    assert!(world.undoes(&mia, Undoable::Name).await[0].ready);
    assert_eq!(world.undo(&mia, told[0].id).await.unwrap().path, format!("/guests/{guest}"));
    let again: (uuid::Uuid, String) = sqlx::query_as("select guest_id, state from dns_names where name = $1")
        .bind(name)
        .fetch_one(&world.db)
        .await
        .unwrap();
    assert_eq!(again, (guest.0, "wanted".to_owned()));
    assert_eq!(world.count("select count(*) from jobs where kind = 'name_attach'").await, 1);
    assert_eq!(world.count("select count(*) from undoes").await, 0);
}
