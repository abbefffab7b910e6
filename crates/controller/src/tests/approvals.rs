//! Requests to the operators: who asks for what, who decides, and that an approval does exactly what was asked for, for
//! who asked, by the rules of that moment.

use corpus_api::audit::ListAudit;
use corpus_api::guests::RequestGuest;
use corpus_api::notices::ListNotices;
use corpus_api::overview::GetCounts;
use corpus_api::projects::CreateProject;
use corpus_api::projects::members::SetMember;
use corpus_api::quotas::{GetQuota, GetQuotaPolicy, SetQuotaPolicy};
use corpus_api::requests::asking::{AskForGuest, AskForName, AskForNode, AskForProject, AskToInitialize, Wanted};
use corpus_api::requests::rules::{CreateRequestRule, ListRequestRules, RemoveRequestRule};
use corpus_api::requests::{
    ApproveRequest, GetRequest, ListRequests, RefuseRequest, Request, RequestDecided, RequestMade, WithdrawRequest,
};
use corpus_api::{Principal, Problem};
use corpus_domain::{Environment, ProjectRole, RequestId, RequestState, SizeProfile};
use futures::future::join_all;
use serde_json::json;
use sqlx::PgPool;

use super::world::{World, at_field, conflict, forbidden, hidden, refusal};
use crate::Rules;
use crate::store::beside;

/// Only operators make projects, and the one node has room.
async fn world(db: PgPool) -> World {
    let world = World::with(db, None, None, Rules::default()).await;
    world.run("update nodes set slots = 100, reachability = 'reachable'").await;
    world
}

fn project(name: &str) -> AskForProject {
    AskForProject { name: name.parse().unwrap(), comment: "we need it".parse().unwrap() }
}

fn guest(name: &str) -> AskForGuest {
    let asked = json!({ "name": name, "project": "shop", "environment": "dev", "size": "small", "comment": "a <b>" });
    serde_json::from_value(asked).unwrap()
}

fn rule(fields: serde_json::Value) -> CreateRequestRule {
    serde_json::from_value(fields).unwrap()
}

impl World {
    async fn approve(&self, ops: &Principal, request: RequestId) -> Result<RequestDecided, Problem> {
        self.ask(ops, ApproveRequest::new(request)).await
    }

    async fn refuse(&self, ops: &Principal, request: RequestId) -> Result<RequestDecided, Problem> {
        self.ask(ops, RefuseRequest { request, reason: "use staging".parse().unwrap() }).await
    }

    async fn request(&self, who: &Principal, request: RequestId) -> Request {
        self.ask(who, GetRequest { request }).await.unwrap()
    }

    /// Mia's shop, which she asked for and ops approved.
    async fn shop(&self, ops: &Principal) -> Principal {
        let mia = self.member("mia", &[]).await;
        let made = self.ask(&mia, project("shop")).await.unwrap();
        self.approve(ops, made.request).await.unwrap();
        self.principal(mia.id).await
    }

