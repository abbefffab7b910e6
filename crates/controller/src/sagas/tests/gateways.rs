//! A host behind a gateway: the first node of the lab, through the sshd of the second. What the gateway is made to do
//! is done there by its root, as somebody would who took it over.

use std::time::Duration;

use corpus_api::Problem;
use corpus_api::guests::DestroyGuest;
use corpus_api::nodes::{ConfirmNodeHostKey, GetNode, LinkNode, Node, ProbeBehindGateway, ProbeHostKey};
use corpus_api::words::KeyText;
use corpus_domain::{Environment, JobId, JobState, NodeId, NodeState, Reachability};
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use super::share::faults;
use super::world::{World, fact};
use crate::jobs::testing::Fault;

/// An account of the gateway that may do nothing but log in.
const USER: &str = "nosudo";
const KEYS: &str = "/home/nosudo/.ssh/authorized_keys";
const OTHER: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";

struct Behind {
    world: World,
    gateway: String,
    gateway_key: KeyText,
}

impl Behind {
    async fn new(db: PgPool) -> Self {
        let (world, gateway) = (World::new(db).await, fact("CORPUS_LAB_NODE2"));
        let asked = ProbeHostKey { address: gateway.parse().unwrap(), port: None };
        let gateway_key = world.ask(asked).await.unwrap().host_key.parse().unwrap();
        let behind = Self { world, gateway, gateway_key };
        let scrub = format!("sed -i '/ corpus@/d' {KEYS}; nft delete table ip lead; systemctl start ssh");
        behind.at_gateway(&scrub).await;
        behind
    }

    async fn at_gateway(&self, command: &str) -> String {
        World::on(&self.gateway, command).await
    }

    fn probe(&self, password: Option<&str>) -> ProbeBehindGateway {
        ProbeBehindGateway {
            address: self.world.node_address.parse().unwrap(),
            port: None,
            gateway_address: self.gateway.parse().unwrap(),
            gateway_port: None,
            gateway_user: USER.parse().ok(),
            gateway_host_key: self.gateway_key.clone(),
            gateway_password: password.map(|text| text.parse().unwrap()),
        }
    }

    fn link(&self, host_key: KeyText) -> LinkNode {
        let environments = vec![Environment::Dev].try_into().unwrap();
        let password = || fact("CORPUS_LAB_NODE_PASSWORD").parse().ok();
        LinkNode {
            password: password(),
            gateway_address: self.gateway.parse().ok(),
            gateway_user: USER.parse().ok(),
            gateway_host_key: Some(self.gateway_key.clone()),
            gateway_password: password(),
            ..LinkNode::new(self.world.node_address.parse().unwrap(), host_key, environments)
        }
    }

    async fn ask_link(&self) -> (NodeId, JobId) {
        let linking = self.world.ask(self.link(self.world.host_key().await)).await.unwrap();
        (linking.node, linking.job)
    }

    /// Nothing of ours is on either.
    async fn assert_bare(&self) {
        assert_eq!(self.at_gateway(&format!("grep -s corpus@ {KEYS}")).await, "");
        self.world.assert_host_bare().await;
    }

    async fn node(&self, node: NodeId) -> Node {
        self.world.ask(GetNode { node }).await.unwrap()
    }

