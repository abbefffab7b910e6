//! Members between their logins: two nodes with a guest each, of project atlas on the first
//! and of blog on the second, and a third node without guests.

use std::time::Duration;

use chrono::Utc;
use corpus_api::keys::AddKey;
use corpus_domain::{Bytes, ProjectRole, Reachability, UserId};
use corpus_protocol::{Reading, Storage};
use sqlx::PgPool;
use uuid::Uuid;

use crate::nodes::Observation;
use crate::store::audit::{self, Reader};
use crate::store::keys;
use crate::{Controller, Rules, SignIn};

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICtZB/UHmRfIQ9w50MXZ1k2rRC9DQIwTl3SL5yoFAIvF mia@laptop";
const DEVELOPER: (&str, ProjectRole) = ("atlas", ProjectRole::Developer);
const MAINTAINER: (&str, ProjectRole) = ("blog", ProjectRole::Maintainer);

struct World {
    controller: Controller,
    db: PgPool,
    atlas_guest: Uuid,
}

fn mia(ops: bool, roles: &[(&str, ProjectRole)]) -> SignIn {
    SignIn {
        realm: "ldap",
        login: "mia".parse().unwrap(),
        display_name: "Mia".to_owned(),
        mail: None,
        ops,
        roles: roles.iter().map(|(project, role)| (project.parse().unwrap(), *role)).collect(),
    }
}

impl World {
    async fn new(db: PgPool) -> Self {
        let controller = crate::tests::world::controller(&db, None, None, Rules::default()).await;
        let first = guest(&db, "192.0.2.1", Some("atlas")).await;
        guest(&db, "192.0.2.2", Some("blog")).await;
        guest(&db, "192.0.2.3", None).await;
        Self { controller, db, atlas_guest: first.unwrap() }
    }

    async fn sign_in(&self, who: SignIn) -> UserId {
        self.controller.sign_in(who, "127.0.0.1").await.unwrap()
    }

    /// Mia with those roles and a key; what happened so far is forgotten.
    async fn with_key(&self, roles: &[(&str, ProjectRole)]) -> UserId {
        let id = self.sign_in(mia(false, roles)).await;
        let principal = self.controller.principal(id).await.unwrap().unwrap();
        self.controller.call(&principal, AddKey { line: KEY.parse().unwrap() }, None).await.unwrap();
        sqlx::query("delete from jobs").execute(&self.db).await.unwrap();
        // A row of the audit can't be removed: what is before this one is passed over.
        sqlx::query("insert into audit (id, actor, action, subject) values ($1, 'test', 'test.begin', 'mia')")
            .bind(Uuid::now_v7())
            .execute(&self.db)
            .await
            .unwrap();
        id
    }

    /// The nodes with a job that nobody began, which brings keys; the jobs are gone then.
    async fn synced(&self) -> Vec<String> {
        let mut nodes: Vec<String> = sqlx::query_scalar(
            "with gone as (delete from jobs where kind = 'keys_sync' and created_by is null returning node_id)
             select n.address from gone join nodes n on n.id = gone.node_id",
        )
        .fetch_all(&self.db)
        .await
        .unwrap();
        nodes.sort();
        nodes
    }

    async fn audited(&self) -> Vec<(String, String)> {
        let asked = corpus_api::audit::ListAudit::default();
        let mut conn = self.db.acquire().await.unwrap();
        let rows = audit::list(&mut conn, Reader::Ops, &asked, None, 50).await.unwrap().into_iter();
        rows.map(|row| (row.actor, row.action)).take_while(|(_, action)| action != "test.begin").collect()
    }

    async fn lines(&self) -> usize {
        let mut conn = self.db.acquire().await.unwrap();
        keys::lines_for_guest(&mut conn, self.atlas_guest.into()).await.unwrap().len()
    }

