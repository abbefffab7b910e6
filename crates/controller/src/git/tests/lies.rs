//! A guest that was taken over lies about its deployments: over a real SSH line, to the real
//! controller with its jobs and database. Whatever it tells, its job ends, and nothing is believed
//! that the guest could gain by.

use std::path::PathBuf;
use std::time::Duration;

use corpus_api::guests::{ConfirmGuestHostKey, GetGuest};
use corpus_domain::{DeploymentId, DeploymentState, GuestId, JobId, JobState, ProjectRole, Trigger};
use corpus_git_server::testing::client::WAIT_LIMIT;
use serde_json::{Value, json};
use sqlx::PgPool;
use uuid::Uuid;

use super::whole::Whole;
use crate::jobs::EngineConfig;
use crate::nodes::testing::sshd::write;
use crate::store::{Db, deployments};

const EVIL: &str = "a\0b\u{1b}]52;c;eA==\u{7}c\u{202e}";

/// The agent's requests: it tells what the files `journal` and `told` say, and the report.
const SERVE: &str = r#"#!/bin/sh
PATH='@PATH@'
echo '{"type":"hello","version":@VERSION@,"root":true}'
while IFS= read -r line; do
  id=${line#*\"id\":}
  id=${id%%[,\}]*}
  case $line in
    *'"type":"read_project"'*)
      printf '{"type":"result","id":%s,"result":{"Ok":%s}}\n' "$id" "$(cat '@DIR@/told')" ;;
    *'"type":"follow_deployment"'*)
      n=0
      while IFS= read -r entry; do
        n=$((n + 1))
        printf '{"type":"event","id":%s,"event":{"type":"deployment","next":%s,"entry":%s}}\n' "$id" "$n" "$entry"
      done < '@DIR@/journal' ;;
    '{"type":"cancel"'*) printf '{"type":"result","id":%s,"result":{"Err":{"kind":"cancelled","message":"x"}}}\n' "$id" ;;
    *) printf '{"type":"result","id":%s,"result":{"Err":{"kind":"missing","message":"none"}}}\n' "$id" ;;
  esac
done
"#;

struct Liar {
    whole: Whole,
    guest: GuestId,
    id: DeploymentId,
}

impl Liar {
    async fn new(db: PgPool) -> Self {
        let whole = Whole::start(db).await;
        let text = SERVE.replace("@DIR@/", &whole.guest.path("").display().to_string());
        let text = text.replace("@PATH@", &std::env::var("PATH").unwrap());
        write(&whole.guest.path("serve"), &text.replace("@VERSION@", &corpus_protocol::VERSION.to_string()), 0o755);
        let guest: Uuid = sqlx::query_scalar("select id from guests").fetch_one(&whole.db).await.unwrap();
        let liar = Self { whole, guest: GuestId(guest), id: DeploymentId(Uuid::now_v7()) };
        liar.tells(&json!([]), &Value::Null);
        liar
    }

    fn file(&self, name: &str) -> PathBuf {
        self.whole.guest.path(name)
    }

    /// What it tells of its project.
    fn tells(&self, deployments: &Value, live: &Value) {
        let configuration = json!([{ "key": EVIL, "value": { EVIL: EVIL }, "origin": "set" }]);
        let told = json!({
            "type": "project", "live": live, "deployments": deployments, "archives": [], "configuration": configuration,
        });
        std::fs::write(self.file("told"), told.to_string()).unwrap();
    }

    /// A report of the deployment, with these fields otherwise.
    fn report(&self, otherwise: &Value) -> Value {
        let now = chrono::Utc::now().timestamp_millis();
        let mut report = json!({
            "id": self.id, "project": "shop", "environment": "prod", "state": "live", "trigger": "push", "by": "mia",
            "commit": null, "pillar": null, "previous": null, "commits": [], "ordered_ms": now, "began_ms": now,
            "ended_ms": now, "phases": [], "fault": null, "proofs": [], "live": null, "failed_tree": null,
            "archives": [], "lines": 0,
        });
        let (fields, others) = (report.as_object_mut().unwrap(), otherwise.as_object().unwrap());
        others.iter().for_each(|(key, value)| drop(fields.insert(key.clone(), value.clone())));
        report
    }

    fn journal(&self, events: impl IntoIterator<Item = (u64, Value)>) {
        let line = |(at, event): (u64, Value)| json!({ "at_ms": at, "event": event }).to_string() + "\n";
        std::fs::write(self.file("journal"), events.into_iter().map(line).collect::<String>()).unwrap();
    }

