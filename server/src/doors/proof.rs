//! What a member came with, for what goes on after their request was judged: whether it still counts is asked again.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;
use corpus_api::Principal;
use corpus_api::tokens::TokenText;
use corpus_controller::Result;
use tower_sessions::{Session, session};

use super::admit::Bearer;
use crate::sessions::Store;
use crate::web::Web;

/// What the member came with.
#[derive(Debug, Clone)]
pub enum Proof {
    /// The session of a browser.
    Session(Option<session::Id>),
    /// A token.
    Token(TokenText),
}

impl Proof {
    /// Of a request that was let in.
    pub fn of(extensions: &Extensions) -> Self {
        match extensions.get::<Bearer>() {
            Some(Bearer(token)) => Self::Token(token.clone()),
            None => Self::Session(extensions.get::<Session>().and_then(Session::id)),
        }
    }

    /// The session of a browser, if it is one.
    pub const fn browser(&self) -> Option<session::Id> {
        match self {
            Self::Session(session) => *session,
            Self::Token(_) => None,
        }
    }

    /// The member as they are now, if it still counts.
    pub async fn principal(&self, web: &Web, who: &Principal) -> Result<Option<Principal>> {
        match self {
            Self::Token(token) => web.controller.principal_of_token(token.expose()).await,
            Self::Session(Some(session)) if matches!(Store::new(web.db.clone()).holds(*session).await, Ok(false)) => {
                Ok(None)
            }
            Self::Session(_) => web.controller.principal(who.id).await,
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Proof {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> std::result::Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions))
    }
}