    async fn session_of(&self, browser: &str, id: UserId) {
        sqlx::query("insert into tower_sessions values ($1, jsonb_build_object('member', $2::text), now())")
            .bind(browser)
            .bind(id.to_string())
            .execute(&self.db)
            .await
            .unwrap();
    }
}

/// Makes a node, and on it a guest if a project is named.
async fn guest(db: &PgPool, address: &str, project: Option<&str>) -> Option<Uuid> {
    let node = Uuid::now_v7();
    sqlx::query(
        "insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, network, bridge)
         values ($1, $2, 22, 'root', $3, '{dev}', 'ready', '10.5.0.1/16', 'lxcbr1')",
    )
    .bind(node)
    .bind(address)
    .bind(KEY.rsplit_once(' ').unwrap().0)
    .execute(db)
    .await
    .unwrap();
    let mut conn = db.acquire().await.unwrap();
    let project = super::users::ensure_project(&mut conn, &project?.parse().unwrap()).await.unwrap();
    sqlx::query_scalar(
        "insert into guests (id, name, node_id, project_id, environment, driver, image, backing, size, mode, state)
         values ($1, $2, $3, $4, 'dev', 'lxc', 'debian', 'dir', 'small', 'masterless', 'running') returning id",
    )
    .bind(Uuid::now_v7())
    .bind(format!("guest-{}", address.replace('.', "-")))
    .bind(node)
    .bind(project.0)
    .fetch_one(&mut *conn)
    .await
    .map(Some)
    .unwrap()
}

