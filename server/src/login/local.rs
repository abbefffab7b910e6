//! The local realm: accounts that need no directory.
//!
//! One administrator, `admin`, is made at the first start, and its password is shown once.
//! It is for the first hour of an installation and for the day the directory is down.

use std::sync::{Arc, LazyLock};

use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Argon2, PasswordHash};
use corpus_controller::store::{self, Db};
use corpus_domain::{Door, UserName};
use rand::RngExt;
use rand::distr::Alphanumeric;
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;
use tokio::sync::{OnceCell, Semaphore};

/// The login of the one administrator.
pub const ADMIN: &str = "admin";

/// The length of a generated password: 20 letters and digits hold 119 bits.
const PASSWORD_LENGTH: usize = 20;

/// The local accounts can't be used.
#[derive(Debug, Error)]
pub enum LocalError {
    /// The database.
    #[error("the database failed")]
    Database(#[from] sqlx::Error),
    /// A password could not be hashed, or a kept hash could not be read.
    #[error("a password could not be hashed: {0}")]
    Hash(String),
}

/// A verification takes 19 MiB (`argon2::Params::DEFAULT_M_COST`): two at once are enough.
static HASHING: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(2)));

/// A hash to compare with when the account is unknown, made once.
static NOBODYS: OnceCell<String> = OnceCell::const_new();

/// The local accounts.
#[derive(Debug, Clone)]
pub struct Accounts {
    db: Db,
}

impl Accounts {
    /// The accounts of this database.
    pub fn new(db: Db) -> Self {
        Self { db }
    }

    /// The database.
    pub const fn db(&self) -> &Db {
        &self.db
    }

    /// Makes the administrator unless there is one; answers the password if it did.
    pub async fn ensure_admin(&self) -> Result<Option<SecretString>, LocalError> {
        if self.hash_of(ADMIN).await?.is_some() {
            return Ok(None);
        }
        let (password, hash) = new_password().await?;
        let done = sqlx::query!(
            "insert into local_accounts (login, password_hash) values ($1, $2) on conflict do nothing",
            ADMIN,
            hash
        )
        .execute(&mut *self.db.acquire().await?)
        .await?;
        Ok((done.rows_affected() == 1).then_some(password))
    }

    /// Gives the administrator a new password, and answers it. Whoever was signed in by the old
    /// one is so no longer: it is reset because somebody else may know it.
    pub async fn reset_admin(&self) -> Result<SecretString, LocalError> {
        let (password, hash) = new_password().await?;
        let mut tx = self.db.begin().await?;
        sqlx::query!(
            "insert into local_accounts (login, password_hash) values ($1, $2)
             on conflict (login) do update set password_hash = excluded.password_hash, changed_at = now()",
            ADMIN,
            hash
        )
        .execute(&mut **tx)
        .await?;
        let id = sqlx::query_scalar!("select id from users where realm = 'local' and login = $1", ADMIN);
        let id = id.fetch_optional(&mut **tx).await?;
        let ended = match id {
            Some(id) => store::users::end_sessions(&mut tx, id.into()).await?,
            None => 0,
        };
        let detail = serde_json::json!({ "sessions": ended });
        let entry = store::audit::Entry::new("password.reset", ADMIN).detail(detail);
        let entry = id.into_iter().fold(entry, store::audit::Entry::id);
        let author = store::audit::Author::new(None, "command line", Door::CommandLine);
        store::audit::write(&mut tx, author, entry).await?;
        tx.commit().await?;
        Ok(password)
    }

    /// Whether a login is of the local realm.
    pub async fn has(&self, login: &UserName) -> Result<bool, LocalError> {
        Ok(self.hash_of(login.as_str()).await?.is_some())
    }

    /// Whether the password is that of the account. An unknown account costs as much as a known one.
    pub async fn verify(&self, login: &UserName, password: &SecretString) -> Result<bool, LocalError> {
        let known = self.hash_of(login.as_str()).await?;
        let exists = known.is_some();
        let stored = match known {
            Some(hash) => hash,
            None => NOBODYS.get_or_try_init(|| hash(SecretString::from("nobody has this password"))).await?.clone(),
        };
        let password = password.clone();
        let matches = hashing(move || {
            let parsed = PasswordHash::new(&stored).map_err(|error| LocalError::Hash(error.to_string()))?;
            Ok(Argon2::default().verify_password(password.expose_secret().as_bytes(), &parsed).is_ok())
        })
        .await?;
        Ok(exists && matches)
    }

    async fn hash_of(&self, login: &str) -> Result<Option<String>, LocalError> {
        let row = sqlx::query_scalar!("select password_hash from local_accounts where login = $1", login);
        Ok(row.fetch_optional(&mut *self.db.acquire().await?).await?)
    }
}

async fn new_password() -> Result<(SecretString, String), LocalError> {
    let text: String = rand::rng().sample_iter(Alphanumeric).take(PASSWORD_LENGTH).map(char::from).collect();
    let password = SecretString::from(text);
    let hash = hash(password.clone()).await?;
    Ok((password, hash))
}

async fn hash(password: SecretString) -> Result<String, LocalError> {
    hashing(move || {
        let hash: PasswordHash = Argon2::default()
            .hash_password(password.expose_secret().as_bytes())
            .map_err(|error| LocalError::Hash(error.to_string()))?;
        Ok(hash.to_string())
    })
    .await
}

/// Runs what takes tens of milliseconds of CPU off the async threads, and few at once.
async fn hashing<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LocalError> + Send + 'static,
) -> Result<T, LocalError> {
    let failed = |error: &dyn std::fmt::Display| LocalError::Hash(error.to_string());
    let permit = HASHING.clone().acquire_owned().await.map_err(|error| failed(&error))?;
    let done = tokio::task::spawn_blocking(move || {
        let done = work();
        drop(permit);
        done
    });
    done.await.map_err(|error| failed(&error))?
}

#[cfg(test)]
mod tests {
    use sqlx::PgPool;

    use super::*;

    #[sqlx::test(migrations = "../migrations")]
    async fn the_administrator_is_made_once_and_can_be_reset(pool: PgPool) {
        let accounts = Accounts::new(pool.into());
        let admin: UserName = ADMIN.parse().unwrap();
        let first = accounts.ensure_admin().await.unwrap().unwrap();
        assert!(accounts.ensure_admin().await.unwrap().is_none());
        assert!(accounts.has(&admin).await.unwrap());
        assert!(accounts.verify(&admin, &first).await.unwrap());
        assert!(!accounts.verify(&admin, &"wrong".into()).await.unwrap());
        assert!(!accounts.verify(&"someone".parse().unwrap(), &"nobody has this password".into()).await.unwrap());
        let second = accounts.reset_admin().await.unwrap();
        assert!(!accounts.verify(&admin, &first).await.unwrap());
        assert!(accounts.verify(&admin, &second).await.unwrap());
    }
}
