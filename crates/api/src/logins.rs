//! Logins that were refused.

use chrono::{DateTime, Utc};
use corpus_domain::UserName;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Cursor;
use crate::operation::{Meta, Operation, Read, Role, Scope, get};
use crate::words::Limit;

/// Lists logins that were refused, counted by hour, login, network and reason, the newest first.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListRefusedLogins {
    /// Only of this login.
    pub login: Option<UserName>,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListRefusedLogins {
    type Kind = Read;
    type Output = RefusedLoginPage;
    const META: Meta<Read> = get("list_refused_logins", "/refused-logins").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Logins that were refused within an hour, of one login from one network for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedLogin {
    /// The login; empty for whatever is no login of an account here.
    pub login: String,
    /// The network; empty for several together.
    pub network: String,
    /// Why.
    pub reason: String,
    /// The first of them.
    pub first_at: DateTime<Utc>,
    /// The last of them.
    pub last_at: DateTime<Utc>,
    /// How many.
    pub count: i64,
}

crate::page!(
    /// A page of refused logins.
    RefusedLoginPage, RefusedLogin
);
