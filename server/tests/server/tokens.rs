//! The API as a program meets it: tokens, sessions, refusals, quotas.

use crate::support::{Running, header};
use reqwest::{Method, Response};
use serde_json::{Value, json};
use sqlx::PgPool;

/// A request with a token, as a program sends it: nothing says where it comes from.
async fn send(server: &Running, method: Method, path: &str, token: &str, body: Option<Value>) -> Response {
    let request = server.client.request(method, format!("{}{path}", server.url)).bearer_auth(token);
    let request = match body {
        Some(body) => request.header("content-type", "application/json").body(body.to_string()),
        None => request,
    };
    request.send().await.unwrap()
}

async fn get(server: &Running, path: &str, token: &str) -> Response {
    send(server, Method::GET, path, token, None).await
}

async fn problem(answer: Response) -> (u16, String) {
    assert_eq!(header(&answer, "content-type"), "application/problem+json", "{answer:?}");
    let status = answer.status().as_u16();
    let problem: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    (status, problem["type"].as_str().unwrap().rsplit(':').next().unwrap().to_owned())
}

/// A token of the administrator, made by the form, as its page shows it.
async fn token(server: &Running, cookie: &str, name: &str, scope: &str) -> String {
    let form = [("name", name), ("scope", scope), ("days", "90"), ("_page", "/tokens")];
    let answer = server.post("/tokens", cookie, &form).await;
    assert_eq!(answer.status().as_u16(), 200);
    let page = answer.text().await.unwrap();
    let text = page.split_once("data-copy=\"corpus_").unwrap_or_else(|| panic!("{page}")).1;
    let again = server.get("/tokens", cookie).await.text().await.unwrap();
    assert!(again.contains(name) && !again.contains(&text[..43]), "it is shown once");
    format!("corpus_{}", &text[..43])
}

