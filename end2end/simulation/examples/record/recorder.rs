//! Recording: each kind of job once, on one simulated node, with a trigger that notes what the
//! rows are like whenever events are written.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use corpus_api::certificates::{GetCertificate, SetNameHttps};
use corpus_api::guests::{DestroyGuest, RestartGuest, StartGuest, StopGuest};
use corpus_api::jobs::CancelJob;
use corpus_api::names::{AttachName, DetachName, ListNames};
use corpus_api::nodes::{InitializeNode, RepairNode, UnlinkNode};
use corpus_api::zones::{CreateZone, ZoneAccess, ZoneProjects};
use corpus_domain::{JobId, JobKind, JobState};
use corpus_simulation::{Fleet, FleetConfig, Pace, Simulation, SimulationConfig};
use serde_json::Value;
use sqlx::PgPool;

use crate::fixture::{Flush, Moment, Recorded, RecordedHost, save};
use crate::names::Names;

const LIMIT: Duration = Duration::from_mins(1);
/// What jobs change, in the order of their foreign keys.
const TABLES: [&str; 3] = ["nodes", "guests", "dns_names"];

const TRIGGER: &str = "
create table noted (
    at timestamptz not null default clock_timestamp(), job_id uuid not null, events jsonb not null,
    steps jsonb not null, nodes jsonb not null, guests jsonb not null, dns_names jsonb not null
);
create function all_of(name text) returns jsonb language plpgsql as $$
declare found jsonb;
begin
    execute format('select coalesce(jsonb_agg(to_jsonb(t) order by t.id), ''[]'') from %I t', name) into found;
    return found;
end $$;
create function note() returns trigger language plpgsql as $$
begin
    insert into noted (job_id, events, steps, nodes, guests, dns_names)
    select written.job_id,
        jsonb_agg(to_jsonb(written) order by written.kind like 'undo%',
            (written.kind like 'undo%') = (written.node_id = (job.dag ->> 'start_node')::bigint),
            case when written.kind like 'undo%' then -written.node_id else written.node_id end,
            written.kind not in ('started', 'undo_started')),
        (select jsonb_agg(to_jsonb(s) order by s.index) from job_steps s where s.job_id = written.job_id),
        all_of('nodes'), all_of('guests'), all_of('dns_names')
    from written join jobs job on job.id = written.job_id group by written.job_id;
    return null;
end $$;
create trigger note after insert on job_events referencing new table as written for each statement execute function note();
";

/// Records all kinds, one after the other.
pub async fn all(db: PgPool) {
    sqlx::raw_sql(TRIGGER).execute(&db).await.unwrap();
    // Slow enough that what is written and what is done can't be mistaken in their order.
    let pace = Pace { read: Duration::from_millis(20), change: Duration::from_millis(60) };
    let simulation = Simulation::start(SimulationConfig { nodes: 1, pace }).await.unwrap();
    simulation.host(0).unwrap().keep_history();
    let names = Names::default();
    let authority = names.serve().await;
    let config = FleetConfig { dns: Some(Arc::new(names.clone())), authority, ..FleetConfig::default() };
    let (fleet, engine) = Fleet::start(db.clone(), config).await.unwrap();
    let recorder = Recorder { db, simulation, names, fleet };
    recorder.life().await;
    engine.shutdown(Duration::from_secs(5)).await;
}

struct Recorder {
    db: PgPool,
    simulation: Simulation,
    names: Names,
    fleet: Fleet,
}

