//! What people send by mistake or on purpose: a clear error, and nothing left behind.

use corpus_domain::Environment;
use secrecy::SecretString;
use sqlx::PgPool;
use uuid::Uuid;

use super::world::{World, fact};
use crate::authz::Denied;
use crate::store::beside;
use crate::{Error, LinkNode};

/// The field and message of a refusal.
fn refusal<T: std::fmt::Debug>(result: crate::Result<T>) -> (&'static str, String) {
    match result {
        Err(Error::Field { field, message }) => (field, message),
        other => panic!("expected a refusal at a field, got {other:?}"),
    }
}

async fn link(world: &World, user: &str, host_key: Option<&str>, password: Option<&str>) -> crate::Result<()> {
    let address = world.node_address.parse().unwrap();
    let seen = world.controller.probe_node(&world.ops, &address, 22).await.unwrap();
    let wanted = LinkNode {
        address,
        port: 22,
        user: user.parse().unwrap(),
        host_key: host_key.unwrap_or(&seen.public).to_owned(),
        password: password.map(SecretString::from),
        environments: vec![Environment::Dev],
        network: None,
    };
    world.controller.link_node(&world.ops, wanted).await.map(drop)
}

#[sqlx::test(migrations = "../migrations")]
#[ignore = "needs the lab"]
async fn bad_links(db: PgPool) {
    let world = World::new(db).await;
    let probed = world.controller.probe_node(&world.ops, &"127.0.0.1".parse().unwrap(), 9).await;
    assert!(refusal(probed).1.contains("refused"));

    let (field, message) = refusal(link(&world, "root", None, Some("not the password")).await);
    assert_eq!(field, "password");
    assert!(message.contains("not let in"), "{message}");

    let other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";
    let (field, message) = refusal(link(&world, "root", Some(other), Some(&fact("CORPUS_LAB_NODE_PASSWORD"))).await);
    assert_eq!(field, "address");
    assert!(message.contains("host key has changed"), "{message}");
    assert!(matches!(
        world.controller.probe_node(&world.member, &world.node_address.parse().unwrap(), 22).await,
        Err(Error::Denied(Denied::Forbidden))
    ));
    assert!(world.controller.nodes(&world.ops).await.unwrap().is_empty());
    world.assert_host_bare().await;
}

#[sqlx::test(migrations = "../migrations")]
#[ignore = "needs the lab"]
async fn hosts_without_root_and_without_the_key(db: PgPool) {
    let world = World::new(db).await;
    for (user, password, expected) in
        [("nosudo", Some(fact("CORPUS_LAB_NODE_PASSWORD")), "sudo"), ("root", None, "not let in")]
    {
        link(&world, user, None, password.as_deref()).await.unwrap();
        let jobs = world.controller.jobs(&world.ops, crate::jobs::JobFilter::default(), 0).await.unwrap();
        let ended = world.run(jobs.items[0].id, crate::jobs::testing::Fault::None).await;
        assert_eq!(ended.state(), corpus_domain::JobState::Undone, "{}", ended.story());
        assert!(ended.story().contains(expected), "{}", ended.story());
        assert!(world.controller.nodes(&world.ops).await.unwrap().is_empty());
    }
    assert_eq!(world.on_node("cat /home/nosudo/.ssh/authorized_keys 2>/dev/null | grep corpus@").await, "");
}

#[sqlx::test(migrations = "../migrations")]
#[ignore = "needs the lab"]
async fn bad_requests(db: PgPool) {
    let world = World::new(db).await;
    let none = world.plain_request("a.trial.corpus.test").await;
    let refused = refusal(world.controller.request_guest(&world.member, none.clone()).await);
    assert_eq!(refused.0, "node", "{}", refused.1);

    let node = world.ready_node().await;
    let ask = async |change: &dyn Fn(&mut crate::RequestGuest)| {
        let mut wanted = none.clone();
        change(&mut wanted);
        world.controller.request_guest(&world.member, wanted).await
    };
    for outside in ["10.6.0.10", "10.5.0.1", "10.5.0.0", "10.5.255.255"] {
        let refused = refusal(ask(&|wanted| wanted.ip = Some(outside.parse().unwrap())).await);
        assert_eq!(refused.0, "ip", "{outside}: {}", refused.1);
    }
    let refused = refusal(ask(&|wanted| wanted.environment = Environment::Staging).await);
    assert_eq!(refused.0, "node", "{}", refused.1);
    let refused = refusal(ask(&|wanted| wanted.password = Some(SecretString::from("short"))).await);
    assert_eq!(refused.0, "password", "{}", refused.1);
    let refused = refusal(ask(&|wanted| wanted.names = vec!["no.zone.test".parse().unwrap()]).await);
    assert_eq!(refused.0, "names", "{}", refused.1);

    let form = Some(Uuid::now_v7());
    let ip = Some("10.5.7.7".parse().unwrap());
    let twice = |wanted: &mut crate::RequestGuest| (wanted.form_id, wanted.ip) = (form, ip);
    let (first, second) = tokio::join!(ask(&twice), beside(ask(&twice)));
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(first, second, "the same form sent twice is one request");
    assert_eq!(refusal(ask(&|_| ()).await).0, "name");
    let taken = ask(&|wanted| (wanted.name, wanted.ip) = ("b.trial.corpus.test".parse().unwrap(), ip)).await;
    assert_eq!(refusal(taken).0, "ip");

    world.set_slots(node, 1).await;
    let refused = refusal(ask(&|wanted| wanted.name = "c.trial.corpus.test".parse().unwrap()).await);
    assert_eq!(refused.0, "node");
    assert!(refused.1.contains("slot"), "{}", refused.1);

    world.done(first.1).await;
    let job = world.controller.destroy_guest(&world.member, first.0).await.unwrap();
    world.done(job).await;
    world.leave(node).await;
}

#[sqlx::test(migrations = "../migrations")]
#[ignore = "needs the lab"]
async fn two_at_once_share_nothing(db: PgPool) {
    let world = World::new(db).await;
    let node = world.ready_node().await;
    let mut jobs = Vec::new();
    for index in 0..6 {
        jobs.push(world.ask_guest(&format!("g{index}.trial.corpus.test")).await);
    }
    world.run_open_jobs().await;
    let guests = world.controller.guests(&world.member).await.unwrap();
    let distinct = |of: &dyn Fn(&crate::views::GuestView) -> String| {
        guests.iter().map(of).collect::<std::collections::BTreeSet<_>>().len()
    };
    assert!(guests.iter().all(|guest| guest.state == corpus_domain::GuestState::Running), "{guests:#?}");
    assert_eq!(distinct(&|guest| format!("{:?}", guest.ip)), 6);
    assert_eq!(distinct(&|guest| format!("{:?}", guest.ssh_port)), 6);
    assert_eq!(distinct(&|guest| format!("{:?}", guest.mac)), 6);
    for (guest, _) in jobs {
        world.controller.destroy_guest(&world.member, guest).await.unwrap();
    }
    world.run_open_jobs().await;
    assert!(world.controller.guests(&world.member).await.unwrap().is_empty());
    world.leave(node).await;
}
