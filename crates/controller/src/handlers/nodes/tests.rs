//! Nodes as operations, on a database alone: who sees what, pages, versions, refusals.

use corpus_api::Problem;
use corpus_api::node_service::{DrainNode, ResumeNode};
use corpus_api::nodes::{
    ConfirmNodeHostKey, GetControlKey, GetNode, GetOvercommit, InitializeNode, LinkNode, ListNodes, NodeLine, NodeSort,
    RepairNode, SetOvercommit, UnlinkNode,
};
use corpus_domain::{DriftKind, Factor, NodeId, NodeState, ProjectRole, Reachability};
use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

use crate::store::nodes;
use crate::{Ask, Controller, Handle, Rules, SignIn};
use corpus_api::Principal;

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICtZB/UHmRfIQ9w50MXZ1k2rRC9DQIwTl3SL5yoFAIvF";
const OTHER: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";
const GIB: u64 = 1 << 30;

struct World {
    controller: Controller,
    db: PgPool,
    ops: Principal,
    mia: Principal,
}

impl World {
    /// An operator, and a developer of atlas; there is a project blog beside it.
    async fn new(db: PgPool) -> Self {
        let controller = crate::tests::world::controller(&db, None, None, Rules::default()).await;
        let ops = sign_in(&controller, "olga", true, &[]).await;
        sign_in(&controller, "bob", false, &[("blog", ProjectRole::Maintainer)]).await;
        let mia = sign_in(&controller, "mia", false, &[("atlas", ProjectRole::Developer)]).await;
        Self { controller, db, ops, mia }
    }

    async fn run(&self, statement: &'static str) {
        sqlx::query(statement).execute(&self.db).await.unwrap();
    }

    /// A node in service, with as much as facts say.
    async fn node(&self, address: &str, memory: u64) -> NodeId {
        let id = Uuid::now_v7();
        let facts = json!({
            "hostname": "node", "os": "Debian", "kernel": "6.1", "architecture": "x86_64", "memory": memory * GIB,
            "cpu": { "model": "x", "count": 4 }, "storage": { "total": 100_000_000_000_u64, "used": 0 },
            "addresses": ["192.0.2.7"], "listeners": [], "drivers": [
                { "driver": "lxc", "version": "5.0.2", "obstacle": null },
                { "driver": "libvirt", "version": null, "obstacle": "no /dev/kvm" },
            ],
        });
        let reading = json!({
            "load": 0.5, "uptime_s": 7, "memory_total": memory * GIB, "memory_used": GIB,
            "storage": { "total": 100, "used": 40 }, "guests": [],
        });
        sqlx::query(
            "insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, reachability, network,
                 bridge, slots, facts, reading, reading_at)
             values ($1, $2, 22, 'root', $3, '{dev}', 'ready', 'reachable', '10.5.0.1/16', 'lxcbr1', 100, $4, $5, now())",
        )
        .bind(id)
        .bind(address)
        .bind(KEY)
        .bind(facts)
        .bind(reading)
        .execute(&self.db)
        .await
        .unwrap();
        NodeId(id)
    }

    async fn guest(&self, node: NodeId, project: &str, name: &str) {
        sqlx::query(
            "insert into guests (id, name, node_id, project_id, environment, driver, image, backing, size, mode, state)
             select gen_random_uuid(), $3, $1, id, 'dev', 'lxc', 'debian-12', 'dir', 'small', 'masterless', 'running'
             from projects where name = $2",
        )
        .bind(node.0)
        .bind(project)
        .bind(name)
        .execute(&self.db)
        .await
        .unwrap();
    }

    async fn ask<O: Ask>(&self, operation: O) -> Result<O::Output, Problem>
    where
        Controller: Handle<O>,
    {
        self.controller.call(&self.ops, operation, None).await
    }

    async fn list(&self, who: &Principal, asked: ListNodes) -> Vec<NodeLine> {
        self.controller.call(who, asked, None).await.unwrap().items
    }

    async fn addresses(&self, asked: ListNodes) -> Vec<String> {
        self.list(&self.ops, asked).await.iter().map(|node| node.address.to_string()).collect()
    }

    async fn audit(&self) -> Vec<(String, String, serde_json::Value)> {
        let rows = "select action, subject, detail from audit where action like 'node.%' order by id";
        sqlx::query_as(rows).fetch_all(&self.db).await.unwrap()
    }
}

