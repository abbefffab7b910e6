//! The end of a project over simulated nodes: one of them does not answer for a while, the server dies meanwhile, and
//! afterwards nothing of the project is left: no guest, no record, no row that names it but what is meant to stay.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may fail loudly"
)]

#[allow(dead_code, reason = "nothing is looked up here")]
#[path = "upgrade/names.rs"]
mod names;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use corpus_api::Principal;
use corpus_api::guests::StopGuest;
use corpus_api::jobs::{CancelJob, GetJob, Job};
use corpus_api::projects::ending::PreviewProjectDestroy;
use corpus_api::projects::{DestroyProject, GetProject};
use corpus_controller::SignIn;
use corpus_domain::{JobId, JobState, ProjectRole};
use corpus_jobs::EngineConfig;
use corpus_simulation::{Fault, Fleet, FleetConfig, Pace, Simulation, SimulationConfig};
use sqlx::PgPool;

const NODES: u16 = 3;
const GUESTS: u8 = 4;
const LIMIT: Duration = Duration::from_mins(2);
const RECORD: &str = "www.sim.test";

/// What may name a project that is gone. What was done in it is history, and what its names were is kept from others.
const STAYS: [&str; 7] = ["audit", "former_projects", "freed_names", "jobs", "job_events", "job_log", "notices"];

fn engine() -> EngineConfig {
    EngineConfig {
        lease: Duration::from_millis(1_500),
        heartbeat: Duration::from_millis(150),
        poll: Duration::from_millis(40),
        ..EngineConfig::default()
    }
}

async fn job(fleet: &Fleet, who: &Principal, job: JobId) -> Job {
    fleet.controller.call(who, GetJob { job, wait: None }, None).await.unwrap()
}

