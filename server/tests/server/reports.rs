//! Reports of tests as a pipeline sends them, and badges as a README's reader fetches them.

use crate::support::{Running, header};
use reqwest::header::{COOKIE, ORIGIN};
use reqwest::{Method, Response};
use serde_json::{Value, json};
use sqlx::PgPool;

const UNIT: &str = "<?xml version=\"1.0\"?>\n<testsuite name=\"shop\"><testcase name=\"sells\" time=\"0.5\"><failure message=\"1 is not 2\"/></testcase><testcase name=\"opens\"/></testsuite>";

struct Shop {
    server: Running,
    cookie: String,
    deployment: String,
}

impl Shop {
    async fn start(pool: &PgPool) -> Self {
        let server = Running::start(pool, "").await;
        let cookie = server.as_admin().await;
        crate::crowd::seed(pool).await;
        let one = "select d.id::text from deployments d join projects p on p.id = d.project_id
                   where p.name = 'atlas' and d.number = 5";
        let deployment = sqlx::query_scalar(one).fetch_one(pool).await.unwrap();
        Self { server, cookie, deployment }
    }

    async fn send(&self, method: &str, path: &str, kind: &str, body: impl Into<reqwest::Body>) -> Response {
        let url = format!("{}/api/v1{path}", self.server.url);
        let request = self.server.client.request(Method::from_bytes(method.as_bytes()).unwrap(), url);
        let request = request.header(COOKIE, &self.cookie).header(ORIGIN, &self.server.url);
        let request = if kind.is_empty() { request } else { request.header("content-type", kind) };
        request.body(body).send().await.unwrap()
    }

    async fn upload(&self, kind: &str, body: impl Into<reqwest::Body>) -> (u16, Value) {
        let path = format!("/deployments/{}/tests/unit", self.deployment);
        let response = self.send("PUT", &path, kind, body).await;
        (response.status().as_u16(), response.json().await.unwrap())
    }
}

