//! Profiles: what operators call some defaults for guests, so that nobody has to know what is best where.
//!
//! A request names one, or has that which is usual in its environment. What it says itself goes before.

use corpus_domain::{
    Backing, CpuLimit, Driver, Environment, GuestProfileName, ImageName, IoWeight, LxcLineName, MemoryLimit, Mode,
    ProcessLimit, SizeProfile,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Version;
use crate::guests::{GuestConf, RequestGuest};
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, delete, get, post, put};
use crate::words::Label;

/// Lists the profiles, by name.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListProfiles {}
impl Operation for ListProfiles {
    type Kind = Read;
    type Output = Profiles;
    const META: Meta<Read> = get("list_profiles", "/profiles").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Visible
    }
}

/// Reads a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetProfile {
    /// Which.
    pub profile: GuestProfileName,
}
impl Operation for GetProfile {
    type Kind = Read;
    type Output = Profile;
    const META: Meta<Read> = get("get_profile", "/profiles/{profile}").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Visible
    }
}

/// Makes a profile, which says nothing yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreateProfile {
    /// What it is called.
    pub name: GuestProfileName,
    /// What it is for.
    pub comment: Option<Label>,
}
impl Operation for CreateProfile {
    type Kind = Write;
    type Output = Profile;
    const META: Meta<Write> = post("create_profile", "/profiles").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Sets what a profile says, all of it. Guests that are there already stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetProfile {
    /// Which.
    pub profile: GuestProfileName,
    /// What it is for.
    pub comment: Option<Label>,
    /// How much storage a guest may fill.
    pub size: Option<SizeProfile>,
    /// Memory; as the size says unless said.
    pub memory: Option<MemoryLimit>,
    /// Processor time; as the size says unless said.
    pub cpu: Option<CpuLimit>,
    /// Processes and threads; as the size says unless said.
    pub processes: Option<ProcessLimit>,
    /// Share of the disk's time; as the size says unless said.
    pub io_weight: Option<IoWeight>,
    /// Where its root file system lives.
    pub backing: Option<Backing>,
    /// What makes it.
    pub driver: Option<Driver>,
    /// What it is a clone of.
    pub image: Option<ImageName>,
    /// How its configuration is managed.
    pub mode: Option<Mode>,
    /// The lines of its configuration, of those that operators allow.
    #[serde(default)]
    pub conf: GuestConf,
    /// In which environments a request that names none has this one; another one is usual there no more.
    #[serde(default)]
    pub usual_in: UsualIn,
    /// What was so when that was decided.
    pub version: Version,
}
impl Operation for SetProfile {
    type Kind = Write;
    type Output = Profile;
    const META: Meta<Write> = put("set_profile", "/profiles/{profile}").needs(Role::Ops).if_match("version");
    fn scope(&self) -> Scope {
        Scope::Site
    }
}
impl SetProfile {
    /// What it says of guests.
    pub fn defaults(&self) -> ProfileDefaults {
        let Self { size, memory, cpu, processes, io_weight, backing, driver, ref image, mode, ref conf, .. } = *self;
        let mut conf = conf.to_vec();
        conf.sort();
        conf.dedup();
        ProfileDefaults { size, memory, cpu, processes, io_weight, backing, driver, image: image.clone(), mode, conf }
    }
}

/// Removes a profile. Guests that were made by it stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemoveProfile {
    /// Which.
    pub profile: GuestProfileName,
}
impl Operation for RemoveProfile {
    type Kind = Write;
    type Output = ProfileRemoved;
    const META: Meta<Write> = delete("remove_profile", "/profiles/{profile}").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

crate::several!(
    /// Environments in which a profile is usual.
    UsualIn, Environment, 8
);

/// What a profile says of guests; of the rest, nothing.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProfileDefaults {
    /// How much storage a guest may fill.
    pub size: Option<SizeProfile>,
    /// Memory.
    pub memory: Option<MemoryLimit>,
    /// Processor time.
    pub cpu: Option<CpuLimit>,
    /// Processes and threads.
    pub processes: Option<ProcessLimit>,
    /// Share of the disk's time.
    pub io_weight: Option<IoWeight>,
    /// Where its root file system lives.
    pub backing: Option<Backing>,
    /// What makes it.
    pub driver: Option<Driver>,
    /// What it is a clone of.
    pub image: Option<ImageName>,
    /// How its configuration is managed.
    pub mode: Option<Mode>,
    /// The lines of its configuration, by name.
    #[serde(default)]
    pub conf: Vec<LxcLineName>,
}

