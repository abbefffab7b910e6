//! Who someone is: a login and a password, checked by the directory or the local realm.
//!
//! The answer never tells whether the login or the password was wrong. A failure of the
//! directory never keeps a local account out.

mod ldap;
mod limit;
mod local;
mod refused;
mod watch;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use ::ldap3::LdapError;
use corpus_controller::{Controller, SignIn};
use corpus_domain::{ProjectName, ProjectRole, UserName};
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;
use tokio::sync::Semaphore;
use tokio::time::timeout;

pub use ldap::{Directory, DirectoryError};
use limit::{Limit, TokenLimit};
pub use local::{Accounts, LocalError};
pub use refused::Refused;
pub use watch::Watch;

use crate::member::network;

/// Passwords that are tried at the same time; the directory has other work too.
const CONCURRENT_ATTEMPTS: usize = 16;
/// How long one waits for its turn.
const TURN_TIMEOUT: Duration = Duration::from_secs(8);
/// The longest password: nobody types more, and each byte is hashed.
const LONGEST_PASSWORD: usize = 1024;

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
    /// Too many passwords are being tried, by all together.
    #[error("Many people sign in at this moment. Try again in a few seconds.")]
    Busy,
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
            Self::Busy => "too many at once",
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
pub struct Login {
    accounts: Accounts,
    directory: Option<Directory>,
    controller: Controller,
    limit: Limit,
    turns: Semaphore,
    /// Those that were refused.
    pub refused: Refused,
    /// Wrong tokens, which are no logins.
    pub tokens: TokenLimit,
}

impl Login {
    /// The realms of this installation.
    pub fn new(accounts: Accounts, directory: Option<Directory>, controller: Controller) -> Self {
        let (limit, turns, refused) = (Limit::default(), Semaphore::new(CONCURRENT_ATTEMPTS), Refused::default());
        Self { accounts, directory, controller, limit, turns, refused, tokens: TokenLimit::default() }
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
        let checked = self.limited(login, password, realm, address).await;
        match &checked {
            Ok(person) => self.remember(&person.login, address).await,
            Err(refusal) => self.refused.count(login, address, refusal),
        }
        checked
    }

    async fn limited(
        &self,
        login: &str,
        password: &SecretString,
        realm: Option<Realm>,
        address: IpAddr,
    ) -> Result<Person, Refusal> {
        let parsed: Result<UserName, _> = login.parse();
        // What is no login costs the address an attempt, and nobody else.
        self.limit.take(parsed.as_ref().map_or("", UserName::as_str), address).map_err(Refusal::TooMany)?;
        let name = parsed.map_err(|_| Refusal::WrongPassword)?;
        if password.expose_secret().len() > LONGEST_PASSWORD {
            return Err(Refusal::WrongPassword);
        }
        if let Err(wait) = self.limit.take_account(name.as_str())
            && !self.knows(&name, address).await
        {
            return Err(Refusal::TooMany(wait));
        }
        let turn = timeout(TURN_TIMEOUT, self.turns.acquire()).await.ok().and_then(Result::ok);
        let checked = match turn {
            Some(_turn) => self.check(name.clone(), password, realm).await,
            None => Err(Refusal::Busy),
        };
        if !matches!(checked, Err(Refusal::WrongPassword | Refusal::Disabled | Refusal::Ambiguous)) {
            self.limit.give_back(name.as_str(), address);
        }
        checked
    }

    /// Whether the account signed in from there before.
    async fn knows(&self, login: &UserName, address: IpAddr) -> bool {
        let known = self.controller.knows_place(login, &network(address).to_string()).await;
        known.inspect_err(crate::pages::log_failure).unwrap_or(false)
    }

    /// Keeps that it signed in from there. When that fails, only a favour is lost.
    async fn remember(&self, login: &UserName, address: IpAddr) {
        let kept = self.controller.signed_in_from(login, &network(address).to_string()).await;
        kept.unwrap_or_else(|error| crate::pages::log_failure(&error));
    }

    /// Whether a local password is right at this moment too. The directory is asked all the time.
    pub async fn is_still(&self, realm: Realm, login: &UserName, password: &SecretString) -> Result<(), Refusal> {
        if realm == Realm::Ldap || self.accounts.verify(login, password).await? {
            return Ok(());
        }
        Err(Refusal::WrongPassword)
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