#[sqlx::test(migrations = "../migrations")]
async fn a_report_is_sent_as_it_is(pool: PgPool) {
    let shop = Shop::start(&pool).await;
    for kind in ["application/xml", "text/xml; charset=utf-8"] {
        let (status, answer) = shop.upload(kind, UNIT).await;
        assert_eq!((status, answer["totals"]["failed"].as_u64()), (200, Some(1)), "{answer}");
    }
    let (status, answer) = shop.upload("application/json", json!({ "xml": UNIT }).to_string()).await;
    assert_eq!((status, answer["totals"]["cases"].as_u64()), (200, Some(2)), "{answer}");
    let listed = shop.send("GET", &format!("/deployments/{}/tests?result=failed", shop.deployment), "", "").await;
    let listed: Value = listed.json().await.unwrap();
    assert_eq!(listed["items"][0]["message"], "1 is not 2", "{listed}");
    let page = shop.server.get("/projects/atlas/deployments/5", &shop.cookie).await.text().await.unwrap();
    assert!(page.contains("1 failed of 2, ") && page.contains("1 is not 2"), "{page}");

    // Larger than any other request may be.
    let large = format!(
        "<testsuite><testcase name='x'><system-out>{}</system-out></testcase></testsuite>",
        "y".repeat(7 << 20)
    );
    assert_eq!(shop.upload("application/xml", large).await.0, 200);
    for (kind, body, status, word, says) in [
        ("application/xml", "x".repeat((8 << 20) + 1), 413, "too_large", "8192 KiB"),
        ("application/xml", "x".repeat(17 << 20), 413, "too_large", "KiB"),
        ("application/xml", "<testsuite>\n <x".to_owned(), 422, "fields", "line 2"),
        ("application/xml", "<!DOCTYPE x [<!ENTITY a \"b\">]><testsuite/>".to_owned(), 422, "fields", "document type"),
        ("application/json", "{\"xml\": 1}".to_owned(), 422, "fields", ""),
        ("application/json", "{\"xml\": \"<testsuite/>\", \"name\": \"x\"}".to_owned(), 422, "fields", ""),
        ("text/plain", UNIT.to_owned(), 415, "media_type", "application/xml"),
        ("", UNIT.to_owned(), 415, "media_type", ""),
    ] {
        let (got, problem) = shop.upload(kind, body).await;
        assert_eq!(
            (got, problem["type"].as_str()),
            (status, Some(&*format!("urn:corpus:problem:{word}"))),
            "{problem}"
        );
        assert!(problem.to_string().contains(says), "{says}: {problem}");
    }
    let torn = shop.upload("application/xml", vec![b'<', 0xff, b'>']).await;
    assert_eq!(torn.0, 400, "{}", torn.1);
    // Other requests are as small as before.
    let more = shop.send("POST", "/projects", "application/json", "x".repeat(300 << 10)).await;
    assert_eq!(more.status().as_u16(), 413);
    // Without a login nothing of it is read.
    let url = format!("{}/api/v1/deployments/{}/tests/unit", shop.server.url, shop.deployment);
    let nobody = shop.server.client.put(url).header("content-type", "application/xml").body(UNIT).send().await.unwrap();
    assert_eq!(nobody.status().as_u16(), 401);
    shop.server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_badge_is_fetched_without_login_by_its_key(pool: PgPool) {
    let shop = Shop::start(&pool).await;
    let (nothing, api) = (shop.server.get("/badges/atlas/dev/x.svg", "").await, "/projects/atlas/badges");
    assert_eq!(nothing.status().as_u16(), 404);
    let said = nothing.text().await.unwrap();
    assert_eq!(shop.send("POST", api, "application/json", "{}").await.status().as_u16(), 200);
    let badges: Value = shop.send("GET", api, "", "").await.json().await.unwrap();
    let url = badges["badges"][0]["url"].as_str().unwrap();
    let path = &url[url.find("/badges/").unwrap()..];
    assert!(path.starts_with("/badges/atlas/dev/"), "{path}");
    let key = path.rsplit('/').next().unwrap();

    let badge = shop.server.get(path, "").await;
    assert_eq!((badge.status().as_u16(), header(&badge, "content-type")), (200, "image/svg+xml; charset=utf-8"));
    assert_eq!(header(&badge, "cache-control"), "public, max-age=30");
    assert!(header(&badge, "content-security-policy").contains("default-src 'none'"));
    assert_eq!((header(&badge, "x-content-type-options"), header(&badge, "set-cookie")), ("nosniff", ""));
    let etag = header(&badge, "etag").to_owned();
    let picture = badge.text().await.unwrap();
    assert!(picture.starts_with("<svg ") && picture.contains(">dev<") && picture.contains("not deployed"), "{picture}");
    let again = shop.server.client.get(format!("{}{path}", shop.server.url)).header("if-none-match", &etag);
    assert_eq!(again.send().await.unwrap().status().as_u16(), 304);
    sqlx::query("update environment_guests set live = jsonb_build_object('commit', repeat('a1', 20))")
        .execute(&pool)
        .await
        .unwrap();
    let live = shop.server.get(path, "").await;
    assert_ne!(header(&live, "etag"), etag);
    assert!(live.text().await.unwrap().contains("live a1a1a1a"));

    for wrong in [
        format!("/badges/atlas/dev/{}", &key[1..]),
        format!("/badges/project2/dev/{key}"),
        format!("/badges/nothing/dev/{key}"),
        format!("/badges/atlas/qa/{key}"),
        path.replace(".svg", ""),
        format!("/badges/atlas/dev/{}.svg", "x".repeat(500)),
    ] {
        let refused = shop.server.get(&wrong, "").await;
        assert_eq!(refused.status().as_u16(), 404, "{wrong}");
        assert_eq!(refused.text().await.unwrap(), said, "{wrong}");
    }
    shop.server.stop().await;
}
