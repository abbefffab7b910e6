//! A name that is another name for one that is attached.

use corpus_domain::{DnsName, DnsNameId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::NameAccepted;
use crate::operation::{Meta, Operation, Role, Scope, Write, post};

/// Attaches a DNS name that is another name (CNAME) for one of the same project: it leads where that one leads, also when
/// that one is switched. It has a certificate of its own, and what it leads to is asked for by this name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttachAlias {
    /// For which name: one that is attached, of a zone of ours, neither a wildcard nor an alias itself.
    pub name: DnsNameId,
    /// The new name, in a zone that takes names of the project, and not the zone itself.
    pub alias: DnsName,
}
impl Operation for AttachAlias {
    type Kind = Write;
    type Output = NameAccepted;
    const META: Meta<Write> = post("attach_alias", "/names/{name}/aliases").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Name(self.name)
    }
}

/// What a name is another name for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AliasTarget {
    /// Its id.
    pub id: DnsNameId,
    /// The name.
    pub name: DnsName,
}
