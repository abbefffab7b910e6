//! [`Db`]: the one way to a connection of the database.
//!
//! Whoever waits for a second connection while holding one makes all others wait too: as soon as
//! as many do so as the pool has connections, nobody ever gets one, and everything fails when the
//! time to wait is over. So nobody may: what needs rows passes its connection down. It is known
//! for each task whether it has one. A second one ends a test or a debug build with a panic that
//! names both places; a release build says it in the log, and goes on.
//!
//! The pool itself is not given out, so no statement runs on a connection that nobody knows of.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::{Connection, PgConnection, PgPool, PgTransaction, Postgres};

/// Connections of a server at most, besides the one on which it hears of jobs.
pub const CONNECTIONS: u32 = 20;
/// How long a free one is waited for.
pub const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// One that rested longer may have been closed at the other end, and is asked first.
const RESTED: Duration = Duration::from_secs(1);

/// The database.
#[derive(Debug, Clone)]
pub struct Db {
    pool: PgPool,
}

impl From<PgPool> for Db {
    fn from(pool: PgPool) -> Self {
        Self { pool }
    }
}

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

/// Whether a statement failed because there is no database to say anything of it: the line broke, it stops or starts (08,
/// 57P), or is a standby that may not write yet (25006). Whether the statement was carried out is not known then.
pub fn is_away(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(error) => {
            error.code().is_some_and(|code| ["08", "57P", "25006"].iter().any(|class| code.starts_with(class)))
        }
        _ => false,
    }
}

/// The pool of a server: what is shipped, and what is measured.
pub fn as_shipped() -> PgPoolOptions {
    PgPoolOptions::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .test_before_acquire(false)
        .before_acquire(|connection, known| {
            Box::pin(
                async move { if known.idle_for > RESTED { connection.ping().await.map(|()| true) } else { Ok(true) } },
            )
        })
}

impl Db {
    /// Waits for a connection.
    #[track_caller]
    #[expect(clippy::disallowed_methods, reason = "this is what is to be called instead")]
    pub fn acquire(&self) -> impl Future<Output = sqlx::Result<Conn>> + Send + use<> {
        let (pool, place) = (self.pool.clone(), Location::caller());
        async move {
            let held = Held::take(place);
            Ok(Conn { inner: pool.acquire().await?, _held: held })
        }
    }

    /// Begins a transaction; the only way in which one begins.
    ///
    /// sqlx 0.9.0 forgets a `BEGIN` whose future is dropped before its answer came, and gives the
    /// connection to the next one with the transaction open: what that one writes then holds its locks
    /// and is lost in the end ([transact-rs/sqlx#4393]). In a task of its own it always comes to its
    /// answer, and a transaction that nobody waits for any more is rolled back.
    ///
    /// [transact-rs/sqlx#4393]: https://github.com/transact-rs/sqlx/issues/4393
    #[track_caller]
    #[expect(clippy::disallowed_methods, reason = "this is what is to be called instead")]
    pub fn begin(&self) -> impl Future<Output = sqlx::Result<Transaction>> + Send + use<> {
        let (pool, place) = (self.pool.clone(), Location::caller());
        async move {
            let held = Held::take(place);
            let beginning = tokio::spawn(async move { pool.begin().await });
            let inner = beginning.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))?;
            Ok(Transaction { inner, _held: held })
        }
    }

    /// Hears what is told on a channel, on a connection of its own that is none of the pool's.
    pub async fn listen(&self, channel: &str) -> sqlx::Result<PgListener> {
        let options = PgConnectOptions::clone(&self.pool.connect_options());
        let one = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
        let mut listener = PgListener::connect_with(&one.connect_with(options).await?).await?;
        listener.listen(channel).await?;
        Ok(listener)
    }

    /// A connection of its own that is none of the pool's: for what is held long.
    pub async fn apart(&self) -> sqlx::Result<PgConnection> {
        PgConnection::connect_with(&self.pool.connect_options()).await
    }

    /// Waits until it is closed.
    pub fn closed(&self) -> impl Future<Output = ()> + Send + use<> {
        self.pool.close_event()
    }

    /// Closes all connections as soon as they are free.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// The pool, for the statements of a test.
    #[cfg(any(test, feature = "testing"))]
    pub const fn pool(&self) -> &PgPool {
        &self.pool
    }
}

/// A connection, as long as it is needed.
#[derive(Debug)]
pub struct Conn {
    inner: PoolConnection<Postgres>,
    _held: Held,
}

impl Conn {
    /// Closes it instead of giving it back to the others: what was asked on it may never be answered.
    pub fn give_up(self) {
        drop(self.inner.detach());
    }
}

impl Deref for Conn {
    type Target = PgConnection;
    fn deref(&self) -> &PgConnection {
        &self.inner
    }
}

impl DerefMut for Conn {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.inner
    }
}

/// A transaction; rolled back unless it is committed.
#[derive(Debug)]
pub struct Transaction {
    inner: PgTransaction<'static>,
    _held: Held,
}

impl Transaction {
    /// Makes what was done in it last.
    pub async fn commit(self) -> sqlx::Result<()> {
        self.inner.commit().await
    }

    /// Undoes it.
    pub async fn rollback(self) -> sqlx::Result<()> {
        self.inner.rollback().await
    }
}

impl Deref for Transaction {
    type Target = PgTransaction<'static>;
    fn deref(&self) -> &PgTransaction<'static> {
        &self.inner
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut PgTransaction<'static> {
        &mut self.inner
    }
}

tokio::task_local! {
    static BRANCH: u64;
}

/// Runs what goes on beside something else of the same task, as `join!` and `select!` do: it has
/// connections of its own, and never makes the other wait, since both are polled.
pub async fn beside<F: Future>(future: F) -> F::Output {
    static BRANCHES: AtomicU64 = AtomicU64::new(1);
    BRANCH.scope(BRANCHES.fetch_add(1, Ordering::Relaxed), future).await
}

/// Who has a connection: a task, or the thread of what is no task; and which branch of it.
type Holder = (Result<tokio::task::Id, ThreadId>, u64);

static HOLDERS: LazyLock<Mutex<HashMap<Holder, &'static Location<'static>>>> = LazyLock::new(Mutex::default);

fn holders() -> MutexGuard<'static, HashMap<Holder, &'static Location<'static>>> {
    HOLDERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// That someone has a connection, or waits for it.
#[derive(Debug)]
struct Held(Option<Holder>);

impl Held {
    #[expect(clippy::panic, clippy::manual_assert, reason = "what is wrong here must not be overlooked by tests")]
    fn take(place: &'static Location<'static>) -> Self {
        let task = tokio::task::try_id().ok_or_else(|| std::thread::current().id());
        let holder = (task, BRANCH.try_with(|branch| *branch).unwrap_or_default());
        let before = match holders().entry(holder) {
            std::collections::hash_map::Entry::Occupied(one) => Some(*one.get()),
            std::collections::hash_map::Entry::Vacant(none) => {
                none.insert(place);
                None
            }
        };
        let Some(before) = before else { return Self(Some(holder)) };
        if cfg!(debug_assertions) {
            panic!("a second connection is asked for at {place}, while the one of {before} is held");
        }
        tracing::error!(%place, held = %before, "a second connection is asked for while one is held");
        Self(None)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(holder) = self.0 {
            holders().remove(&holder);
        }
    }
}

#[cfg(test)]
mod tests;
