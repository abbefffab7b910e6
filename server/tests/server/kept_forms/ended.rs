//! Forms that were sent when the session had ended.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sqlx::PgPool;

use super::another;
use super::{kept, read, refused, rows};
use crate::support::{Running, cookie_of, header, set_cookies};

/// What a login page takes along.
fn sent(page: &str) -> Option<&str> {
    Some(page.split_once("name=\"sent\" value=\"")?.1.split_once('"')?.0)
}

fn opened(sent: &str) -> Value {
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(sent).unwrap()).unwrap()
}

fn sealed(values: &Value) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(values.to_string())
}

/// Signs in with what the login page brought along.
async fn sign_in(server: &Running, password: &str, sent: &str) -> reqwest::Response {
    server.post("/login", "", &[("login", "admin"), ("password", password), ("next", "/nodes"), ("sent", sent)]).await
}

/// What the browser of the administrator still has when the session has ended: not the cookie of that.
async fn ended(server: &Running) -> String {
    let answer = server.sign_in("", "admin", &server.admin).await;
    let cookies = set_cookies(&answer);
    assert_eq!(cookies.len(), 2, "{cookies:?}");
    assert!(cookies[1].contains("HttpOnly") && cookies[1].contains("SameSite=Lax"), "{cookies:?}");
    cookies[1].split(';').next().unwrap().to_owned()
}

async fn projects(pool: &PgPool) -> i64 {
    sqlx::query_scalar("select count(*) from projects").fetch_one(pool).await.unwrap()
}

