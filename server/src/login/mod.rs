//! Who someone is: a login and a password, checked by the directory or the local realm.
//!
//! The answer never tells whether the login or the password was wrong. A failure of the
//! directory never keeps a local account out.

mod ldap;
mod limit;
mod local;
mod watch;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ::ldap3::LdapError;
use corpus_controller::SignIn;
use corpus_domain::{ProjectName, ProjectRole, UserName};
use secrecy::SecretString;
use thiserror::Error;

pub use ldap::{Directory, DirectoryError};
use limit::Limit;
pub use local::{Accounts, LocalError};
pub use watch::Watch;

/// Where an account is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Realm {
    /// The directory.
    Ldap,
    /// Corpus itself.
    Local,
}

impl Realm {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ldap => "ldap",
            Self::Local => "local",
        }
    }
}

/// Someone who proved who they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// Where the account is kept.
    pub realm: Realm,
    /// The login name.
    pub login: UserName,
    /// The name for people.
    pub display_name: String,
    /// The mail address.
    pub mail: Option<String>,
    /// Whether they are of the operators.
    pub ops: bool,
    /// Their roles in projects.
    pub roles: Vec<(ProjectName, ProjectRole)>,
}

impl From<Person> for SignIn {
    fn from(person: Person) -> Self {
        let Person { realm, login, display_name, mail, ops, roles } = person;
        Self { realm: realm.as_str(), login, display_name, mail, ops, roles }
    }
}

/// Why someone can't sign in.
#[derive(Debug, Clone, Error)]
pub enum Refusal {
    /// The login is unknown or the password is wrong; which of both is not told.
    #[error("The login name or the password is not right.")]
    WrongPassword,
    /// The account is disabled or locked.
    #[error("This account is disabled. Ask those who run the directory.")]
    Disabled,
    /// More than one person matches.
    #[error("More than one person in the directory has this login name. Ask those who run the directory.")]
    Ambiguous,
    /// Too many attempts.
    #[error("Too many attempts to sign in. Wait {} seconds and try again.", .0.as_secs() + 1)]
    TooMany(Duration),
    /// The directory does not answer, or its certificate is not trusted.
    #[error("The directory does not answer; local accounts still work. Try again in a moment.")]
    DirectoryDown(#[source] Arc<LdapError>),
    /// The directory refuses what the configuration says.
    #[error(
        "The directory refuses what Corpus asks of it; local accounts still work. The server's log says what it is."
    )]
    Misconfigured(#[source] Arc<LdapError>),
    /// The local accounts can't be read.
    #[error("The database does not answer. Try again in a moment.")]
    Local(#[source] Arc<LocalError>),
}

impl Refusal {
    /// The word for it in the audit.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::WrongPassword => "wrong login or password",
            Self::Disabled => "account disabled",
            Self::Ambiguous => "more than one match",
            Self::TooMany(_) => "too many attempts",
            Self::DirectoryDown(_) => "directory down",
            Self::Misconfigured(_) => "directory misconfigured",
            Self::Local(_) => "database down",
        }
    }
}

impl From<LocalError> for Refusal {
    fn from(error: LocalError) -> Self {
        Self::Local(Arc::new(error))
    }
}

/// The realms together, and the limit of attempts over both.
#[derive(Debug)]
pub struct Login {
    accounts: Accounts,
    directory: Option<Directory>,
    limit: Limit,
}

impl Login {
    /// The realms of this installation.
    pub fn new(accounts: Accounts, directory: Option<Directory>) -> Self {
        Self { accounts, directory, limit: Limit::default() }
    }

    /// Whether there is a directory.
    pub const fn has_directory(&self) -> bool {
        self.directory.is_some()
    }

    /// Checks a login and a password. A login that exists locally is local.
    pub async fn sign_in(
        &self,
        login: &str,
        password: &SecretString,
        realm: Option<Realm>,
        address: IpAddr,
    ) -> Result<Person, Refusal> {
        self.limit.take(login, address).map_err(Refusal::TooMany)?;
        let name: UserName = login.parse().map_err(|_| Refusal::WrongPassword)?;
        let checked = self.check(name, password, realm).await;
        if !matches!(checked, Err(Refusal::WrongPassword | Refusal::Disabled | Refusal::Ambiguous)) {
            self.limit.give_back(login, address);
        }
        checked
    }

    async fn check(&self, name: UserName, password: &SecretString, realm: Option<Realm>) -> Result<Person, Refusal> {
        match &self.directory {
            Some(directory) if realm != Some(Realm::Local) && !self.accounts.has(&name).await? => {
                directory.sign_in(&name, password).await
            }
            _ if self.accounts.verify(&name, password).await? => Ok(administrator(name)),
            _ => Err(Refusal::WrongPassword),
        }
    }
}

fn administrator(login: UserName) -> Person {
    let display_name = "Administrator".to_owned();
    Person { realm: Realm::Local, login, display_name, mail: None, ops: true, roles: Vec::new() }
}
