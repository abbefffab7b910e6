//! Lines of containers' configurations: operators say which there are, and a guest has those that its project chose of them.
//!
//! What can't be had at all, [`LxcKey`] and [`LxcLine`] refuse; of the rest, only operators decide.

use corpus_domain::{Invalid, LxcKey, LxcLine, LxcLineName, LxcValue};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Version;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, delete, get, post, put};
use crate::words::Label;

/// Lists the lines that guests may have in their configurations, by name.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListLxcLines {}
impl Operation for ListLxcLines {
    type Kind = Read;
    type Output = AllowedLines;
    const META: Meta<Read> = get("list_lxc_lines", "/lxc-lines").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Visible
    }
}

/// Reads a line that guests may have in their configurations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetLxcLine {
    /// Which.
    pub line: LxcLineName,
}
impl Operation for GetLxcLine {
    type Kind = Read;
    type Output = AllowedLine;
    const META: Meta<Read> = get("get_lxc_line", "/lxc-lines/{line}").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Visible
    }
}

/// Allows guests to have a line in their configurations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreateLxcLine {
    /// What it is called.
    pub name: LxcLineName,
    /// The key of LXC.
    pub key: LxcKey,
    /// What that is set to; unless said, a guest with this line has no other that sets the key.
    pub value: Option<LxcValue>,
    /// What it is for.
    pub comment: Option<Label>,
}
impl Operation for CreateLxcLine {
    type Kind = Write;
    type Output = AllowedLine;
    const META: Meta<Write> = post("create_lxc_line", "/lxc-lines").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Sets what a line says, all of it. Guests that have it get that at their next start by Corpus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetLxcLine {
    /// Which.
    pub line: LxcLineName,
    /// The key of LXC.
    pub key: LxcKey,
    /// What that is set to; unless said, a guest with this line has no other that sets the key.
    pub value: Option<LxcValue>,
    /// What it is for.
    pub comment: Option<Label>,
    /// What was so when that was decided.
    pub version: Version,
}
impl Operation for SetLxcLine {
    type Kind = Write;
    type Output = AllowedLine;
    const META: Meta<Write> = put("set_lxc_line", "/lxc-lines/{line}").needs(Role::Ops).if_match("version");
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Removes a line, which no guest has any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemoveLxcLine {
    /// Which.
    pub line: LxcLineName,
}
impl Operation for RemoveLxcLine {
    type Kind = Write;
    type Output = LxcLineRemoved;
    const META: Meta<Write> = delete("remove_lxc_line", "/lxc-lines/{line}").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// The lines that guests may have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AllowedLines {
    /// By name, 100 at most.
    pub items: Vec<AllowedLine>,
}
impl Reply for AllowedLines {}

/// A line that guests may have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AllowedLine {
    /// What it is called.
    pub name: LxcLineName,
    /// The key of LXC.
    pub key: LxcKey,
    /// What that is set to; none: a guest with this line has no other that sets the key.
    pub value: Option<LxcValue>,
    /// What it is for.
    pub comment: Option<String>,
    /// How many guests have it, for operators.
    pub guests: Option<u32>,
    /// What this is a version of, to change it.
    pub version: Version,
}
impl AllowedLine {
    /// With its version, and nothing said of how many guests have it.
    pub fn of(name: LxcLineName, key: LxcKey, value: Option<LxcValue>, comment: Option<String>) -> Self {
        let version = Version::of(&(&key, &value, &comment));
        Self { name, key, value, comment, guests: None, version }
    }

    /// What it says, as it would stand in a configuration.
    pub fn text(&self) -> String {
        self.value
            .as_ref()
            .map_or_else(|| format!("{} is not set", self.key), |value| format!("{} = {value}", self.key))
    }
}
impl Reply for AllowedLine {
    const HAS_VERSION: bool = true;
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}

/// A line is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LxcLineRemoved {
    /// Which.
    pub line: LxcLineName,
}
impl Reply for LxcLineRemoved {}

/// Two lines of a guest that set the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetTwice {
    /// The key.
    pub key: LxcKey,
    /// Which lines, the first that do.
    pub lines: [LxcLineName; 2],
}

/// The lines that set the same key, if two of a guest's do.
pub fn set_twice(lines: &[AllowedLine]) -> Option<SetTwice> {
    let setting: Vec<&AllowedLine> = lines.iter().filter(|line| line.value.is_some()).collect();
    setting.iter().enumerate().find_map(|(at, one)| {
        let other = setting.iter().skip(at + 1).find(|other| other.key == one.key)?;
        Some(SetTwice { key: one.key.clone(), lines: [one.name.clone(), other.name.clone()] })
    })
}

/// What stands in the configuration of a guest with these lines, by key: not what one of them says is not set, and of two that set
/// the same key, which operators may make of them later, the first by name.
///
/// # Errors
/// Where a key does not take its value.
pub fn configured(lines: &[AllowedLine]) -> Result<Vec<LxcLine>, Invalid> {
    let is_unset = |key: &LxcKey| lines.iter().any(|line| line.key == *key && line.value.is_none());
    let mut by_name: Vec<&AllowedLine> = lines.iter().filter(|line| !is_unset(&line.key)).collect();
    by_name.sort_by(|one, other| (&one.key, &one.name).cmp(&(&other.key, &other.name)));
    by_name.dedup_by(|one, other| one.key == other.key);
    let said = by_name.into_iter().filter_map(|line| Some((line.key.clone(), line.value.clone()?)));
    said.map(|(key, value)| LxcLine::new(key, value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, key: &str, value: Option<&str>) -> AllowedLine {
        let value = value.map(|value| value.parse().unwrap());
        AllowedLine::of(name.parse().unwrap(), key.parse().unwrap(), value, None)
    }

    #[test]
    fn what_a_guest_is_configured_with() {
        let (files, forward) = ("lxc.prlimit.nofile", "lxc.sysctl.net.ipv4.ip_forward");
        let routes = line("routes", forward, Some("1"));
        let (few, many) = (line("few", files, Some("1024")), line("many", files, Some("65536")));
        let usual = line("usual-files", files, None);
        let text = |lines: &[AllowedLine]| -> Vec<String> {
            configured(lines).unwrap().iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            text(&[routes.clone(), many.clone()]),
            ["lxc.prlimit.nofile = 65536", "lxc.sysctl.net.ipv4.ip_forward = 1"]
        );
        assert_eq!(text(&[many.clone(), usual.clone(), routes.clone()]), ["lxc.sysctl.net.ipv4.ip_forward = 1"]);
        assert_eq!(text(&[many.clone(), few.clone()]), ["lxc.prlimit.nofile = 1024"]);
        assert_eq!(set_twice(&[many.clone(), routes, usual]), None);
        let twice = set_twice(&[many, few]).unwrap();
        assert_eq!((twice.key.as_str(), twice.lines.map(String::from)), (files, ["many".to_owned(), "few".to_owned()]));
    }
}
