//! The keys of Corpus itself: each is made once, by the first server on a database, and is the same at all of them.

use chrono::Utc;
use corpus_certificates::Authority;
use secrecy::SecretString;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Result;
use crate::nodes::ControlKey;
use crate::seal::{Purpose, SealKeys, Sealed};
use crate::services::internal;
use crate::store::{certificate_authority, control_key, git_host_key};

/// What is said when a key can't be had.
struct Messages {
    unopened: &'static str,
    unreadable: &'static str,
}

const CONTROL: Messages = Messages {
    unopened: "the control key can't be opened with the seal keys that are configured",
    unreadable: "the control key can't be made or read",
};
const GIT_HOST: Messages = Messages {
    unopened: "the git server's host key can't be opened with the seal keys that are configured",
    unreadable: "the git server's host key can't be made or read",
};

const AUTHORITY: Messages = Messages {
    unopened: "the certificate authority's key can't be opened with the seal keys that are configured",
    unreadable: "the certificate authority can't be made or read",
};

/// The key that opens all nodes and guests.
pub(crate) async fn control(conn: &mut PgConnection, seal: &SealKeys, name: &str) -> Result<ControlKey> {
    let purpose = Purpose::control_key();
    if control_key::load(conn).await?.is_none() {
        let (new, private_sealed) = generate(seal, name, &purpose, &CONTROL)?;
        let public_key = new.public_line().map_err(|error| internal(CONTROL.unreadable, error))?;
        control_key::insert(conn, &control_key::Stored { id: Uuid::now_v7(), public_key, private_sealed }).await?;
    }
    let stored = control_key::load(conn).await?.ok_or(sqlx::Error::RowNotFound)?;
    open(seal, &stored.private_sealed, &purpose, &CONTROL)
}

/// The key by which members recognise the git server.
pub(crate) async fn git_host(conn: &mut PgConnection, seal: &SealKeys, name: &str) -> Result<ControlKey> {
    let purpose = |id| Purpose::of("git-host-key", id);
    if git_host_key::load(conn).await?.is_none() {
        let id = Uuid::now_v7();
        let (_, sealed) = generate(seal, name, &purpose(id), &GIT_HOST)?;
        git_host_key::insert(conn, id, &sealed).await?;
    }
    let (id, sealed) = git_host_key::load(conn).await?.ok_or(sqlx::Error::RowNotFound)?;
    open(seal, &sealed, &purpose(id), &GIT_HOST)
}

/// Who signs certificates of names where no directory does.
pub(crate) async fn authority(conn: &mut PgConnection, seal: &SealKeys, name: &str) -> Result<Authority> {
    let purpose = Purpose::certificate_authority();
    if certificate_authority::load(conn).await?.is_none() {
        let new = Authority::make(name, Utc::now()).map_err(|error| internal(AUTHORITY.unreadable, error))?;
        let sealed = seal.seal(&new.key(), &purpose).map_err(|error| internal(AUTHORITY.unopened, error))?;
        certificate_authority::insert(conn, new.certificate(), &sealed.to_bytes()).await?;
    }
    let (certificate, sealed) = certificate_authority::load(conn).await?.ok_or(sqlx::Error::RowNotFound)?;
    let key = unsealed(seal, &sealed, &purpose, &AUTHORITY)?;
    Authority::read(&certificate, &key).map_err(|error| internal(AUTHORITY.unreadable, error))
}

/// A new key, and its private half sealed.
fn generate(seal: &SealKeys, name: &str, purpose: &Purpose, messages: &Messages) -> Result<(ControlKey, Vec<u8>)> {
    let new = ControlKey::generate(name).map_err(|error| internal(messages.unreadable, error))?;
    let private = new.private().map_err(|error| internal(messages.unreadable, error))?;
    let sealed = seal.seal(&private, purpose).map_err(|error| internal(messages.unopened, error))?;
    Ok((new, sealed.to_bytes()))
}

fn open(seal: &SealKeys, sealed: &[u8], purpose: &Purpose, messages: &Messages) -> Result<ControlKey> {
    let private = unsealed(seal, sealed, purpose, messages)?;
    ControlKey::parse(&private).map_err(|error| internal(messages.unreadable, error))
}

fn unsealed(seal: &SealKeys, sealed: &[u8], purpose: &Purpose, messages: &Messages) -> Result<SecretString> {
    let opened = Sealed::from_bytes(sealed).and_then(|sealed| seal.open(&sealed, purpose));
    opened.map_err(|error| internal(messages.unopened, error))
}
