//! The store: one file per aggregate, every query checked when it is compiled.
//!
//! Functions take a connection, so that a change, its audit row and its job are one
//! transaction of the caller's. What comes out is typed: a word in a column that the
//! domain does not know is a decoding error, never a guess.

pub mod audit;
pub mod control_key;
pub mod delivery;
pub mod deployment_log;
pub mod deployments;
pub mod drift;
pub mod environment_views;
pub mod environments;
pub mod git_host_key;
pub mod guests;
pub mod infrastructure;
pub mod keys;
pub mod leases;
pub mod led;
pub mod mail;
pub mod names;
pub mod nodes;
pub mod observer;
pub mod plan;
pub mod projects;
pub mod users;
pub mod zones;

use std::str::FromStr;

use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgTransaction};

/// How a server connects. One that stands still, or whose machine went away, must not keep the
/// rows that it was working on locked: a transaction that is left alone is rolled back. The
/// longest that one of ours waits for something else is a DNS server's answer, 5 s.
pub fn as_server(options: PgConnectOptions) -> PgConnectOptions {
    options.application_name("corpus-server").options([
        ("idle_in_transaction_session_timeout", "10s"),
        ("tcp_keepalives_idle", "10"),
        ("tcp_keepalives_interval", "5"),
        ("tcp_keepalives_count", "3"),
    ])
}

/// Begins a transaction; the only way in which one begins.
///
/// sqlx 0.9.0 forgets a `BEGIN` whose future is dropped before its answer came, and gives the
/// connection to the next one with the transaction open: what that one writes then holds its locks
/// and is lost in the end ([transact-rs/sqlx#4393]). In a task of its own it always comes to its
/// answer, and a transaction that nobody waits for any more is rolled back.
///
/// [transact-rs/sqlx#4393]: https://github.com/transact-rs/sqlx/issues/4393
#[expect(clippy::disallowed_methods, reason = "this is what is to be called instead")]
pub async fn begin(pool: &PgPool) -> sqlx::Result<PgTransaction<'static>> {
    let pool = pool.clone();
    tokio::spawn(async move { pool.begin().await }).await.unwrap_or(Err(sqlx::Error::WorkerCrashed))
}

/// Turns a stored word into its domain type.
pub(crate) fn word<T>(text: &str) -> Result<T, sqlx::Error>
where
    T: FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    text.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// The same for a column that may be null.
pub(crate) fn word_opt<T>(text: Option<&str>) -> Result<Option<T>, sqlx::Error>
where
    T: FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    text.map(word).transpose()
}

/// A stored integer as the unsigned number it stands for.
pub(crate) fn number<T: TryFrom<i64>>(value: impl Into<i64>) -> Result<T, sqlx::Error>
where
    T::Error: std::error::Error + Send + Sync + 'static,
{
    T::try_from(value.into()).map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// A stored JSON value as its type.
pub(crate) fn json_opt<T: serde::de::DeserializeOwned>(
    value: Option<serde_json::Value>,
) -> Result<Option<T>, sqlx::Error> {
    value.map(serde_json::from_value).transpose().map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// The same for a column that is never null.
pub(crate) fn json<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> Result<T, sqlx::Error> {
    serde_json::from_value(value).map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// The fingerprint of a stored public key.
pub(crate) fn fingerprint(public_key: &str) -> Result<String, sqlx::Error> {
    word::<crate::nodes::HostKey>(public_key).map(|key| key.seen().fingerprint)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use sqlx::PgPool;
    use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

    use super::begin;

    /// Whether it came to its end within so many looks.
    async fn look(at: impl Future, times: usize) -> bool {
        let mut at = pin!(at);
        for _ in 0..times {
            if futures::poll!(&mut at).is_ready() {
                return true;
            }
            tokio::task::yield_now().await;
        }
        false
    }

    /// Of one connection only, so that the next to ask gets that of whoever gave up.
    #[sqlx::test(migrations = false)]
    async fn whoever_gives_up_while_a_transaction_begins_leaves_none_open(
        _: PgPoolOptions,
        options: PgConnectOptions,
    ) -> sqlx::Result<()> {
        let pool = PgPoolOptions::new().max_connections(1).connect_with(options).await?;
        sqlx::query("create table kept (number int)").execute(&pool).await?;
        let mut given_up = 0;
        for number in 0..100 {
            given_up += i64::from(!look(begin(&pool), number % 10).await);
            sqlx::query("insert into kept values (1)").execute(&pool).await?;
        }
        assert!(given_up > 20, "{given_up}");
        pool.close().await;
        let other = PgPool::connect_with((*pool.connect_options()).clone()).await?;
        let kept: i64 = sqlx::query_scalar("select count(*) from kept").fetch_one(&other).await?;
        assert_eq!(kept, 100, "some was written in a transaction that nobody knew of");
        Ok(())
    }
}
