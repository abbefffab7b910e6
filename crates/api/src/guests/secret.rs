//! The password of a guest's root: kept sealed, shown once to who asks, which the audit tells.

use std::fmt;

use corpus_domain::GuestId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::operation::{Meta, Operation, Reply, Role, Scope, Write, post};

/// Reveals the password of a guest's root. Who did stands in the audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RevealGuestPassword {
    /// Of which guest.
    pub guest: GuestId,
}
impl Operation for RevealGuestPassword {
    type Kind = Write;
    type Output = GuestPasswordRevealed;
    const META: Meta<Write> = post("reveal_guest_password", "/guests/{guest}/password/reveal").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// The password of a guest's root, for who asked and nobody else.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GuestPasswordRevealed {
    /// Of which guest.
    pub guest: GuestId,
    /// The password.
    pub password: String,
}
impl Reply for GuestPasswordRevealed {
    const SECRET: bool = true;
}

impl fmt::Debug for GuestPasswordRevealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuestPasswordRevealed").field("guest", &self.guest).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revealed_password_is_not_logged() {
        let answer = GuestPasswordRevealed { guest: GuestId(uuid::Uuid::nil()), password: "hunter2".to_owned() };
        assert!(!format!("{answer:?}").contains("hunter2"));
    }
}
