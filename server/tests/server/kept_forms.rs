//! A form is never lost: one that is refused is shown again at an address of its own, to the member who sent
//! it and at its page alone; one that comes when the session has ended goes through the login page.

mod ended;

use crate::support::{Running, cookie_of, header};
use corpus_api::tokens::TokenText;
use futures::StreamExt;
use reqwest::Response;
use sqlx::PgPool;

/// A form of `/projects/new` that is refused, with what else it says.
fn refused(name: &str) -> Vec<(&str, &str)> {
    vec![("name", name), ("_page", "/projects/new"), ("_form", "")]
}

/// Where a refused form is shown again.
fn kept(answer: &Response) -> String {
    let place = header(answer, "location").to_owned();
    assert!(answer.status().as_u16() == 303 && place.contains("kept="), "{answer:?}");
    place
}

async fn read(server: &Running, path: &str, cookie: &str) -> (u16, String) {
    let answer = server.get(path, cookie).await;
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// All that is kept, as text.
async fn rows(pool: &PgPool) -> Vec<String> {
    let all = sqlx::query_scalar("select kept_forms::text from kept_forms order by created_at");
    all.fetch_all(pool).await.unwrap()
}

/// Another member, who signed in.
async fn another(server: &Running, pool: &PgPool) -> String {
    let account = "insert into local_accounts (login, password_hash) select 'dave', password_hash from local_accounts";
    sqlx::query(account).execute(pool).await.unwrap();
    cookie_of(&server.sign_in("", "dave", &server.admin).await)
}

#[sqlx::test(migrations = "../migrations")]
async fn a_refused_form_has_an_address_until_it_goes_through(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let cookie = server.as_admin().await;
    let place = kept(&server.post("/projects", &cookie, &refused("No Name")).await);
    assert!(place.starts_with("/projects/new?kept="), "{place}");
    for _ in 0..2 {
        let (status, page) = read(&server, &place, &cookie).await;
        assert!(status == 422 && page.contains("value=\"No Name\"") && page.contains("id=\"f-name-error\""), "{page}");
        assert!(page.contains("This was not accepted"), "{page}");
    }
    let (status, plain) = read(&server, "/projects/new", &cookie).await;
    assert!(status == 200 && !plain.contains("No Name"), "{plain}");

    // Sent again from there it is the same one; from another window it is another.
    let again = server.post_from(&place, "/projects", &cookie, &refused("Nor This")).await;
    assert_eq!(kept(&again), place);
    assert!(read(&server, &place, &cookie).await.1.contains("Nor This"));
    let other = kept(&server.post("/projects", &cookie, &refused("Another")).await);
    assert_ne!(other, place);

    let done = server.post_from(&place, "/projects", &cookie, &refused("atlas")).await;
    assert_eq!((done.status().as_u16(), header(&done, "location")), (303, "/projects/atlas"));
    let (status, after) = read(&server, &place, &cookie).await;
    assert!(status == 200 && !after.contains("Nor This") && !after.contains("error-summary"), "{after}");
    assert_eq!(read(&server, &other, &cookie).await.0, 422, "that of the other window is still there");
    // The status is the one of what was refused.
    let taken = kept(&server.post("/projects", &cookie, &refused("atlas")).await);
    assert_eq!(read(&server, &taken, &cookie).await.0, 409);
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn another_member_and_another_page_are_shown_nothing_of_it(pool: PgPool) {
    let server = Running::start(&pool, "[projects]\ncreate = 'members'\n").await;
    let cookie = server.as_admin().await;
    let place = kept(&server.post("/projects", &cookie, &refused("No Name")).await);
    let query = place.split_once('?').unwrap().1.to_owned();
    let dave = another(&server, &pool).await;
    let nobody = query.replace(|c: char| c.is_ascii_digit(), "0");
    // An id that is somebody else's, or another page's, is like one that is nobody's.
    for (path, who) in [("/projects/new", &dave), ("/projects", &cookie), ("/keys", &cookie), ("/", &cookie)] {
        let there = read(&server, &format!("{path}?{query}"), who).await;
        let not_there = read(&server, &format!("{path}?{nobody}"), who).await;
        let plain = |(status, page): (u16, String), query: &str| {
            let page = page.split_once("<body").unwrap().1.replace(query, "");
            let (mut left, mut rest) = (String::new(), page.as_str());
            while let Some((before, after)) = rest.split_once("nonce=\"") {
                left.push_str(before);
                rest = after.split_once('"').unwrap().1;
            }
            (status, left + rest)
        };
        assert_eq!(plain(there, &query), plain(not_there, &nobody), "{path}");
    }
    // Nor does it become theirs, or go, by what they send.
    let theirs = kept(&server.post_from(&place, "/projects", &dave, &refused("Of Dave")).await);
    assert_ne!(theirs, place);
    let made = server.post_from(&place, "/projects", &dave, &refused("of-dave")).await;
    assert_eq!(header(&made, "location"), "/projects/of-dave");
    assert!(read(&server, &place, &cookie).await.1.contains("No Name"));
    assert_eq!(server.get(&place, "").await.status().as_u16(), 303, "who is nobody signs in first");
    for wrong in ["kept=", "kept=x", "kept=1'--", "kept=%00", "kept=00000000-0000-0000-0000-000000000000"] {
        assert_eq!(read(&server, &format!("/projects/new?{wrong}"), &cookie).await.0, 200, "{wrong}");
    }
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn no_secret_is_kept(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let cookie = server.as_admin().await;
    let token = TokenText::of(&[7; 32]);
    let pasted = format!("it is {}", token.expose());
    let private = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA";
    let link = [("address", "a;b"), ("password", "hush-hush"), ("_page", "/nodes/link"), ("_form", "")];
    let named = [("name", pasted.as_str()), ("days", "0"), ("_page", "/tokens"), ("_form", "")];
    for (path, form) in [
        ("/nodes", &link[..]),
        ("/nodes/link", &[("step", "probe"), ("address", "a;b"), ("password", "hush-hush")]),
        ("/keys", &[("line", private), ("_page", "/keys"), ("_form", "")]),
        ("/tokens", &named),
    ] {
        let place = kept(&server.post(path, &cookie, form).await);
        let (status, page) = read(&server, &place, &cookie).await;
        assert_eq!(status, 422, "{path}");
        for secret in ["hush", "b3BlbnNzaC1rZXk", &token.expose()[..20]] {
            assert!(!page.contains(secret), "{path} shows {secret}");
            assert!(!rows(&pool).await.concat().contains(secret), "{path} keeps {secret}");
        }
    }
    // What is refused because it tells a secret is shown again without it.
    let told = [("name", "db: {password: hush-hush}"), ("days", "0"), ("_page", "/tokens"), ("_form", "")];
    let place = kept(&server.post("/tokens", &cookie, &told).await);
    let (status, page) = read(&server, &place, &cookie).await;
    assert_eq!(status, 422);
    assert!(page.contains("Type it again: name.") && !page.contains("hush"), "{page}");
    assert!(!rows(&pool).await.concat().contains("hush"));

    // And so is what is shown once: nothing of it stays, nor of what it was before it went through.
    let wrong = [("name", "Jenkins"), ("scope", "read"), ("days", "0"), ("_page", "/tokens"), ("_form", "")];
    let place = kept(&server.post("/tokens", &cookie, &wrong).await);
    let right = [("name", "Jenkins"), ("scope", "read"), ("days", "1"), ("_page", "/tokens"), ("_form", "")];
    let answer = server.post_from(&place, "/tokens", &cookie, &right).await;
    assert_eq!(answer.status().as_u16(), 200);
    assert!(answer.text().await.unwrap().contains("corpus_"));
    assert!(!rows(&pool).await.concat().contains("Jenkins"));
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn what_can_not_be_kept_is_left_out_or_shown_in_the_answer(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let cookie = server.as_admin().await;
    let (long, page) = ("x".repeat(100 << 10), format!("/{}", "x".repeat(3_000)));
    for name in [&long, "No\0Name"] {
        let place = kept(&server.post("/projects", &cookie, &refused(name)).await);
        let (status, page) = read(&server, &place, &cookie).await;
        assert!(status == 422 && page.contains("Type it again: name.") && !page.contains("value=\"x"), "{page}");
    }
    let before = rows(&pool).await;
    for (name, value) in [("_page", page.as_str()), ("_form", &long)] {
        let form = [("name", "No Name"), ("_page", "/projects/new"), (name, value)];
        // The first of a name counts.
        let form: Vec<_> = form.into_iter().rev().collect();
        let status = server.post("/projects", &cookie, &form).await.status().as_u16();
        assert!(matches!(status, 404 | 422), "{name}: {status}");
    }
    assert_eq!(rows(&pool).await, before);
    // The longest settings that are taken are kept.
    let settings = "greeting: hello\n".repeat(4_000);
    kept(&server.post("/projects", &cookie, &refused(&settings)).await);

    sqlx::query("alter table kept_forms rename to lost").execute(&pool).await.unwrap();
    let answer = server.post("/projects", &cookie, &refused("No Name")).await;
    assert_eq!(answer.status().as_u16(), 422);
    assert!(answer.text().await.unwrap().contains("No Name"));
    let there = "/projects/new?kept=01890000-0000-7000-8000-000000000000";
    assert_eq!(read(&server, there, &cookie).await.0, 200);
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_form_leads_to_no_other_site(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let cookie = server.as_admin().await;
    for page in ["//evil.example", "https://evil.example", "/\\evil.example", "/\t/evil.example", "/a\r\nset-cookie: x"]
    {
        let form = [("name", "No Name"), ("_page", page)];
        let place = kept(&server.post("/projects", &cookie, &form).await);
        assert!(place.starts_with("/?kept="), "{page:?}: {place}");
        let ended = server.post("/projects", "", &form).await.text().await.unwrap();
        assert!(ended.contains("name=\"next\" value=\"/\"") && !ended.contains("evil"), "{page:?}: {ended}");
    }
    let form = |page| vec![("name", "No Name"), ("_page", page)];
    let place = kept(&server.post("/projects", &cookie, &form("/projects/new?kept=x&a=1&kept=y#z")).await);
    assert!(place.starts_with("/projects/new?a=1&kept=") && place.matches("kept=").count() == 1, "{place}");
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_form_that_says_no_page_is_shown_where_it_was_sent_from(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let cookie = server.as_admin().await;
    let form = [("name", "No Name")];
    let place = kept(&server.post_from("/projects/new", "/projects", &cookie, &form).await);
    assert!(place.starts_with("/projects/new?kept="), "{place}");
    // Another site's page is none, and without one what is wrong is all that there is to say.
    let elsewhere = server.send("/projects", &cookie, &form, Some("https://evil.example/projects/new")).await;
    assert_eq!(elsewhere.status().as_u16(), 422);
    let answer = server.post("/projects", &cookie, &form).await;
    assert_eq!(answer.status().as_u16(), 422);
    assert!(answer.text().await.unwrap().contains("Not accepted"));
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_thousand_refused_forms_are_few_rows(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let cookie = server.as_admin().await;
    let dave = another(&server, &pool).await;
    let of_dave = kept(&server.post("/keys", &dave, &[("line", "of dave"), ("_page", "/keys")]).await);
    let names: Vec<String> = (0..1_000).map(|n| format!("No Name {n}")).collect();
    let sent = names.iter().map(async |name| server.post("/projects", &cookie, &refused(name)).await.status().as_u16());
    let statuses: Vec<u16> = futures::stream::iter(sent).buffer_unordered(16).collect().await;
    assert!(statuses.iter().all(|status| *status == 303), "{statuses:?}");
    let last = kept(&server.post("/projects", &cookie, &refused("The Last")).await);
    let all = rows(&pool).await;
    assert_eq!(all.len(), 8 + 1, "{all:?}");
    assert!(read(&server, &last, &cookie).await.1.contains("The Last"));
    assert!(read(&server, &of_dave, &dave).await.1.contains("of dave"), "others keep theirs");
    sqlx::query("update kept_forms set created_at = now() - interval '61 minutes'").execute(&pool).await.unwrap();
    let (status, page) = read(&server, &last, &cookie).await;
    assert!(status == 200 && !page.contains("The Last"), "its hour is over");
    sqlx::query("delete from users where login = 'dave'").execute(&pool).await.unwrap();
    assert_eq!(rows(&pool).await.len(), 8, "they go with the member");
    server.stop().await;
}
