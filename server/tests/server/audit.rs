//! The audit as a file: by a form and by the API, for who reads it, once at a time, whole or broken off.

use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, COOKIE, ORIGIN};
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::strangers::tenant::{self, Tenant};
use crate::support::{Running, header};

const EXPORT: &str = "/api/v1/audit/export";

/// Asks the API with the session of a browser.
async fn export(server: &Running, cookie: &str, asked: Value) -> Response {
    let request = server.client.post(format!("{}{EXPORT}", server.url)).header(COOKIE, cookie);
    let request = request.header(ORIGIN, &server.url).header(CONTENT_TYPE, "application/json");
    request.body(asked.to_string()).send().await.unwrap()
}

async fn rows(pool: &PgPool, count: i32, detail_bytes: i32) {
    let insert = "insert into audit (id, at, actor, action, subject, detail)
        select gen_random_uuid(), now() - n * interval '1 minute', 'bob', 'test.row', '=row ' || n,
            jsonb_build_object('text', repeat('x', $2)) from generate_series(1, $1) n";
    sqlx::query(insert).bind(count).bind(detail_bytes).execute(pool).await.unwrap();
}

async fn exported(pool: &PgPool) -> i64 {
    sqlx::query_scalar("select count(*) from audit where action = 'audit.export'").fetch_one(pool).await.unwrap()
}