impl Recorder {
    /// The life of a node, a guest and a name.
    async fn life(&self) {
        let (fleet, who) = (&self.fleet, &self.fleet.principal);
        let place = self.simulation.place();
        let (_, job) = fleet.link(place.addresses[0], place.port).await.unwrap();
        self.keep_cancelled(JobKind::NodeLink, job, "facts").await;
        let (node, job) = fleet.link(place.addresses[0], place.port).await.unwrap();
        self.keep(JobKind::NodeLink, Some(job)).await;
        let job = fleet.ask(InitializeNode { node }).await.unwrap().job;
        self.keep_cancelled(JobKind::NodeInitialize, job, "image").await;
        let job = fleet.ask(InitializeNode { node }).await.unwrap().job;
        self.keep(JobKind::NodeInitialize, Some(job)).await;
        let job = fleet.ask(RepairNode { node }).await.unwrap().job;
        self.keep(JobKind::NodeRepair, Some(job)).await;
        let (_, job) = fleet.request("recorded.sim.test".parse().unwrap(), Some(node)).await.unwrap();
        self.keep_cancelled(JobKind::GuestCreate, job, "routes").await;
        let (guest, job) = fleet.request("recorded.sim.test".parse().unwrap(), Some(node)).await.unwrap();
        self.keep(JobKind::GuestCreate, Some(job)).await;
        let job = fleet.controller.call(who, StopGuest { guest }, None).await.unwrap().job;
        self.keep(JobKind::GuestStop, Some(job)).await;
        let job = fleet.controller.call(who, StartGuest { guest }, None).await.unwrap().job;
        self.keep(JobKind::GuestStart, Some(job)).await;
        let job = fleet.controller.call(who, RestartGuest { guest }, None).await.unwrap().job;
        self.keep(JobKind::GuestRestart, Some(job)).await;
        fleet.change_keys().await.unwrap();
        self.keep(JobKind::KeysSync, None).await;
        let (access, projects) = (ZoneAccess::All, ZoneProjects::default());
        let zone = CreateZone { name: "zone.test".parse().unwrap(), access, projects, provider: None, ttl_s: None };
        fleet.controller.call(who, zone, None).await.unwrap();
        let attach = || AttachName { guest, name: "recorded.zone.test".parse().unwrap(), wildcard: false };
        let job = fleet.controller.call(who, attach(), None).await.unwrap().job;
        self.keep_cancelled(JobKind::NameAttach, job, "routes").await;
        let job = fleet.controller.call(who, attach(), None).await.unwrap().job;
        self.keep(JobKind::NameAttach, Some(job)).await;
        let name = fleet.controller.call(who, ListNames::default(), None).await.unwrap().items[0].id;
        let version = fleet.controller.call(who, GetCertificate { name }, None).await.unwrap().version;
        let https = SetNameHttps { name, version, redirect: true, hsts_s: None };
        let job = fleet.controller.call(who, https, None).await.unwrap().job;
        self.keep(JobKind::NameConfigure, Some(job)).await;
        let job = fleet.controller.call(who, DetachName { name }, None).await.unwrap().job;
        self.keep(JobKind::NameDetach, Some(job)).await;
        let job = fleet.controller.call(who, DestroyGuest { guest }, None).await.unwrap().job;
        self.keep(JobKind::GuestDestroy, Some(job)).await;
        let job = fleet.ask(UnlinkNode { node, force: false }).await.unwrap().job;
        self.keep(JobKind::NodeUnlink, Some(job)).await;
    }

    /// Records a job that is cancelled while this step runs.
    async fn keep_cancelled(&self, kind: JobKind, id: JobId, step: &str) {
        let running = "select exists (select from job_steps where job_id = $1 and name = $2 and state = 'running')";
        let began = Instant::now();
        loop {
            let found: bool = sqlx::query_scalar(running).bind(id.0).bind(step).fetch_one(&self.db).await.unwrap();
            if found {
                break;
            }
            assert!(began.elapsed() < LIMIT, "{kind} never came to {step}");
        }
        self.fleet.controller.call(&self.fleet.principal, CancelJob { job: id }, None).await.unwrap();
        self.save(kind, id, JobState::Undone).await;
    }

    async fn keep(&self, kind: JobKind, job: Option<JobId>) {
        let id = match job {
            Some(id) => id,
            None => JobId(
                sqlx::query_scalar("select id from jobs where kind = $1")
                    .bind(kind.as_str())
                    .fetch_one(&self.db)
                    .await
                    .unwrap(),
            ),
        };
        self.save(kind, id, JobState::Done).await;
    }

