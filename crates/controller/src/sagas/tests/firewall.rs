//! Rules and published ports, on a real node: in force, or nothing of them is left.

use corpus_api::firewall::{AllowToGuest, GetGuestFirewall, PublishPort, RemoveFirewallRule, UnpublishPort};
use corpus_api::guests::DestroyGuest;
use corpus_domain::{FirewallRuleId, GuestId, JobState, RuleState, Transport};
use sqlx::PgPool;

use super::share::faults;
use super::world::World;
use crate::jobs::testing::Fault;

const APPLY: [&str; 3] = ["rules", "apply", "in_force"];
const GUEST: &str = "www.trial.corpus.test";

async fn rules(world: &World, guest: GuestId) -> Vec<(FirewallRuleId, RuleState)> {
    let shown = world.controller.call(&world.member, GetGuestFirewall { guest }, None).await.unwrap();
    shown.rules.into_iter().map(|rule| (rule.id, rule.state)).collect()
}

/// How often the kernel's rules name the rule.
async fn in_kernel(world: &World, rule: FirewallRuleId) -> usize {
    let found = world.on_node(&format!("nft list table inet corpus | grep -c r{} || true", rule.0.simple())).await;
    found.trim().parse().unwrap()
}

fn allow(guest: GuestId) -> AllowToGuest {
    let (from, ports) = ("192.0.2.0/24".parse().unwrap(), "5432".parse().unwrap());
    AllowToGuest { guest, from, protocol: Transport::Tcp, ports, comment: None }
}

fn publish(guest: GuestId) -> PublishPort {
    let (port, node_port) = (53_u64.try_into().unwrap(), None);
    PublishPort { guest, protocol: Transport::Udp, port, node_port, from: None, comment: None }
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn rules_come_and_go_and_fail_at_every_step(db: PgPool) {
    let world = World::new(db).await;
    let node = world.ready_node().await;
    let (guest, job) = world.ask_guest(GUEST).await;
    world.done(job).await;

    for fault in faults(&APPLY) {
        let accepted = world.controller.call(&world.member, allow(guest), None).await.unwrap();
        let ended = world.run(accepted.job, fault.clone()).await;
        if matches!(fault, Fault::Repeat(_)) {
            assert_eq!(ended.state(), JobState::Done, "{fault:?}: {}", ended.story());
            assert_eq!(rules(&world, guest).await, [(accepted.rule, RuleState::InForce)]);
            assert!(in_kernel(&world, accepted.rule).await > 0, "{fault:?}");
            let remove = RemoveFirewallRule { rule: accepted.rule };
            let job = world.controller.call(&world.member, remove, None).await.unwrap().job;
            world.done(job).await;
        } else if ended.state() == JobState::Done {
            // What has no way back any more goes to its end.
            let remove = RemoveFirewallRule { rule: accepted.rule };
            let job = world.controller.call(&world.member, remove, None).await.unwrap().job;
            world.done(job).await;
        } else {
            assert_eq!(ended.state(), JobState::Undone, "{fault:?}: {}", ended.story());
        }
        assert!(rules(&world, guest).await.is_empty(), "{fault:?} left a row");
        assert_eq!(in_kernel(&world, accepted.rule).await, 0, "{fault:?} left a rule");
    }
    for fault in faults(&APPLY) {
        let accepted = world.controller.call(&world.member, publish(guest), None).await.unwrap();
        world.done(accepted.job).await;
        let unpublish = || UnpublishPort { rule: accepted.rule };
        let job = world.controller.call(&world.member, unpublish(), None).await.unwrap().job;
        let ended = world.run(job, fault.clone()).await;
        // Once the last step has taken the row there is no way back.
        let is_gone = matches!(&fault, Fault::FailAfter(step) if step == "in_force");
        if ended.state() == JobState::Undone && !is_gone {
            assert_eq!(rules(&world, guest).await, [(accepted.rule, RuleState::InForce)], "{fault:?}");
            assert!(in_kernel(&world, accepted.rule).await > 0, "{fault:?}: it is not led any more");
            let job = world.controller.call(&world.member, unpublish(), None).await.unwrap().job;
            world.done(job).await;
        }
        assert!(rules(&world, guest).await.is_empty(), "{fault:?}: {}", ended.story());
        assert_eq!(in_kernel(&world, accepted.rule).await, 0, "{fault:?}");
    }
    // A guest that is destroyed leaves no rule.
    let accepted = world.controller.call(&world.member, publish(guest), None).await.unwrap();
    world.done(accepted.job).await;
    let job = world.controller.call(&world.member, DestroyGuest { guest }, None).await.unwrap().job;
    world.done(job).await;
    assert_eq!(in_kernel(&world, accepted.rule).await, 0);
    world.leave(node).await;
}
