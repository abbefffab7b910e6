//! What is kept as JSON, in the shape that the types of the protocol give it. SQL copies it, and sets in it
//! what differs from row to row.

use corpus_domain::{
    Bytes, CommitId, DeploymentId, DeploymentState, DriftKind, Driver, Environment, GuestState, ImageName, Origin,
    Outcome, Phase, Safeguard, Trigger,
};
use corpus_protocol::{
    ArchiveEntry, Commit, ConfigurationEntry, Cpu, DriverFact, Facts, Fault, GuestReading, GuestStorage, Listener,
    Live, Moment, PhaseReport, Proof, Reading, RecipeReport, Report, SafeguardFact, SaltState, Source, Storage,
};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

const MEMORY: Bytes = Bytes(512 << 30);
const STORAGE: Storage =
    Storage { total: Bytes(8_000_000_000_000), used: Bytes(1_700_000_000_000), promised: Bytes(0) };
/// A recipe's Salt states, and a configuration's entries: as many as a small site has.
const STATES: u64 = 12;
const ENTRIES: u64 = 40;
/// A job as it was kept once; its graph is what makes the rows of jobs wide.
const RECORDED: &str = include_str!("../../../simulation/recorded/0.1.0/guest_restart.json");

/// Keeps all of them in the table `shape`.
pub async fn keep(conn: &mut PgConnection) -> anyhow::Result<()> {
    for (name, value) in all()? {
        sqlx::query("insert into shape values ($1, $2)").bind(name).bind(value).execute(&mut *conn).await?;
    }
    Ok(())
}