#[sqlx::test(migrations = "../migrations")]
async fn a_token_is_good_for_the_api_and_nothing_else(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let cookie = server.as_admin().await;
    let token = token(&server, &cookie, "Jenkins", "read").await;
    let answer = get(&server, "/api/v1/me", &token).await;
    assert_eq!(answer.status().as_u16(), 200);
    assert_eq!(header(&answer, "ratelimit-policy"), "\"member\";q=600;w=6");
    assert!(header(&answer, "ratelimit").starts_with("\"member\";r=59"), "{answer:?}");
    let me: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    assert_eq!((&me["login"], &me["token"]), (&json!("admin"), &json!("read")));
    let page = get(&server, "/keys", &token).await;
    assert_eq!((page.status().as_u16(), header(&page, "location")), (303, "/login?next=%2Fkeys"));
    assert_eq!(get(&server, "/jobs/01890000-0000-7000-8000-000000000000/events", &token).await.status().as_u16(), 401);
    let weak = json!({ "name": "another", "scope": "all", "days": 1 });
    let weak = send(&server, Method::POST, "/api/v1/tokens", &token, Some(weak)).await;
    assert_eq!(problem(weak).await, (403, "token_too_weak".to_owned()));

    let all: Value = serde_json::from_str(&get(&server, "/api/v1/tokens", &token).await.text().await.unwrap()).unwrap();
    let id = all["items"][0]["id"].as_str().unwrap();
    let gone = server.post(&format!("/tokens/{id}/delete"), &cookie, &[]).await;
    assert_eq!((gone.status().as_u16(), header(&gone, "location")), (303, "/tokens"));
    assert_eq!(problem(get(&server, "/api/v1/me", &token).await).await, (401, "unauthenticated".to_owned()));
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn who_is_nobody_is_told_so_as_a_problem(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    assert_eq!(problem(server.get("/api/v1/jobs", "").await).await.0, 401);
    assert_eq!(problem(server.get("/api/v1/nowhere", "").await).await.0, 401);
    assert_eq!(problem(get(&server, "/api/v1/jobs", "corpus_x").await).await.0, 401);
    let open = server.get("/api/v1/openapi.json", "").await;
    assert_eq!(open.status().as_u16(), 200);
    assert!(open.text().await.unwrap().contains("\"create_token\""));
    // A wrong token is no better for a browser that is signed in.
    let cookie = server.as_admin().await;
    let both = server.client.get(format!("{}/api/v1/me", server.url)).header("cookie", &cookie);
    assert_eq!(both.bearer_auth("corpus_x").send().await.unwrap().status().as_u16(), 401);
    assert_eq!(problem(server.get("/api/v1/nowhere", &cookie).await).await.0, 404);
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_session_is_good_for_the_api_from_our_own_pages(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let cookie = server.as_admin().await;
    assert_eq!(server.get("/api/v1/me", &cookie).await.status().as_u16(), 200);
    let etag = header(&server.get("/api/v1/me/mail", &cookie).await, "etag").to_owned();
    let set = |origin: &str, etag: &str| {
        let request = server.client.put(format!("{}/api/v1/me/mail", server.url)).header("cookie", &cookie);
        let request = request.header("origin", origin).header("if-match", etag);
        request.header("content-type", "application/json").body(r#"{"wants":"all"}"#).send()
    };
    assert_eq!(problem(set("https://evil.example", &etag).await.unwrap()).await, (403, "forbidden".to_owned()));
    let done = set(&server.url, &etag).await.unwrap();
    assert_eq!(done.status().as_u16(), 200);
    assert_ne!(header(&done, "etag"), etag);
    assert_eq!(problem(set(&server.url, &etag).await.unwrap()).await, (412, "changed".to_owned()));
    let unread = server.client.put(format!("{}/api/v1/me/mail", server.url)).header("cookie", &cookie);
    let unread = unread.header("origin", &server.url).header("content-type", "application/json");
    let unread = problem(unread.body(r#"{"wants":"all"}"#).send().await.unwrap()).await;
    assert_eq!(unread, (428, "version_needed".to_owned()));
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn wrong_tokens_wait_and_keep_no_good_one_out(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let good = token(&server, &server.as_admin().await, "good", "all").await;
    let wrong = format!("corpus_{}", "A".repeat(43));
    for _ in 0..5 {
        assert_eq!(get(&server, "/api/v1/me", &wrong).await.status().as_u16(), 401);
    }
    let refused = get(&server, "/api/v1/me", &wrong).await;
    assert!((1..=12).contains(&header(&refused, "retry-after").parse().unwrap()), "{refused:?}");
    assert_eq!(problem(refused).await, (429, "too_many_requests".to_owned()));
    assert_eq!(get(&server, "/api/v1/me", &good).await.status().as_u16(), 200);
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn more_than_one_may_is_refused_and_comes_back(pool: PgPool) {
    let server = Running::start(&pool, "[api]\nrequests_per_minute = 60\n").await;
    let token = token(&server, &server.as_admin().await, "fast", "read").await;
    for _ in 0..6 {
        assert_eq!(get(&server, "/api/v1/counts", &token).await.status().as_u16(), 200);
    }
    let refused = get(&server, "/api/v1/counts", &token).await;
    assert_eq!(header(&refused, "retry-after"), "1");
    assert!(header(&refused, "ratelimit").starts_with("\"member\";r=0;"), "{refused:?}");
    assert_eq!(problem(refused).await, (429, "too_many_requests".to_owned()));
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    assert_eq!(get(&server, "/api/v1/counts", &token).await.status().as_u16(), 200);
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn every_wrong_field_is_named_at_once(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let token = token(&server, &server.as_admin().await, "all", "all").await;
    let body = json!({ "name": "", "scope": "everything", "days": 366, "colour": "red" });
    let answer = send(&server, Method::POST, "/api/v1/tokens", &token, Some(body)).await;
    assert_eq!(answer.status().as_u16(), 422);
    let problem: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    let mut fields: Vec<_> = problem["errors"].as_array().unwrap().iter().map(|wrong| &wrong["field"]).collect();
    fields.sort_by_key(ToString::to_string);
    assert_eq!(fields, ["colour", "days", "name", "scope"]);
    server.stop().await;
}

/// A form of OAuth, as a program sends it: status, and what is said.
async fn oauth(server: &Running, path: &str, fields: &[(&str, &str)]) -> (u16, Value) {
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    let request = server.client.post(format!("{}/oauth/{path}", server.url)).body(body);
    let answer = request.header("content-type", "application/x-www-form-urlencoded").send().await.unwrap();
    assert_eq!(header(&answer, "cache-control"), "no-store", "{answer:?}");
    (answer.status().as_u16(), serde_json::from_str(&answer.text().await.unwrap()).unwrap())
}

const DEVICE: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// A program begins to wait: its own code, and that for a person.
async fn begin(server: &Running) -> (String, String) {
    let (status, waiting) = oauth(server, "device", &[("client_id", "corpus on desk"), ("scope", "deploy")]).await;
    assert_eq!(status, 200);
    assert!(waiting["verification_uri"].as_str().unwrap().ends_with("/device"), "{waiting}");
    let text = |name: &str| waiting[name].as_str().unwrap().to_owned();
    (text("device_code"), text("user_code"))
}

/// Asks as the program does.
async fn fetch(server: &Running, code: &str) -> (u16, Value) {
    // Not sooner than it should.
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    oauth(server, "token", &[("grant_type", DEVICE), ("device_code", code)]).await
}

#[sqlx::test(migrations = "../migrations")]
async fn a_program_is_let_in_at_a_browser(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let cookie = server.as_admin().await;
    let (code, user_code) = begin(&server).await;
    let error = |told: (u16, Value)| (told.0, told.1["error"].as_str().unwrap().to_owned());
    assert_eq!(error(fetch(&server, &code).await), (400, "authorization_pending".to_owned()));
    let soon = oauth(&server, "token", &[("grant_type", DEVICE), ("device_code", &code)]).await;
    assert_eq!(error(soon), (400, "slow_down".to_owned()));

    let nobody = server.get(&format!("/device?code={user_code}"), "").await;
    assert_eq!(header(&nobody, "location"), format!("/login?next=%2Fdevice%3Fcode%3D{user_code}"));
    let page = server.get(&format!("/device?code={}", user_code.to_lowercase()), &cookie).await.text().await.unwrap();
    assert!(page.contains("corpus on desk") && page.contains("127.0.0.1"), "{page}");
    let wrong = server.get("/device?code=BBBB-BBBB", &cookie).await.text().await.unwrap();
    assert!(wrong.contains("No program waits under this code"), "{wrong}");

    let approve = format!("/device-logins/{user_code}/approve");
    let form = [("scope", "deploy"), ("days", "7"), ("_page", "/device"), ("_next", "/device?done=approved")];
    let done = server.post(&approve, &cookie, &form).await;
    assert_eq!((done.status().as_u16(), header(&done, "location")), (303, "/device?done=approved"));
    let (status, given) = fetch(&server, &code).await;
    assert_eq!((status, &given["token_type"], &given["scope"]), (200, &json!("Bearer"), &json!("deploy")));
    let token = given["access_token"].as_str().unwrap();
    let me = get(&server, "/api/v1/me", token).await.text().await.unwrap();
    let me: Value = serde_json::from_str(&me).unwrap();
    assert_eq!((&me["login"], &me["token"]), (&json!("admin"), &json!("deploy")));
    assert_eq!(error(fetch(&server, &code).await), (400, "expired_token".to_owned()), "it is fetched once");

    let (code, user_code) = begin(&server).await;
    server.post(&format!("/device-logins/{user_code}/refuse"), &cookie, &[("_page", "/device")]).await;
    assert_eq!(error(fetch(&server, &code).await), (400, "access_denied".to_owned()));

    // Who holds it ends it; what is none is over already.
    for text in [token, token, "rubbish"] {
        assert_eq!(oauth(&server, "revoke", &[("token", text)]).await.0, 200);
    }
    assert_eq!(problem(get(&server, "/api/v1/me", token).await).await.0, 401);
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_password_comes_to_a_token_under_the_limits_of_the_page(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let ask = async |password: &str| {
        let form = [("grant_type", "password"), ("username", "admin"), ("password", password), ("client_id", "old")];
        oauth(&server, "token", &form).await
    };
    let first = ask(&server.admin).await.1["access_token"].as_str().unwrap().to_owned();
    let (status, again) = ask(&server.admin).await;
    assert_eq!((status, &again["scope"]), (200, &json!("all")));
    assert_eq!(problem(get(&server, "/api/v1/me", &first).await).await.0, 401, "the later one took its place");
    assert_eq!(get(&server, "/api/v1/me", again["access_token"].as_str().unwrap()).await.status().as_u16(), 200);
    for _ in 0..5 {
        let (status, told) = ask("wrong").await;
        assert_eq!((status, &told["error"]), (400, &json!("invalid_grant")));
    }
    assert_eq!(ask("wrong").await.0, 429);
    assert_eq!(ask(&server.admin).await.0, 429, "the right one waits too");

    let other = oauth(&server, "token", &[("grant_type", "client_credentials")]).await;
    assert_eq!((other.0, &other.1["error"]), (400, &json!("unsupported_grant_type")));
    let scope = oauth(&server, "device", &[("scope", "root")]).await;
    assert_eq!((scope.0, &scope.1["error"]), (400, &json!("invalid_scope")));
    let from_a_page =
        server.client.post(format!("{}/oauth/token", server.url)).header("origin", "https://evil.example");
    assert_eq!(from_a_page.send().await.unwrap().status().as_u16(), 403, "a page of another site can't try passwords");
    server.stop().await;
}