/// Waits until a job is as it should be.
async fn until(fleet: &Fleet, who: &Principal, id: JobId, so: impl Fn(&Job) -> bool) -> Job {
    let began = Instant::now();
    loop {
        let now = job(fleet, who, id).await;
        if so(&now) {
            return now;
        }
        assert!(began.elapsed() < LIMIT, "{now:#?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The tables with a row in which this stands.
async fn named(db: &PgPool, what: &str) -> BTreeSet<String> {
    let found: Vec<String> = sqlx::query_scalar(
        "select table_name::text from information_schema.tables
         where table_schema = 'public' and table_type = 'BASE TABLE'
             and (xpath('/row/n/text()', query_to_xml(format(
                 'select count(*) as n from %I t where position(%L in to_jsonb(t)::text) > 0', table_name, $1::text),
                 false, true, '')))[1]::text <> '0'",
    )
    .bind(what)
    .fetch_all(db)
    .await
    .unwrap();
    found.into_iter().collect()
}

/// Everything that a project can have.
async fn furnish(db: &PgPool, fleet: &Fleet) {
    for statement in [
        "insert into projects (id, name) values ('0199d3c0-0000-7000-8000-000000000001', 'other')",
        "update guests set project_id = '0199d3c0-0000-7000-8000-000000000001' where name like 'g4.%'",
        "insert into zones (id, name, open) values ('0199d3c0-0000-7000-8000-000000000002', 'sim.test', false)",
        "insert into zone_projects select '0199d3c0-0000-7000-8000-000000000002', id from projects",
        "insert into environments (project_id, environment) select id, 'dev' from projects where name = 'atlas'",
        "insert into environment_guests (guest_id, project_id, environment, role, state, archives)
             select id, project_id, 'dev', case when row_number() over (order by name) = 1 then 'leader' else 'follower' end,
                 'ready',
                 '[{\"id\": \"0199d3c0-0000-7000-8000-000000000003\", \"commit\": null, \"at_ms\": 1, \"bytes\": 2, \"has_failed_tree\": false}]'
             from guests where name like 'g1.%' or name like 'g2.%'",
        "insert into dns_names (id, name, zone_id, guest_id, state, answered_at)
             select gen_random_uuid(), 'www.sim.test', '0199d3c0-0000-7000-8000-000000000002', id, 'attached', now()
             from guests where name like 'g1.%' order by name limit 1",
        "insert into deployments (id, project_id, number, environment, guest_id, guest, trigger, by)
             select gen_random_uuid(), g.project_id, k, 'dev', g.id, g.name, 'push', 'olga'
             from (select * from guests where name like 'g1.%' order by name limit 1) g, generate_series(1, 450) k",
        "insert into deployment_log select id, 1, now(), 'out', 'built atlas' from deployments",
        "insert into notices (id, user_id, event, news, project_id)
             select gen_random_uuid(), u.id, 'x', '{}', p.id from users u, projects p where p.name = 'atlas'",
        "insert into undoes (id, user_id, kind, project_id, subject, reverse, said, path)
             select gen_random_uuid(), u.id, 'member', p.id, 'bob', '{}', 'bob was removed from atlas.', '/projects/atlas'
             from users u, projects p where p.name = 'atlas'",
    ] {
        sqlx::query(statement).execute(db).await.unwrap_or_else(|error| panic!("{error}: {statement}"));
    }
    assert_eq!(fleet.project_name.as_str(), "atlas");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_project_ends_and_nothing_is_left(db: PgPool) {
    let simulation = Simulation::start(SimulationConfig { nodes: NODES, pace: Pace::default() }).await.unwrap();
    simulation.populate(GUESTS).unwrap();
    let records = names::Names::default();
    records.set(&RECORD.parse().unwrap(), Some("192.0.2.7".parse().unwrap()));
    let config = FleetConfig { dns: Some(Arc::new(records.clone())), engine: engine(), ..FleetConfig::default() };
    let (fleet, first) = Fleet::start(db.clone(), config).await.unwrap();
    fleet.seed(&simulation.place(), GUESTS).await.unwrap();
    furnish(&db, &fleet).await;
    let mia = SignIn {
        realm: "ldap",
        login: "mia".parse().unwrap(),
        display_name: "Mia".to_owned(),
        mail: None,
        ops: false,
        roles: vec![("atlas".parse().unwrap(), ProjectRole::Maintainer)],
    };
    let mia = fleet.controller.sign_in(mia, "127.0.0.1").await.unwrap();
    let mia = fleet.controller.principal(mia).await.unwrap().unwrap();
    let atlas = fleet.project_name.clone();

    let before = named(&db, &fleet.project.0.to_string()).await;
    for table in
        ["guests", "dns_names", "deployments", "memberships", "notices", "undoes", "zone_projects", "project_tallies"]
    {
        assert!(before.contains(table), "{table}: {before:?}");
    }
    let preview = PreviewProjectDestroy { project: atlas.clone() };
    let goes = fleet.controller.call(&mia, preview, None).await.unwrap();
    assert_eq!((goes.guest_count, goes.name_count, goes.deployment_count, goes.archive_count), (9, 1, 450, 6));
    assert_eq!((goes.guests.len(), goes.names.len(), goes.environments.len(), goes.member_count), (9, 1, 1, 2));

    // One node says nothing: what is on the others goes, and it is waited for.
    simulation.set_fault(2, Fault::Reset);
    let id = fleet.controller.call(&mia, DestroyProject { project: atlas.clone() }, None).await.unwrap().job;
    let waits = until(&fleet, &mia, id, |job| job.past_cancel && job.line.waiting_for.is_some()).await;
    let waited = waits.line.waiting_for.unwrap();
    assert!(waited.starts_with("node "), "{waited}");
    let refused = fleet.controller.call(&mia, CancelJob { job: id }, None).await.unwrap_err();
    assert!(refused.status == 409 && refused.text().contains("no way back"), "{refused:?}");
    let seen = fleet.controller.call(&mia, GetProject { project: atlas.clone() }, None).await.unwrap();
    assert!(seen.leaving.unwrap().for_good_since.is_some() && !seen.may_change);
    let some = fleet.controller.call(&mia, corpus_api::guests::ListGuests::default(), None).await.unwrap().items;
    let refused = fleet.controller.call(&mia, StopGuest { guest: some[0].id }, None).await.unwrap_err();
    assert!(refused.status == 409 && refused.text().contains(&id.to_string()), "{refused:?}");

    // The server dies there; another one goes on.
    drop(first);
    let second = fleet.controller.engine(&EngineConfig { instance: uuid::Uuid::now_v7(), ..engine() });
    simulation.set_fault(2, Fault::None);
    let ended = until(&fleet, &mia, id, |job| job.line.state.is_over()).await;
    assert_eq!(ended.line.state, JobState::Done, "{ended:#?}");
    assert!(ended.taken > 1, "another server took it");

    for index in 0..usize::from(NODES) {
        let host = simulation.host(index).unwrap();
        let left: Vec<String> = host.guests().keys().map(ToString::to_string).collect();
        assert_eq!(left.len(), 1, "of another project: {left:?}");
        assert!(left[0].starts_with("g4."), "{left:?}");
    }
    assert!(records.at(chrono::Utc::now()).is_empty(), "the record is gone");
    let mut left = named(&db, &fleet.project.0.to_string()).await;
    left.extend(named(&db, "\"atlas\"").await);
    left.extend(named(&db, "atlas").await);
    left.retain(|table| !STAYS.contains(&table.as_str()));
    assert_eq!(left, BTreeSet::new(), "they name what is gone");
    let former: i64 =
        sqlx::query_scalar("select count(*) from former_projects where name = 'atlas'").fetch_one(&db).await.unwrap();
    assert_eq!(former, 1);
    let told: i64 = sqlx::query_scalar("select count(*) from notices where user_id = $1 and event like 'job:%:done:%'")
        .bind(mia.id.0)
        .fetch_one(&db)
        .await
        .unwrap();
    assert_eq!(told, 1, "who asked for it is told that it is done");
    second.shutdown(Duration::from_secs(5)).await;
}
