//! The way to the database: the given one, or a private PostgreSQL, with all migrations applied.

use corpus_database::{Db, as_server, as_shipped};
use secrecy::ExposeSecret;
use sqlx::migrate::Migrator;
use sqlx::postgres::PgConnectOptions;
use std::time::Duration;
use thiserror::Error;

use crate::config::Settings;
use crate::postgres::{PostgresError, Private};

/// The migrations, compiled in.
pub static MIGRATIONS: Migrator = sqlx::migrate!("../migrations");

/// The database can't be used.
#[derive(Debug, Error)]
pub enum DatabaseError {
    /// The private one.
    #[error(transparent)]
    Private(#[from] PostgresError),
    /// No connection. The URL is not shown: it holds a password.
    #[error("the database of database_url can't be reached")]
    Connect(#[source] sqlx::Error),
    /// A migration failed.
    #[error("the database could not be brought up to date")]
    Migrate(#[from] sqlx::migrate::MigrateError),
}

/// An open database.
#[derive(Debug, Clone)]
pub struct Database {
    /// Its connections.
    pub db: Db,
    private: Option<Private>,
}

impl Database {
    /// Opens the database, starting the private one if none is given, and applies migrations.
    pub async fn open(settings: &Settings) -> Result<Self, DatabaseError> {
        let (options, private) = if let Some(url) = &settings.database_url {
            let parsed = url.expose_secret().parse::<PgConnectOptions>();
            (parsed.map_err(DatabaseError::Connect)?, None)
        } else {
            let private = Private::start(&settings.data_folder).await?;
            (private.options(), Some(private))
        };
        let opening = as_shipped().connect_with(as_server(options));
        let pool = opening.await.map_err(DatabaseError::Connect)?;
        MIGRATIONS.run(&pool).await?;
        Ok(Self { db: pool.into(), private })
    }

    /// Closes all connections, and stops the private PostgreSQL unless it was running before.
    pub async fn leave(mut self) {
        self.private = self.private.filter(|private| !private.was_running());
        self.close().await;
    }

    /// Closes all connections, then stops the private PostgreSQL.
    pub async fn close(self) {
        if tokio::time::timeout(Duration::from_secs(5), self.db.close()).await.is_err() {
            tracing::warn!("some database connections were still in use at the end");
        }
        if let Some(private) = self.private
            && let Err(error) = private.stop().await
        {
            tracing::warn!(%error, "the private PostgreSQL did not stop; the next start will use it");
        }
    }
}
