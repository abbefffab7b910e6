//! What people send by mistake or on purpose: a clear error, and nothing left behind.

use corpus_api::Problem;
use corpus_api::guests::{DestroyGuest, GuestLine, RequestGuest};
use corpus_api::jobs::ListJobs;
use corpus_api::nodes::{LinkNode, ProbeHostKey};
use corpus_domain::Environment;
use sqlx::PgPool;
use uuid::Uuid;

use super::world::{World, fact};
use crate::Key;

/// The field and message of a refusal.
fn refusal<T: std::fmt::Debug>(result: Result<T, impl Into<Problem>>) -> (String, String) {
    let problem: Problem = result.map_err(Into::into).expect_err("it is refused");
    let [wrong] = problem.errors.as_slice() else { panic!("expected a refusal at a field, got {problem:?}") };
    (wrong.field.clone(), wrong.detail.clone())
}

/// The only field that an operation refuses, and why.
fn wrong<T: std::fmt::Debug>(answer: Result<T, Problem>) -> (String, String) {
    match answer.unwrap_err().errors.as_slice() {
        [one] => (one.field.clone(), one.detail.clone()),
        other => panic!("expected a refusal at a field, got {other:?}"),
    }
}

async fn link(world: &World, user: &str, host_key: Option<&str>, password: Option<&str>) -> Result<(), Problem> {
    let seen = world.host_key().await;
    let host_key = host_key.map_or(seen, |line| line.parse().unwrap());
    let environments = vec![Environment::Dev].try_into().unwrap();
    let wanted = LinkNode {
        user: Some(user.parse().unwrap()),
        password: password.map(|text| text.parse().unwrap()),
        ..LinkNode::new(world.node_address.parse().unwrap(), host_key, environments)
    };
    world.ask(wanted).await.map(drop)
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn bad_links(db: PgPool) {
    let world = World::new(db).await;
    let nobody = ProbeHostKey { address: "127.0.0.1".parse().unwrap(), port: "9".parse().ok() };
    assert!(wrong(world.ask(nobody).await).1.contains("refused"));

    let (field, message) = wrong(link(&world, "root", None, Some("not the password")).await);
    assert_eq!(field, "password");
    assert!(message.contains("not let in"), "{message}");

    let other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";
    let (field, message) = wrong(link(&world, "root", Some(other), Some(&fact("CORPUS_LAB_NODE_PASSWORD"))).await);
    assert_eq!(field, "address");
    assert!(message.contains("host key has changed"), "{message}");
    let probe = ProbeHostKey { address: world.node_address.parse().unwrap(), port: None };
    assert_eq!(world.controller.call(&world.member, probe, None).await.unwrap_err().status, 403);
    assert!(world.nodes().await.is_empty());
    world.assert_host_bare().await;
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn hosts_without_root_and_without_the_key(db: PgPool) {
    let world = World::new(db).await;
    for (user, password, expected) in
        [("nosudo", Some(fact("CORPUS_LAB_NODE_PASSWORD")), "sudo"), ("root", None, "not let in")]
    {
        link(&world, user, None, password.as_deref()).await.unwrap();
        let jobs = world.controller.call(&world.ops, ListJobs::default(), None).await.unwrap();
        let ended = world.run(jobs.items[0].id, crate::jobs::testing::Fault::None).await;
        assert_eq!(ended.state(), corpus_domain::JobState::Undone, "{}", ended.story());
        assert!(ended.story().contains(expected), "{}", ended.story());
        assert!(world.nodes().await.is_empty());
    }
    assert_eq!(world.on_node("cat /home/nosudo/.ssh/authorized_keys 2>/dev/null | grep corpus@").await, "");
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn bad_requests(db: PgPool) {
    let world = World::new(db).await;
    let none = World::plain_request("a.trial.corpus.test");
    let refused = refusal(world.request(none.clone()).await);
    assert_eq!(refused.0, "node", "{}", refused.1);

    let node = world.ready_node().await;
    let ask = async |change: &dyn Fn(&mut RequestGuest)| {
        let mut wanted = none.clone();
        change(&mut wanted);
        world.request(wanted).await
    };
    for outside in ["10.6.0.10", "10.5.0.1", "10.5.0.0", "10.5.255.255"] {
        let refused = refusal(ask(&|wanted| wanted.ip = Some(outside.parse().unwrap())).await);
        assert_eq!(refused.0, "ip", "{outside}: {}", refused.1);
    }
    let refused = refusal(ask(&|wanted| wanted.environment = Environment::Staging).await);
    assert_eq!(refused.0, "node", "{}", refused.1);
    let refused =
        refusal(ask(&|wanted| wanted.names = vec!["no.zone.test".parse().unwrap()].try_into().unwrap()).await);
    assert_eq!(refused.0, "names", "{}", refused.1);

    let ip = Some("10.5.7.7".parse().unwrap());
    let form: Key = Uuid::now_v7().to_string().parse().unwrap();
    let twice = || {
        let wanted = RequestGuest { ip, ..none.clone() };
        world.controller.call(&world.member, wanted, Some(form.clone()))
    };
    let (first, second) = (twice().await.unwrap(), twice().await.unwrap());
    assert_eq!(first, second, "the same form sent twice is one request");
    assert_eq!(refusal(ask(&|_| ()).await).0, "name");
    let taken = ask(&|wanted| (wanted.name, wanted.ip) = ("b.trial.corpus.test".parse().unwrap(), ip)).await;
    assert_eq!(refusal(taken).0, "ip");

    world.set_slots(node, 1).await;
    let refused = refusal(ask(&|wanted| wanted.name = "c.trial.corpus.test".parse().unwrap()).await);
    assert_eq!(refused.0, "node");
    assert!(refused.1.contains("slot"), "{}", refused.1);

    world.done(first.job).await;
    let job = world.controller.call(&world.member, DestroyGuest { guest: first.guest }, None).await.unwrap().job;
    world.done(job).await;
    world.leave(node).await;
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn two_at_once_share_nothing(db: PgPool) {
    let world = World::new(db).await;
    let node = world.ready_node().await;
    let mut jobs = Vec::new();
    for index in 0..6 {
        jobs.push(world.ask_guest(&format!("g{index}.trial.corpus.test")).await);
    }
    world.run_open_jobs().await;
    let guests = world.guests().await;
    let distinct =
        |of: &dyn Fn(&GuestLine) -> String| guests.iter().map(of).collect::<std::collections::BTreeSet<_>>().len();
    assert!(guests.iter().all(|guest| guest.state == corpus_domain::GuestState::Running), "{guests:#?}");
    assert_eq!(distinct(&|guest| format!("{:?}", guest.ip)), 6);
    assert_eq!(distinct(&|guest| format!("{:?}", guest.ssh_port)), 6);
    assert_eq!(distinct(&|guest| guest.id.to_string()), 6);
    for (guest, _) in jobs {
        world.controller.call(&world.member, DestroyGuest { guest }, None).await.unwrap();
    }
    world.run_open_jobs().await;
    assert!(world.guests().await.is_empty());
    world.leave(node).await;
}
