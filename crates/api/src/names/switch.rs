//! A name that moves from one guest or environment to another.

use corpus_domain::{DnsNameId, Environment, GuestId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::jobs::JobAccepted;
use crate::operation::{Meta, Operation, Role, Scope, Write, post};

/// Has a DNS name lead to another guest or environment of its project, in one step: what it is to lead to is asked for
/// its page first, and no request is lost. It can be undone in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SwitchName {
    /// Which.
    pub name: DnsNameId,
    /// To which guest; or to which environment.
    pub guest: Option<GuestId>,
    /// To which environment of the name's project; or to which guest.
    pub environment: Option<Environment>,
}
impl Operation for SwitchName {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = post("switch_name", "/names/{name}/switch").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Name(self.name)
    }
}