    /// So many guests for all projects.
    async fn allow_guests(&self, ops: &Principal, most: u64) {
        let version = self.ask(ops, GetQuotaPolicy {}).await.unwrap().version;
        let guests = Some(most.try_into().unwrap());
        let none = SetQuotaPolicy {
            guests,
            memory: None,
            cpu: None,
            storage: None,
            names: None,
            ports: None,
            backups: None,
            version,
        };
        self.ask(ops, none).await.unwrap();
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_member_without_any_right_comes_to_a_project_and_a_guest_by_two_approvals(db: PgPool) {
    let world = world(db).await;
    let (mia, ops) = (world.member("mia", &[]).await, world.ops().await);
    forbidden(world.ask(&mia, CreateProject { name: "shop".parse().unwrap() }).await);
    let made = world.ask(&mia, project("shop")).await.unwrap();
    assert_eq!(made.state, RequestState::Open);
    assert_eq!(world.ask(&ops, GetCounts {}).await.unwrap().requests, 1);
    let told = world.ask(&ops, ListNotices::default()).await.unwrap().items;
    assert_eq!((told.len(), told[0].title.as_str()), (1, "mia asks: Project shop"));

    world.approve(&ops, made.request).await.unwrap();
    let mia = world.principal(mia.id).await;
    assert_eq!(mia.roles.values().collect::<Vec<_>>(), [&ProjectRole::Maintainer], "the project is hers");
    assert!(world.principal(ops.id).await.roles.is_empty(), "and not the operator's");
    let seen = world.request(&mia, made.request).await;
    assert_eq!((seen.line.state, seen.path.as_deref()), (RequestState::Approved, Some("/projects/shop")));
    let told = world.ask(&mia, ListNotices::default()).await.unwrap().items;
    assert_eq!(told[0].title, "Your request was approved: Project shop");

    world.allow_guests(&ops, 0).await;
    let plain =
        RequestGuest::new("shop".parse().unwrap(), Environment::Dev, "a.test".parse().unwrap(), SizeProfile::Small);
    at_field(world.ask(&mia, plain.clone()).await, "project", "has taken");
    let made = world.ask(&mia, guest("a.test")).await.unwrap();
    world.approve(&ops, made.request).await.unwrap();
    let seen = world.request(&mia, made.request).await;
    assert!(seen.job.is_some() && seen.path.unwrap().starts_with("/guests/"));
    assert_eq!(
        world.count("select count(*) from guests g join users u on u.id = g.created_by where u.login = 'mia'").await,
        1
    );
    assert_eq!(
        world.count("select count(*) from jobs j join users u on u.id = j.created_by where u.login = 'mia'").await,
        1
    );
    // The quota is as it was: the next one is refused.
    at_field(world.ask(&mia, RequestGuest { name: "b.test".parse().unwrap(), ..plain }).await, "project", "has taken");
    let quota = world.ask(&mia, GetQuota { project: "shop".parse().unwrap() }).await.unwrap();
    assert_eq!((quota.guests.used, quota.guests.limit), (1, Some(0)));

    let audit = world.ask(&mia, ListAudit { project: "shop".parse().ok(), ..ListAudit::default() }).await;
    let rows = audit.map(|page| page.items).unwrap_or_default();
    let actions: Vec<&str> = rows.iter().map(|row| row.action.as_str()).collect();
    for action in ["request.ask", "request.approve", "quota.exceed", "guest.request"] {
        assert!(actions.contains(&action), "{action}: {actions:?}");
    }
    let by = "select count(*) from audit where action = 'guest.request' and actor = 'mia'
              and detail ->> 'approved_by' = 'ops' and detail ? 'request'";
    assert_eq!(world.count(by).await, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_refusal_does_nothing_and_is_read(db: PgPool) {
    let world = world(db).await;
    let (tom, ops) = (world.member("tom", &[]).await, world.ops().await);
    let made = world.ask(&tom, project("shop")).await.unwrap();
    world.refuse(&ops, made.request).await.unwrap();
    let seen = world.request(&tom, made.request).await;
    assert_eq!((seen.line.state, seen.reason.as_deref()), (RequestState::Refused, Some("use staging")));
    assert!(!seen.may_withdraw && !seen.may_decide);
    assert_eq!(world.count("select count(*) from projects").await, 0);
    let told = world.ask(&tom, ListNotices::default()).await.unwrap().items;
    assert_eq!(told[0].detail.as_deref(), Some("use staging"));
    conflict(world.approve(&ops, made.request).await, "refused already");
    conflict(world.refuse(&ops, made.request).await, "refused already");
}

#[sqlx::test(migrations = "../../migrations")]
async fn nobody_else_sees_or_decides(db: PgPool) {
    let world = world(db).await;
    let ops = world.ops().await;
    let mia = world.shop(&ops).await;
    let made = world.ask(&mia, guest("a.test")).await.unwrap();
    let other = world.member("eve", &[]).await;
    hidden(world.ask(&other, GetRequest { request: made.request }).await);
    hidden(world.approve(&other, made.request).await);
    hidden(world.refuse(&other, made.request).await);
    hidden(world.ask(&other, WithdrawRequest { request: made.request }).await);
    assert_eq!(world.ask(&other, ListRequests::default()).await.unwrap().items, []);
    forbidden(world.approve(&mia, made.request).await);
    forbidden(world.refuse(&mia, made.request).await);
    forbidden(world.ask(&ops, WithdrawRequest { request: made.request }).await);

    // A viewer of the project sees nothing of it, a maintainer does and decides nothing.
    for (login, role, sees) in [("vic", ProjectRole::Viewer, false), ("max", ProjectRole::Maintainer, true)] {
        let who = world.member(login, &[]).await;
        let give = SetMember { project: "shop".parse().unwrap(), login: login.parse().unwrap(), role };
        world.ask(&mia, give).await.unwrap();
        let who = world.principal(who.id).await;
        assert_eq!(world.ask(&who, GetRequest { request: made.request }).await.is_ok(), sees, "{login}");
        assert_eq!(
            world.ask(&who, ListRequests::default()).await.unwrap().items.len(),
            usize::from(sees) * 2,
            "{login}"
        );
        assert!(world.approve(&who, made.request).await.is_err());
    }
    let developer = world.member("dan", &[]).await;
    let give =
        SetMember { project: "shop".parse().unwrap(), login: "dan".parse().unwrap(), role: ProjectRole::Developer };
    world.ask(&mia, give).await.unwrap();
    let developer = world.principal(developer.id).await;
    forbidden(world.ask(&developer, guest("d.test")).await);
    hidden(world.ask(&other, guest("e.test")).await);
    conflict(world.ask(&ops, project("mine")).await, "do it yourself");
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_is_approved_is_judged_as_of_now(db: PgPool) {
    let world = world(db).await;
    let ops = world.ops().await;
    let mia = world.shop(&ops).await;
    let first = world.ask(&mia, guest("a.test")).await.unwrap().request;
    let second = world.ask(&mia, guest("a.test")).await.unwrap().request;
    world.approve(&ops, first).await.unwrap();
    // Its name is taken by now: nothing is done, and it stays open, until operators choose another one.
    at_field(world.approve(&ops, second).await, "name", "taken");
    assert_eq!(world.request(&mia, second).await.line.state, RequestState::Open);
    let wrong = ApproveRequest { host_key: "x".parse().ok(), ..ApproveRequest::new(second) };
    at_field(world.ask(&ops, wrong).await, "host_key", "no such field");
    let other = ApproveRequest {
        name: "b.test".parse().ok(),
        size: Some(SizeProfile::Xsmall),
        reason: "smaller".parse().ok(),
        ..ApproveRequest::new(second)
    };
    world.ask(&ops, other).await.unwrap();
    let seen = world.request(&mia, second).await;
    let (Wanted::RequestGuest(asked), Some(Wanted::RequestGuest(done))) = (seen.wanted, seen.changed) else { panic!() };
    assert_eq!((asked.name.as_str(), done.name.as_str(), done.size()), ("a.test", "b.test", SizeProfile::Xsmall));
    assert_eq!(seen.reason.as_deref(), Some("smaller"));

    // Who asked is a viewer by now.
    let third = world.ask(&mia, guest("c.test")).await.unwrap().request;
    world.run("update memberships set role = 'viewer'").await;
    conflict(world.approve(&ops, third).await, "may not have this any more");
    world.run("delete from memberships").await;
    conflict(world.approve(&ops, third).await, "may not have this any more");
    world.run("update users set disabled_at = now() where login = 'mia'").await;
    conflict(world.approve(&ops, third).await, "can't sign in");
    assert_eq!(world.count("select count(*) from guests").await, 2);
}

#[sqlx::test(migrations = "../../migrations")]
async fn of_two_operators_one_decides(db: PgPool) {
    let world = world(db).await;
    let ops = world.ops().await;
    let mia = world.shop(&ops).await;
    let made = world.ask(&mia, guest("a.test")).await.unwrap();
    let decided = join_all((0..8).map(|at| {
        let (world, ops) = (&world, &ops);
        beside(async move {
            if at % 2 == 0 { world.approve(ops, made.request).await } else { world.refuse(ops, made.request).await }
        })
    }));
    let decided: Vec<_> = decided.await;
    assert_eq!(decided.iter().filter(|one| one.is_ok()).count(), 1, "{decided:?}");
    let other = |one: &Problem| one.status == 409 || one.word() == "fields";
    assert!(decided.iter().filter_map(|one| one.as_ref().err()).all(other), "{decided:?}");
    let rows =
        "select count(*) from audit where action in ('request.approve', 'request.refuse') and subject like 'Guest%'";
    assert_eq!(world.count(rows).await, 1);
    assert!(world.count("select count(*) from guests").await <= 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn privileged_guests_are_asked_for_and_no_rule_gives_one(db: PgPool) {
    let world = world(db).await;
    let ops = world.ops().await;
    let mia = world.shop(&ops).await;
    let yes =
        rule(json!({ "operation": "request_guest", "environments": ["dev"], "size": "small", "verdict": "approve" }));
    forbidden(world.ask(&mia, yes.clone()).await);
    forbidden(world.ask(&mia, ListRequestRules {}).await);
    world.ask(&ops, yes).await.unwrap();
    let asked = AskForGuest { privileged: "NFS".parse().ok(), ..guest("p.test") };
    let made = world.ask(&mia, asked).await.unwrap();
    assert_eq!(made.state, RequestState::Open, "it waits for a person");
    world.approve(&ops, made.request).await.unwrap();
    assert_eq!(world.count("select count(*) from guests where privileged_reason = 'NFS'").await, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_rule_decides_the_simple_ones_and_never_beyond_a_quota(db: PgPool) {
    let world = world(db).await;
    let ops = world.ops().await;
    let mia = world.shop(&ops).await;
    let fields =
        json!({ "operation": "request_guest", "environments": ["dev"], "size": "small", "verdict": "approve" });
    let kept = world.ask(&ops, rule(fields)).await.unwrap().rule;
    let no = json!({ "operation": "create_project", "verdict": "refuse", "reason": "ask your lead" });
    world.ask(&ops, rule(no)).await.unwrap();

    let made = world.ask(&mia, guest("a.test")).await.unwrap();
    assert_eq!(made.state, RequestState::Approved);
    let seen = world.request(&mia, made.request).await;
    assert_eq!(seen.line.rule.as_deref(), Some("Guests of dev up to small: yes"));
    assert_eq!(world.count("select count(*) from guests").await, 1);
    let large = world.ask(&mia, AskForGuest { size: Some(SizeProfile::Large), ..guest("l.test") }).await.unwrap();
    assert_eq!(large.state, RequestState::Open);
    let refused: RequestMade = world.ask(&mia, project("other")).await.unwrap();
    assert_eq!(refused.state, RequestState::Refused);
    assert_eq!(world.request(&mia, refused.request).await.reason.as_deref(), Some("ask your lead"));

    world.allow_guests(&ops, 1).await;
    let beyond = world.ask(&mia, guest("b.test")).await.unwrap();
    assert_eq!(beyond.state, RequestState::Open, "a rule never gives what is beyond a quota");
    world.ask(&ops, RemoveRequestRule { rule: kept }).await.unwrap();
    hidden(world.ask(&ops, RemoveRequestRule { rule: kept }).await);
    world.allow_guests(&ops, 10).await;
    assert_eq!(world.ask(&mia, guest("c.test")).await.unwrap().state, RequestState::Open);
    let audited = "select count(*) from audit where action = 'request.approve' and actor = 'mia' and detail ? 'rule'";
    assert_eq!(world.count(audited).await, 1);
    let wrong = rule(json!({ "operation": "link_node", "verdict": "approve" }));
    at_field(world.ask(&ops, wrong).await, "verdict", "person");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_queue_can_not_be_filled(db: PgPool) {
    let world = world(db).await;
    let mia = world.member("mia", &[]).await;
    let asked = (0..40).map(|number| beside(world.ask(&mia, project(&format!("p{number}")))));
    let made = join_all(asked).await.into_iter().flatten().count();
    assert_eq!(made, 20);
    conflict(world.ask(&mia, project("more")).await, "20 of your requests are open");
    let all = world.ask(&mia, ListRequests::default()).await.unwrap().items;
    for one in &all {
        world.ask(&mia, WithdrawRequest { request: one.id }).await.unwrap();
    }
    conflict(world.ask(&mia, WithdrawRequest { request: all[0].id }).await, "withdrawn already");
    world
        .run(
            "insert into requests (id, operation, wanted, title, asker_id, expires_at, state, decided_at)
               select gen_random_uuid(), operation, wanted, title, asker_id, expires_at, 'withdrawn', now()
               from requests cross join generate_series(1, 5)",
        )
        .await;
    conflict(world.ask(&mia, project("more")).await, "times in a day");
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_nobody_decides_lapses_and_is_told(db: PgPool) {
    let world = world(db).await;
    let ops = world.ops().await;
    let mia = world.shop(&ops).await;
    let late = world.ask(&mia, guest("a.test")).await.unwrap().request;
    let node = AskToInitialize { node: world.node_id(), comment: "please".parse().unwrap() };
    let of_node = world.ask(&mia, node).await.unwrap().request;
    let stays = world.ask(&mia, project("other")).await.unwrap().request;
    world.run("update requests set expires_at = now() - interval '1 second' where title like 'Guest%'").await;
    conflict(world.approve(&ops, late).await, "lapsed");
    world.run("delete from guests").await;
    world.run("delete from nodes").await;
    let mut tx = world.controller.services.begin().await.unwrap();
    world.controller.lapse_requests(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    for (request, state) in [(late, RequestState::Lapsed), (of_node, RequestState::Lapsed), (stays, RequestState::Open)]
    {
        assert_eq!(world.request(&mia, request).await.line.state, state);
    }
    let told = world.ask(&mia, ListNotices::default()).await.unwrap().items;
    assert!(told.iter().any(|one| one.title.contains("not decided in time")), "{told:?}");
    assert_eq!(world.count("select count(*) from audit where action = 'request.lapse'").await, 2);
    world.run("update users set disabled_at = now() where login = 'mia'").await;
    let mut tx = world.controller.services.begin().await.unwrap();
    world.controller.lapse_requests(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(world.request(&ops, stays).await.line.state, RequestState::Lapsed);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_host_is_linked_with_the_key_that_operators_compared(db: PgPool) {
    let world = world(db).await;
    let (mia, ops) = (world.member("mia", &[]).await, world.ops().await);
    let asked = json!({ "address": "192.0.2.9", "environments": ["dev"], "comment": "our own host" });
    let asked: AskForNode = serde_json::from_value(asked).unwrap();
    let made = world.ask(&mia, asked).await.unwrap();
    at_field(world.approve(&ops, made.request).await, "host_key", "compare");
    let host_key = super::world::KEY.rsplit_once(' ').unwrap().0.parse().ok();
    world.ask(&ops, ApproveRequest { host_key, ..ApproveRequest::new(made.request) }).await.unwrap();
    assert_eq!(world.count("select count(*) from nodes where address = '192.0.2.9'").await, 1);
    let seen = world.request(&mia, made.request).await;
    assert!(seen.path.unwrap().starts_with("/nodes/") && seen.job.is_some());
}

#[sqlx::test(migrations = "../../migrations")]
async fn one_asks_for_no_name_of_anothers_guest(db: PgPool) {
    let world = world(db).await;
    let ops = world.ops().await;
    world.shop(&ops).await;
    let shop = sqlx::query_scalar("select id from projects").fetch_one(&world.db).await.unwrap();
    let guest = world.guest(corpus_domain::ProjectId(shop), Environment::Dev).await;
    let eve = world.member("eve", &[]).await;
    let asked = AskForName { guest, name: "www.test".parse().unwrap(), comment: "x".parse().unwrap() };
    hidden(world.ask(&eve, asked).await);
    assert_eq!(refusal(world.ask(&eve, guest_of("shop")).await).status, 404);
}

fn guest_of(project: &str) -> AskForGuest {
    AskForGuest { project: project.parse().unwrap(), ..guest("x.test") }
}