#[sqlx::test(migrations = "../migrations")]
async fn all_that_is_asked_is_in_the_file(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let admin = server.as_admin().await;
    rows(&pool, 250, 3).await;
    let csv = export(&server, &admin, json!({ "format": "csv", "action": "test" })).await;
    assert_eq!((csv.status().as_u16(), header(&csv, "cache-control")), (200, "no-store"));
    assert!(header(&csv, "content-type").starts_with("text/csv; charset=utf-8"), "{csv:?}");
    let name = header(&csv, "content-disposition");
    assert!(name.starts_with("attachment; filename=\"corpus-audit-") && name.ends_with(".csv\""), "{name}");
    let text = csv.text().await.unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 251, "headings, and each row once");
    assert!(lines[0].starts_with("\"id\",\"at\",\"actor\""), "{}", lines[0]);
    assert!(
        lines[1].contains("\"'=row 1\"") && lines[250].contains("\"'=row 250\""),
        "the newest first, and no formula"
    );

    let json = export(&server, &admin, json!({ "format": "jsonl", "action": "test" })).await;
    assert_eq!(header(&json, "content-type"), "application/x-ndjson");
    let text = json.text().await.unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), &lines[249]["subject"], &lines[0]["door"]), (250, &json!("=row 250"), &Value::Null));

    // The form of the page, with what is asked there; the browser's session is a page.
    let page = "/audit?subject=row&action=test";
    let read = server.get(page, &admin).await.text().await.unwrap();
    assert!(read.contains("action=\"/audit/export\"") && read.contains("name=\"subject\" value=\"row\""), "{read}");
    let sent = [("_page", page), ("_form", "export"), ("action", "test"), ("subject", "row"), ("format", "csv")];
    let file = server.post("/audit/export", &admin, &sent).await;
    assert_eq!(file.status().as_u16(), 200);
    assert_eq!(file.text().await.unwrap().lines().count(), 251);
    let doors: Vec<String> = sqlx::query_scalar("select door from audit where action = 'audit.export' order by at, id")
        .fetch_all(&pool)
        .await
        .unwrap();
    assert_eq!(doors, ["api", "api", "page"]);
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn what_is_wrong_is_refused_and_nothing_is_recorded(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let admin = server.as_admin().await;
    for (asked, field) in [
        (json!({}), "format"),
        (json!({ "format": "xml" }), "format"),
        (json!({ "format": "csv", "from": "yesterday" }), "from"),
        (json!({ "format": "csv", "until": "2027-02-30" }), "until"),
        (json!({ "format": "csv", "project": "-x" }), "project"),
        (json!({ "format": "csv", "cursor": "abc" }), "cursor"),
    ] {
        let answer = export(&server, &admin, asked.clone()).await;
        assert_eq!(answer.status().as_u16(), 422, "{asked}");
        let problem: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
        assert_eq!(problem["errors"][0]["field"], field, "{problem}");
    }
    // Beside its field on the page, with what was typed; a filter that means nothing has no button.
    let wrong = server.get("/audit?from=yesterday", &admin).await;
    assert_eq!(wrong.status().as_u16(), 422);
    let page = wrong.text().await.unwrap();
    assert!(page.contains("href=\"#f-from\"") && page.contains("value=\"yesterday\""), "{page}");
    assert!(!page.contains("/audit/export"), "{page}");
    let sent = [("_page", "/audit"), ("_form", "export"), ("format", "csv"), ("from", "yesterday")];
    let again = server.submit("/audit/export", &admin, &sent).await;
    assert!(again.text().await.unwrap().contains("This was not accepted"));
    // Another site's page begins none, and a link is no form.
    let foreign = server.client.post(format!("{}/audit/export", server.url)).header(COOKIE, &admin);
    let foreign = foreign.header(ORIGIN, "https://evil.example").body("format=csv").send().await.unwrap();
    assert_eq!(foreign.status().as_u16(), 403);
    assert!(server.get("/audit/export?format=csv", &admin).await.status().as_u16() >= 404);
    assert_eq!(exported(&pool).await, 0);
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn one_export_of_a_member_runs_at_a_time(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let admin = server.as_admin().await;
    rows(&pool, 2000, 20_000).await;
    let asked = || json!({ "format": "jsonl" });
    let first = export(&server, &admin, asked()).await;
    assert_eq!(first.status().as_u16(), 200);
    let second = export(&server, &admin, asked()).await;
    assert_eq!(second.status().as_u16(), 429);
    assert!(header(&second, "retry-after").parse::<u32>().is_ok());
    let sent = [("_page", "/audit"), ("_form", "export"), ("format", "csv")];
    let page = server.submit("/audit/export", &admin, &sent).await.text().await.unwrap();
    assert!(page.contains("You export something already"), "{page}");
    assert_eq!(exported(&pool).await, 1, "what found no place was not begun");
    drop(first);
    let mut after = export(&server, &admin, asked()).await;
    for _ in 0..100 {
        if after.status().as_u16() == 200 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        after = export(&server, &admin, asked()).await;
    }
    assert!(after.text().await.unwrap().lines().count() > 2000);
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_file_breaks_off_when_who_reads_it_may_not_any_more(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let admin = server.as_admin().await;
    rows(&pool, 2000, 20_000).await;
    let mut file = export(&server, &admin, json!({ "format": "csv" })).await;
    assert!(file.chunk().await.unwrap().is_some());
    sqlx::query("delete from tower_sessions").execute(&pool).await.unwrap();
    let mut read = 0;
    let broken = loop {
        match file.chunk().await {
            Ok(Some(chunk)) => read += chunk.len(),
            Ok(None) => break false,
            Err(_) => break true,
        }
    };
    assert!(broken, "a part is no whole");
    assert!(read < 30_000_000, "{read}");
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_member_exports_what_they_read(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    tenant::node(&pool).await;
    let (atlas, own) = (Tenant::named("atlas"), Tenant::named("borealis"));
    atlas.insert(&pool).await;
    own.insert(&pool).await;
    let dave = tenant::sign_in(&server, &pool, &own).await;
    for asked in [
        json!({ "format": "jsonl" }),
        json!({ "format": "jsonl", "project": "atlas" }),
        json!({ "format": "jsonl", "actor": atlas.member }),
        json!({ "format": "jsonl", "q": "atlas" }),
        json!({ "format": "csv", "subject": "atlas" }),
    ] {
        let file = export(&server, &dave, asked.clone()).await;
        assert_eq!(file.status().as_u16(), 200, "{asked}");
        let text = file.text().await.unwrap();
        // What they asked before is theirs, and names what they typed.
        let others: Vec<&str> = text.lines().filter(|line| !line.contains("audit.export")).collect();
        assert_eq!(atlas.named_in(&others.join("\n")), None, "{asked}");
        if asked == json!({ "format": "jsonl" }) {
            assert!(text.contains("www.borealis.example.net") && text.contains("dave"), "{text}");
        }
    }
    server.stop().await;
}