    /// Waits until the node is believed to be so, for no reason of before.
    async fn until(&self, node: NodeId, reachability: Reachability, reason: &str) -> Node {
        let mut seen = None;
        for _ in 0..900 {
            let now = self.node(node).await;
            let said = now.reachability_reason.clone().unwrap_or_default();
            if now.line.reachability == reachability && said.contains(reason) {
                return now;
            }
            seen = Some((now.line.reachability, said));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("never {reachability} with {reason:?}, but {seen:?}");
    }
}

fn wrong<T: std::fmt::Debug>(answer: Result<T, Problem>) -> (String, String) {
    match answer.unwrap_err().errors.as_slice() {
        [one] => (one.field.clone(), one.detail.clone()),
        other => panic!("expected a refusal at a field, got {other:?}"),
    }
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn bad_gateways(db: PgPool) {
    let behind = Behind::new(db).await;
    let world = &behind.world;
    let (field, message) = wrong(world.ask(behind.probe(Some("not the password"))).await);
    assert!(field == "gateway_password" && message.starts_with("Gateway "), "{field}: {message}");
    assert_eq!(wrong(world.ask(behind.probe(None)).await).0, "gateway_password", "its key is not there");
    let host_key = world.host_key().await;
    let seen = world.ask(behind.probe(Some(&fact("CORPUS_LAB_NODE_PASSWORD")))).await.unwrap();
    assert_eq!(seen.host_key, host_key.as_str());
    let nobody = ProbeBehindGateway { port: "9".parse().ok(), ..behind.probe(Some(&fact("CORPUS_LAB_NODE_PASSWORD"))) };
    let (field, message) = wrong(world.ask(nobody).await);
    assert!(field == "address" && message.contains("can't be reached from gateway"), "{field}: {message}");
    assert_eq!(world.controller.call(&world.member, behind.probe(None), None).await.unwrap_err().status, 403);

    let other: KeyText = OTHER.parse().unwrap();
    let wanted = LinkNode { gateway_host_key: Some(other.clone()), ..behind.link(host_key.clone()) };
    let (field, message) = wrong(world.ask(wanted).await);
    let said = message.starts_with(&format!("Gateway {}:22: the host key has changed", behind.gateway));
    assert!(field == "gateway_address" && said, "{field}: {message}");
    // The gateway is fine, the host behind it is not: nothing stays at the gateway.
    let (field, message) = wrong(world.ask(behind.link(other)).await);
    assert!(field == "address" && message.contains("the host key has changed"), "{field}: {message}");
    assert!(!message.starts_with("Gateway "), "{message}");
    behind.assert_bare().await;
    let wanted = LinkNode { password: "not the password".parse().ok(), ..behind.link(host_key) };
    assert_eq!(wrong(world.ask(wanted).await).0, "password");
    assert!(world.nodes().await.is_empty());
    behind.assert_bare().await;
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn link_through_a_gateway_fails_and_repeats_at_every_step(db: PgPool) {
    let behind = Behind::new(db).await;
    for fault in faults(&["ids", "connect", "agent", "facts", "linked"]) {
        let (node, job) = behind.ask_link().await;
        let ended = behind.world.run(job, fault.clone()).await;
        if matches!(fault, Fault::Repeat(_)) {
            assert_eq!(ended.state(), JobState::Done, "{fault:?}: {}", ended.story());
            assert_eq!(behind.node(node).await.line.state, NodeState::Linked);
            behind.world.leave(node).await;
        } else {
            assert_eq!(ended.state(), JobState::Undone, "{fault:?}: {}", ended.story());
        }
        assert!(behind.world.nodes().await.is_empty(), "{fault:?} left a row");
        behind.assert_bare().await;
    }
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn a_node_behind_a_gateway_lives(db: PgPool) {
    let behind = Behind::new(db).await;
    let world = &behind.world;
    let (node, job) = behind.ask_link().await;
    world.done(job).await;
    let line = behind.at_gateway(&format!("grep corpus@ {KEYS}")).await;
    let only = format!("restrict,port-forwarding,permitopen=\"{}:*\" ssh-ed25519 ", world.node_address);
    assert!(line.starts_with(&only) && line.lines().count() == 1, "{line}");
    let job = world.ask_initialize(node).await;
    world.done(job).await;

    let stop = CancellationToken::new();
    let watching = tokio::spawn({
        let (controller, stop) = (world.controller.clone(), stop.clone());
        async move { controller.watch_nodes(stop).await }
    });
    behind.until(node, Reachability::Reachable, "").await;
    let peers = world.on_node("ss -Htn state established '( sport = :22 )' | awk '{ print $4 }'").await;
    assert!(peers.contains(&format!("{}:", behind.gateway)), "nobody comes from the gateway: {peers}");
    let (guest, job) = world.ask_guest("www.trial.corpus.test").await;
    world.done(job).await;
    let job = world.controller.call(&world.member, DestroyGuest { guest }, None).await.unwrap().job;
    world.done(job).await;

    away_and_back(&behind, node).await;
    led_elsewhere(&behind, node).await;
    another_gateway_key(&behind, node).await;

    stop.cancel();
    watching.await.unwrap();
    world.leave(node).await;
    behind.assert_bare().await;
}

/// The gateway's sshd stops, and what it has open ends.
async fn away_and_back(behind: &Behind, node: NodeId) {
    let stop = "systemd-run --quiet --on-active=45 systemctl start ssh; systemctl stop ssh.socket ssh 2>/dev/null; \
                pkill -f 'sshd: nosudo'";
    behind.at_gateway(stop).await;
    let reason = format!("gateway {}:22: the connection was refused", behind.gateway);
    behind.until(node, Reachability::Unreachable, &reason).await;
    behind.until(node, Reachability::Reachable, "").await;
}

/// What comes for the host is led to the gateway's own sshd.
async fn led_elsewhere(behind: &Behind, node: NodeId) {
    let address = &behind.world.node_address;
    let lead = format!(
        "nft 'add table ip lead; add chain ip lead out {{ type nat hook output priority -100; }}; \
         add rule ip lead out ip daddr {address} tcp dport 22 redirect'; pkill -f 'sshd: nosudo'"
    );
    behind.at_gateway(&lead).await;
    let seen = behind.until(node, Reachability::HostKeyChanged, "the host key has changed").await;
    assert!(!seen.gateway.unwrap().shows_other_key, "it is the host's key that is another");
    assert!(!seen.reachability_reason.unwrap().starts_with("gateway "));
    behind.at_gateway("nft delete table ip lead; pkill -f 'sshd: nosudo'").await;
    let host_key = behind.world.ask(behind.probe(None)).await.unwrap().host_key.parse().unwrap();
    behind.world.ask(ConfirmNodeHostKey { node, host_key, gateway: false }).await.unwrap();
    behind.until(node, Reachability::Reachable, "").await;
}

async fn another_gateway_key(behind: &Behind, node: NodeId) {
    let other = ConfirmNodeHostKey { node, host_key: OTHER.parse().unwrap(), gateway: true };
    behind.world.ask(other).await.unwrap();
    let seen = behind.until(node, Reachability::HostKeyChanged, "the host key has changed").await;
    assert!(seen.gateway.unwrap().shows_other_key);
    let right = ConfirmNodeHostKey { node, host_key: behind.gateway_key.clone(), gateway: true };
    behind.world.ask(right).await.unwrap();
    behind.until(node, Reachability::Reachable, "").await;
}