fn by_directory(action: &str) -> Vec<(String, String)> {
    vec![("directory".to_owned(), action.to_owned())]
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_lost_role_takes_the_keys_from_its_guests_only(db: PgPool) {
    let world = World::new(db).await;
    let id = world.with_key(&[DEVELOPER, MAINTAINER]).await;
    assert!(world.controller.directory_says(id, Some(mia(false, &[MAINTAINER]))).await.unwrap());
    assert_eq!(world.synced().await, ["192.0.2.1"]);
    assert_eq!(world.audited().await, by_directory("member.roles"));
    assert_eq!(world.lines().await, 0);
    assert_eq!(world.controller.principal(id).await.unwrap().unwrap().roles.len(), 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_is_as_before_leaves_no_trace(db: PgPool) {
    let world = World::new(db).await;
    let id = world.with_key(&[DEVELOPER, MAINTAINER]).await;
    let weaker = ("blog", ProjectRole::Viewer);
    for roles in [vec![DEVELOPER, MAINTAINER], vec![MAINTAINER, weaker, DEVELOPER], vec![weaker, DEVELOPER, MAINTAINER]]
    {
        assert!(!world.controller.directory_says(id, Some(mia(false, &roles))).await.unwrap(), "{roles:?}");
    }
    assert_eq!((world.synced().await.len(), world.audited().await.len()), (0, 0));
}

#[sqlx::test(migrations = "../../migrations")]
async fn jobs_are_queued_only_where_who_may_enter_changed(db: PgPool) {
    let world = World::new(db).await;
    let id = world.with_key(&[DEVELOPER]).await;
    let stronger = ("atlas", ProjectRole::Maintainer);
    let renamed = SignIn { display_name: "Mia M.".to_owned(), ..mia(true, &[stronger]) };
    let steps: [(SignIn, &[&str], &str); 5] = [
        (mia(false, &[stronger]), &[], "member.roles"),
        (mia(true, &[stronger]), &["192.0.2.2"], "member.roles"),
        (renamed, &[], "member.profile"),
        (mia(false, &[("atlas", ProjectRole::Viewer)]), &["192.0.2.1", "192.0.2.2"], "member.roles"),
        (mia(false, &[MAINTAINER]), &["192.0.2.2"], "member.roles"),
    ];
    for (says, nodes, action) in steps {
        assert!(world.controller.directory_says(id, Some(says)).await.unwrap());
        assert_eq!(world.synced().await, nodes);
        assert_eq!(world.audited().await.first().map(|(_, action)| action.as_str()), Some(action));
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn who_is_disabled_loses_sessions_roles_and_keys_until_the_next_login(db: PgPool) {
    let world = World::new(db).await;
    let id = world.with_key(&[DEVELOPER, MAINTAINER]).await;
    world.session_of("one", id).await;
    world.session_of("two", id).await;
    world.session_of("of another", UserId(Uuid::now_v7())).await;
    assert_eq!(world.lines().await, 1);

    assert!(world.controller.directory_says(id, None).await.unwrap());
    assert!(world.controller.principal(id).await.unwrap().is_none());
    let left: Vec<String> = sqlx::query_scalar("select id from tower_sessions").fetch_all(&world.db).await.unwrap();
    assert_eq!(left, ["of another"]);
    assert_eq!(world.synced().await, ["192.0.2.1", "192.0.2.2"]);
    assert_eq!(world.audited().await, by_directory("member.disable"));
    assert_eq!(world.lines().await, 0);
    assert!(world.controller.ldap_members().await.unwrap().is_empty());

    for late in [None, Some(mia(true, &[DEVELOPER]))] {
        assert!(!world.controller.directory_says(id, late).await.unwrap(), "only a login enables again");
    }
    assert!(world.controller.principal(id).await.unwrap().is_none());

    assert_eq!(world.sign_in(mia(false, &[DEVELOPER])).await, id);
    assert_eq!(world.synced().await, ["192.0.2.1"]);
    assert_eq!(world.lines().await, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_login_with_another_role_moves_the_keys(db: PgPool) {
    let world = World::new(db).await;
    world.sign_in(mia(true, &[])).await;
    assert_eq!(world.synced().await.len(), 0, "there is no key yet");
    world.with_key(&[DEVELOPER]).await;
    world.sign_in(mia(false, &[DEVELOPER])).await;
    assert_eq!(world.synced().await.len(), 0, "nothing changed");
    world.sign_in(mia(false, &[MAINTAINER])).await;
    assert_eq!(world.synced().await, ["192.0.2.1", "192.0.2.2"]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn the_directory_has_no_say_over_local_accounts(db: PgPool) {
    let world = World::new(db).await;
    let admin = SignIn { realm: "local", ..mia(true, &[]) };
    let id = world.sign_in(admin).await;
    assert!(world.controller.ldap_members().await.unwrap().is_empty());
    assert!(!world.controller.directory_says(id, None).await.unwrap());
    assert!(world.controller.principal(id).await.unwrap().is_some());
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_node_that_comes_back_gets_the_keys_that_it_missed(db: PgPool) {
    let world = World::new(db).await;
    let returns = async |address: &str| {
        let node: Uuid = sqlx::query_scalar("select id from nodes where address = $1")
            .bind(address)
            .fetch_one(&world.db)
            .await
            .unwrap();
        let reading = Reading {
            load: 0.0,
            uptime_s: 1,
            memory_total: Bytes(1),
            memory_used: Bytes(1),
            storage: Storage { total: Bytes(1), used: Bytes(1), promised: Bytes(0) },
            guests: Vec::new(),
            images: Vec::new(),
            members: Vec::new(),
            clock_ms: None,
        };
        let observation = Observation {
            node: node.into(),
            at: Utc::now(),
            elapsed: Duration::ZERO,
            outcome: Ok(Box::new(reading)),
            reachability: Reachability::Reachable,
            changed: true,
        };
        world.controller.keep(&[observation]).await.unwrap();
    };
    let away = "update nodes set reachability = 'unreachable' where address <> '192.0.2.2'";
    sqlx::query(away).execute(&world.db).await.unwrap();
    for address in ["192.0.2.1", "192.0.2.2", "192.0.2.3"] {
        returns(address).await;
    }
    assert_eq!(world.synced().await, ["192.0.2.1"], "the second was not away, the third has no guest");
    returns("192.0.2.1").await;
    assert!(world.synced().await.is_empty(), "once is enough");
}
