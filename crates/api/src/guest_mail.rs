//! Mail from guests: whether their nodes take it for the operator's relay, and what became of it.

use chrono::{DateTime, Utc};
use corpus_domain::{Environment, EnvironmentMailSwitch, GuestId, GuestMailSwitch, GuestName, ProjectName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Version;
use crate::jobs::JobAccepted;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, get, put};

/// Shows whether mail of a guest is taken, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetGuestMail {
    /// Which guest.
    pub guest: GuestId,
}
impl Operation for GetGuestMail {
    type Kind = Read;
    type Output = GuestMail;
    const META: Meta<Read> = get("get_guest_mail", "/guests/{guest}/mail").needs(Role::Viewer).robots();
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// Switches mail of a guest on or off, or leaves it to the guest's environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetGuestMail {
    /// Of which guest.
    pub guest: GuestId,
    /// What is to count for it.
    pub mail: GuestMailSwitch,
    /// What this replaces.
    pub version: Version,
}
impl Operation for SetGuestMail {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> =
        put("set_guest_mail", "/guests/{guest}/mail").needs(Role::Maintainer).robots().if_match("version");
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// Shows whether mail of an environment's guests is taken, and what became of it in the last day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetEnvironmentMail {
    /// Of which project.
    pub project: ProjectName,
    /// Of which environment.
    pub environment: Environment,
}
impl Operation for GetEnvironmentMail {
    type Kind = Read;
    type Output = EnvironmentMail;
    const META: Meta<Read> =
        get("get_environment_mail", "/projects/{project}/environments/{environment}/mail").needs(Role::Viewer).robots();
    fn scope(&self) -> Scope {
        Scope::Environment(self.project.clone(), self.environment)
    }
}

/// Switches mail of an environment's guests on or off, of those too that come later; a guest may have a switch of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetEnvironmentMail {
    /// Of which project.
    pub project: ProjectName,
    /// Of which environment.
    pub environment: Environment,
    /// What is to count for its guests.
    pub mail: EnvironmentMailSwitch,
    /// What this replaces.
    pub version: Version,
}
impl Operation for SetEnvironmentMail {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = put("set_environment_mail", "/projects/{project}/environments/{environment}/mail")
        .needs(Role::Maintainer)
        .robots()
        .if_match("version");
    fn scope(&self) -> Scope {
        Scope::Environment(self.project.clone(), self.environment)
    }
}

/// How much mail is taken of each guest; nothing is said of where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MailLimits {
    /// Messages in an hour of the clock.
    pub messages_per_hour: u32,
    /// The size of a message, in bytes.
    pub max_message_bytes: u64,
}

/// What became of messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MailCounts {
    /// Those that the relay took.
    pub accepted: u64,
    /// Those beyond what a guest may send in an hour.
    pub limited: u64,
    /// Those that the relay did not take.
    pub refused: u64,
    /// Those that were malformed or broken off, or came while the relay was away.
    pub failed: u64,
    /// The size of those that the relay took, in bytes.
    pub bytes: u64,
}

/// Mail of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GuestMail {
    /// The guest.
    pub guest: GuestId,
    /// Its name.
    pub name: GuestName,
    /// Its project.
    pub project: ProjectName,
    /// Its environment.
    pub environment: Environment,
    /// How much is taken; none where the operators have no relay for guests, and no mail is taken at all.
    pub limits: Option<MailLimits>,
    /// Whether its mail is taken, where any is.
    pub is_on: bool,
    /// What was decided for it.
    pub mail: GuestMailSwitch,
    /// What counts for its environment.
    pub environment_mail: EnvironmentMailSwitch,
    /// The hours of the last day in which it sent anything, the newest first.
    pub hours: Vec<MailHour>,
    /// What became of it in the last thirty days.
    pub month: MailCounts,
    /// When its node told that last.
    pub read_at: Option<DateTime<Utc>>,
    /// Whether who asks may switch it.
    pub may_change: bool,
    /// Which switch this is, to change it.
    pub version: Version,
}
impl Reply for GuestMail {
    const HAS_VERSION: bool = true;
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}

/// Mail of a guest in an hour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MailHour {
    /// When it began.
    pub hour: DateTime<Utc>,
    /// What became of it.
    pub counts: MailCounts,
}

/// Mail of an environment's guests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnvironmentMail {
    /// The project.
    pub project: ProjectName,
    /// The environment.
    pub environment: Environment,
    /// How much is taken of each guest; none where the operators have no relay for guests, and no mail is taken at all.
    pub limits: Option<MailLimits>,
    /// What counts for its guests that have no switch of their own.
    pub mail: EnvironmentMailSwitch,
    /// What became of it in the last day.
    pub day: MailCounts,
    /// Its guests with a switch of their own, or that sent anything in the last day: those that sent most first, 20 at most.
    pub guests: Vec<MailOfGuest>,
    /// Whether who asks may switch it.
    pub may_change: bool,
    /// Which switch this is, to change it.
    pub version: Version,
}
impl Reply for EnvironmentMail {
    const HAS_VERSION: bool = true;
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}

/// Mail of one guest of an environment, in the last day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MailOfGuest {
    /// The guest.
    pub guest: GuestId,
    /// Its name.
    pub name: GuestName,
    /// Whether its mail is taken.
    pub is_on: bool,
    /// What was decided for it.
    pub mail: GuestMailSwitch,
    /// What became of it.
    pub counts: MailCounts,
}
