//! Replaying: a recorded log cut at each place, each in a world of its own, all at once.

use std::sync::Arc;
use std::time::Duration;

use corpus_api::jobs::{GetJob, ReadJobLog};
use corpus_controller::ssh_keys::generate_host_key;
use corpus_domain::{GuestNetwork, JobId, JobState};
use corpus_protocol::{Egress, HttpRoute, Https, NodePlan, SshHostKey, SshRoute};
use corpus_simulation::{Fleet, FleetConfig, Guest, Pace, Place, Simulation, SimulationConfig};
use serde_json::Value;
use sqlx::PgPool;
use sqlx::migrate::Migrator;
use uuid::Uuid;

use crate::fixture::{self, Moment, Recorded};
use crate::names::Names;
use crate::own::Own;

const LIMIT: Duration = Duration::from_mins(8);
static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations");

/// Replays the logs that all releases recorded under a name: a kind of job, `<kind>.undone` for one
/// that was cancelled.
pub async fn all_releases(db: PgPool, name: &str) {
    for release in fixture::releases() {
        sqlx::raw_sql("drop schema public cascade; create schema public").execute(&db).await.unwrap();
        let recorded = fixture::load(&release, name);
        World::new(db.clone(), recorded).await.replay().await;
    }
}

/// A server died when so many events were written; afterwards the job was cancelled, or not.
#[derive(Debug, Clone, Copy)]
pub struct Cut {
    events: usize,
    cancelled: bool,
    /// Whether the job was being undone already.
    undoing: bool,
}

/// One recorded job, cut at every place.
pub struct World {
    pub db: PgPool,
    pub recorded: Recorded,
    pub simulation: Simulation,
    pub names: Names,
    cuts: Vec<Cut>,
    guest_key: SshHostKey,
}

impl World {
    async fn new(db: PgPool, recorded: Recorded) -> Self {
        let kinds: Vec<&str> = recorded
            .flushes
            .iter()
            .flat_map(|flush| &flush.events)
            .map(|event| event["kind"].as_str().unwrap())
            .collect();
        let failed = kinds.iter().position(|kind| *kind == "failed").unwrap_or(kinds.len());
        let both = |events| [false, true].map(|cancelled| Cut { events, cancelled, undoing: events > failed });
        let cuts: Vec<Cut> = (0..=kinds.len()).flat_map(both).collect();
        let nodes = u16::try_from(cuts.len()).unwrap();
        let pace = Pace { read: Duration::ZERO, change: Duration::from_millis(1) };
        let simulation = Simulation::start(SimulationConfig { nodes, pace }).await.unwrap();
        Self { db, recorded, cuts, simulation, names: Names::default(), guest_key: generate_host_key().unwrap() }
    }

    async fn replay(&self) {
        let then = MIGRATIONS.iter().filter(|one| one.version <= self.recorded.migration).cloned().collect();
        Migrator::with_migrations(then).run(&self.db).await.unwrap();
        for (table, rows) in &self.recorded.around {
            self.insert(table, rows).await;
        }
        let place = self.simulation.place();
        let mut jobs = Vec::new();
        for (index, cut) in self.cuts.iter().enumerate() {
            jobs.push(self.prepare(index, *cut, &place).await);
        }
        MIGRATIONS.run(&self.db).await.unwrap();
        let authority = self.names.serve().await;
        let config = FleetConfig { dns: Some(Arc::new(self.names.clone())), authority, ..FleetConfig::default() };
        let (fleet, engine) = Fleet::start(self.db.clone(), config).await.unwrap();
        let ended = fleet.ended(&jobs, LIMIT).await;
        let mut undone = 0;
        for (index, (job, cut)) in jobs.iter().zip(&self.cuts).enumerate() {
            let detail = fleet.controller.call(&fleet.principal, GetJob { job: *job, wait: None }, None).await.unwrap();
            let log = fleet
                .controller
                .call(&fleet.principal, ReadJobLog { job: *job, after: None, before: None, limit: None }, None)
                .await
                .unwrap();
            let expected: &[JobState] = match cut {
                Cut { undoing: true, .. } => &[JobState::Undone],
                Cut { cancelled: true, .. } => &[JobState::Undone, JobState::Done],
                _ => &[JobState::Done],
            };
            undone += usize::from(detail.line.state == JobState::Undone);
            let kind = &self.recorded.kind;
            assert!(expected.contains(&detail.line.state), "{kind} {cut:?}: {detail:#?}\n{log:#?}");
            self.assert_agreement(index, place.addresses[index], *cut).await;
        }
        ended.unwrap();
        assert!(undone > 0, "no {} was undone", self.recorded.kind);
        engine.shutdown(Duration::from_secs(5)).await;
    }

