//! Whether a guest could be had back from a backup, tried on a real node.

use corpus_api::backups::{Backup, BackupProof, ListBackups, ProveBackup, TakeBackup};
use corpus_api::environments::{GetEnvironmentSettings, SetEnvironmentSettings};
use corpus_api::guests::GetGuest;
use corpus_domain::{BackupId, GuestId, JobState};
use sqlx::PgPool;

use super::projects::{DEV, NAME, Place, project};
use super::share::some;
use crate::jobs::testing::Fault;

/// What is left of a guest that was tried, on its node.
const LEFT: &str = "ls /var/lib/lxc | grep proof- || true; ls /var/lib/corpus/guests 2>/dev/null | grep proof- || true; \
                    nft list ruleset | grep -c 'ip saddr { .* } drop' || true; ip -o link | grep -c ': cg' || true";

impl Place {
    async fn backup(&self, guest: GuestId) -> BackupId {
        let taken = self.ask(TakeBackup { guest, comment: None }).await.unwrap();
        self.world.done(taken.job).await;
        taken.backup
    }

    async fn prove(&self, guest: GuestId, backup: BackupId, fault: Fault) -> (JobState, BackupProof) {
        let job = self.ask(ProveBackup { guest, backup }).await.unwrap().job;
        let ended = self.world.run(job, fault).await;
        let all: Vec<Backup> = self.ask(ListBackups { guest }).await.unwrap().items;
        let proof = all.into_iter().find(|one| one.id == backup).unwrap().proof.unwrap();
        (ended.state(), proof)
    }
}

/// Its checks are made where nothing is reached, which the check itself tries; what fails is told; nothing is left.
#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn a_backup_is_tried_where_nothing_is_reached(db: PgPool) {
    let place = Place::new(db).await;
    let (world, guest) = (&place.world, place.guest());
    let job = place.ask_set_up().await;
    world.done(job).await;
    let ip = place.ask(GetGuest { guest }).await.unwrap().line.ip.unwrap();
    let inside = async |command: &str| world.on_node(&format!("lxc-attach -n {NAME} -- bash -c '{command}'")).await;

    // Passes in the guest itself; in a copy of it only where it reaches nothing.
    let check = format!(
        "[ \"$(hostname -I)\" = \"{ip} \" ] && exit 0\nfor to in 10.5.0.1/53 10.5.0.1/80 10.5.0.1/25 {ip}/22; do\n\
         timeout 1 bash -c \"exec 3<>/dev/tcp/$to\" && {{ echo \"reached $to\"; exit 1; }}\ndone\n\
         timeout 1 getent hosts {NAME}. nothing.trial.corpus.test. && exit 1\n[ -e /srv/fine ]\n"
    );
    inside(&format!("cat >/root/check <<\"END\"\n{check}END\nchmod 755 /root/check; touch /srv/fine")).await;
    // It can fail: the guest reaches some of that.
    assert_eq!(inside("timeout 2 bash -c \"exec 3<>/dev/tcp/10.5.0.1/53\" && echo yes").await, "yes");
    let (name, environment) = (project(), DEV);
    let now = place.ask(GetEnvironmentSettings { project: name.clone(), environment }).await.unwrap();
    let settings = Some("checks: [{command: [/root/check], within: 20}]".parse().unwrap());
    let set = SetEnvironmentSettings { project: name, environment, settings, version: now.version };
    place.ask(set).await.unwrap();
    world.run_open_jobs().await;
    place.commit("echo one").await;
    let (_, job) = place.ask_deploy().await;
    world.done(job).await;

    let dumps = async |does: &str| {
        let recipe = "/srv/projects/atlas/project/.corpus/backup";
        inside(&format!("printf \"#!/bin/sh\\n{does}\\n\" >{recipe}; chmod 755 {recipe}")).await;
    };
    let dumped = async || place.ask(ListBackups { guest }).await.unwrap().items[0].dump.clone().unwrap();
    dumps("echo rows >\\$CORPUS_DUMPS/rows").await;
    let backup = place.backup(guest).await;
    assert!(dumped().await.bytes.0 > 0 && dumped().await.problem.is_none(), "{:?}", dumped().await);
    assert_eq!(inside("cat /srv/projects/atlas/dumps/rows").await, "rows");
    let before = world.on_node(LEFT).await;
    let (state, proof) = place.prove(guest, backup, Fault::None).await;
    assert_eq!((state, proof.passed), (JobState::Done, Some(true)), "{proof:?}");
    let told = proof.told.unwrap();
    for seen in ["are as they were saved", "was entered by SSH", "/root/check succeeds: exit status 0"] {
        assert!(told.contains(seen), "{told}");
    }
    let all = place.ask(ListBackups { guest }).await.unwrap();
    assert!(all.proven.is_some() && all.unproven.is_none(), "{all:?}");
    assert_eq!(world.on_node(LEFT).await, before);

    let tried = [
        (Fault::FailAfter("place".to_owned()), false),
        (Fault::FailAfter("put".to_owned()), false),
        (Fault::FailAfter("ping".to_owned()), false),
        (Fault::Repeat("compare".to_owned()), true),
        (Fault::Repeat("clear".to_owned()), true),
        (Fault::KillAt(8), true),
        (Fault::KillAt(18), true),
    ];
    for (fault, is_done) in some(tried) {
        let (state, proof) = place.prove(guest, backup, fault.clone()).await;
        assert_eq!(state == JobState::Done, is_done, "{fault:?}: {proof:?}");
        assert_eq!(proof.passed, Some(is_done), "{fault:?}: {proof:?}");
        assert_eq!(world.on_node(LEFT).await, before, "{fault:?}");
    }

    // What is not as it should be is told. Nobody would have known.
    inside("rm /srv/fine").await;
    dumps("echo no server >&2; exit 4").await;
    let broken = place.backup(guest).await;
    assert_eq!(dumped().await.problem.unwrap(), "backup: exit status 4: no server", "it was taken all the same");
    let (state, proof) = place.prove(guest, broken, Fault::None).await;
    assert_eq!((state, proof.passed), (JobState::Undone, Some(false)), "{proof:?}");
    assert!(proof.told.unwrap().lines().last().unwrap().starts_with("a check fails: /root/check succeeds"));
    let all = place.ask(ListBackups { guest }).await.unwrap();
    assert!(all.unproven.unwrap().contains("a check fails"));
    assert_eq!(world.on_node(LEFT).await, before);
    let job = place.ask_remove().await;
    world.done(job).await;
    place.leave().await;
}
