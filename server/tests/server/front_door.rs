//! Many wrong logins, many live events, forms that never end, and many browsers, on a real server.

use std::time::Duration;

use crate::support::{Running, header};
use futures::StreamExt;
use sqlx::PgPool;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const LIMIT: Duration = Duration::from_mins(1);
const ATTEMPTS: u32 = 2_000;

/// Passwords that were typed as logins, and a login that nobody has, are nowhere afterwards.
#[sqlx::test(migrations = "../migrations")]
async fn refused_logins_are_counted_and_what_is_no_login_is_not_kept(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    for login in ["admin", "ADMIN", "correct horse battery", "Tr0ub4dor", &"x".repeat(5_000)] {
        assert_eq!(server.sign_in("", login, "wrong").await.status().as_u16(), 401, "{login}");
    }
    server.stop().await;
    let rows: Vec<(String, String, i64)> =
        sqlx::query_as("select login, reason, count from refused_logins order by login")
            .fetch_all(&pool)
            .await
            .unwrap();
    let reason = "wrong login or password".to_owned();
    assert_eq!(rows, [(String::new(), reason.clone(), 3), ("admin".to_owned(), reason, 2)]);
    let audited: i64 =
        sqlx::query_scalar("select count(*) from audit where action like 'login.%'").fetch_one(&pool).await.unwrap();
    assert_eq!(audited, 0);
}

/// From behind a proxy that says where each comes from.
#[sqlx::test(migrations = "../migrations")]
async fn many_wrong_logins_leave_few_rows_and_keep_nobody_out(pool: PgPool) {
    let server = Running::start(&pool, "trusted_proxies = ['127.0.0.1']\n").await;
    let sign_in = |from: String, password: String| {
        let form = [("login", "admin"), ("password", password.as_str())];
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request = server.client.post(format!("{}/login", server.url)).header("x-forwarded-for", from);
        let request = request.header("origin", &server.url).header("content-type", "application/x-www-form-urlencoded");
        let sending = request.body(body).send();
        async move { sending.await.unwrap().status().as_u16() }
    };
    let right = server.admin.clone();
    assert_eq!(sign_in("198.51.100.7".to_owned(), right.clone()).await, 303, "the administrator's own address");
    let mut told = std::collections::BTreeMap::new();
    let froms = (0..ATTEMPTS).map(|n| format!("10.{}.{}.{}", n % 50, (n / 50) % 40, n % 7));
    let tries = futures::stream::iter(froms.map(|from| sign_in(from, "wrong".to_owned())));
    for status in tries.buffer_unordered(16).collect::<Vec<u16>>().await {
        *told.entry(status).or_insert(0) += 1;
    }
    assert_eq!(told.keys().copied().collect::<Vec<_>>(), [401, 429], "{told:?}");
    assert!(told[&401] < 300, "{told:?}");
    assert_eq!(sign_in("198.51.100.7".to_owned(), right.clone()).await, 303, "it is not kept out where it was before");
    server.stop().await;
    let (rows, counted): (i64, i64) =
        sqlx::query_as("select count(*), sum(count)::bigint from refused_logins where login = 'admin'")
            .fetch_one(&pool)
            .await
            .unwrap();
    assert_eq!(counted, i64::from(ATTEMPTS));
    assert!(rows <= 1_000, "{rows} rows");
}

#[sqlx::test(migrations = "../migrations")]
async fn a_browser_has_so_many_live_events_and_no_more(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let cookie = server.as_admin().await;
    let job = crate::crowd::seed(&pool).await.job;
    let path = format!("/jobs/{job}/events");
    let mut open = Vec::new();
    for _ in 0..12 {
        let events = server.get(&path, &cookie).await;
        assert_eq!(events.status().as_u16(), 200);
        open.push(events);
    }
    let refused = server.get(&path, &cookie).await;
    assert_eq!((refused.status().as_u16(), header(&refused, "retry-after")), (429, "15"));
    let mut cookies = vec![cookie];
    while open.len() < 48 {
        if open.len() % 12 == 0 {
            cookies.push(server.as_admin().await);
        }
        open.push(server.get(&path, cookies.last().unwrap()).await);
    }
    let another = server.as_admin().await;
    assert_eq!(server.get(&path, &another).await.status().as_u16(), 429, "and so has a member");
    assert_eq!(server.get("/", &another).await.status().as_u16(), 200, "pages are there");
    open.clear();
    let free = async {
        while server.get(&path, &another).await.status().as_u16() != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(LIMIT, free).await.expect("places are given back");
    server.stop().await;
}

/// All but the last byte of a form, and a body that has no end.
#[sqlx::test(migrations = "../migrations")]
async fn a_body_without_an_end_is_not_waited_for(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let address = server.url.strip_prefix("http://").unwrap().to_owned();
    let head = format!("POST /login HTTP/1.1\r\nhost: {address}\r\norigin: {}\r\n", server.url);
    let ask = async |rest: &str| {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream
            .write_all(format!("{head}content-type: application/x-www-form-urlencoded\r\n{rest}").as_bytes())
            .await
            .unwrap();
        stream
    };
    let mut short = ask("content-length: 20\r\n\r\nlogin=a").await;
    let mut endless = ask("transfer-encoding: chunked\r\n\r\n").await;
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000));
    for _ in 0..200 {
        if endless.write_all(chunk.as_bytes()).await.is_err() {
            break;
        }
    }
    for (stream, status) in [(&mut endless, "HTTP/1.1 413 "), (&mut short, "HTTP/1.1 408 ")] {
        let mut told = vec![0; 13];
        let told = match tokio::time::timeout(LIMIT, stream.read_exact(&mut told)).await.expect("it is waited for") {
            Ok(_) => String::from_utf8(told).unwrap(),
            // It was closed while it still sent.
            Err(_) if status.contains("413") => continue,
            Err(error) => panic!("{status}: {error}"),
        };
        assert_eq!(told, status);
    }
    server.stop().await;
}

/// A short form of `scripts/crowd`.
#[sqlx::test(migrations = "../migrations")]
async fn two_hundred_browsers_on_every_page_get_every_answer(pool: PgPool) {
    let server = Running::start(&pool, "").await;
    let place = crate::crowd::seed(&pool).await;
    let cookies = crate::crowd::sessions(&pool, &place.members).await;
    let crowd = crate::crowd::Crowd { url: server.url.clone(), cookies, paths: place.paths };
    let told = crowd.visit(200, Duration::from_secs(5)).await;
    assert_eq!(told.errors, Vec::<String>::new());
    assert!(told.answers() >= 200, "{} answers", told.answers());
    server.stop().await;
}
