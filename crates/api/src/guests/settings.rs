//! Settings of a guest that are changed later: whether its node starts it at boot, and which of the lines that operators
//! allow its configuration has.

use corpus_domain::{GuestId, LxcLineName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Version;
use crate::jobs::JobAccepted;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, get, put};

crate::several!(
    /// Names of lines that operators allow.
    GuestConf, LxcLineName, 20
);

/// Shows whether a guest starts at boot, and the lines of its configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetGuestSettings {
    /// Of which guest.
    pub guest: GuestId,
}
impl Operation for GetGuestSettings {
    type Kind = Read;
    type Output = GuestSettings;
    const META: Meta<Read> = get("get_guest_settings", "/guests/{guest}/settings").needs(Role::Viewer);
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// Sets whether a guest starts at boot, and which lines its configuration has: all of it. What runs goes on; lines are
/// in force from its next start on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetGuestSettings {
    /// Which.
    pub guest: GuestId,
    /// Whether its node starts it at boot.
    #[serde(default)]
    pub autostart: bool,
    /// The lines, of those that operators allow.
    #[serde(default)]
    pub conf: GuestConf,
    /// The settings that are to be changed.
    pub version: Version,
}
impl Operation for SetGuestSettings {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> =
        put("set_guest_settings", "/guests/{guest}/settings").needs(Role::Maintainer).if_match("version");
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// What of a guest is changed later, beside its limits and its storage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GuestSettings {
    /// Whether its node starts it at boot.
    pub autostart: bool,
    /// The lines of its configuration, by name.
    pub conf: Vec<LxcLineName>,
    /// Which settings these are, to change them.
    pub version: Version,
}
impl GuestSettings {
    /// With their version. Each line counts once, in any order.
    pub fn of(autostart: bool, mut conf: Vec<LxcLineName>) -> Self {
        conf.sort();
        conf.dedup();
        let version = Version::of(&(autostart, &conf));
        Self { autostart, conf, version }
    }

    /// In a few words: `starts at boot; many-files, routes`.
    pub fn text(&self) -> String {
        let boot = if self.autostart { "starts at boot" } else { "does not start at boot" };
        let names: Vec<&str> = self.conf.iter().map(LxcLineName::as_str).collect();
        if names.is_empty() { boot.to_owned() } else { format!("{boot}; {}", names.join(", ")) }
    }
}
impl Reply for GuestSettings {
    const HAS_VERSION: bool = true;
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}
