//! The API from outside: what it answers is what it says of itself, and what is wrong is a problem.

use crate::support::{Running, header};
use reqwest::header::{COOKIE, ORIGIN};
use reqwest::{Method, Response};
use serde_json::{Value, json};
use sqlx::PgPool;

/// The schema of the answer to an operation with this status, as the description has it.
fn answer_schema(description: &Value, method: &str, path: &str, status: u16) -> Value {
    let template = description["paths"].as_object().unwrap().keys().find(|template| fits(template, path));
    let template = template.unwrap_or_else(|| panic!("{path} is not described"));
    let operation = &description["paths"][template][method.to_lowercase()];
    let content = &operation["responses"][status.to_string()]["content"];
    let (_, media) = content.as_object().unwrap_or_else(|| panic!("{method} {path} {status}")).iter().next().unwrap();
    let mut schema = media["schema"].clone();
    schema["components"] = description["components"].clone();
    schema
}

fn fits(template: &str, path: &str) -> bool {
    let (template, path) = (template.split('/'), path.split('?').next().unwrap().split('/'));
    template.clone().count() == path.clone().count()
        && template.zip(path).all(|(one, other)| one.starts_with('{') || one == other)
}

struct Api {
    server: Running,
    cookie: String,
    description: Value,
}

impl Api {
    async fn start(pool: &PgPool) -> Self {
        let server = Running::start(pool, "").await;
        let cookie = server.as_admin().await;
        let description = server.get("/api/v1/openapi.json", &cookie).await.json().await.unwrap();
        Self { server, cookie, description }
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> Response {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let request = self.server.client.request(method, format!("{}/api/v1{path}", self.server.url));
        let mut request = request.header(COOKIE, &self.cookie).header(ORIGIN, &self.server.url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(body).send().await.unwrap()
    }

    /// Asks, and holds the answer against the description.
    async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let kind = [("content-type", "application/json")];
        let headers = if body.is_some() { &kind[..] } else { &[] };
        let response = self.send(method, path, headers, body.map(|body| body.to_string()).unwrap_or_default()).await;
        let (status, kind) = (response.status().as_u16(), header(&response, "content-type").to_owned());
        let answer: Value = response.json().await.unwrap();
        if status >= 400 {
            assert_eq!((kind.as_str(), &answer["status"]), ("application/problem+json", &json!(status)), "{answer}");
        }
        let schema = answer_schema(&self.description, method, path, status);
        let validator = jsonschema::validator_for(&schema).unwrap();
        let errors: Vec<String> =
            validator.iter_errors(&answer).map(|error| format!("{error} at {}", error.instance_path)).collect();
        assert!(errors.is_empty(), "{method} {path} {status}: {errors:#?}\n{answer}");
        (status, answer)
    }
}

async fn jobs(pool: &PgPool, count: i64) -> Vec<String> {
    let rows: Vec<(String,)> = sqlx::query_as(
        "insert into jobs (id, kind, title, params, dag, state, ended_at)
         select gen_random_uuid(), 'node_link', 'job ' || n, '{}', '{}', 'done', now() from generate_series(1, $1) n
         returning id::text",
    )
    .bind(count)
    .fetch_all(pool)
    .await
    .unwrap();
    rows.into_iter().map(|(id,)| id).collect()
}

#[sqlx::test(migrations = "../migrations")]
async fn a_list_comes_a_page_at_a_time(pool: PgPool) {
    let api = Api::start(&pool).await;
    let mut made = jobs(&pool, 7).await;
    made.reverse();
    let (mut path, mut seen) = ("/jobs?limit=3&state=done".to_owned(), Vec::new());
    for page in 0..3 {
        let response = api.send("GET", &path, &[], "").await;
        let link = header(&response, "link").to_owned();
        let (status, answer) = api.ask("GET", &path, None).await;
        assert_eq!(status, 200);
        seen.extend(answer["items"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap().to_owned()));
        let Some(next) = answer["next"].as_str() else {
            assert_eq!((page, link.as_str()), (2, ""));
            break;
        };
        path = format!("/jobs?limit=3&state=done&cursor={next}");
        assert_eq!(link, format!("</api/v1{path}>; rel=\"next\""));
        // What comes meanwhile is before, and shows on no later page.
        jobs(&pool, 1).await;
    }
    assert_eq!(seen, made);
    let audit = api.ask("GET", "/audit", None).await.1;
    assert!(audit["items"].is_array());
    let of_another = seen[0].clone();
    let (status, answer) = api.ask("GET", &format!("/audit?cursor={}", path.rsplit('=').next().unwrap()), None).await;
    assert_eq!((status, answer["errors"][0]["field"].as_str()), (422, Some("cursor")), "{of_another}");
    api.server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn what_is_wrong_is_a_problem(pool: PgPool) {
    let api = Api::start(&pool).await;
    let job = jobs(&pool, 1).await.remove(0);
    let nobody = "0199d3c0-0000-7000-8000-000000000001";
    for (method, path, body, status) in [
        ("GET", format!("/jobs/{nobody}"), None, 404),
        ("GET", "/jobs?limit=0&colour=red&state=huge".to_owned(), None, 422),
        ("GET", "/jobs/x".to_owned(), None, 404),
        ("POST", format!("/jobs/{job}/cancel"), None, 409),
        ("POST", format!("/jobs/{job}/abandon"), Some(json!({})), 422),
        ("POST", format!("/jobs/{job}/abandon"), Some(json!({ "comment": 1, "more": 2 })), 422),
        ("POST", format!("/jobs/{job}/abandon"), Some(json!({ "comment": "x", "job": job })), 422),
    ] {
        let (got, answer) = api.ask(method, &path, body).await;
        assert_eq!(got, status, "{method} {path}: {answer}");
    }
    let (_, answer) = api.ask("GET", "/jobs?limit=0&colour=red&state=huge", None).await;
    let fields: Vec<&str> =
        answer["errors"].as_array().unwrap().iter().map(|one| one["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["state", "limit", "colour"]);
    api.server.stop().await;
}

/// Method, path, headers and body; the status and code that answer.
type Case<'a> = (&'a str, &'a str, Vec<(&'a str, &'a str)>, String, u16, &'a str);

/// What no description has: a problem all the same.
#[sqlx::test(migrations = "../migrations")]
async fn rubbish_is_refused_by_name(pool: PgPool) {
    let api = Api::start(&pool).await;
    let job = jobs(&pool, 1).await.remove(0);
    let path = format!("/jobs/{job}/abandon");
    let json = ("content-type", "application/json");
    let deep = format!("{}1{}", "{\"comment\":".repeat(1000), "}".repeat(1000));
    let cases: [Case<'_>; 9] = [
        ("GET", "/nothing", vec![], String::new(), 404, "not_found"),
        ("PATCH", "/jobs", vec![], String::new(), 405, "method_not_allowed"),
        ("POST", &path, vec![("content-type", "text/plain")], "{}".into(), 415, "media_type"),
        ("POST", &path, vec![json], "{".into(), 400, "malformed"),
        ("POST", &path, vec![json], "[]".into(), 400, "malformed"),
        ("POST", &path, vec![json], r#"{"comment":"a","comment":"b"}"#.into(), 400, "malformed"),
        ("POST", &path, vec![json], deep, 400, "malformed"),
        ("POST", &path, vec![json], format!("{{\"comment\":\"{}\"}}", "x".repeat(10 << 20)), 413, "too_large"),
        ("POST", &path, vec![json, ("idempotency-key", "a b")], "{\"comment\":\"x\"}".into(), 400, "malformed"),
    ];
    for (method, path, headers, body, status, kind) in cases {
        let response = api.send(method, path, &headers, body).await;
        assert_eq!(response.status().as_u16(), status, "{method} {path} {kind}");
        assert_eq!(header(&response, "content-type"), "application/problem+json", "{method} {path}");
        let problem: Value = response.json().await.unwrap();
        assert_eq!(problem["type"], format!("urn:corpus:problem:{kind}"), "{problem}");
    }
    api.server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn the_same_request_is_done_once(pool: PgPool) {
    let api = Api::start(&pool).await;
    let job = jobs(&pool, 1).await.remove(0);
    sqlx::query("update jobs set state = 'stuck', ended_at = null").execute(&pool).await.unwrap();
    let path = format!("/jobs/{job}/abandon");
    let headers = [("content-type", "application/json"), ("idempotency-key", "k1")];
    let send = async |comment: &str| {
        let response = api.send("POST", &path, &headers, json!({ "comment": comment }).to_string()).await;
        let (status, location) = (response.status().as_u16(), header(&response, "location").to_owned());
        (status, location, response.json::<Value>().await.unwrap())
    };
    let first = send("gone").await;
    assert_eq!((first.0, first.1.as_str()), (202, format!("/api/v1/jobs/{job}").as_str()));
    assert_eq!(send("gone").await, first, "the same key, the same answer");
    let other = send("something else").await;
    assert_eq!((other.0, other.2["type"].as_str()), (422, Some("urn:corpus:problem:key_reused")));
    let audited: i64 =
        sqlx::query_scalar("select count(*) from audit where action = 'job.abandon'").fetch_one(&pool).await.unwrap();
    assert_eq!(audited, 1);
    // At once: it is done once, and whoever comes second is told to wait, or what was done.
    let at_once = futures::future::join_all((0..8).map(|_| async {
        let key = [("content-type", "application/json"), ("idempotency-key", "k2")];
        api.send("POST", "/projects", &key, r#"{"name":"atlas"}"#.to_owned()).await.status().as_u16()
    }));
    let at_once = at_once.await;
    assert!(at_once.iter().all(|status| [201, 409].contains(status)) && at_once.contains(&201), "{at_once:?}");
    let made: i64 = sqlx::query_scalar("select count(*) from audit where action = 'project.create'")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert_eq!(made, 1);
    // One that is being worked on, and one that a lost server left.
    for (age, status) in [("1 second", 409), ("3 minutes", 409)] {
        let left = "update idempotency_keys set answer = null, began_at = now() - $1::interval";
        sqlx::query(left).bind(age).execute(&pool).await.unwrap();
        let again = send("gone").await;
        let kind = if age == "1 second" { "in_progress" } else { "conflict" };
        assert_eq!(
            (again.0, again.2["type"].as_str().unwrap()),
            (status, format!("urn:corpus:problem:{kind}").as_str())
        );
    }
    api.server.stop().await;
}

/// As long as the database is away not even the key can be let go; whoever sends it again afterwards need not wait.
#[sqlx::test(migrations = "../migrations")]
async fn what_a_database_that_was_away_did_not_do_is_done_when_it_is_sent_again(pool: PgPool) {
    const AWAY: &str = "create function away() returns trigger language plpgsql as
        $$ begin raise exception 'stopping' using errcode = '57P01'; end $$;
        create trigger away before insert on projects for each row execute function away();
        create trigger away before delete on idempotency_keys for each row execute function away();";
    let api = Api::start(&pool).await;
    let headers = [("content-type", "application/json"), ("idempotency-key", "k1")];
    let send = async || {
        let response = api.send("POST", "/projects", &headers, r#"{"name":"atlas"}"#.to_owned()).await;
        (response.status().as_u16(), response.json::<Value>().await.unwrap())
    };
    sqlx::raw_sql(AWAY).execute(&pool).await.unwrap();
    let (status, problem) = send().await;
    assert_eq!((status, problem["type"].as_str()), (503, Some("urn:corpus:problem:unavailable")), "{problem}");
    assert_eq!(send().await.0, 409, "nobody knows yet that it is not being worked on");
    sqlx::raw_sql("drop function away cascade").execute(&pool).await.unwrap();
    let mut last = 409;
    for _ in 0..50 {
        (last, _) = send().await;
        if last != 409 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(last, 201);
    api.server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn nobody_asks_without_signing_in(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let answer = server.get("/api/v1/jobs", "").await;
    assert_eq!(answer.status().as_u16(), 401);
    server.stop().await;
}