    /// Puts rows and node to where they were when the server died. Tells the job's id.
    async fn prepare(&self, index: usize, cut: Cut, place: &Place) -> JobId {
        let (mut written, mut steps, mut moment) = (Vec::new(), &self.recorded.steps, &self.recorded.end);
        for flush in &self.recorded.flushes {
            let room = cut.events - written.len();
            written.extend(flush.events.iter().take(room).cloned());
            if flush.events.len() > room {
                moment = &flush.before;
                break;
            }
            steps = &flush.steps;
        }
        let own = Own::new(&self.recorded, index, place);
        for (table, rows) in &moment.rows {
            let rows = own.of(rows, place, &self.guest_key);
            self.insert(table, &rows).await;
        }
        let mut job = own.of(std::slice::from_ref(&self.recorded.job), place, &self.guest_key).remove(0);
        let past = "2020-01-01T00:00:00Z";
        for (field, value) in [
            ("state", Value::from(if cut.undoing { "undoing" } else { "running" })),
            ("generation", 1.into()),
            ("owner", Uuid::new_v4().to_string().into()),
            ("lease_until", past.into()),
            ("ended_at", Value::Null),
            ("error", Value::Null),
            ("queue_order", index.into()),
            ("cancel_requested_at", if cut.cancelled { past.into() } else { Value::Null }),
        ] {
            job[field] = value;
        }
        self.insert("jobs", std::slice::from_ref(&job)).await;
        self.insert("job_steps", &own.of(steps, place, &self.guest_key)).await;
        self.insert("job_locks", &own.of(&self.recorded.locks, place, &self.guest_key)).await;
        self.insert("job_events", &own.of(&written, place, &self.guest_key)).await;
        self.prepare_host(index, moment, &own).await;
        for (name, address) in &moment.records {
            self.names.set(&own.text(name).parse().unwrap(), Some(own.text(address).parse().unwrap()));
        }
        JobId(job["id"].as_str().unwrap().parse().unwrap())
    }

    async fn prepare_host(&self, index: usize, moment: &Moment, own: &Own) {
        {
            let mut host = self.simulation.host(index).unwrap();
            for (name, (running, has_key)) in &moment.host.guests {
                let host_key = has_key.then(|| self.guest_key.clone());
                let guest = Guest { running: *running, host_key, ..Guest::default() };
                host.put(own.text(name).parse().unwrap(), guest);
            }
            for image in &moment.host.images {
                host.put_image(image.parse().unwrap(), "recorded".to_owned());
            }
            if let Some(revision) = moment.host.revision {
                let ssh = moment.host.routes.iter().map(|(guest, port, ip)| SshRoute {
                    guest: own.text(guest).parse().unwrap(),
                    port: (*port).try_into().unwrap(),
                    ip: ip.parse().unwrap(),
                });
                let http = moment.host.names.iter().map(|(name, guest, ip)| HttpRoute {
                    wildcard: false,
                    name: own.text(name).parse().unwrap(),
                    guest: own.text(guest).parse().unwrap(),
                    ip: ip.parse().unwrap(),
                    https: Https::default(),
                    pool: None,
                });
                host.put_plan(NodePlan {
                    revision,
                    bridge: "lxcbr1".to_owned(),
                    isolated: Vec::new(),
                    network: GuestNetwork::DEFAULT,
                    ssh_routes: ssh.collect(),
                    http_routes: http.collect(),
                    firewall: Vec::new(),
                    published: Vec::new(),
                    blocks: Vec::new(),
                    blocked: Vec::new(),
                    ports: Vec::new(),
                    egress: Egress::default(),
                    zones: Vec::new(),
                    certificates: Vec::new(),
                    challenges: Vec::new(),
                    pools: Vec::new(),
                    links: None,
                    mail: None,
                });
            }
        }
        self.simulation.open_ports(index).await;
    }

    async fn insert(&self, table: &str, rows: &[Value]) {
        // One statement a table, since SQL is never built at run time.
        macro_rules! into {
            ($($name:literal),+) => {
                match table {
                    $($name => concat!(
                        "insert into ", $name, " overriding system value select * from jsonb_populate_recordset(null::",
                        $name, ", $1)"
                    ),)+
                    _ => panic!("no table {table}"),
                }
            };
        }
        let statement = into!(
            "users",
            "projects",
            "memberships",
            "ssh_keys",
            "zones",
            "nodes",
            "guests",
            "dns_names",
            "jobs",
            "job_steps",
            "job_locks",
            "job_events"
        );
        let rows = Value::Array(rows.to_vec());
        let inserted = sqlx::query(statement).bind(&rows).execute(&self.db).await;
        inserted.unwrap_or_else(|error| panic!("{table}: {error}\n{rows:#}"));
    }
}
