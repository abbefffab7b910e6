//! DNS names that lead to guests.

use chrono::{DateTime, Utc};
use corpus_domain::{DnsName, DnsNameId, GuestId, GuestName, JobId, NameState, ProjectName, ZoneId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Cursor;
use crate::jobs::JobAccepted;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, delete, get, post};
use crate::words::{Limit, SearchText};

/// Lists DNS names by name.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListNames {
    /// Only of this project's guests.
    pub project: Option<ProjectName>,
    /// Only in this zone.
    pub zone: Option<ZoneId>,
    /// Only in this state.
    pub state: Option<NameState>,
    /// Only of this guest.
    pub guest: Option<GuestId>,
    /// Only those that have this in them.
    pub q: Option<SearchText>,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListNames {
    type Kind = Read;
    type Output = NamePage;
    const META: Meta<Read> = get("list_names", "/names").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Visible
    }
}

/// Shows a DNS name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetName {
    /// Which.
    pub name: DnsNameId,
}
impl Operation for GetName {
    type Kind = Read;
    type Output = NameLine;
    const META: Meta<Read> = get("get_name", "/names/{name}").needs(Role::Viewer);
    fn scope(&self) -> Scope {
        Scope::Name(self.name)
    }
}

/// Attaches a DNS name to a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttachName {
    /// To which guest.
    pub guest: GuestId,
    /// The name, in a zone that takes names of the guest's project.
    pub name: DnsName,
}
impl Operation for AttachName {
    type Kind = Write;
    type Output = NameAccepted;
    const META: Meta<Write> = post("attach_name", "/guests/{guest}/names").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// Detaches a DNS name from its guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DetachName {
    /// Which.
    pub name: DnsNameId,
}
impl Operation for DetachName {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = delete("detach_name", "/names/{name}").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Name(self.name)
    }
}

/// A DNS name that leads to a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NameLine {
    /// Its id.
    pub id: DnsNameId,
    /// The name.
    pub name: DnsName,
    /// The zone that holds it.
    pub zone: ZoneId,
    /// That zone's name.
    pub zone_name: DnsName,
    /// The guest it leads to.
    pub guest: GuestId,
    /// That guest's name.
    pub guest_name: GuestName,
    /// How far it is.
    pub state: NameState,
    /// Why, for a failed one.
    pub state_reason: Option<String>,
    /// When the authoritative server last answered it.
    pub answered_at: Option<DateTime<Utc>>,
    /// The address it points to.
    pub target: Option<String>,
    /// The job that is on it, while it is not settled.
    pub job: Option<JobId>,
}
impl Reply for NameLine {}

crate::page!(
    /// A page of DNS names.
    NamePage, NameLine
);

/// A name is being attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NameAccepted {
    /// Which.
    pub name: DnsNameId,
    /// The job that attaches it.
    pub job: JobId,
}
impl Reply for NameAccepted {
    const STATUS: u16 = 202;
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(format!("/jobs/{}", self.job))
    }
}
