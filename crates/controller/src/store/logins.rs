//! Logins: those that were refused, counted; and the networks from which members signed in.
//!
//! Both are bounded, whatever is tried: an hour has so many rows and what is beyond shares some,
//! they go after a month, and a member's networks are the last few.

use chrono::{DateTime, Utc};
use corpus_api::logins::{ListRefusedLogins, RefusedLogin};
use corpus_domain::UserName;
use sqlx::PgConnection;

/// Rows of an hour before networks are told apart no more.
const ROWS_AN_HOUR: i64 = 500;
/// The networks of a login that are kept.
const PLACES: i64 = 20;

/// Logins that were refused, of one login from one network for one reason.
#[derive(Debug, Clone)]
pub struct RefusedLogins {
    /// What was typed, if it can be a login.
    pub login: Option<UserName>,
    /// The network; none for several together.
    pub network: Option<String>,
    /// Why.
    pub reason: &'static str,
    /// The first of them.
    pub first: DateTime<Utc>,
    /// The last of them.
    pub last: DateTime<Utc>,
    /// How many.
    pub count: i64,
}

/// Adds to the counts of the hour, and forgets those that are old. What is no login of an account
/// that is known here is not kept.
pub async fn refused(conn: &mut PgConnection, new: &[RefusedLogins]) -> sqlx::Result<()> {
    let text = |login: &RefusedLogins| login.login.as_ref().map_or_else(String::new, ToString::to_string);
    let logins: Vec<String> = new.iter().map(text).collect();
    let networks: Vec<String> = new.iter().map(|one| one.network.clone().unwrap_or_default()).collect();
    let reasons: Vec<String> = new.iter().map(|one| one.reason.to_owned()).collect();
    let firsts: Vec<DateTime<Utc>> = new.iter().map(|one| one.first).collect();
    let lasts: Vec<DateTime<Utc>> = new.iter().map(|one| one.last).collect();
    let counts: Vec<i64> = new.iter().map(|one| one.count).collect();
    sqlx::query!(
        r#"
        with room as (
            select count(*) < $7 as left from refused_logins where hour = date_trunc('hour', now())
        ), known as (
            select date_trunc('hour', now()) as hour,
                case when exists (select from users u where u.login = new.login)
                    or exists (select from local_accounts a where a.login = new.login) then new.login else '' end as login,
                case when room.left then new.network else '' end as network,
                new.reason, new.first_at, new.last_at, new.count
            from room, unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::timestamptz[], $6::bigint[])
                as new (login, network, reason, first_at, last_at, count)
        )
        insert into refused_logins as kept (hour, login, network, reason, first_at, last_at, count)
        select hour, login, network, reason, min(first_at), max(last_at), sum(count)::bigint
        from known group by hour, login, network, reason
        on conflict (hour, login, network, reason) do update set
            first_at = least(kept.first_at, excluded.first_at),
            last_at = greatest(kept.last_at, excluded.last_at),
            count = kept.count + excluded.count
        "#,
        &logins,
        &networks,
        &reasons,
        &firsts,
        &lasts,
        &counts,
        ROWS_AN_HOUR,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!("delete from refused_logins where hour < now() - interval '30 days'").execute(conn).await.map(drop)
}

/// A row of refused logins, with its place in the list.
#[derive(Debug)]
pub struct Row {
    /// What is shown of it.
    pub login: RefusedLogin,
    hour: DateTime<Utc>,
}

/// Where a row stands in the list.
pub type Place = (DateTime<Utc>, DateTime<Utc>, String, String, String);

impl Row {
    /// Where it stands.
    pub fn place(&self) -> Place {
        let RefusedLogin { last_at, login, network, reason, .. } = &self.login;
        (*last_at, self.hour, login.clone(), network.clone(), reason.clone())
    }
}

/// Refused logins that match, the newest first, those before a place in the order.
pub async fn list(
    conn: &mut PgConnection,
    asked: &ListRefusedLogins,
    before: Option<Place>,
    limit: i64,
) -> sqlx::Result<Vec<Row>> {
    let (last_at, hour, login, network, reason) = before.map_or((None, None, None, None, None), |before| {
        (Some(before.0), Some(before.1), Some(before.2), Some(before.3), Some(before.4))
    });
    let rows = sqlx::query!(
        "select hour, login, network, reason, first_at, last_at, count from refused_logins
         where ($1::text is null or login = $1)
           and ($2::timestamptz is null or (last_at, hour, login, network, reason) < ($2, $3::timestamptz, $4::text, $5::text, $6::text))
         order by last_at desc, hour desc, login desc, network desc, reason desc limit $7",
        asked.login.as_ref().map(UserName::as_str),
        last_at,
        hour,
        login,
        network,
        reason,
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    Ok(rows
        .map(|row| {
            let (login, network, reason) = (row.login, row.network, row.reason);
            let (first_at, last_at, count) = (row.first_at, row.last_at, row.count);
            Row { login: RefusedLogin { login, network, reason, first_at, last_at, count }, hour: row.hour }
        })
        .collect())
}

/// Keeps that a member signed in from a network.
pub async fn signed_in_from(conn: &mut PgConnection, login: &UserName, network: &str) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into login_places (login, network) values ($1, $2)
         on conflict (login, network) do update set last_at = now()",
        login.as_str(),
        network,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "delete from login_places where login = $1 and network not in
             (select network from login_places where login = $1 order by last_at desc limit $2)",
        login.as_str(),
        PLACES,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Whether a member signed in from a network before.
pub async fn knows_place(conn: &mut PgConnection, login: &UserName, network: &str) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (select from login_places where login = $1 and network = $2) as "known!""#,
        login.as_str(),
        network,
    )
    .fetch_one(conn)
    .await
}
