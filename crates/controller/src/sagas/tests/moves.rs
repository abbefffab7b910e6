//! A guest that is moved between two nodes and back, whatever fails in between.

use std::time::Duration;

use corpus_api::guests::{DestroyGuest, GetGuest, MoveGuest, RequestGuest, RestartGuest, StopGuest};
use corpus_api::moves::PreviewMove;
use corpus_api::names::{AttachName, DetachName, PointGuest};
use corpus_api::snapshots::{ListSnapshots, TakeSnapshot};
use corpus_api::zones::{CreateZone, ListZones, RemoveZone, ZoneAccess, ZoneProjects};
use corpus_domain::{DnsName, DnsNameId, GuestId, GuestState, JobId, JobState, NodeId};
use sqlx::PgPool;

use super::share::some;
use super::world::{REVERSE_ZONE, World, fact};
use crate::dns::authority::{addresses, pointers};
use crate::dns::reverse;
use crate::jobs::testing::Fault;

pub const GUEST: &str = "a.trial.corpus.test";
/// Has the address on the second node that the guest has on the first.
const OTHER: &str = "b.trial.corpus.test";
const NAME: &str = "shop.trial.corpus.test";

pub struct Removal {
    pub world: World,
    pub nodes: [NodeId; 2],
    pub addresses: [String; 2],
    pub guest: GuestId,
    other: GuestId,
    name: DnsNameId,
}

impl Removal {
    pub async fn begin(db: PgPool) -> Self {
        let mut world = World::new(db).await;
        let addresses = [fact("CORPUS_LAB_NODE1"), fact("CORPUS_LAB_NODE2")];
        let first = world.ready_node().await;
        world.node_address.clone_from(&addresses[1]);
        world.scrub().await;
        let nodes = [first, world.ready_node().await];
        world.zone().await;
        let mut guests = Vec::new();
        for (name, node) in [(GUEST, nodes[0]), (OTHER, nodes[1])] {
            let wanted = RequestGuest { node: Some(node), ..World::plain_request(name) };
            let (guest, job) = world.request(wanted).await.unwrap();
            world.done(job).await;
            guests.push(guest);
        }
        let attach = AttachName { guest: guests[0], name: NAME.parse().unwrap(), wildcard: false };
        let attached = world.controller.call(&world.member, attach, None).await.unwrap();
        world.done(attached.job).await;
        let (access, projects) = (ZoneAccess::All, ZoneProjects::default());
        let reverse_zone =
            CreateZone { name: REVERSE_ZONE.parse().unwrap(), access, projects, provider: None, ttl_s: None };
        world.controller.call(&world.ops, reverse_zone, None).await.unwrap();
        let point = PointGuest { guest: guests[0], name: Some(attached.name) };
        let pointed = world.controller.call(&world.member, point, None).await.unwrap();
        world.done(pointed.job).await;
        let it = Self { world, nodes, addresses, guest: guests[0], other: guests[1], name: attached.name };
        // A site, something that is written all the time, and what is easily lost.
        it.inside(
            0,
            "mkdir /srv/site && echo here >/srv/site/index.html; \
             printf \"[Service]\\nExecStart=/usr/bin/python3 -m http.server 80 --directory /srv/site\\n[Install]\\nWantedBy=multi-user.target\\n\" \
                 >/etc/systemd/system/site.service; \
             printf \"[Service]\\nExecStart=/bin/sh -c \\\"while :; do date +%%%%s >>/root/ticks; sleep 0.05; done\\\"\\n[Install]\\nWantedBy=multi-user.target\\n\" \
                 >/etc/systemd/system/ticks.service; \
             systemctl enable -q --now site ticks; \
             cd /root; mkdir -p many/of; echo one >it; ln it many/of/hard; ln -s /etc/passwd away; truncate -s 40M hole; \
             touch -d 2001-02-03T04:05:06.789 \"many/a b\"; chown 33:33 many; chmod 2750 many; mkfifo -m 620 pipe",
        )
        .await;
        it
    }

    pub async fn inside(&self, at: usize, command: &str) -> String {
        World::on(&self.addresses[at], &format!("lxc-attach -n {GUEST} -- sh -c '{command}'")).await
    }

    /// What may not change by a move.
    pub async fn manifest(&self, at: usize) -> String {
        self.inside(
            at,
            "cd /root; find . -not -name ticks -printf \"%p %y %m %U %G %s %n %T@ %l\\n\" | sort; cat many/of/hard; \
             cat /etc/ssh/ssh_host_ed25519_key.pub /etc/hostname",
        )
        .await
    }