    /// The job that follows the deployment, to its end, and what it says.
    async fn followed(&self, by: Option<corpus_domain::UserId>) -> (JobState, String) {
        let controller = &self.whole.controller;
        let job = controller.deployment_began(by, self.guest, self.id, Trigger::Push).await.unwrap();
        let engine = controller.engine(&EngineConfig::default());
        let Ok(over) = tokio::time::timeout(WAIT_LIMIT, self.over(job)).await else {
            panic!("the job ends whatever the guest tells: {:?}", controller.jobs.row(job).await);
        };
        engine.shutdown(Duration::from_secs(5)).await;
        over
    }

    async fn over(&self, job: JobId) -> (JobState, String) {
        loop {
            let row: (String,) = sqlx::query_as("select state from jobs where id = $1")
                .bind(job.0)
                .fetch_one(&self.whole.db)
                .await
                .unwrap();
            let state: JobState = row.0.parse().unwrap();
            if state.is_over() {
                let log = "select coalesce(string_agg(text, E'\\n' order by seq), '') from job_log where job_id = $1";
                let log: String = sqlx::query_scalar(log).bind(job.0).fetch_one(&self.whole.db).await.unwrap();
                return (state, log);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn row(&self) -> deployments::DeploymentProgress {
        let mut conn = Db::from(self.whole.db.clone()).acquire().await.unwrap();
        deployments::hold(&mut conn, self.id).await.unwrap().unwrap()
    }

    async fn one<T>(&self, query: &'static str) -> T
    where
        T: for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres> + Send + Unpin,
    {
        sqlx::query_scalar(query).fetch_one(&self.whole.db).await.unwrap()
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn texts_and_times_that_nothing_can_keep(db: PgPool) {
    let liar = Liar::new(db).await;
    let commit = json!({ "id": "1".repeat(40), "subject": EVIL, "author": EVIL, "at_ms": u64::MAX });
    let recipe = json!({
        "name": EVIL, "outcome": "failed", "elapsed_ms": u64::MAX, "reason": EVIL, "lines": [1, u64::MAX],
        "failing_line": u64::MAX, "states": [],
    });
    let phase = json!({
        "phase": "install", "outcome": "failed", "began_ms": u64::MAX, "elapsed_ms": u64::MAX, "recipes": [recipe],
    });
    let proof = json!({ "moment": "after", "check": EVIL, "passed": false, "seen": EVIL, "elapsed_ms": u64::MAX });
    let fault = json!({ "phase": "install", "recipe": EVIL, "message": EVIL, "line": u64::MAX });
    let report = liar.report(&json!({
        "state": "rolled_back", "commit": "1".repeat(40), "commits": [commit], "phases": vec![phase; 100],
        "proofs": vec![proof.clone(); 1_000], "fault": fault, "failed_tree": EVIL, "lines": u64::MAX,
        "ordered_ms": 1, "began_ms": u64::MAX, "ended_ms": u64::MAX,
    }));
    liar.journal([
        (u64::MAX, json!({ "type": "waiting", "what": EVIL })),
        (0, json!({ "type": "begun", "commit": null, "previous": null, "commits": [commit] })),
        (u64::MAX, json!({ "type": "line", "stream": "out", "text": format!("{EVIL}\nforged") })),
        (9_223_372_036_854_775_807, json!({ "type": "line", "stream": "err", "text": "x".repeat(100_000) })),
        (1, json!({ "type": "recipe_ended", "phase": "install", "recipe": recipe })),
        (1, json!({ "type": "proved", "proof": proof })),
        (1, json!({ "type": "ended", "report": report })),
    ]);
    let (state, log) = liar.followed(None).await;
    assert_eq!(state, JobState::Undone, "{log}");
    assert!(log.contains("of a time when it can't have been"), "{log}");
    let row = liar.row().await;
    assert_eq!((row.state, row.is_final, row.lines), (DeploymentState::RolledBack, true, 2));
    let report = row.report.unwrap();
    assert_eq!((report.phases.len(), report.lines, report.fault.as_ref().unwrap().line), (1, 2, None));
    assert!(report.proofs.len() <= 200 && report.phases[0].recipes[0].lines.is_none());
    let shown = format!("{report:?}{log}");
    assert!(!shown.contains("\\0") && !shown.contains("u{1b}") && !shown.contains("u{202e}"), "{shown}");
    let soon =
        "select max(at) < now() + interval '1 hour' and min(at) > now() - interval '32 days' from deployment_log";
    assert!(liar.one::<bool>(soon).await);
    assert!(liar.one::<bool>("select max(char_length(text)) <= 4096 from deployment_log").await);
    assert!(liar.one::<bool>("select ended_at < now() + interval '1 hour' from deployments").await);
}

#[sqlx::test(migrations = "../../migrations")]
async fn an_end_that_is_none(db: PgPool) {
    let liar = Liar::new(db).await;
    liar.journal([(1, json!({ "type": "ended", "report": liar.report(&json!({ "state": "running" })) }))]);
    let (state, log) = liar.followed(None).await;
    assert_eq!((state, liar.row().await.state), (JobState::Undone, DeploymentState::Broken), "{log}");
    assert!(log.contains("that it is over and running: that is not believed"), "{log}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_is_others_and_by_others(db: PgPool) {
    let liar = Liar::new(db).await;
    let mia = liar.whole.member("mia", Some(ProjectRole::Maintainer)).await;
    let theirs = Uuid::now_v7();
    sqlx::query("insert into projects (id, name) values ($1, 'other')")
        .bind(theirs)
        .execute(&liar.whole.db)
        .await
        .unwrap();
    sqlx::query(
        "insert into deployments (id, project_id, number, environment, guest_id, guest, trigger, by)
         values ($1, $1, 1, 'prod', $1, 'other.test', 'push', 'eve')",
    )
    .bind(theirs)
    .execute(&liar.whole.db)
    .await
    .unwrap();
    let live = json!({ "deployment": theirs, "commit": null, "pillar": null, "since_ms": 1 });
    let archive = |id, release| json!({ "id": id, "release": release, "commit": null, "at_ms": 1, "bytes": 1, "has_failed_tree": false });
    let (own, none) = (Uuid::now_v7(), None::<Uuid>);
    let lies = json!({
        "id": theirs, "project": "other", "environment": "dev", "trigger": "drill", "by": "alice", "live": live,
        "archives": [archive(theirs, none), archive(own, Some(theirs))],
    });
    liar.journal([(1, json!({ "type": "ended", "report": liar.report(&lies) }))]);
    liar.tells(&json!([]), &live);
    let (state, log) = liar.followed(Some(mia)).await;
    assert_eq!(state, JobState::Done, "{log}");
    for refused in
        ["of another deployment", "of other in dev", "set off by drill", "by alice, which was mia", "another project's"]
    {
        assert!(log.contains(refused), "{refused}: {log}");
    }
    let report = liar.row().await.report.unwrap();
    assert_eq!((report.id, report.project.as_str(), report.environment.as_str()), (liar.id, "shop", "prod"));
    assert_eq!((report.by.as_str(), report.trigger), ("mia", Trigger::Push));
    let kept: Vec<_> = report.archives.iter().map(|archive| (archive.id.0, archive.release)).collect();
    assert_eq!((report.live, kept), (None, vec![(own, None)]));
    assert!(liar.one::<bool>("select live is null from environment_guests").await, "nor when it is read");
    assert_eq!(liar.one::<String>("select by from deployments where id <> project_id").await, "mia");
    assert_eq!(liar.one::<String>("select trigger from deployments where id <> project_id").await, "push");
}

#[sqlx::test(migrations = "../../migrations")]
async fn who_pushed_by_the_guests_word_alone_is_no_member(db: PgPool) {
    let liar = Liar::new(db).await;
    liar.journal([(
        1,
        json!({ "type": "ended", "report": liar.report(&json!({ "by": "alice", "trigger": "drill" })) }),
    )]);
    let (state, log) = liar.followed(None).await;
    assert_eq!(state, JobState::Done, "{log}");
    assert_eq!(liar.one::<String>("select by from deployments").await, "alice (as www.shop.test tells)");
    assert_eq!(liar.one::<String>("select trigger from deployments").await, "push", "a drill is begun at Corpus only");
}

#[sqlx::test(migrations = "../../migrations")]
async fn more_storage_than_maintainers_let_it_have(db: PgPool) {
    let liar = Liar::new(db).await;
    sqlx::query("update guests set backing = 'loop'").execute(&liar.whole.db).await.unwrap();
    let asks = (0..50).map(|_| (1, json!({ "type": "needs_room", "bytes": 900_000_000_000_u64 })));
    let end = (1, json!({ "type": "ended", "report": liar.report(&json!({})) }));
    liar.journal(asks.chain([end]));
    let (state, log) = liar.followed(None).await;
    assert_eq!(state, JobState::Done, "{log}");
    assert!(log.contains("refused, since 20 GB is all that it gets by itself"), "{log}");
    assert_eq!(log.matches("storage_limit").count(), 3, "it is heard so often, and no more: {log}");
    assert_eq!(liar.one::<String>("select size from guests").await, "small");
}

#[sqlx::test(migrations = "../../migrations")]
async fn deployments_without_end_are_taken_few_at_a_time(db: PgPool) {
    let liar = Liar::new(db).await;
    let invented: Vec<Uuid> = (0..10_000).map(|_| Uuid::now_v7()).collect();
    liar.tells(&json!(invented), &Value::Null);
    let (controller, stop) = (liar.whole.controller.clone(), liar.whole.stop.clone());
    tokio::spawn(async move { controller.discover_deployments(stop).await });
    let found = async || liar.one::<i64>("select count(*) from deployments").await;
    let began = std::time::Instant::now();
    while found().await < 4 {
        assert!(began.elapsed() < WAIT_LIMIT, "they are not found");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(found().await, 4, "in one round");

    let target = liar.whole.controller.git_targets().await.unwrap().pop().unwrap();
    assert_eq!(liar.whole.controller.read_environment(&target).await.unwrap().len(), 96, "it is asked for 100 at most");
    sqlx::query(
        "insert into deployments (id, project_id, number, environment, guest_id, guest, trigger, by)
         select gen_random_uuid(), project_id, 1000 + n, 'prod', guest_id, guest, 'push', ''
         from (select project_id, guest_id, guest from deployments limit 1) one, generate_series(1, 200) n",
    )
    .execute(&liar.whole.db)
    .await
    .unwrap();
    assert_eq!(liar.whole.controller.read_environment(&target).await.unwrap(), [], "so many a day");
}

#[sqlx::test(migrations = "../../migrations")]
async fn another_host_key_is_shown_and_a_maintainer_confirms_it(db: PgPool) {
    let mut liar = Liar::new(db).await;
    let mia = liar.whole.member("mia", Some(ProjectRole::Maintainer)).await;
    let dan = liar.whole.member("dan", Some(ProjectRole::Developer)).await;
    let controller = liar.whole.controller.clone();
    let (mia, dan) =
        (controller.principal(mia).await.unwrap().unwrap(), controller.principal(dan).await.unwrap().unwrap());
    let target = controller.git_targets().await.unwrap().pop().unwrap();
    controller.read_environment(&target).await.unwrap();
    assert_eq!(controller.call(&mia, GetGuest { guest: liar.guest }, None).await.unwrap().other_host_key, None);

    liar.whole.guest.sshd.replace_host_key();
    let fresh = liar.whole.guest.sshd.host_key().seen().fingerprint;
    let began = std::time::Instant::now();
    // The line that is open is cut first.
    while controller.call(&mia, GetGuest { guest: liar.guest }, None).await.unwrap().other_host_key.is_none() {
        assert!(controller.read_environment(&target).await.is_err() && began.elapsed() < WAIT_LIMIT);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let shown = controller.call(&mia, GetGuest { guest: liar.guest }, None).await.unwrap();
    assert_eq!(shown.other_host_key.as_deref(), Some(fresh.as_str()));
    let confirm = async |who, fingerprint: &str| {
        let confirm = ConfirmGuestHostKey { guest: liar.guest, fingerprint: fingerprint.parse().unwrap() };
        controller.call(who, confirm, None).await
    };
    assert_eq!(confirm(&dan, &fresh).await.unwrap_err().status, 403, "a developer may not");
    let other = confirm(&mia, "SHA256:another").await;
    assert!(other.unwrap_err().to_string().contains("does not show that key any more"));
    confirm(&mia, &fresh).await.unwrap();
    let target = controller.git_targets().await.unwrap().pop().unwrap();
    controller.read_environment(&target).await.unwrap();
    let now = controller.call(&mia, GetGuest { guest: liar.guest }, None).await.unwrap();
    assert_eq!((now.other_host_key, now.host_fingerprint), (None, Some(fresh)));
    let audited = "select count(*) from audit where action = 'guest.confirm_host_key' and actor = 'mia'";
    assert_eq!(liar.one::<i64>(audited).await, 1);
}
