//! The git server's own host key: made once, and the same at all servers of one database.

use secrecy::SecretString;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::nodes::{ControlKey, InvalidControlKey};
use crate::seal::{Purpose, SealError, SealKeys, Sealed};
use crate::store::git_host_key;
use crate::{Error, Result};

/// The host key; the first server on a database makes it.
pub(crate) async fn ensure(conn: &mut PgConnection, seal: &SealKeys, name: &str) -> Result<ControlKey> {
    if git_host_key::load(conn).await?.is_none() {
        let new = ControlKey::generate(name).map_err(unreadable)?;
        let (id, private) = (Uuid::now_v7(), new.private().map_err(unreadable)?);
        let sealed = seal.seal(&private, &purpose(id)).map_err(unopened)?;
        git_host_key::insert(conn, id, &sealed.to_bytes()).await?;
    }
    let (id, sealed) = git_host_key::load(conn).await?.ok_or(sqlx::Error::RowNotFound)?;
    let private: SecretString =
        Sealed::from_bytes(&sealed).and_then(|s| seal.open(&s, &purpose(id))).map_err(unopened)?;
    ControlKey::parse(&private).map_err(unreadable)
}

fn purpose(id: Uuid) -> Purpose {
    Purpose::of("git-host-key", id)
}

fn unopened(error: SealError) -> Error {
    let message = "the git server's host key can't be opened with the seal keys that are configured";
    Error::Internal { message, source: Box::new(error) }
}

fn unreadable(error: InvalidControlKey) -> Error {
    Error::Internal { message: "the git server's host key can't be made or read", source: Box::new(error) }
}
