//! A guest of a node that is lost goes on at another one from its backup, whatever fails in between; and the lost node comes
//! back with what it has of it.

use corpus_api::backups::{ListBackups, RestoreBackup, TakeBackup};
use corpus_api::guests::MoveGuest;
use corpus_api::leaving::{EmptyNode, LeavingGuests, LeftBehind, ListLeaving, ListLeftBehind, RemoveLeftBehind};
use corpus_api::node_service::ResumeNode;
use corpus_domain::{GuestState, JobId, JobState, Leaving};
use sqlx::PgPool;

use super::moves::{GUEST, Removal};
use super::share::some;
use super::world::World;
use crate::jobs::testing::Fault;

/// Where `lxc.start.auto` says whether the node starts the guest at boot.
const AT_BOOT: &str = "grep ^lxc.start.auto /var/lib/lxc/a.trial.corpus.test/config";
/// The first node does not answer, and nobody who asks for it gets through.
const LOSE: &str =
    "update nodes set ssh_port = 1, reachability = 'unreachable' where id = (select min(id::text)::uuid from nodes)";
const FIND: &str = "update nodes set ssh_port = 22, reachability = 'reachable'";

impl Removal {
    async fn leaving(&self, at: usize) -> LeavingGuests {
        let list = ListLeaving { node: self.nodes[at], cursor: None, limit: None };
        self.world.ask(list).await.unwrap()
    }

    async fn left(&self, at: usize) -> Vec<LeftBehind> {
        let list = ListLeftBehind { node: self.nodes[at], cursor: None, limit: None };
        self.world.ask(list).await.unwrap().items
    }

    /// Has the lost node emptied, and tells the job that brings the guest elsewhere.
    async fn evacuate(&self) -> JobId {
        self.world.ask(EmptyNode { node: self.nodes[0], how: Leaving::Backup, off: true }).await.unwrap();
        self.world.controller.have_due_guests_leave().await.unwrap();
        let all = self.leaving(0).await;
        all.items[0].leaves.as_ref().unwrap().job.unwrap_or_else(|| panic!("{all:?}"))
    }

    /// The guest is on the lost node, and nothing is left of what was tried.
    async fn stays_lost(&self, after: &str) {
        assert!(self.left(0).await.is_empty(), "{after}");
        self.world.controller.have_due_guests_leave().await.unwrap();
        let all = self.leaving(0).await;
        assert_eq!((all.guests, all.failed), (1, 1), "{after}: {all:?}");
        let there = World::on(&self.addresses[1], &format!("ls -d /var/lib/lxc/{GUEST} 2>/dev/null || true")).await;
        assert_eq!(there, "", "{after}");
    }

    /// The lost node is back: the guest is stopped there, removed once that is wanted, and moved back from where it is.
    async fn come_back(&self) {
        self.run_sql(FIND).await;
        self.world.controller.have_due_guests_leave().await.unwrap();
        assert!(self.left(0).await[0].stopped_at.is_some());
        assert_eq!(World::on(&self.addresses[0], &format!("lxc-info -sHn {GUEST}")).await.trim(), "STOPPED");
        assert_eq!(World::on(&self.addresses[0], AT_BOOT).await.trim(), "lxc.start.auto = 0");
        self.world.ask(RemoveLeftBehind { node: self.nodes[0], guest: self.guest }).await.unwrap();
        self.world.controller.have_due_guests_leave().await.unwrap();
        assert!(self.left(0).await.is_empty());
    }
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn a_guest_of_a_lost_node_goes_on_from_its_backup(db: PgPool) {
    let it = Removal::begin(db).await;
    let was = it.manifest(0).await;
    let take = TakeBackup { guest: it.guest, comment: None };
    let job = it.world.controller.call(&it.world.member, take, None).await.unwrap().job;
    it.world.done(job).await;
    it.inside(0, "echo late >/root/late").await;
    it.run_sql(LOSE).await;

    // Whatever fails, it is as it was: with the lost node.
    for step in some(["spawn", "files", "put", "switch", "start", "names"]) {
        let after = format!("{step} failed");
        let ended = it.world.run(it.evacuate().await, Fault::FailAfter(step.to_owned())).await;
        assert_eq!(ended.state(), JobState::Undone, "{after}: {}", ended.story());
        it.stays_lost(&after).await;
    }
    let tried = [
        Fault::Repeat("files".to_owned()),
        Fault::Repeat("switch".to_owned()),
        Fault::Repeat("ready".to_owned()),
        Fault::KillAt(14),
        Fault::KillAt(26),
    ];
    for (round, fault) in [Fault::None].into_iter().chain(some(tried)).enumerate() {
        let after = format!("{fault:?}");
        let ended = it.world.run(it.evacuate().await, fault).await;
        assert_eq!(ended.state(), JobState::Done, "{after}: {}", ended.story());
        it.world.controller.have_due_guests_leave().await.unwrap();
        assert_eq!(it.leaving(0).await.guests, 0, "{after}");
        let left = it.left(0).await;
        assert_eq!((left.len(), left[0].stopped_at), (1, None), "{after}: {left:?}");
        // On the lost node it runs on, with what it wrote last.
        if round == 0 {
            assert_eq!(it.inside(0, "cat /root/late").await, "late", "{after}");
            assert_eq!(World::on(&it.addresses[0], AT_BOOT).await.trim(), "lxc.start.auto = 1");
        }
        it.come_back().await;
        it.is_at(1, GuestState::Running, &after).await;
        assert_eq!(it.manifest(1).await, was, "{after}");
        // And back, to be lost again.
        it.world.ask(ResumeNode { node: it.nodes[0] }).await.unwrap();
        it.world.controller.end_switches().await.unwrap();
        let back = MoveGuest { guest: it.guest, node: Some(it.nodes[0]) };
        let job = it.world.ask(back).await.unwrap().job;
        it.world.done(job).await;
        it.is_at(0, GuestState::Running, &after).await;
        it.run_sql(LOSE).await;
    }
    it.run_sql(FIND).await;

    // A backup of before all this, brought back where it is now: its files say so.
    it.inside(0, "sed -i s/^10.5[.0-9]*/10.5.0.77/ /etc/hosts").await;
    let take = TakeBackup { guest: it.guest, comment: None };
    let job = it.world.controller.call(&it.world.member, take, None).await.unwrap().job;
    it.world.done(job).await;
    assert_eq!(it.run_sql("update guest_backups set ip = '10.5.0.77'").await, 2);
    let backups = it.world.ask(ListBackups { guest: it.guest }).await.unwrap().items;
    let restore = RestoreBackup { guest: it.guest, backup: backups[0].id };
    let job = it.world.controller.call(&it.world.member, restore, None).await.unwrap().job;
    it.world.done(job).await;
    it.is_at(0, GuestState::Running, "brought back").await;

    // A node that answers is emptied by moving.
    it.world.ask(ResumeNode { node: it.nodes[0] }).await.unwrap_err();
    it.world.ask(EmptyNode { node: it.nodes[0], how: Leaving::Move, off: false }).await.unwrap();
    it.world.controller.have_due_guests_leave().await.unwrap();
    let job = it.leaving(0).await.items[0].leaves.as_ref().unwrap().job.unwrap();
    it.world.done(job).await;
    it.world.controller.have_due_guests_leave().await.unwrap();
    let all = it.leaving(0).await;
    assert_eq!((all.guests, all.waiting, all.going, all.failed), (0, 0, 0, 0), "{all:?}");
    it.is_at(1, GuestState::Running, "emptied").await;
    it.leave().await;
}