    async fn save(&self, kind: JobKind, id: JobId, end: JobState) {
        let locks: Vec<Value> = self.locks(id, kind).await;
        let ended = self.fleet.ended(&[id], LIMIT).await.unwrap();
        assert_eq!(ended[0].1, end, "{kind}");
        let flushes = self.flushes(id).await;
        let steps: Vec<Value> = flushes[0].steps.iter().map(fresh).collect();
        let name = if end == JobState::Done { kind.to_string() } else { format!("{kind}.{end}") };
        let recorded = Recorded {
            release: env!("CARGO_PKG_VERSION").to_owned(),
            migration: sqlx::query_scalar("select max(version) from _sqlx_migrations")
                .fetch_one(&self.db)
                .await
                .unwrap(),
            kind: kind.to_string(),
            job: self.one("select to_jsonb(jobs) from jobs where id = $1", id).await,
            locks,
            around: vec![
                ("users".to_owned(), self.all("users").await),
                ("projects".to_owned(), self.all("projects").await),
                ("memberships".to_owned(), self.all_of("select to_jsonb(m) from memberships m").await),
                ("ssh_keys".to_owned(), self.all("ssh_keys").await),
                ("zones".to_owned(), self.all("zones").await),
            ],
            steps,
            flushes,
            end: self.moment_now().await,
        };
        save(&recorded, &name);
    }

    /// The locks as submission writes them; they are deleted too soon to be read.
    async fn locks(&self, id: JobId, kind: JobKind) -> Vec<Value> {
        let job = self.one("select to_jsonb(jobs) from jobs where id = $1", id).await;
        let node = job["node_id"].as_str().unwrap_or_default().to_owned();
        let guest = job["guest_id"].as_str().map(ToOwned::to_owned);
        let lock = |resource: String, mode: &str| serde_json::json!({ "resource": resource, "job_id": id.0, "mode": mode, "held_since": Utc::now() });
        let alone = matches!(kind, JobKind::NodeLink | JobKind::NodeInitialize | JobKind::NodeUnlink);
        let mut locks = vec![lock(format!("node:{node}"), if alone { "exclusive" } else { "shared" })];
        locks.extend(guest.map(|guest| lock(format!("guest:{guest}"), "exclusive")));
        locks
    }

    async fn flushes(&self, id: JobId) -> Vec<Flush> {
        type Row = (DateTime<Utc>, Value, Value, Value, Value, Value);
        let rows: Vec<Row> = sqlx::query_as(
            "select at, events, steps, nodes, guests, dns_names from noted where job_id = $1 order by at",
        )
        .bind(id.0)
        .fetch_all(&self.db)
        .await
        .unwrap();
        let host = self.simulation.host(0).unwrap();
        rows.into_iter()
            .map(|(at, events, steps, nodes, guests, names)| {
                let rows = TABLES.map(ToOwned::to_owned).into_iter().zip([nodes, guests, names].map(list)).collect();
                let host = RecordedHost::of(host.at(at).unwrap());
                let before = Moment { rows, host, records: self.records(at) };
                Flush { before, events: list(events), steps: list(steps) }
            })
            .collect()
    }

    async fn moment_now(&self) -> Moment {
        let mut rows = Vec::new();
        for table in TABLES {
            rows.push((table.to_owned(), self.all(table).await));
        }
        Moment { rows, host: RecordedHost::of(&self.simulation.host(0).unwrap()), records: self.records(Utc::now()) }
    }

    fn records(&self, at: DateTime<Utc>) -> Vec<(String, String)> {
        self.names.at(at).into_iter().map(|(name, address)| (name.to_string(), address.to_string())).collect()
    }

    async fn all(&self, table: &str) -> Vec<Value> {
        list(sqlx::query_scalar("select all_of($1)").bind(table).fetch_one(&self.db).await.unwrap())
    }

    async fn all_of(&self, query: &'static str) -> Vec<Value> {
        sqlx::query_scalar(query).fetch_all(&self.db).await.unwrap()
    }

    async fn one(&self, query: &'static str, id: JobId) -> Value {
        sqlx::query_scalar(query).bind(id.0).fetch_one(&self.db).await.unwrap()
    }
}

fn list(value: Value) -> Vec<Value> {
    let Value::Array(rows) = value else { panic!("{value} is no list") };
    rows.into_iter().map(without_secrets).collect()
}

/// What is sealed can be opened by nobody else; keys are made anew when the job is replayed.
fn without_secrets(mut row: Value) -> Value {
    if let Some(sealed) = row.get_mut("password_sealed") {
        *sealed = Value::Null;
    }
    row
}

/// A step before it began.
fn fresh(step: &Value) -> Value {
    let mut step = step.clone();
    for (field, value) in [("state", "pending".into()), ("attempts", 0.into()), ("seq", 0.into())] {
        step[field] = value;
    }
    for field in ["started_at", "ended_at", "error", "undo_error"] {
        step[field] = Value::Null;
    }
    step
}
