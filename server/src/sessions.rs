//! Who is signed in: sessions of tower-sessions, kept in PostgreSQL.
//!
//! The store is ours because the published one does not fit the versions used here. A session
//! holds the id of the member and the member's epoch when it began, and nothing else: roles are
//! read anew for each request, and a session of an earlier epoch is none. The
//! cookie says `Secure` and is bound to the host (`__Host-`) whenever browsers come by https.

use std::time::Duration;

use async_trait::async_trait;
use axum::extract::Request;
use axum::http::header::{COOKIE, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use corpus_database::{Conn, Db};
use corpus_domain::UserId;
use futures::TryFutureExt;
use time::OffsetDateTime;
use tower_sessions::cookie::SameSite;
use tower_sessions::session::{Id, Record};
use tower_sessions::session_store::{Error, Result};
use tower_sessions::{Expiry, Session, SessionManagerLayer, SessionStore, session};

use crate::config::Settings;

const MEMBER: &str = "member";
/// Sessions from before epochs have none, which counts as the first.
const EPOCH: &str = "epoch";

/// Sessions in the table `tower_sessions`.
#[derive(Debug, Clone)]
pub struct Store {
    db: Db,
}

impl Store {
    /// The sessions of this database.
    pub fn new(db: Db) -> Self {
        Self { db }
    }

    /// Whether the session is there, has not expired, and is one of the member's epoch.
    pub async fn holds(&self, id: Id) -> std::result::Result<bool, sqlx::Error> {
        sqlx::query_scalar!(
            r#"select exists (
                select 1 from tower_sessions s join users u on u.id::text = s.data ->> 'member'
                where s.id = $1 and s.expiry_date > now() and u.disabled_at is null
                  and u.epoch = coalesce((s.data ->> 'epoch')::integer, 0)) as "any!""#,
            id.to_string(),
        )
        .fetch_one(&mut *self.db.acquire().await?)
        .await
    }

    /// Deletes what has expired; answers how many.
    pub async fn delete_expired(&self) -> std::result::Result<u64, sqlx::Error> {
        let deleting = sqlx::query!("delete from tower_sessions where expiry_date <= now()");
        let done = deleting.execute(&mut *self.db.acquire().await?).await?;
        Ok(done.rows_affected())
    }

    #[track_caller]
    fn conn(&self) -> impl Future<Output = Result<Conn>> + Send + use<> {
        self.db.acquire().map_err(backend)
    }

    /// Deletes what has expired every ten minutes, for ever.
    pub async fn keep_clean(self) {
        let mut tick = tokio::time::interval(Duration::from_mins(10));
        loop {
            tick.tick().await;
            match self.delete_expired().await {
                Ok(count) => tracing::debug!(count, "deleted expired sessions"),
                Err(error) => tracing::warn!(%error, "expired sessions could not be deleted"),
            }
        }
    }
}

#[async_trait]
impl SessionStore for Store {
    async fn create(&self, record: &mut Record) -> Result<()> {
        for _ in 0..3 {
            let (id, json, expires) = columns(record)?;
            let done = sqlx::query!(
                "insert into tower_sessions (id, data, expiry_date) values ($1, $2, $3) on conflict do nothing",
                id,
                json,
                expires
            )
            .execute(&mut *self.conn().await?)
            .await
            .map_err(backend)?;
            if done.rows_affected() == 1 {
                return Ok(());
            }
            record.id = Id::default();
        }
        Err(Error::Backend("no free session id found".to_owned()))
    }

    /// Changes a session that is there: one that was deleted meanwhile (a logout elsewhere) stays deleted.
    async fn save(&self, record: &Record) -> Result<()> {
        let (id, json, expires) = columns(record)?;
        let saving =
            sqlx::query!("update tower_sessions set data = $2, expiry_date = $3 where id = $1", id, json, expires);
        saving.execute(&mut *self.conn().await?).await.map(drop).map_err(backend)
    }

    async fn load(&self, id: &Id) -> Result<Option<Record>> {
        let loading = sqlx::query!(
            "select data, expiry_date from tower_sessions where id = $1 and expiry_date > now()",
            id.to_string()
        );
        let Some(row) = loading.fetch_optional(&mut *self.conn().await?).await.map_err(backend)? else {
            return Ok(None);
        };
        let data = serde_json::from_value(row.data).map_err(|error| Error::Decode(error.to_string()))?;
        let expiry_date = OffsetDateTime::from_unix_timestamp(row.expiry_date.timestamp())
            .map_err(|error| Error::Decode(error.to_string()))?;
        Ok(Some(Record { id: *id, data, expiry_date }))
    }

    async fn delete(&self, id: &Id) -> Result<()> {
        let deleting = sqlx::query!("delete from tower_sessions where id = $1", id.to_string());
        deleting.execute(&mut *self.conn().await?).await.map(drop).map_err(backend)
    }
}

fn columns(record: &Record) -> Result<(String, serde_json::Value, chrono::DateTime<chrono::Utc>)> {
    let json = serde_json::to_value(&record.data).map_err(|error| Error::Encode(error.to_string()))?;
    let expires = chrono::DateTime::from_timestamp(record.expiry_date.unix_timestamp(), 0)
        .ok_or_else(|| Error::Encode("the expiry date is out of range".to_owned()))?;
    Ok((record.id.to_string(), json, expires))
}

#[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
fn backend(error: sqlx::Error) -> Error {
    Error::Backend(error.to_string())
}

