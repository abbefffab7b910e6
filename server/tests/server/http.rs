//! What a browser meets: login, sessions, refusals, headers, files, health.

use crate::support::{Running, cookie_of, header, set_cookies};
use reqwest::header::{COOKIE, ORIGIN};
use serde_json::{Value, json};
use sqlx::PgPool;

#[sqlx::test(migrations = "../migrations")]
async fn who_is_not_signed_in_is_sent_to_the_login_page(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let answer = server.get("/nodes?x=1", "").await;
    assert_eq!((answer.status().as_u16(), header(&answer, "location")), (303, "/login?next=%2Fnodes%3Fx%3D1"));
    let stream = server.get("/jobs/01890000-0000-7000-8000-000000000000/events", "").await;
    assert_eq!(stream.status().as_u16(), 401);
    let posted = server.post("/keys", "", &[("line", "x")]).await;
    assert_eq!(posted.status().as_u16(), 401);
    assert!(posted.text().await.unwrap().contains("Sign in"));
    assert_eq!(server.get("/login", "").await.status().as_u16(), 200);
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn the_documentation_is_for_who_is_signed_in(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let answer = server.get("/docs/operating", "").await;
    assert_eq!((answer.status().as_u16(), header(&answer, "location")), (303, "/login?next=%2Fdocs%2Foperating"));
    let cookie = server.as_admin().await;
    for (path, expected) in [("/docs", "Operating Corpus"), ("/docs/operating", "<h2 id=\"drift-and-repair\">")] {
        let page = server.get(path, &cookie).await;
        assert_eq!(page.status().as_u16(), 200, "{path}");
        assert!(header(&page, "content-security-policy").contains("style-src 'self';"), "{path}");
        assert!(page.text().await.unwrap().contains(expected), "{path}");
    }
    let found = server.get("/docs?q=seal+key", &cookie).await.text().await.unwrap();
    assert!(found.contains("<mark>seal") && found.contains("/docs/operating#passwords-and-keys"), "{found}");
    for nothing in ["/docs/operating.md", "/docs/openapi.json", "/docs/..%2FREADME", "/docs/api/tokens"] {
        assert_eq!(server.get(nothing, &cookie).await.status().as_u16(), 404, "{nothing}");
    }
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn signing_in_makes_a_new_session_and_signing_out_ends_it(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let first = server.sign_in("", "admin", &server.admin).await;
    assert_eq!((first.status().as_u16(), header(&first, "location")), (303, "/nodes"));
    let flags = set_cookies(&first).remove(0);
    for flag in ["corpus=", "HttpOnly", "SameSite=Lax", "Path=/"] {
        assert!(flags.contains(flag), "{flags}");
    }
    assert!(!flags.contains("Secure") && !flags.contains("Domain"), "{flags}");

    let planted = cookie_of(&first);
    assert_eq!(server.get("/", &planted).await.status().as_u16(), 200);
    let second = cookie_of(&server.sign_in(&planted, "admin", &server.admin).await);
    assert_ne!(planted, second, "the id changes at login");
    assert_eq!(server.get("/", &planted).await.status().as_u16(), 303, "the id from before is worth nothing");
    assert_eq!(server.get("/", &second).await.status().as_u16(), 200);

    let out = server.post("/logout", &second, &[]).await;
    assert_eq!((out.status().as_u16(), header(&out, "location")), (303, "/login"));
    assert_eq!(server.get("/", &second).await.status().as_u16(), 303);
    let made_up = server.sign_in("corpus=AAAAAAAAAAAAAAAAAAAAAA", "admin", &server.admin).await;
    assert_ne!(cookie_of(&made_up), "corpus=AAAAAAAAAAAAAAAAAAAAAA");
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_password_that_is_reset_ends_every_session(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let [first, second] = [server.as_admin().await, server.as_admin().await];
    for cookie in [&first, &second] {
        assert_eq!(server.get("/keys", cookie).await.status().as_u16(), 200);
    }
    // As the command does, beside the server.
    let password = corpus_server::login::Accounts::new(pool.clone().into()).reset_admin().await.unwrap();
    for cookie in [&first, &second] {
        assert_eq!(server.get("/keys", cookie).await.status().as_u16(), 303);
    }
    // One that is kept after its epoch, by a login that was under way.
    let epoch = "insert into tower_sessions (id, data, expiry_date)
                 select $1, jsonb_build_object('member', id::text, 'epoch', epoch - 1), now() + interval '1 hour' from users";
    sqlx::query(epoch).bind("AAAAAAAAAAAAAAAAAAAAAA").execute(&pool).await.unwrap();
    assert_eq!(server.get("/keys", "corpus=AAAAAAAAAAAAAAAAAAAAAA").await.status().as_u16(), 303);
    assert_eq!(server.sign_in("", "admin", &server.admin).await.status().as_u16(), 401);
    let again = server.sign_in("", "admin", secrecy::ExposeSecret::expose_secret(&password)).await;
    assert_eq!(server.get("/keys", &cookie_of(&again)).await.status().as_u16(), 200);
    let audited: i64 =
        sqlx::query_scalar("select (detail ->> 'sessions')::bigint from audit where action = 'password.reset'")
            .fetch_one(&pool)
            .await
            .unwrap();
    assert_eq!(audited, 2);
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn live_events_end_with_their_session(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let cookie = server.as_admin().await;
    // One that another server works on.
    let job: String = sqlx::query_scalar(
        "insert into jobs (id, kind, title, params, dag, state, owner, generation, lease_until)
         values (gen_random_uuid(), 'node_link', 'x', '{}', '{}', 'running', gen_random_uuid(), 1, now() + interval '1 hour')
         returning id::text",
    )
    .fetch_one(&pool)
    .await
    .unwrap();
    let mut stream = server.get(&format!("/jobs/{job}/events"), &cookie).await;
    assert_eq!(stream.status().as_u16(), 200);
    sqlx::query("delete from tower_sessions").execute(&pool).await.unwrap();
    let ended = async { while let Ok(Some(_)) = stream.chunk().await {} };
    tokio::time::timeout(std::time::Duration::from_secs(50), ended).await.expect("it goes on");
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn over_https_the_cookie_is_bound_to_the_host(pool: PgPool) {
    let server = Running::start(&pool, "public_url = 'https://corpus.example.org'\n").await;
    let answer = server.sign_in("", "admin", &server.admin).await;
    let cookie = set_cookies(&answer).remove(0);
    assert!(cookie.starts_with("__Host-corpus=") && cookie.contains("Secure"), "{cookie}");
    assert_eq!(header(&answer, "strict-transport-security"), "max-age=31536000");
    let out = server.post("/logout", &cookie_of(&answer), &[]).await;
    let removal = set_cookies(&out).remove(0);
    assert!(removal.contains("Max-Age=0") && removal.contains("Secure"), "{removal}");
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_wrong_password_is_refused_and_not_shown_again(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let wrong = server.sign_in("", "admin", "s3cret-wrong").await;
    assert_eq!(wrong.status().as_u16(), 401);
    assert!(set_cookies(&wrong).is_empty());
    let page = wrong.text().await.unwrap();
    assert!(page.contains("not right") && page.contains("admin") && !page.contains("s3cret-wrong"), "{page}");
    let unknown = server.sign_in("", "nobody", "s3cret-wrong").await;
    assert_eq!(unknown.status().as_u16(), 401);
    assert!(unknown.text().await.unwrap().contains("not right"));
    assert_eq!(server.sign_in("", "admin", "").await.status().as_u16(), 422);
    server.stop().await;
    let counted: i64 =
        sqlx::query_scalar("select sum(count)::bigint from refused_logins").fetch_one(&pool).await.unwrap();
    assert_eq!(counted, 2);
}

#[sqlx::test(migrations = "../migrations")]
async fn too_many_attempts_wait(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    for _ in 0..5 {
        assert_eq!(server.sign_in("", "admin", "wrong").await.status().as_u16(), 401);
    }
    let refused = server.sign_in("", "admin", &server.admin).await;
    assert_eq!(refused.status().as_u16(), 429);
    let wait: u64 = header(&refused, "retry-after").parse().unwrap();
    assert!((1..=12).contains(&wait), "{wait}");
    assert!(refused.text().await.unwrap().contains("Too many attempts"));
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_form_of_another_site_is_refused(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let cookie = server.as_admin().await;
    let send = |name: &'static str, value: &'static str| {
        let request = server.client.post(format!("{}/keys", server.url)).header("cookie", &cookie);
        request.header(name, value).body("line=x").send()
    };
    for (name, value) in [
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("x-nothing", "said"),
    ] {
        let answer = send(name, value).await.unwrap();
        assert_eq!(answer.status().as_u16(), 403, "{name}: {value}");
    }
    assert_ne!(send("sec-fetch-site", "same-origin").await.unwrap().status().as_u16(), 403);
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn only_a_page_without_words_of_others_is_compressed(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let cookie = server.as_admin().await;
    let asked = |request: reqwest::RequestBuilder| request.header(COOKIE, &cookie).header("accept-encoding", "gzip");
    sqlx::query("insert into projects (id, name) values (gen_random_uuid(), 'atlas')").execute(&pool).await.unwrap();
    let of_links = ["/tokens/words/delete", "/keys/words/delete", "/notices/words/read", "/names/words/delete"]
        .into_iter()
        .chain(["/projects/atlas/members/words", "//guests", "/guests/", "/guests?q=a", "/api/v1/guests"]);
    let own = ["/", "/guests", "/docs", "/docs/operating", "/tokens", "/projects/atlas"].map(|path| (path, true, 200));
    let nowhere = ["/words", "/projects/words", "/docs/no-words", "/api/words"].map(|path| (path, false, 404));
    for (path, compressed, status) in own.into_iter().chain(of_links.map(|path| (path, false, 200))).chain(nowhere) {
        let answer = asked(server.client.get(format!("{}{path}", server.url))).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{path}");
        assert_eq!(header(&answer, "content-encoding") == "gzip", compressed, "{path}");
        assert_eq!(header(&answer, "vary").contains("accept-encoding"), compressed, "{path}");
    }
    let form = asked(server.client.post(format!("{}/tokens", server.url))).header(ORIGIN, &server.url);
    let shown = form
        .header("content-type", "application/x-www-form-urlencoded")
        .body("name=ci&scope=read&days=1&_page=/tokens");
    let shown = shown.send().await.unwrap();
    assert_eq!(header(&shown, "content-encoding"), "", "what may show a secret is sent as it is");
    assert!(shown.text().await.unwrap().contains("corpus_"), "the token is in it");
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_notice_is_read_by_looking_at_its_job(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let cookie = server.as_admin().await;
    let job = "insert into jobs (id, kind, title, params, dag, state, created_by, ended_at)
        select gen_random_uuid(), 'node_repair', 'Repair node', '{}', '{}', 'done', id, now() from users returning id";
    let job: uuid::Uuid = sqlx::query_scalar(job).fetch_one(&pool).await.unwrap();
    let news = json!({ "type": "job", "job": job, "kind": "node_repair", "title": "Repair node", "state": "done", "reason": null });
    let notice = "insert into notices (id, user_id, event, news, for_ops)
        select gen_random_uuid(), id, $1, $2, true from users";
    let notice = sqlx::query(notice).bind(format!("job:{job}:done:0")).bind(news);
    notice.execute(&pool).await.unwrap();
    let read = async || {
        let read = sqlx::query_scalar::<_, bool>("select read_at is not null from notices");
        read.fetch_one(&pool).await.unwrap()
    };
    // What a browser fetches for later, or for a window that nobody sees, is looked at by nobody.
    for (name, value) in [("sec-purpose", "prefetch"), ("corpus-unseen", "1")] {
        let asked = server.client.get(format!("{}/jobs/{job}", server.url)).header(COOKIE, &cookie).header(name, value);
        assert_eq!(asked.send().await.unwrap().status().as_u16(), 200);
        tokio::time::sleep(std::time::Duration::from_millis(800)).await;
        assert!(!read().await, "{name}");
    }
    let page = server.get("/jobs", &cookie).await.text().await.unwrap();
    assert!(page.contains("Notices, 1 unread"), "{page}");
    assert_eq!(server.get(&format!("/jobs/{job}"), &cookie).await.status().as_u16(), 200);
    for _ in 0..50 {
        if read().await {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert!(read().await);
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn every_answer_has_the_security_headers(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    for path in ["/login", "/healthz", "/pkg/corpus.css", "/pkg/none.js", "/nodes"] {
        let answer = server.get(path, "").await;
        assert_eq!(header(&answer, "x-content-type-options"), "nosniff", "{path}");
        assert_eq!(header(&answer, "referrer-policy"), "same-origin", "{path}");
        assert!(header(&answer, "content-security-policy").contains("frame-ancestors 'none'"), "{path}");
        assert!(!header(&answer, "content-security-policy").contains("script-src 'unsafe-inline'"), "{path}");
        assert!(!header(&answer, "permissions-policy").is_empty(), "{path}");
        assert!(!header(&answer, "x-request-id").is_empty(), "{path}");
    }
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn files_are_served_compressed_and_kept(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let get = server.client.get(format!("{}/pkg/corpus.0123456789.js", server.url));
    let answer = get.header("accept-encoding", "br").send().await.unwrap();
    assert_eq!(header(&answer, "content-encoding"), "br");
    assert_eq!(header(&answer, "content-type"), "text/javascript");
    assert!(header(&answer, "cache-control").contains("immutable"));
    let plain = server.get("/pkg/corpus.css", "").await;
    assert!(!header(&plain, "cache-control").contains("immutable"));
    for path in ["/pkg/..%2f..%2fdata/seal.key", "/pkg/%2fetc/passwd", "/fonts/..%5c..%5cdata"] {
        assert_eq!(server.get(path, "").await.status().as_u16(), 404, "no way out of the folder: {path}");
    }
    let page = server.get("/login", "").await.text().await.unwrap();
    assert!(page.contains("/pkg/corpus.0123456789.js"), "the names of hash.txt are used: {page}");
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn unknown_pages_and_ids_are_404(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let cookie = server.as_admin().await;
    for path in ["/nowhere", "/nodes/01890000-0000-7000-8000-000000000000", "/jobs/x/events"] {
        assert_eq!(server.get(path, &cookie).await.status().as_u16(), 404, "{path}");
    }
    for path in ["/nowhere", "/guests/no-id/start", "/guests/01890000-0000-7000-8000-000000000000/stop"] {
        assert_eq!(server.post(path, &cookie, &[]).await.status().as_u16(), 404, "{path}");
    }
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_large_body_is_refused(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let cookie = server.as_admin().await;
    let answer = server.post("/keys", &cookie, &[("line", &"x".repeat(300 * 1024))]).await;
    assert_eq!(answer.status().as_u16(), 413);
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_refused_form_comes_back_with_its_values(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let cookie = server.as_admin().await;
    let form = [("step", "probe"), ("address", "a;b"), ("port", "70000"), ("password", "hush-hush")];
    let answer = server.submit("/nodes/link", &cookie, &form).await;
    assert_eq!(answer.status().as_u16(), 422);
    let page = answer.text().await.unwrap();
    assert!(page.contains("a;b") && page.contains("70000") && !page.contains("hush-hush"), "{page}");
    let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA";
    let answer = server.submit("/keys", &cookie, &[("line", key)]).await;
    assert_eq!(answer.status().as_u16(), 422);
    assert!(!answer.text().await.unwrap().contains("b3BlbnNzaC1rZXktdjEAAAAA"), "a private key is never shown again");
    server.stop().await;
}

/// What is wrong with a gateway is said beside its fields, and its password is in no answer.
#[sqlx::test(migrations = "../migrations")]
async fn a_gateway_is_asked_first(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let cookie = server.as_admin().await;
    let first = [
        ("step", "probe"),
        ("address", "192.0.2.7"),
        ("port", "22"),
        ("user", "root"),
        ("environments", "dev"),
        ("gateway_address", "127.0.0.1"),
        ("gateway_port", "1"),
        ("gateway_user", "hop"),
    ];
    let answer = server.submit("/nodes/link", &cookie, &first).await;
    assert_eq!(answer.status().as_u16(), 422);
    let page = answer.text().await.unwrap();
    assert!(page.contains("href=\"#f-gateway_address\"") && page.contains("refused"), "{page}");
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICtZB/UHmRfIQ9w50MXZ1k2rRC9DQIwTl3SL5yoFAIvF";
    let of_key = [("gateway_host_key", key), ("_gateway_fingerprint", "SHA256:x"), ("gateway_password", "hush-hush")];
    let second = [&[("step", "host")], &first[1..], &of_key].concat();
    let answer = server.submit("/nodes/link", &cookie, &second).await;
    assert_eq!(answer.status().as_u16(), 422);
    let page = answer.text().await.unwrap();
    assert!(page.contains("Gateway 127.0.0.1:1: the connection was refused"), "{page}");
    assert!(page.contains("Step 2 of 3") && page.contains("permitopen=") && !page.contains("hush-hush"), "{page}");
    let back = [&[("step", "back")], &first[1..], &of_key].concat();
    let page = server.submit("/nodes/link", &cookie, &back).await.text().await.unwrap();
    assert!(page.contains("Step 1 of 3") && !page.contains("SHA256:x"), "{page}");
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_key_is_added_by_the_form(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let cookie = server.as_admin().await;
    let line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJeZ0C1Jb2kFTGtzMxYhCDeV0Zy0nWQ6m5nM8cC7XyQk someone@example.org";
    let answer = server.post("/keys", &cookie, &[("line", line)]).await;
    assert_eq!((answer.status().as_u16(), header(&answer, "location")), (303, "/keys"));
    assert_eq!(server.post("/keys", &cookie, &[("line", line)]).await.status().as_u16(), 422, "twice");
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn health_tells_life_from_readiness(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    assert_eq!(server.get("/healthz", "").await.status().as_u16(), 200);
    assert_eq!(server.get("/readyz", "").await.text().await.unwrap(), r#"{"ready":true,"reasons":[]}"#);
    sqlx::query("delete from _sqlx_migrations where version = 1").execute(&pool).await.unwrap();
    let unready = server.get("/readyz", "").await;
    assert_eq!(unready.status().as_u16(), 503);
    assert!(unready.text().await.unwrap().contains("migrations are missing"));
    assert_eq!(server.get("/healthz", "").await.status().as_u16(), 200);
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn the_theme_is_kept_and_leads_nowhere_else(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let answer = server.post("/theme", "", &[("theme", "dark"), ("next", "//evil.example")]).await;
    assert_eq!((answer.status().as_u16(), header(&answer, "location")), (303, "/"));
    assert!(set_cookies(&answer).remove(0).starts_with("theme=dark;"));
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn a_git_server_where_one_is_configured(pool: PgPool) {
    use tokio::io::AsyncReadExt;
    let server = Running::start(&pool, "[git]\nlisten = '127.0.0.1:0'\n").await;
    let mut stream = tokio::net::TcpStream::connect(server.git.unwrap()).await.unwrap();
    let mut greeting = [0; 16];
    stream.read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"SSH-2.0-corpus\r\n");
    let address = server.git.unwrap();
    server.stop().await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "it listens on");
}

/// What an island asks of the one server function.
async fn ask(server: &Running, cookie: &str, origin: &str, id: &str, operation: Value) -> (u16, Value) {
    let request = server.client.post(format!("{}/fn/ask", server.url)).header(COOKIE, cookie).header(ORIGIN, origin);
    let response = request.json(&json!({ "id": id, "operation": operation })).send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap_or_default())
}

#[sqlx::test(migrations = "../migrations")]
async fn islands_ask_what_the_api_answers(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let (cookie, url) = (server.as_admin().await, server.url.clone());
    let asks = |id: &'static str, operation: Value| ask(&server, &cookie, &url, id, operation);
    let (status, made) = asks("create_project", json!({ "name": "atlas" })).await;
    assert_eq!((status, &made["project"]), (200, &json!("atlas")), "{made}");
    let (status, found) = asks("search", json!({ "q": "atl" })).await;
    assert_eq!((status, &found["items"][0]["path"]), (200, &json!("/projects/atlas")), "{found}");
    // As it was typed into a form.
    let typed = json!([["project", " atlas "], ["environment", "dev"], ["size", "huge"], ["memory", ""], ["cpu", "x"]]);
    let (status, problem) = asks("preview_guest", typed).await;
    let wrong: Vec<_> = problem["errors"].as_array().unwrap().iter().map(|wrong| wrong["field"].clone()).collect();
    assert_eq!((status, wrong), (422, vec![json!("size"), json!("cpu")]), "{problem}");
    let (status, problem) = asks("search", json!({ "q": "x", "all": true })).await;
    assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!("all")));
    assert_eq!(asks("drop_tables", json!({})).await.0, 404);
    assert_eq!(asks("search", json!("x")).await.0, 400);
    assert_eq!(ask(&server, "", &url, "search", json!({ "q": "x" })).await.0, 401);
    let (status, _) =
        ask(&server, &cookie, "https://evil.example", "create_project", json!({ "name": "borealis" })).await;
    assert_eq!(status, 403);
    server.stop().await;
}

/// Who is to trust the root of the authority has no account here; its key is nowhere.
#[sqlx::test(migrations = "../migrations")]
async fn the_root_of_certificates_is_for_everybody(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let answer = server.get("/certificates/root.pem", "").await;
    assert_eq!(answer.status().as_u16(), 200);
    assert_eq!(answer.headers()["cache-control"], "public, max-age=3600");
    assert!(answer.headers()["content-disposition"].to_str().unwrap().contains("corpus-root.pem"));
    let root = answer.text().await.unwrap();
    assert!(root.starts_with("-----BEGIN CERTIFICATE-----") && !root.contains("PRIVATE"), "{root}");
    server.stop().await;
}