async fn sign_in(controller: &Controller, login: &str, ops: bool, roles: &[(&str, ProjectRole)]) -> Principal {
    let who = SignIn {
        realm: "ldap",
        login: login.parse().unwrap(),
        display_name: login.to_owned(),
        mail: None,
        ops,
        roles: roles.iter().map(|(project, role)| (project.parse().unwrap(), *role)).collect(),
    };
    let id = controller.sign_in(who, "127.0.0.1").await.unwrap();
    controller.principal(id).await.unwrap().unwrap()
}

fn link(address: &str) -> LinkNode {
    let environments = vec![corpus_domain::Environment::Dev].try_into().unwrap();
    LinkNode::new(address.parse().unwrap(), KEY.parse().unwrap(), environments)
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_page_goes_on_where_the_last_one_ended(db: PgPool) {
    let world = World::new(db).await;
    for number in 10..17 {
        world.node(&format!("node-{number}.test"), 4).await;
    }
    for sort in [None, Some(NodeSort::FreeSlots)] {
        let mut asked = ListNodes { sort, limit: "3".parse().ok(), ..ListNodes::default() };
        let (mut seen, mut sizes) = (Vec::new(), Vec::new());
        for meanwhile in ["node-09.test", "node-18.test", "node-08.test"] {
            let page = world.ask(asked.clone()).await.unwrap();
            seen.extend(page.items.iter().map(|node| node.address.to_string()));
            sizes.push(page.items.len());
            world.node(meanwhile, 4).await;
            assert_eq!(page.next.is_some(), sizes.len() < 3, "{sort:?} {sizes:?}");
            asked.cursor = page.next;
        }
        // What came before the place of the cursor is not told, what came behind it is.
        let expected = ["10", "11", "12", "13", "14", "15", "16", "18"].map(|number| format!("node-{number}.test"));
        assert_eq!((seen.as_slice(), sizes), (expected.as_slice(), vec![3, 3, 2]), "{sort:?}");
        world.run("delete from nodes where address in ('node-09.test', 'node-18.test', 'node-08.test')").await;
    }
    let first = world.ask(ListNodes { limit: "3".parse().ok(), ..ListNodes::default() }).await.unwrap();
    let elsewhere = ListNodes { sort: Some(NodeSort::FreeSlots), cursor: first.next, ..ListNodes::default() };
    let refused = world.ask(elsewhere).await.unwrap_err();
    assert_eq!((refused.status, refused.errors[0].field.as_str()), (422, "cursor"));
}

#[sqlx::test(migrations = "../../migrations")]
async fn lists_are_filtered_and_sorted(db: PgPool) {
    let world = World::new(db).await;
    let small = world.node("small.a.test", 2).await;
    world.node("large.b.test", 64).await;
    world.node("gone.b.test", 8).await;
    world
        .run("update nodes set reachability = 'unreachable', environments = '{prod}' where address = 'gone.b.test'")
        .await;
    world.run("update nodes set state = 'linked' where address = 'small.a.test'").await;
    let all = ListNodes::default;
    assert_eq!(world.addresses(all()).await, ["gone.b.test", "large.b.test", "small.a.test"]);
    let sorted = world.addresses(ListNodes { sort: Some(NodeSort::FreeSlots), ..all() }).await;
    assert_eq!(sorted, ["large.b.test", "gone.b.test", "small.a.test"], "one that is not ready has no free slot");
    let found = world.addresses(ListNodes { q: "B.TE".parse().ok(), ..all() }).await;
    assert_eq!(found, ["gone.b.test", "large.b.test"]);
    assert!(world.addresses(ListNodes { q: "%".parse().ok(), ..all() }).await.is_empty(), "it is no pattern");
    let ready = vec![NodeState::Linked, NodeState::Failed].try_into().unwrap();
    assert_eq!(world.addresses(ListNodes { state: ready, ..all() }).await, ["small.a.test"]);
    let silent = vec![Reachability::Unreachable].try_into().unwrap();
    assert_eq!(world.addresses(ListNodes { reachability: silent, ..all() }).await, ["gone.b.test"]);
    let prod = ListNodes { environment: Some(corpus_domain::Environment::Prod), ..all() };
    assert_eq!(world.addresses(prod).await, ["gone.b.test"]);
    let drift = json!([{ "kind": "rule", "guest": null, "text": "changed", "since": "2026-01-02T03:04:05Z" }]);
    sqlx::query("update nodes set drift = $2 where id = $1")
        .bind(small.0)
        .bind(drift)
        .execute(&world.db)
        .await
        .unwrap();
    let drifted = world.list(&world.ops, ListNodes { drifted: Some(true), ..all() }).await;
    assert_eq!(drifted.iter().map(|node| (node.id, node.drift)).collect::<Vec<_>>(), [(small, 1)]);
    assert_eq!(drifted[0].drift_since.unwrap().to_rfc3339(), "2026-01-02T03:04:05+00:00");
    assert_eq!(world.addresses(ListNodes { drifted: Some(false), ..all() }).await.len(), 2);
    assert!(
        world.list(&world.mia, ListNodes { drifted: Some(true), ..all() }).await.is_empty(),
        "members learn nothing"
    );
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_line_says_what_the_row_says(db: PgPool) {
    let world = World::new(db).await;
    for (address, memory) in [("a.test", 3), ("b.test", 64)] {
        let id = world.node(address, memory).await;
        world.guest(id, "atlas", &format!("one.{address}")).await;
        world.guest(id, "blog", &format!("two.{address}")).await;
    }
    world.run("update nodes set memory_overcommit = 133, slots = 5 where address = 'a.test'").await;
    let lines = world.list(&world.ops, ListNodes::default()).await;
    assert_eq!(
        (lines[0].used.unwrap().storage_used.0, lines[0].drivers.len()),
        (40, 1),
        "what can't be used is not said"
    );
    for line in lines {
        let row = nodes::get(&mut world.db.acquire().await.unwrap(), line.id).await.unwrap().unwrap();
        assert_eq!((line.guests, line.slots, line.free_slots()), (row.guests, row.slots, row.free_slots()));
    }
    world
        .run(
            "insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, network, bridge)
        values (gen_random_uuid(), 'c.test', 22, 'root', 'x', '{dev}', 'linking', '10.5.0.1/16', 'lxcbr1')",
        )
        .await;
    let new = world.list(&world.ops, ListNodes { q: "c.test".parse().ok(), ..ListNodes::default() }).await;
    assert_eq!((new[0].used, new[0].slots, new[0].drivers.len()), (None, 0, 0), "nothing is known of it yet");
}

#[sqlx::test(migrations = "../../migrations")]
async fn members_are_told_of_their_own(db: PgPool) {
    let world = World::new(db).await;
    let id = world.node("a.test", 64).await;
    for (project, name) in [("atlas", "www.test"), ("blog", "secret.test"), ("blog", "hidden.test")] {
        world.guest(id, project, name).await;
    }
    let drift =
        json!([{ "kind": "power", "guest": "secret.test", "text": "stopped", "since": "2026-01-02T03:04:05Z" }]);
    sqlx::query(
        "update nodes set drift = $1, checked_at = now(), state_reason = 'secret.test', reachability_reason = 'x'",
    )
    .bind(drift)
    .execute(&world.db)
    .await
    .unwrap();
    world
        .run(
            "insert into jobs (id, kind, title, params, dag, state, project_id, node_id, guest_id)
             select gen_random_uuid(), 'guest_stop', 'x', '{}', '{}', 'running', g.project_id, g.node_id, g.id
             from guests g where g.name = 'secret.test'",
        )
        .await;
    let whole = world.ask(GetNode { node: id }).await.unwrap();
    assert_eq!((whole.line.guests, whole.line.busy, whole.line.job), (3, false, None), "its job is on a guest");
    assert_eq!(whole.drift.iter().map(|one| one.kind).collect::<Vec<_>>(), [DriftKind::Power]);
    assert!(whole.drift[0].guest.is_some() && whole.state_reason.is_some());
    let told = world.controller.call(&world.mia, GetNode { node: id }, None).await.unwrap();
    let free = whole.line.slots - 3;
    assert_eq!((told.line.guests, told.line.slots), (1, free + 1));
    assert_eq!((told.line.busy, told.line.drift, told.line.drift_since), (true, 0, None));
    assert!(!serde_json::to_string(&told).unwrap().contains("secret.test"), "{told:?}");
    assert_eq!((told.reachability_reason, told.checked_at), (None, whole.checked_at));
    let nowhere = GetNode { node: NodeId(Uuid::now_v7()) };
    assert_eq!(world.controller.call(&world.mia, nowhere, None).await.unwrap_err().status, 404);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_clock_that_is_off_is_told(db: PgPool) {
    let world = World::new(db).await;
    let node = world.node("192.0.2.7", 8).await;
    let ahead = async || world.ask(GetNode { node }).await.unwrap().reading.unwrap().clock_ahead_s;
    assert_eq!(ahead().await, None, "an agent that tells none");
    for (off, told) in [("2 seconds", None), ("-50 seconds", None), ("1 day", Some(86_400)), ("-1 day", Some(-86_400))]
    {
        let read = "update nodes set reading = reading
            || jsonb_build_object('clock_ms', (extract(epoch from reading_at + $1::text::interval) * 1000)::bigint)";
        sqlx::query(read).bind(off).execute(&world.db).await.unwrap();
        // To the second before or after, as their parts fall.
        let told_now = ahead().await;
        assert!(
            told_now.zip(told).map_or(told_now == told, |(now, told)| (now - told).abs() <= 1),
            "{off}: {told_now:?}"
        );
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn members_change_nothing(db: PgPool) {
    let world = World::new(db).await;
    let node = world.node("a.test", 4).await;
    let version = world.ask(GetOvercommit { node }).await.unwrap().version;
    let one = Factor::try_from(100_u32).unwrap();
    let (mia, controller) = (&world.mia, &world.controller);
    let host_key = || KEY.parse().unwrap();
    assert_eq!(controller.call(mia, GetControlKey::default(), None).await.unwrap_err().status, 403);
    assert_eq!(controller.call(mia, link("b.test"), None).await.unwrap_err().status, 403);
    assert_eq!(controller.call(mia, InitializeNode { node }, None).await.unwrap_err().status, 403);
    assert_eq!(controller.call(mia, RepairNode { node }, None).await.unwrap_err().status, 403);
    assert_eq!(controller.call(mia, UnlinkNode { node, force: false }, None).await.unwrap_err().status, 403);
    let confirm = ConfirmNodeHostKey { node, host_key: host_key(), gateway: false };
    assert_eq!(controller.call(mia, confirm, None).await.unwrap_err().status, 403);
    let set = SetOvercommit { node, memory: one, cpu: one, storage: one, version };
    assert_eq!(controller.call(mia, set, None).await.unwrap_err().status, 403);
    assert!(controller.call(mia, GetOvercommit { node }, None).await.is_ok());
    assert_eq!(world.audit().await, []);
}

#[sqlx::test(migrations = "../../migrations")]
async fn an_overcommit_is_set_by_who_saw_it(db: PgPool) {
    let world = World::new(db).await;
    let node = world.node("a.test", 4).await;
    let seen = world.ask(GetOvercommit { node }).await.unwrap();
    let set = |memory: u32| SetOvercommit {
        node,
        memory: memory.try_into().unwrap(),
        cpu: seen.overcommit.cpu,
        storage: seen.overcommit.storage,
        version: seen.version.clone(),
    };
    let now = world.ask(set(200)).await.unwrap();
    assert_eq!(world.ask(GetOvercommit { node }).await.unwrap(), now);
    assert_eq!(world.ask(GetNode { node }).await.unwrap().overcommit, now.overcommit);
    assert_eq!(world.ask(set(300)).await.unwrap_err().status, 412, "it was changed meanwhile");
    assert_eq!(world.ask(GetOvercommit { node }).await.unwrap(), now);
    let (from, to) = (json!(seen.overcommit), json!(now.overcommit));
    let row = ("node.overcommit".to_owned(), "a.test".to_owned(), json!({ "from": from, "to": to }));
    assert_eq!(world.audit().await, [row]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_node_that_is_to_be_worked_on_takes_no_more_guests(db: PgPool) {
    let world = World::new(db).await;
    let node = world.node("a.test", 4).await;
    let state = async || world.ask(GetNode { node }).await.unwrap().line.state;
    assert_eq!(world.controller.call(&world.mia, DrainNode { node }, None).await.unwrap_err().status, 403);
    world.ask(DrainNode { node }).await.unwrap();
    assert_eq!(state().await, NodeState::Draining);
    assert_eq!(world.ask(DrainNode { node }).await.unwrap_err().status, 409);
    assert_eq!(world.ask(InitializeNode { node }).await.unwrap_err().status, 409);
    world.ask(ResumeNode { node }).await.unwrap();
    assert_eq!(state().await, NodeState::Ready);
    let done: Vec<String> = world.audit().await.into_iter().map(|(action, ..)| action).collect();
    assert_eq!(done, ["node.drain", "node.resume"]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_host_is_linked_once(db: PgPool) {
    let world = World::new(db).await;
    let field = |refused: Problem| (refused.errors[0].field.clone(), refused.errors[0].detail.clone());
    let nothing = LinkNode { environments: Vec::new().try_into().unwrap(), ..link("a.test") };
    assert_eq!(field(world.ask(nothing).await.unwrap_err()).0, "environments");
    let no_key = LinkNode { host_key: "nonsense".parse().unwrap(), ..link("a.test") };
    assert_eq!(field(world.ask(no_key).await.unwrap_err()).0, "host_key");
    let made = world.ask(link("a.test")).await.unwrap();
    assert_eq!(corpus_api::Reply::location(&made), Some(format!("/nodes/{}", made.node)));
    let line = world.ask(GetNode { node: made.node }).await.unwrap().line;
    assert_eq!((line.state, line.job), (NodeState::Linking, Some(made.job)));
    let again = field(world.ask(link("a.test")).await.unwrap_err());
    assert_eq!(again, ("address".to_owned(), "a.test port 22 is linked already.".to_owned()));
    assert!(world.ask(LinkNode { port: "23".parse().ok(), ..link("a.test") }).await.is_ok());
    assert_eq!(world.audit().await.len(), 2);

    let confirm = ConfirmNodeHostKey { node: made.node, host_key: OTHER.parse().unwrap(), gateway: false };
    world.ask(confirm).await.unwrap();
    let whole = world.ask(GetNode { node: made.node }).await.unwrap();
    assert_ne!(whole.fingerprint, world.audit().await[0].2["fingerprint"].as_str().unwrap());
    assert_eq!(world.audit().await[2].2["to"].as_str().unwrap(), whole.fingerprint);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_gateway_is_kept_and_shown_to_operators(db: PgPool) {
    let world = World::new(db).await;
    let field = |refused: Problem| refused.errors[0].field.clone();
    let through = |host_key: Option<&str>| LinkNode {
        gateway_address: "gw.test".parse().ok(),
        gateway_port: "2222".parse().ok(),
        gateway_host_key: host_key.map(|line| line.parse().unwrap()),
        ..link("a.test")
    };
    assert_eq!(field(world.ask(through(None)).await.unwrap_err()), "gateway_host_key");
    assert_eq!(field(world.ask(through(Some("nonsense"))).await.unwrap_err()), "gateway_host_key");
    let nowhere = LinkNode { gateway_host_key: OTHER.parse().ok(), ..link("a.test") };
    assert_eq!(field(world.ask(nowhere).await.unwrap_err()), "gateway_address");
    let node = world.ask(through(Some(KEY))).await.unwrap().node;
    let shown = world.ask(GetNode { node }).await.unwrap().gateway.unwrap();
    let seen = (shown.address.to_string(), shown.port, shown.user.to_string(), shown.shows_other_key);
    assert_eq!(seen, ("gw.test".to_owned(), 2222, "root".to_owned(), false));
    world.run("update nodes set state = 'linked'").await;
    let mut conn = world.db.acquire().await.unwrap();
    let [endpoint] = nodes::endpoints(&mut conn).await.unwrap().try_into().unwrap();
    assert_eq!(endpoint.gateway.as_ref().map(|gateway| gateway.serves.as_str()), Some("a.test:22"));
    assert_eq!(nodes::get(&mut conn, node).await.unwrap().unwrap().endpoint().unwrap(), endpoint);
    drop(conn);

    let other = |said: &'static str| {
        sqlx::query("update nodes set reachability = 'host_key_changed', reachability_reason = $1").bind(said)
    };
    other("gateway gw.test:2222: the host key has changed").execute(&world.db).await.unwrap();
    assert!(world.ask(GetNode { node }).await.unwrap().gateway.unwrap().shows_other_key);
    other("a.test:22: the host key has changed").execute(&world.db).await.unwrap();
    let whole = world.ask(GetNode { node }).await.unwrap();
    assert!(!whole.gateway.unwrap().shows_other_key);
    world.ask(ConfirmNodeHostKey { node, host_key: OTHER.parse().unwrap(), gateway: true }).await.unwrap();
    let now = world.ask(GetNode { node }).await.unwrap();
    assert_eq!((now.fingerprint, now.line.reachability), (whole.fingerprint, Reachability::Unknown));
    assert_ne!(now.gateway.unwrap().fingerprint, shown.fingerprint);

    world.guest(node, "atlas", "www.test").await;
    let by_member = world.controller.call(&world.mia, GetNode { node }, None).await.unwrap();
    assert_eq!(by_member.gateway, None);
    let direct = world.ask(link("b.test")).await.unwrap().node;
    let host_key = || OTHER.parse().unwrap();
    let none = ConfirmNodeHostKey { node: direct, host_key: host_key(), gateway: true };
    assert_eq!(world.ask(none).await.unwrap_err().status, 409);
    let asked = GetControlKey { behind: "a.test".parse().ok(), port: None };
    let line = world.ask(asked).await.unwrap().gateway_line.unwrap();
    assert!(line.starts_with("restrict,port-forwarding,permitopen=\"a.test:*\" ssh-ed25519 "), "{line}");
    assert_eq!(world.ask(GetControlKey::default()).await.unwrap().gateway_line, None);
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_a_state_does_not_allow_is_refused(db: PgPool) {
    let world = World::new(db).await;
    let node = world.node("a.test", 4).await;
    world.guest(node, "blog", "one.test").await;
    let refused = world.ask(UnlinkNode { node, force: true }).await.unwrap_err();
    assert_eq!((refused.status, refused.text().contains("still has 1 guests")), (409, true), "{refused:?}");
    let job = world.ask(RepairNode { node }).await.unwrap().job;
    assert_eq!(world.ask(GetNode { node }).await.unwrap().line.job, Some(job));
    world.ask(InitializeNode { node }).await.unwrap();
    assert_eq!(world.ask(InitializeNode { node }).await.unwrap_err().status, 409, "it is being initialized");
    assert_eq!(world.ask(RepairNode { node }).await.unwrap_err().status, 409);
    world.run("delete from guests").await;
    world.run("update nodes set state = 'failed'").await;
    world.ask(UnlinkNode { node, force: false }).await.unwrap();
    let done: Vec<String> = world.audit().await.into_iter().map(|(action, ..)| action).collect();
    assert_eq!(done, ["node.repair", "node.initialize", "node.unlink"]);
}