impl ProfileDefaults {
    /// The request with all of this that it does not say itself, but for lines: which of them the request says something
    /// else of depends on their keys.
    #[must_use]
    pub fn under(&self, wanted: RequestGuest) -> RequestGuest {
        RequestGuest {
            size: wanted.size.or(self.size),
            memory: wanted.memory.or(self.memory),
            cpu: wanted.cpu.or(self.cpu),
            processes: wanted.processes.or(self.processes),
            io_weight: wanted.io_weight.or(self.io_weight),
            backing: wanted.backing.or(self.backing),
            driver: wanted.driver.or(self.driver),
            image: wanted.image.clone().or_else(|| self.image.clone()),
            mode: wanted.mode.or(self.mode),
            ..wanted
        }
    }

    /// What it says, in the order of the form: `small, btrfs, 2 GiB memory`.
    pub fn text(&self) -> String {
        let Self { size, memory, cpu, processes, io_weight, backing, driver, image, mode, conf } = self;
        let lines: Vec<&str> = conf.iter().map(LxcLineName::as_str).collect();
        let parts = [
            size.map(|size| size.to_string()),
            backing.map(|backing| format!("on {backing}")),
            image.as_ref().map(|image| format!("of {image}")),
            driver.map(|driver| format!("with {driver}")),
            memory.map(|memory| format!("{memory} memory")),
            cpu.map(|cpu| format!("{cpu} CPU")),
            processes.map(|processes| format!("{processes} processes")),
            io_weight.map(|weight| format!("I/O weight {weight}")),
            mode.map(|mode| mode.to_string()),
            (!lines.is_empty()).then(|| format!("with the lines {}", lines.join(" and "))),
        ];
        let said: Vec<String> = parts.into_iter().flatten().collect();
        if said.is_empty() { "says nothing yet".to_owned() } else { said.join(", ") }
    }
}

/// The profiles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Profiles {
    /// By name, 100 at most.
    pub items: Vec<Profile>,
}
impl Reply for Profiles {}

/// A profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Profile {
    /// What it is called.
    pub name: GuestProfileName,
    /// What it is for.
    pub comment: Option<String>,
    /// What it says of guests.
    pub defaults: ProfileDefaults,
    /// In which environments a request that names none has this one.
    pub usual_in: Vec<Environment>,
    /// What this is a version of, to change it.
    pub version: Version,
}
impl Profile {
    /// With its version.
    pub fn of(
        name: GuestProfileName,
        comment: Option<String>,
        defaults: ProfileDefaults,
        usual_in: Vec<Environment>,
    ) -> Self {
        let version = Version::of(&(&comment, &defaults, &usual_in));
        Self { name, comment, defaults, usual_in, version }
    }
}
impl Reply for Profile {
    const HAS_VERSION: bool = true;
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}

/// A profile is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProfileRemoved {
    /// Which.
    pub profile: GuestProfileName,
}
impl Reply for ProfileRemoved {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_says_goes_before() {
        let wanted = |backing| RequestGuest {
            size: None,
            backing,
            ..RequestGuest::new(
                "shop".parse().unwrap(),
                Environment::Dev,
                "a.test".parse().unwrap(),
                SizeProfile::Small,
            )
        };
        let defaults =
            ProfileDefaults { size: Some(SizeProfile::Medium), backing: Some(Backing::Loop), ..Default::default() };
        let filled = defaults.under(wanted(None));
        assert_eq!((filled.size, filled.backing, filled.mode), (Some(SizeProfile::Medium), Some(Backing::Loop), None));
        let filled = defaults.under(wanted(Some(Backing::Dir)));
        assert_eq!((filled.size, filled.backing), (Some(SizeProfile::Medium), Some(Backing::Dir)));
        assert_eq!(defaults.text(), "medium, on loop");
        assert_eq!(ProfileDefaults::default().text(), "says nothing yet");
    }
}