fn all() -> anyhow::Result<[(&'static str, Value); 12]> {
    let recorded: Value = serde_json::from_str(RECORDED)?;
    let dag = recorded.pointer("/job/dag").cloned().unwrap_or_default();
    let commit: CommitId = "0".repeat(40).parse()?;
    // It is written by the controller, in this shape.
    let drift = json!({ "kind": DriftKind::File, "guest": null, "text": "/etc/haproxy/haproxy.cfg was changed", "since": "2026-01-01T00:00:00Z" });
    Ok([
        ("facts", serde_json::to_value(facts())?),
        ("reading", serde_json::to_value(reading())?),
        ("guest", serde_json::to_value(guest()?)?),
        ("guest_stopped", json!({ "uptime_s": null, "memory_used": null, "cpu_millis": null, "processes": null })),
        ("drift", drift),
        ("configuration", serde_json::to_value(configuration())?),
        ("live", serde_json::to_value(live(&commit))?),
        ("archive", serde_json::to_value(archive(&commit))?),
        ("report", serde_json::to_value(report(&commit, false)?)?),
        ("failed", serde_json::to_value(report(&commit, true)?)?),
        ("ordered", json!({ "source": Source::Head, "only": [] })),
        ("dag", dag),
    ])
}

fn facts() -> Facts {
    let safeguard =
        |safeguard| SafeguardFact { safeguard, in_force: true, detail: "enforced for each guest".to_owned() };
    Facts {
        hostname: String::new(),
        os: "Debian GNU/Linux 12 (bookworm)".to_owned(),
        kernel: "6.1.0-28-amd64".to_owned(),
        architecture: "x86_64".to_owned(),
        cpu: Cpu { model: "AMD EPYC 7543P 32-Core Processor".to_owned(), count: 64 },
        memory: MEMORY,
        storage: STORAGE,
        addresses: Vec::new(),
        drivers: vec![DriverFact {
            driver: Driver::Lxc,
            version: Some("5.0.2".to_owned()),
            obstacle: None,
            backings: Vec::new(),
        }],
        listeners: vec![Listener { port: 80, ours: true }, Listener { port: 443, ours: true }],
        confinement: Safeguard::ALL.iter().copied().map(safeguard).collect(),
        not_held: Vec::new(),
    }
}

fn reading() -> Reading {
    let memory_used = Bytes(96 << 30);
    Reading {
        load: 0.0,
        uptime_s: 0,
        memory_total: MEMORY,
        memory_used,
        storage: STORAGE,
        guests: Vec::new(),
        images: vec![ImageName::first()],
        members: Vec::new(),
        clock_ms: None,
    }
}

fn guest() -> anyhow::Result<GuestReading> {
    Ok(GuestReading {
        name: "g0.example.org".parse()?,
        state: GuestState::Running,
        uptime_s: Some(86_400),
        memory_used: Some(Bytes(300 << 20)),
        cpu_millis: Some(40),
        processes: Some(35),
        storage: Some(GuestStorage { used: Bytes(3 << 30), of: Bytes(5_000_000_000), taken: Bytes(4 << 30) }),
    })
}

fn configuration() -> Vec<ConfigurationEntry> {
    let origins = [Origin::BuiltIn, Origin::Defaults, Origin::Set, Origin::Pillar];
    let entry = |(n, origin)| ConfigurationEntry {
        key: format!("site.part{n}.value"),
        value: Some(json!(format!("value {n}"))),
        origin,
    };
    (0..ENTRIES).zip(origins.into_iter().cycle()).map(entry).collect()
}

fn live(commit: &CommitId) -> Live {
    Live {
        deployment: DeploymentId(Uuid::nil()),
        commit: Some(commit.clone()),
        pillar: Some(commit.clone()),
        since_ms: 0,
    }
}

fn archive(commit: &CommitId) -> ArchiveEntry {
    let (id, commit) = (DeploymentId(Uuid::nil()), Some(commit.clone()));
    let pillar = commit.clone();
    ArchiveEntry { id, release: Some(id), commit, pillar, at_ms: 0, bytes: 48_000_000, has_failed_tree: false }
}

fn report(commit: &CommitId, failed: bool) -> anyhow::Result<Report> {
    let change =
        |n| Commit { id: commit.clone(), subject: format!("Change {n}"), author: "A member".to_owned(), at_ms: 0 };
    let fault = Fault {
        phase: Phase::Install,
        recipe: Some("30-site.sls".to_owned()),
        message: "1 of 12 states failed".to_owned(),
        line: Some(30),
    };
    Ok(Report {
        id: DeploymentId(Uuid::nil()),
        project: "atlas".parse()?,
        environment: Environment::Prod,
        state: if failed { DeploymentState::RolledBack } else { DeploymentState::Live },
        trigger: Trigger::Push,
        by: String::new(),
        commit: Some(commit.clone()),
        pillar: Some(commit.clone()),
        previous: Some(commit.clone()),
        commits: (0..5).map(change).collect(),
        plain_archive: false,
        warnings: Vec::new(),
        ordered_ms: 0,
        began_ms: 0,
        ended_ms: 0,
        phases: Phase::ALL.iter().map(|phase| phase_report(*phase, failed)).collect(),
        fault: failed.then_some(fault),
        proofs: [Moment::Before, if failed { Moment::RolledBack } else { Moment::After }].map(proof).to_vec(),
        live: Some(live(commit)),
        failed_tree: failed.then(|| "archives/0/project.failed".to_owned()),
        archives: vec![archive(commit); 5],
        lines: 40,
    })
}

fn proof(moment: Moment) -> Proof {
    let check = "GET http://www.example.org/health is 200".to_owned();
    Proof { moment, check, passed: true, seen: "HTTP 200 in 38 ms".to_owned(), elapsed_ms: 38 }
}

fn phase_report(phase: Phase, failed: bool) -> PhaseReport {
    let install = phase == Phase::Install;
    let outcome = match phase {
        Phase::Install if failed => Outcome::Failed,
        Phase::Fixperms | Phase::Prove | Phase::Followers if failed => Outcome::Skipped,
        Phase::Rollback if !failed => Outcome::Skipped,
        _ => Outcome::Done,
    };
    let recipes =
        if install { vec![recipe("10-packages.sls", false), recipe("30-site.sls", failed)] } else { Vec::new() };
    PhaseReport { phase, outcome, began_ms: (outcome != Outcome::Skipped).then_some(0), elapsed_ms: 900, recipes }
}

fn recipe(name: &str, failed: bool) -> RecipeReport {
    let state = |n| SaltState {
        id: format!("{name} {n}"),
        function: "file.managed".to_owned(),
        name: format!("/srv/projects/site/file{n}"),
        ok: !failed || n > 0,
        changed: n % 3 == 0,
        comment: "File is in the correct state".to_owned(),
        elapsed_ms: 12,
    };
    RecipeReport {
        name: name.to_owned(),
        outcome: if failed { Outcome::Failed } else { Outcome::Done },
        elapsed_ms: 400,
        reason: failed.then(|| "1 of 12 states failed".to_owned()),
        lines: Some((1, 40)),
        failing_line: failed.then_some(30),
        states: (0..STATES).map(state).collect(),
    }
}