#[sqlx::test(migrations = "../migrations")]
async fn a_form_goes_through_the_login_page_and_does_nothing_by_itself(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let cookie = format!("corpus=gone; {}", ended(&server).await);
    let mut form = refused("atlas");
    form.push(("password", "hush-hush"));
    let answer = server.post("/projects", &cookie, &form).await;
    assert_eq!(answer.status().as_u16(), 401);
    let page = answer.text().await.unwrap();
    assert!(page.contains("Your session ended. Sign in to go on; what you typed is kept."), "{page}");
    assert!(opened(sent(&page).unwrap()).to_string().contains("atlas"));
    assert!(!opened(sent(&page).unwrap()).to_string().contains("hush"), "a secret goes nowhere");

    let wrong = sign_in(&server, "wrong", sent(&page).unwrap()).await;
    assert_eq!(wrong.status().as_u16(), 401);
    let wrong = wrong.text().await.unwrap();
    assert_eq!(sent(&wrong), sent(&page), "it comes through a failed attempt");
    assert!(wrong.contains("not right") && wrong.contains("what you typed is kept"), "{wrong}");
    assert_eq!(rows(&pool).await, [""; 0], "nothing is kept for nobody");

    let right = sign_in(&server, &server.admin, sent(&wrong).unwrap()).await;
    let (cookie, place) = (cookie_of(&right), kept(&right));
    assert!(place.starts_with("/projects/new?kept="), "{place}");
    let (status, page) = read(&server, &place, &cookie).await;
    assert_eq!(status, 200);
    assert!(page.contains("value=\"atlas\"") && page.contains("This was not sent"), "{page}");
    assert!(page.contains("Your session ended before this was sent. Look at it and send it again."), "{page}");
    assert_eq!(projects(&pool).await, 0, "nobody has sent it");
    server.post_from(&place, "/projects", &cookie, &refused("atlas")).await;
    assert_eq!((projects(&pool).await, rows(&pool).await.len()), (1, 0));
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn another_site_sends_nothing_to_the_login_page(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    for (path, body) in [("/projects", "name=atlas"), ("/login", "login=admin&password=x&sent=W10")] {
        for (name, value) in
            [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site"), ("x-nothing", "said")]
        {
            let request = server.client.post(format!("{}{path}", server.url)).header(name, value).body(body);
            let answer = request.send().await.unwrap();
            assert_eq!(answer.status().as_u16(), 403, "{path} with {name}: {value}");
            assert_eq!(sent(&answer.text().await.unwrap()), None);
        }
    }
    let linked = server.get("/login?sent=W10&next=//evil.example&ended=true", "").await.text().await.unwrap();
    assert!(sent(&linked).is_none() && !linked.contains("evil"), "{linked}");
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn what_the_browser_brings_back_is_judged_as_new(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    server.as_admin().await;
    let admin: String = sqlx::query_scalar("select id::text from users").fetch_one(&pool).await.unwrap();
    let (page, of) = (["_page", "//evil.example"], ["_of_member", &admin]);
    let evil = json!([page, of, ["name", "x"], ["password", "hush"], ["line", "-----BEGIN PRIVATE KEY-----"]]);
    let place = kept(&sign_in(&server, &server.admin, &sealed(&evil)).await);
    assert!(place.starts_with("/?kept="), "{place}");
    let all = rows(&pool).await.concat();
    assert!(!all.contains("hush") && !all.contains("PRIVATE") && !all.contains("evil"), "{all}");
    for wrong in
        ["", "!", "e30", &sealed(&json!([["a"]])), &sealed(&json!([["_page", "/"], ["x", "x".repeat(100 << 10)]]))]
    {
        let answer = sign_in(&server, &server.admin, wrong).await;
        assert_eq!((answer.status().as_u16(), header(&answer, "location")), (303, "/nodes"), "{wrong:.40}");
    }
    // What tells a secret is left out.
    let told = json!([["_page", "/projects/new"], of, ["name", "db: {password: hush-hush}"]]);
    let answer = sign_in(&server, &server.admin, &sealed(&told)).await;
    let (cookie, place) = (cookie_of(&answer), kept(&answer));
    let (status, page) = read(&server, &place, &cookie).await;
    assert_eq!(status, 200);
    assert!(page.contains("Type it again: name.") && page.contains("This was not sent"), "{page}");
    assert_eq!(read(&server, "/keys", &cookie).await.0, 200);
    assert!(!rows(&pool).await.concat().contains("hush"));
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn who_signs_in_next_finds_nothing_of_anothers_form(pool: PgPool) {
    let server = Running::start(&pool, "[projects]\ncreate = 'members'\n").await;
    another(&server, &pool).await;
    let cookie = ended(&server).await;
    let page = server.post("/projects", &cookie, &refused("of-admin")).await.text().await.unwrap();
    let theirs = sent(&page).unwrap();
    let dave = [("login", "dave"), ("password", &server.admin), ("next", "/nodes"), ("sent", theirs)];
    let answer = server.post("/login", "", &dave).await;
    assert_eq!((answer.status().as_u16(), header(&answer, "location")), (303, "/nodes"));
    assert_eq!(rows(&pool).await, [""; 0]);
    kept(&sign_in(&server, &server.admin, theirs).await);
    // Nobody knows whose it is when the browser does not.
    for cookie in ["", "corpus=x", "corpus_last_member=x"] {
        let page = server.post("/projects", cookie, &refused("of-admin")).await.text().await.unwrap();
        assert!(page.contains("Your session ended. Sign in to go on.") && sent(&page).is_none(), "{page}");
    }
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_form_that_is_too_large_is_not_taken_along(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let long = "x".repeat(100 << 10);
    let answer = server.post("/projects", "", &refused(&long)).await;
    assert_eq!(answer.status().as_u16(), 401);
    let page = answer.text().await.unwrap();
    assert!(page.contains("Your session ended. Sign in to go on.") && sent(&page).is_none());
    assert!(page.contains("value=\"/projects/new\""), "but where it was is known");
    let larger = server.post("/projects", "", &refused(&"x".repeat(300 << 10))).await;
    assert_eq!(larger.status().as_u16(), 413);
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_button_leads_back_to_the_page_that_it_is_on(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let delete = "/keys/01890000-0000-7000-8000-000000000000/delete";
    let cookie = ended(&server).await;
    let page = server.post_from("/keys?cursor=x", delete, &cookie, &[]).await.text().await.unwrap();
    let place = kept(&sign_in(&server, &server.admin, sent(&page).unwrap()).await);
    assert!(place.starts_with("/keys?cursor=x&kept="), "{place}");
    // Where nobody says which page that is, it goes where a login leads.
    let page = server.post(delete, "", &[]).await.text().await.unwrap();
    assert!(page.contains("Your session ended") && sent(&page).is_none(), "{page}");
    assert!(page.contains("name=\"next\" value=\"/\""), "{page}");
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_page_says_that_the_session_ended_and_is_there_again(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let cookie = server.as_admin().await;
    sqlx::query("delete from tower_sessions").execute(&pool).await.unwrap();
    for (path, login) in [("/nodes?x=1", "/login?next=%2Fnodes%3Fx%3D1&ended=true"), ("/", "/login?ended=true")] {
        assert_eq!(header(&server.get(path, &cookie).await, "location"), login);
    }
    let page = server.get("/login?next=%2Fnodes%3Fx%3D1&ended=true", "").await.text().await.unwrap();
    assert!(page.contains("Your session ended. Sign in to go on.") && page.contains("value=\"/nodes?x=1\""), "{page}");
    assert!(!server.get("/login", "").await.text().await.unwrap().contains("session ended"));
    for path in ["/jobs/01890000-0000-7000-8000-000000000000/events", "/api/v1/me"] {
        assert_eq!(server.get(path, &cookie).await.status().as_u16(), 401, "{path}");
    }
    server.stop().await;
}
