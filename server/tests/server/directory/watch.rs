//! What changes in the directory while members are signed in, with a second between rounds.

use std::time::{Duration, Instant};

use sqlx::PgPool;

use super::slapd::Slapd;
use crate::support::{Running, cookie_of};

/// More than one round, on a busy machine.
const WAIT_LIMIT: Duration = Duration::from_secs(15);

async fn is_in(server: &Running, cookie: &str) -> bool {
    server.get("/nodes", cookie).await.status().as_u16() == 200
}

async fn is_refused_soon(server: &Running, cookie: &str) -> bool {
    let limit = Instant::now() + WAIT_LIMIT;
    while is_in(server, cookie).await {
        if Instant::now() > limit {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    true
}

async fn sign_in(server: &Running, login: &str, password: &str) -> String {
    let cookie = cookie_of(&server.sign_in("", login, password).await);
    assert!(is_in(server, &cookie).await);
    cookie
}

async fn count(pool: &PgPool, query: &'static str) -> i64 {
    sqlx::query_scalar(query).fetch_one(pool).await.unwrap()
}

const SESSIONS: &str = "select count(*) from tower_sessions";
const DISABLED: &str = "select count(*) from users where disabled_at is not null";
const SHOP: &str = "select count(*) from memberships m join projects p on p.id = m.project_id where p.name = 'shop'";

#[sqlx::test(migrations = "../migrations")]
async fn who_is_disabled_or_removed_is_out_within_a_round(pool: PgPool) {
    let slapd = Slapd::start();
    let server = Running::start(&pool, &slapd.section()).await;
    let alice = sign_in(&server, "alice", "wonder").await;
    let bob = sign_in(&server, "bob", "builder").await;
    let admin = server.as_admin().await;

    slapd.change(
        "dn: uid=bob,ou=people,dc=example,dc=org\nchangetype: modify\nadd: employeeType\nemployeeType: disabled\n",
    );
    assert!(is_refused_soon(&server, &bob).await, "bob is still in");
    assert!(is_in(&server, &alice).await);
    assert_eq!(count(&pool, SESSIONS).await, 2, "those of alice and the administrator");

    slapd.change("dn: uid=alice,ou=people,dc=example,dc=org\nchangetype: delete\n");
    assert!(is_refused_soon(&server, &alice).await, "alice is still in");
    assert!(is_in(&server, &admin).await, "a local account is not in the directory");

    slapd.change("dn: uid=bob,ou=people,dc=example,dc=org\nchangetype: modify\ndelete: employeeType\n");
    assert!(!is_in(&server, &bob).await);
    sign_in(&server, "bob", "builder").await;
    server.stop().await;
}

#[sqlx::test(migrations = "../migrations")]
async fn who_leaves_a_group_loses_the_role(pool: PgPool) {
    let slapd = Slapd::start();
    let server = Running::start(&pool, &slapd.section()).await;
    let bob = sign_in(&server, "bob", "builder").await;
    assert_eq!(count(&pool, SHOP).await, 1);
    slapd.change(
        "dn: cn=project-shop-developers,ou=groups,dc=example,dc=org\nchangetype: modify\nreplace: member\n\
         member: uid=alice,ou=people,dc=example,dc=org\n",
    );
    let limit = Instant::now() + WAIT_LIMIT;
    while count(&pool, SHOP).await != 0 {
        assert!(Instant::now() < limit, "bob still has the role");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(is_in(&server, &bob).await);
    assert_eq!(count(&pool, "select count(*) from memberships").await, 1, "the role in blog");
    assert_eq!(count(&pool, "select count(*) from audit where action = 'member.roles'").await, 1);
    server.stop().await;
}

/// Neither a directory that refuses the questions nor one that is down says that somebody is gone.
#[sqlx::test(migrations = "../migrations")]
async fn nobody_is_disabled_while_the_directory_can_not_be_asked(pool: PgPool) {
    let mut slapd = Slapd::start();
    let server = Running::start(&pool, &slapd.section()).await;
    let alice = sign_in(&server, "alice", "wonder").await;
    let bob = sign_in(&server, "bob", "builder").await;
    let rename = |from: &str, to: &str| {
        format!("dn: ou={from},dc=example,dc=org\nchangetype: modrdn\nnewrdn: ou={to}\ndeleteoldrdn: 1\n")
    };
    slapd.change(&rename("people", "elsewhere"));
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert!(is_in(&server, &alice).await && is_in(&server, &bob).await);

    slapd.change(&rename("elsewhere", "people"));
    slapd.change("dn: uid=alice,ou=people,dc=example,dc=org\nchangetype: delete\n");
    assert!(is_refused_soon(&server, &alice).await, "the rounds go on after those that failed");

    slapd.stop();
    tokio::time::sleep(Duration::from_millis(3500)).await;
    assert!(is_in(&server, &bob).await);
    assert_eq!((count(&pool, DISABLED).await, count(&pool, SHOP).await), (1, 1));
    server.stop().await;
}