/// The layer that gives each request its session.
pub fn layer(store: Store, settings: &Settings) -> SessionManagerLayer<Store> {
    SessionManagerLayer::new(store)
        .with_name(cookie_name(settings))
        .with_secure(settings.is_https())
        .with_http_only(true)
        .with_same_site(SameSite::Lax)
        .with_path("/")
        .with_expiry(Expiry::OnInactivity(time::Duration::hours(settings.session_hours.into())))
}

/// The name of the session cookie.
pub fn cookie_name(settings: &Settings) -> &'static str {
    if settings.is_https() { "__Host-corpus" } else { "corpus" }
}

/// Whether a request comes with a session, whatever it is worth.
pub fn is_named(settings: &Settings, headers: &HeaderMap) -> bool {
    cookie(headers, cookie_name(settings)).is_some()
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    pairs.find(|(of, _)| of.trim() == name).map(|(_, value)| value.trim())
}

/// The cookie that says who signed in last at a browser, and nothing else: it outlives the session, whose cookie the
/// browser drops when it ends, so that a form that comes later is bound to who typed it.
const LAST_MEMBER: &str = "corpus_last_member";
const A_YEAR_S: u32 = 31_536_000;

/// Who signed in last at the browser of a request, as it says.
pub fn last_member(headers: &HeaderMap) -> Option<UserId> {
    cookie(headers, LAST_MEMBER)?.parse().ok()
}

/// In an answer: who has just signed in. [`secure_removal`] writes it behind the cookie of the session.
#[derive(Debug, Clone)]
pub struct Entered(HeaderValue);

impl Entered {
    /// This member.
    pub fn new(settings: &Settings, member: UserId) -> Option<Self> {
        let secure = if settings.is_https() { "; Secure" } else { "" };
        let text = format!("{LAST_MEMBER}={member}; Path=/; HttpOnly; SameSite=Lax; Max-Age={A_YEAR_S}{secure}");
        text.parse().ok().map(Self)
    }
}

/// Completes the cookie that ends a session: browsers take a `__Host-` cookie only with
/// `Secure`, which tower-sessions leaves out when it removes one.
pub async fn secure_removal(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let cookies: Vec<HeaderValue> = response.headers().get_all(SET_COOKIE).iter().map(with_secure).collect();
    response.headers_mut().remove(SET_COOKIE);
    for cookie in cookies {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    if let Some(Entered(cookie)) = response.extensions_mut().remove() {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

fn with_secure(cookie: &HeaderValue) -> HeaderValue {
    match cookie.to_str() {
        Ok(text) if text.starts_with("__Host-") && !text.contains("; Secure") => {
            HeaderValue::try_from(format!("{text}; Secure")).unwrap_or_else(|_| cookie.clone())
        }
        _ => cookie.clone(),
    }
}

/// The member of a session, and the epoch in which it began.
pub async fn member(session: &Session) -> std::result::Result<Option<(UserId, i32)>, session::Error> {
    let Some(member) = session.get(MEMBER).await? else { return Ok(None) };
    Ok(Some((member, session.get(EPOCH).await?.unwrap_or_default())))
}

/// Signs a member in: the session gets a new id, so that one planted before is worth nothing.
pub async fn sign_in(session: &Session, member: UserId, epoch: i32) -> std::result::Result<(), session::Error> {
    session.cycle_id().await?;
    session.insert(EPOCH, epoch).await?;
    session.insert(MEMBER, member).await
}

#[cfg(test)]
mod tests {
    use sqlx::PgPool;

    use super::*;

    fn record(expires_in: i64) -> Record {
        let data = [("member".to_owned(), serde_json::json!("x"))].into_iter().collect();
        let expiry_date =
            OffsetDateTime::now_utc().replace_nanosecond(0).unwrap() + time::Duration::seconds(expires_in);
        Record { id: Id::default(), data, expiry_date }
    }

    #[sqlx::test(migrations = "../migrations")]
    async fn created_saved_loaded_deleted(pool: PgPool) {
        let store = Store::new(pool.into());
        let mut one = record(60);
        store.create(&mut one).await.unwrap();
        assert_eq!(store.load(&one.id).await.unwrap().as_ref(), Some(&one));
        one.data.insert("n".to_owned(), 1.into());
        store.save(&one).await.unwrap();
        assert_eq!(store.load(&one.id).await.unwrap().as_ref(), Some(&one));
        let mut same = one.clone();
        store.create(&mut same).await.unwrap();
        assert_ne!(same.id, one.id, "an id in use is not taken over");
        store.delete(&one.id).await.unwrap();
        assert_eq!(store.load(&one.id).await.unwrap(), None);
        store.save(&one).await.unwrap();
        assert_eq!(store.load(&one.id).await.unwrap(), None, "a deleted session does not come back");
    }

    #[sqlx::test(migrations = "../migrations")]
    async fn expired_ones_are_not_loaded_and_are_deleted(pool: PgPool) {
        let store = Store::new(pool.into());
        let (mut old, mut new) = (record(-1), record(60));
        store.create(&mut old).await.unwrap();
        store.create(&mut new).await.unwrap();
        assert_eq!(store.load(&old.id).await.unwrap(), None);
        assert_eq!(store.delete_expired().await.unwrap(), 1);
        assert!(store.load(&new.id).await.unwrap().is_some());
    }

    #[test]
    fn the_removal_of_a_host_cookie_is_secure() {
        let header = |text| HeaderValue::from_static(text);
        assert_eq!(
            with_secure(&header("__Host-corpus=; Path=/; Max-Age=0")),
            "__Host-corpus=; Path=/; Max-Age=0; Secure"
        );
        assert_eq!(with_secure(&header("__Host-corpus=x; Secure; Path=/")), "__Host-corpus=x; Secure; Path=/");
        assert_eq!(with_secure(&header("theme=dark")), "theme=dark");
    }
}
