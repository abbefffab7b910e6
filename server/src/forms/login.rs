//! Signing in and out.

use axum::http::HeaderValue;
use axum::http::header::RETRY_AFTER;
use axum::response::Response;
use secrecy::SecretString;
use tower_sessions::Session;

use super::form::see_other;
use super::{Form, ended};
use crate::login::{Person, Realm, Refusal};
use crate::sessions;

/// Signs a member in: 303 to where they were going, to the form that they sent when their session had ended, or
/// the login page with why not.
pub async fn sign_in(session: Session, posted: Form) -> Response {
    let login = posted.fields.raw("login").trim();
    let password = posted.fields.secret("password");
    let (Some(password), false) = (password, login.is_empty()) else {
        return incomplete(&posted).await;
    };
    let realm = match posted.fields.raw("realm") {
        "local" => Some(Realm::Local),
        "ldap" => Some(Realm::Ldap),
        _ => None,
    };
    match posted.web.login.sign_in(login, &password, realm, posted.address).await {
        Ok(person) => enter(&session, &posted, person, &password).await,
        Err(refusal) => refuse(&posted, &refusal).await,
    }
}

async fn enter(session: &Session, posted: &Form, person: Person, password: &SecretString) -> Response {
    let (login, realm) = (person.login.clone(), person.realm);
    let id = match posted.web.controller.sign_in(person.into(), &posted.address.to_string()).await {
        Ok(id) => id,
        Err(error) => {
            crate::pages::log_failure(&error);
            return posted.show("/login", posted.state("").with_error(&error)).await;
        }
    };
    // The epoch is read before the password is seen to be right still: one that is reset meanwhile
    // leaves a session of an epoch that is over.
    let epoch = posted.web.controller.epoch(id).await;
    let epoch = match (epoch, posted.web.login.is_still(realm, &login, password).await) {
        (Ok(Some(epoch)), Ok(())) => epoch,
        (Ok(None), _) => return refuse(posted, &Refusal::Disabled).await,
        (_, Err(refusal)) => return refuse(posted, &refusal).await,
        (Err(error), _) => return posted.show("/login", posted.state("").with_error(&error)).await,
    };
    if let Err(error) = sessions::sign_in(session, id, epoch).await {
        tracing::error!(%error, "a session could not be kept");
        return posted.show("/login", posted.state("").message("The database does not answer.").status(503)).await;
    }
    let mut response = ended::go_on(posted, (id, epoch)).await;
    if let Some(entered) = sessions::Entered::new(&posted.web.settings, id) {
        response.extensions_mut().insert(entered);
    }
    response
}

async fn incomplete(posted: &Form) -> Response {
    let mut state = posted.state("");
    for field in ["login", "password"] {
        if posted.fields.text(field).is_none() {
            state = state.error(field, "This field is needed.");
        }
    }
    posted.show("/login", state).await
}

async fn refuse(posted: &Form, refusal: &Refusal) -> Response {
    if status_of(refusal) == 503 {
        let cause = std::error::Error::source(refusal);
        tracing::warn!(reason = refusal.reason(), cause, "a login could not be checked");
    }
    let state = posted.state("").message(refusal.to_string()).status(status_of(refusal));
    with_patience(posted.show("/login", state).await, refusal)
}

const fn status_of(refusal: &Refusal) -> u16 {
    match refusal {
        Refusal::WrongPassword => 401,
        Refusal::Disabled | Refusal::Ambiguous => 403,
        Refusal::TooMany(_) => 429,
        Refusal::Busy | Refusal::DirectoryDown(_) | Refusal::Misconfigured(_) | Refusal::Local(_) => 503,
    }
}

/// Says how long to wait when there were too many attempts.
fn with_patience(mut response: Response, refusal: &Refusal) -> Response {
    let wait = match refusal {
        Refusal::TooMany(wait) => wait.as_secs() + 1,
        Refusal::Busy => 5,
        _ => return response,
    };
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait));
    response
}

/// Ends the session.
pub async fn sign_out(session: Session, posted: Form) -> Response {
    if let Some(who) = &posted.who
        && let Err(error) = posted.web.controller.sign_out(who).await
    {
        tracing::error!(error = &error as &dyn std::error::Error, "a logout could not be recorded");
    }
    if let Err(error) = session.flush().await {
        tracing::error!(%error, "a session could not be deleted");
        return posted.show("/login", posted.state("").message("The database does not answer.").status(503)).await;
    }
    see_other("/login")
}
