//! A project that ends, as its page, its form and the API have it.

use reqwest::header::{COOKIE, ORIGIN};
use serde_json::Value;
use sqlx::PgPool;

use crate::strangers::tenant::{self, Tenant};
use crate::support::{Running, header};

/// A page as it is read: the renderer marks where texts end.
async fn read(server: &Running, path: &str, who: &str) -> String {
    server.get(path, who).await.text().await.unwrap().replace("<!>", "")
}

async fn api(server: &Running, method: &str, path: &str, who: &str) -> (u16, Value) {
    let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
    let request = server.client.request(method, format!("{}/api/v1{path}", server.url));
    let answer = request.header(COOKIE, who).header(ORIGIN, &server.url).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}

#[sqlx::test(migrations = "../migrations")]
async fn a_project_is_destroyed_from_its_page_by_its_name(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    tenant::node(&pool).await;
    let (atlas, own) = (Tenant::named("atlas"), Tenant::named("borealis"));
    atlas.insert(&pool).await;
    own.insert(&pool).await;
    let dave = tenant::sign_in(&server, &pool, &own).await;
    // What is done with it is not over, so that it waits.
    sqlx::query("update jobs set state = 'stuck', ended_at = null, comment = null where id = $1")
        .bind(own.job)
        .execute(&pool)
        .await
        .unwrap();
    sqlx::query(
        "insert into job_locks (resource, job_id, mode, held_since) values ('project:' || $1, $2, 'shared', now())",
    )
    .bind(own.project.to_string())
    .bind(own.job)
    .execute(&pool)
    .await
    .unwrap();

    let page = "/projects/borealis/remove";
    let asked = read(&server, page, &dave).await;
    assert!(asked.contains("1 guest") && asked.contains("staging") && asked.contains("1 deployment"), "{asked}");
    assert!(asked.contains("of the project is not over") && asked.contains("Type borealis to confirm"), "{asked}");
    assert_eq!(server.get("/projects/atlas/remove", &dave).await.status().as_u16(), 404);
    let destroy = "/projects/borealis/delete";
    for wrong in ["", "atlas", "yes"] {
        let form = [("_page", page), ("_name", "borealis"), ("confirm", wrong)];
        let again = server.submit(destroy, &dave, &form).await;
        let again = again.text().await.unwrap();
        assert!(again.contains("f-confirm-error"), "{wrong}: {again}");
    }
    let form = [("_page", page), ("_name", "borealis"), ("confirm", "borealis")];
    let done = server.post(destroy, &dave, &form).await;
    let place = header(&done, "location").to_owned();
    assert!(done.status().as_u16() == 303 && place.starts_with("/jobs/"), "{place}");
    let job = place.strip_prefix("/jobs/").unwrap();

    let project = read(&server, "/projects/borealis", &dave).await;
    assert!(
        project.contains("borealis is being destroyed") && project.contains(&format!("href=\"{place}\"")),
        "{project}"
    );
    assert!(!project.contains("Destroy project") && !project.contains("Request a guest</a>"), "{project}");
    let asked = read(&server, page, &dave).await;
    assert!(asked.contains("borealis is being destroyed") && !asked.contains("Destroy this project"), "{asked}");
    let (status, problem) = api(&server, "POST", &format!("/guests/{}/stop", own.guest), &dave).await;
    let detail = problem["detail"].as_str().unwrap_or_default();
    assert!(status == 409 && detail.contains(job) && detail.contains("is being destroyed"), "{status} {problem}");
    assert_eq!(api(&server, "DELETE", "/projects/borealis", &dave).await.0, 409);
    assert_eq!(api(&server, "DELETE", "/projects/atlas", &dave).await.0, 404);
    assert_eq!(api(&server, "GET", "/projects/atlas/destroy-preview", &dave).await.0, 404);
    let (status, shown) = api(&server, "GET", "/projects/borealis", &dave).await;
    assert!(status == 200 && shown["leaving"]["job"] == job && shown["may_change"] == false, "{shown}");

    assert_eq!(api(&server, "POST", &format!("/jobs/{job}/cancel"), &dave).await.0, 202);
    assert!(read(&server, "/projects/borealis", &dave).await.contains("Destroy project"));
    let (status, accepted) = api(&server, "DELETE", "/projects/borealis", &dave).await;
    assert!(status == 202 && accepted["job"].is_string(), "{accepted}");
    server.stop().await;
}
