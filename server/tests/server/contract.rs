//! The API as somebody meets it who tries everything: schemathesis reads the committed description and asks
//! each operation what nobody would think of, with a token of each role. No answer is a failure of the server,
//! none is other than described, and none gives a role what the golden matrix denies it.
//!
//! What leaves this machine is not asked for: an operator's nodes are linked at any address.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::support::Running;
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::process::Command;
use uuid::Uuid;

/// How long each role asks, in seconds; `scripts/contract` takes longer.
const SECONDS: &str = "30";
/// What an operator could reach with it is not on this machine; and what is followed for ten minutes has no end to wait for.
const OUTWARD: &str = "^(link_node|probe_host_key|probe_behind_gateway|initialize_node|repair_node|follow_access)$";

#[sqlx::test(migrations = "../migrations")]
#[ignore = "needs schemathesis"]
async fn operators_are_answered_as_described(pool: PgPool) {
    ask(&pool, "ops").await;
}

#[sqlx::test(migrations = "../migrations")]
#[ignore = "needs schemathesis"]
async fn maintainers_are_answered_as_described(pool: PgPool) {
    ask(&pool, "maintainer").await;
}

#[sqlx::test(migrations = "../migrations")]
#[ignore = "needs schemathesis"]
async fn developers_are_answered_as_described(pool: PgPool) {
    ask(&pool, "developer").await;
}

#[sqlx::test(migrations = "../migrations")]
#[ignore = "needs schemathesis"]
async fn viewers_are_answered_as_described(pool: PgPool) {
    ask(&pool, "viewer").await;
}

#[sqlx::test(migrations = "../migrations")]
#[ignore = "needs schemathesis"]
async fn strangers_are_answered_as_described(pool: PgPool) {
    ask(&pool, "stranger").await;
}

#[sqlx::test(migrations = "../migrations")]
#[ignore = "needs schemathesis"]
async fn robots_are_answered_as_described(pool: PgPool) {
    ask(&pool, "robot").await;
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

async fn ask(pool: &PgPool, role: &str) {
    let program = std::env::var_os("CORPUS_SCHEMATHESIS").expect("CORPUS_SCHEMATHESIS: where `st` is");
    // As often as it likes: that a quota is kept is a test of its own.
    let server = Running::start(pool, "[api]\nrequests_per_minute = 1000000\n").await;
    crate::crowd::seed(pool).await;
    let token = token(&server, pool, role).await;
    let root = repository();
    let seconds = std::env::var("CORPUS_TEST_CONTRACT_SECONDS").unwrap_or_else(|_| SECONDS.to_owned());
    let output = Command::new(program)
        .arg("--config-file")
        .arg(root.join("end2end/contract/schemathesis.toml"))
        .arg("run")
        .arg(root.join("docs/openapi.json"))
        .args(["--url", &format!("{}/api/v1", server.url), "-H", &format!("Authorization: Bearer {token}")])
        .args(["--phases", "examples,coverage,fuzzing", "--max-time", &seconds, "--seed", "1"])
        .args(["--rate-limit", "60/s", "--request-timeout", "20", "--continue-on-failure", "--no-color"])
        .args([
            "--suppress-health-check",
            "all",
            "--exclude-checks",
            "positive_data_acceptance",
            "--exclude-operation-id-regex",
            OUTWARD,
        ])
        .env("SCHEMATHESIS_HOOKS", "checks")
        .env("PYTHONPATH", root.join("end2end/contract"))
        .env("CORPUS_CONTRACT_ROLE", role)
        .env("CORPUS_CONTRACT_MATRIX", root.join("crates/gate/src/snapshots/corpus_gate__tests__golden_matrix.snap"))
        .current_dir(server.folder.path())
        .stdin(Stdio::null())
        .output();
    let output = output.await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "as {role}: {said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("passed"), "nothing was asked as {role}: {said}");
    server.stop().await;
}

/// A token that may do all that its member may; or that of a robot which a maintainer made.
async fn token(server: &Running, pool: &PgPool, role: &str) -> String {
    let member = member(pool, if role == "robot" { "maintainer" } else { role }).await;
    let (cookie, _) = crate::crowd::sessions(pool, &[(member, role == "ops")]).await.remove(0);
    let make = async |path: &str, wanted: Value| -> Value {
        let url = format!("{}/api/v1{path}", server.url);
        let request = server.client.post(url).header("cookie", &cookie).header("origin", &server.url);
        request.json(&wanted).send().await.unwrap().json().await.unwrap()
    };
    let answer = if role == "robot" {
        let robot = json!({ "robot": "ci", "role": "maintainer", "environments": ["dev", "staging"] });
        make("/projects/atlas/robots", robot).await;
        let wanted = json!({ "name": "contract", "scope": "operate", "days": 1 });
        make("/projects/atlas/robots/ci/tokens", wanted).await
    } else {
        make("/tokens", json!({ "name": "contract", "scope": "all", "days": 1 })).await
    };
    answer.get("token").and_then(Value::as_str).unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// A member with this role in one project, and none in others.
async fn member(pool: &PgPool, role: &str) -> Uuid {
    let id = Uuid::now_v7();
    sqlx::query("insert into users (id, realm, login, display_name, ops) values ($1, 'local', $2, $2, $3)")
        .bind(id)
        .bind(role)
        .bind(role == "ops")
        .execute(pool)
        .await
        .unwrap();
    sqlx::query(
        "insert into memberships (user_id, project_id, role, source) select $1, id, $2, 'corpus' from projects
         where name = 'atlas' and $2 not in ('ops', 'stranger')",
    )
    .bind(id)
    .bind(role)
    .execute(pool)
    .await
    .unwrap();
    id
}
