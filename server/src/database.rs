//! The way to the database: the given one, or a private PostgreSQL, with all migrations applied.

use corpus_database::{Db, as_server, as_shipped};
use secrecy::ExposeSecret;
use sqlx::Connection;
use sqlx::migrate::Migrator;
use sqlx::postgres::PgConnectOptions;
use std::time::Duration;
use thiserror::Error;

use crate::config::Settings;
use crate::own_backup::Address;
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
    address: Address,
}

impl Database {
    /// Opens the database, starting the private one if none is given, and applies migrations.
    pub async fn open(settings: &Settings) -> Result<Self, DatabaseError> {
        let this = Self::reach(settings).await?;
        this.migrate().await?;
        Ok(this)
    }

    /// Opens the database as it is.
    pub async fn reach(settings: &Settings) -> Result<Self, DatabaseError> {
        let (options, private, address) = if let Some(url) = &settings.database_url {
            let parsed = url.expose_secret().parse::<PgConnectOptions>();
            (parsed.map_err(DatabaseError::Connect)?, None, Address::of(url))
        } else {
            let private = Private::start(&settings.data_folder).await?;
            let address = Address::at_socket(&private.socket_folder());
            (private.options(), Some(private), address)
        };
        let opening = as_shipped().connect_with(as_server(options));
        let pool = opening.await.map_err(DatabaseError::Connect)?;
        Ok(Self { db: pool.into(), private, address })
    }

    /// Applies the migrations that it lacks.
    pub async fn migrate(&self) -> Result<(), DatabaseError> {
        let mut conn = self.db.apart().await.map_err(DatabaseError::Connect)?;
        MIGRATIONS.run(&mut conn).await?;
        conn.close().await.map_err(DatabaseError::Connect)
    }

    /// Where it is, for the tools of PostgreSQL.
    pub const fn address(&self) -> &Address {
        &self.address
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