    async fn ask(&self, to: usize) -> JobId {
        let wanted = MoveGuest { guest: self.guest, node: Some(self.nodes[to]) };
        self.world.controller.call(&self.world.member, wanted, None).await.unwrap().job
    }

    async fn log(&self, job: JobId) -> String {
        let log = self.world.controller.jobs.log(job, 0, 1000).await.unwrap();
        log.into_iter().map(|line| line.text + "\n").collect()
    }

    /// It is there and nowhere else: by the rows, by the nodes, by who visits it and by who asks where.
    pub async fn is_at(&self, at: usize, state: GuestState, after: &str) {
        let shown = self.world.controller.call(&self.world.member, GetGuest { guest: self.guest }, None).await.unwrap();
        assert_eq!((shown.line.node, shown.line.state), (self.nodes[at], state), "{after}");
        let left = World::on(&self.addresses[1 - at], &format!("ls -d /var/lib/lxc/{GUEST} 2>/dev/null || true")).await;
        assert_eq!(left, "", "{after}");
        let kept =
            format!("cd /var/lib/lxc/{GUEST}; ls -A snapshots 2>/dev/null; ls -d former next 2>/dev/null || true");
        assert_eq!(World::on(&self.addresses[at], &kept).await, "", "{after}");
        let name: DnsName = NAME.parse().unwrap();
        let seen = addresses(fact("CORPUS_LAB_DNS").parse().unwrap(), &name, false).await.unwrap();
        let seen: Vec<String> = seen.iter().map(ToString::to_string).collect();
        assert_eq!(seen, [self.addresses[at].clone()], "{after}: the record");
        let ip = shown.line.ip.unwrap();
        for said in [ip, [10, 5, 0, 2].into(), [10, 5, 0, 3].into()] {
            let seen = pointers(fact("CORPUS_LAB_DNS").parse().unwrap(), &reverse(said.into()).unwrap()).await.unwrap();
            let expected: &[&str] = if said == ip { &[NAME] } else { &[] };
            assert_eq!(seen, expected, "{after}: the reverse record of {said}");
        }
        if state != GuestState::Running {
            return;
        }
        let hosts = self.inside(at, "cat /etc/hosts; hostname -I").await;
        assert!(hosts.contains(&format!("{ip}\t{GUEST} a")) && hosts.ends_with(&format!("{ip}")), "{after}: {hosts}");
        self.is_served(at, true, after).await;
    }

    async fn is_served(&self, at: usize, is: bool, after: &str) {
        let address = &self.addresses[at];
        let ask = format!("curl -s --max-time 5 -H 'Host: {NAME}' http://{address}/ || true");
        let mut told = String::new();
        for _ in 0..20 {
            told = World::on(address, &ask).await;
            if (told == "here") == is {
                return;
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        panic!("{after}: node {} says {told:?}", at + 1);
    }

    pub async fn run_sql(&self, statement: &str) -> u64 {
        let db = self.world.controller.services.db.pool();
        sqlx::query(sqlx::AssertSqlSafe(statement)).execute(db).await.unwrap().rows_affected()
    }
}

/// What was written is written once, in order, and was kept from only while it was away.
fn went_on(ticks: &str, before: &str) {
    assert!(ticks.starts_with(before.trim_end()), "what was written is there");
    let times: Vec<i64> = ticks.lines().map(|line| line.parse().unwrap()).collect();
    let gaps = times.windows(2).filter(|pair| pair[1] - pair[0] > 2).count();
    assert!(times.is_sorted() && gaps <= 1, "{gaps} times nothing was written");
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn a_guest_moves_and_fails_and_repeats_on_its_way(db: PgPool) {
    let it = Removal::begin(db).await;
    let was = it.manifest(0).await;
    assert!(was.contains("many/a b"), "{was}");
    it.is_at(0, GuestState::Running, "at first").await;

    // Once without any fault: what did not change is not brought again, and nothing that was written is lost.
    let taken = TakeSnapshot { guest: it.guest, comment: None };
    let job = it.world.controller.call(&it.world.member, taken, None).await.unwrap().job;
    it.world.done(job).await;
    let ticks = it.inside(0, "cat /root/ticks").await;
    let job = it.ask(1).await;
    let refused = it.world.controller.call(&it.world.member, RestartGuest { guest: it.guest }, None).await;
    let why = refused.unwrap_err().to_string();
    assert!(why.contains("is being moved to"), "{why}");
    it.world.done(job).await;
    it.is_at(1, GuestState::Running, "moved").await;
    it.is_served(0, true, "moved: where it was").await;
    assert_eq!(it.manifest(1).await, was);
    went_on(&it.inside(1, "cat /root/ticks").await, &ticks);
    let log = it.log(job).await;
    let brought: Vec<&str> = log.lines().filter(|line| line.contains("of which")).collect();
    let [first, then] = brought.as_slice() else { panic!("{log}") };
    let amount = |line: &str| line.rsplit_once("of which ").unwrap().1.to_owned();
    assert!(amount(first) != amount(then), "{log}");
    assert!(log.contains("it answered nothing for"), "{log}");
    let shown = it.world.controller.call(&it.world.member, GetGuest { guest: it.guest }, None).await.unwrap();
    let last = shown.last_move.unwrap();
    assert!(last.downtime_ms > 0 && last.bytes.0 > 0, "{last:?}");
    let preview = PreviewMove { guest: it.guest, node: None };
    let expected = it.world.controller.call(&it.world.member, preview, None).await.unwrap().downtime.unwrap();
    assert_eq!((expected.downtime_ms, expected.of), (last.downtime_ms, 1));
    let left = it.world.controller.call(&it.world.member, ListSnapshots { guest: it.guest }, None).await.unwrap();
    assert_eq!(left.items.len(), 0, "they were left behind");
    assert_eq!(it.run_sql("update guest_moves set until_at = now() where until_at is not null").await, 1);
    it.world.controller.end_switches().await.unwrap();
    assert_eq!(it.run_sql("update guest_moves set moved = moved").await, 0);
    let job = it.world.ask_repair(it.nodes[0]).await;
    it.world.done(job).await;
    it.is_served(0, false, "resolvers have forgotten it").await;

    // Failing, it is where it was; done twice, it is where it should be.
    let mut at = 1;
    for step in some(["snapshot", "changes", "put", "switch", "start", "names"]) {
        let after = format!("{step} failed");
        let job = it.ask(1 - at).await;
        let ended = it.world.run(job, Fault::FailAfter(step.to_owned())).await;
        assert_eq!(ended.state(), JobState::Undone, "{after}: {}", ended.story());
        it.is_at(at, GuestState::Running, &after).await;
        assert_eq!(it.manifest(at).await, was, "{after}");
    }
    let twice = ["place", "spawn", "files", "stop", "changes", "put", "settle", "switch", "start", "names", "leave"];
    let twice = twice.map(|step| Fault::Repeat(step.to_owned()));
    for fault in some(twice.into_iter().chain([Fault::KillAt(12), Fault::KillAt(24), Fault::KillAt(33)])) {
        let after = format!("{fault:?}");
        let job = it.ask(1 - at).await;
        let ended = it.world.run(job, fault).await;
        assert_eq!(ended.state(), JobState::Done, "{after}: {}", ended.story());
        at = 1 - at;
        it.is_at(at, GuestState::Running, &after).await;
        assert_eq!(it.manifest(at).await, was, "{after}");
    }

    // One that rests rests on.
    let job = it.world.controller.call(&it.world.member, StopGuest { guest: it.guest }, None).await.unwrap().job;
    it.world.done(job).await;
    let job = it.ask(1 - at).await;
    it.world.done(job).await;
    it.is_at(1 - at, GuestState::Stopped, "one that rests").await;
    it.leave().await;
}

impl Removal {
    pub async fn leave(mut self) {
        let member = self.world.member.clone();
        let job = self.world.controller.call(&member, DetachName { name: self.name }, None).await.unwrap().job;
        self.world.done(job).await;
        for guest in [self.guest, self.other] {
            let job = self.world.controller.call(&member, DestroyGuest { guest }, None).await.unwrap().job;
            self.world.done(job).await;
        }
        let zones = self.world.controller.call(&self.world.ops, ListZones::default(), None).await.unwrap().items;
        for zone in zones {
            self.world.controller.call(&self.world.ops, RemoveZone { zone: zone.id }, None).await.unwrap();
        }
        for (node, address) in self.nodes.into_iter().zip(self.addresses.clone()) {
            self.world.node_address = address;
            self.world.leave(node).await;
        }
    }
}
