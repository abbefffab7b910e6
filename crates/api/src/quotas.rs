//! Quotas: how much a project may take of what all share, how much of it is taken, and what is so by default.

use corpus_domain::{
    CpuQuota, GuestQuota, MemoryQuota, NameQuota, PortQuota, ProjectName, ProjectRole, QuotaOf, StorageQuota,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, get, put};
use crate::words::{Limit, SearchText};
use crate::{Cursor, Version};

/// Lists what projects have taken of their quotas, by name.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListQuotas {
    /// Only of projects whose name has this in it.
    pub q: Option<SearchText>,
    /// Only those in which one may do at least what this role may; an operator may all.
    pub role: Option<ProjectRole>,
    /// Only of projects that have a quota of their own, or only of those that have none.
    pub own: Option<bool>,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListQuotas {
    type Kind = Read;
    type Output = QuotaPage;
    const META: Meta<Read> = get("list_quotas", "/quotas").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Visible
    }
}

/// Shows what a project has taken of its quota, and what is left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetQuota {
    /// Of which project.
    pub project: ProjectName,
}
impl Operation for GetQuota {
    type Kind = Read;
    type Output = ProjectQuota;
    const META: Meta<Read> = get("get_quota", "/projects/{project}/quota").needs(Role::Viewer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Sets how much a project may take. What is not given is as the policy says. What the project has stays, also
/// where that is more: then it gets nothing more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetQuota {
    /// Which project.
    pub project: ProjectName,
    /// The most guests; as the policy says unless said.
    pub guests: Option<GuestQuota>,
    /// The most memory; as the policy says unless said.
    pub memory: Option<MemoryQuota>,
    /// The most processor time; as the policy says unless said.
    pub cpu: Option<CpuQuota>,
    /// The most storage; as the policy says unless said.
    pub storage: Option<StorageQuota>,
    /// The most DNS names; as the policy says unless said.
    pub names: Option<NameQuota>,
    /// The most published ports; as the policy says unless said.
    pub ports: Option<PortQuota>,
    /// The most that backups may take; as the policy says unless said.
    pub backups: Option<StorageQuota>,
    /// What has no limit in this project, whatever the policy says.
    #[serde(default)]
    pub unlimited: Unlimited,
    /// What was set when that was decided.
    pub version: Version,
}
impl Operation for SetQuota {
    type Kind = Write;
    type Output = ProjectQuota;
    const META: Meta<Write> = put("set_quota", "/projects/{project}/quota").needs(Role::Ops).if_match("version");
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}
impl SetQuota {
    /// The amount that is given of a thing.
    pub fn amount(&self, of: QuotaOf) -> Option<u64> {
        amount(of, (self.guests, self.memory, self.cpu), (self.storage, self.backups), (self.names, self.ports))
    }
}

crate::several!(
    /// What has no limit.
    Unlimited, QuotaOf, 7
);

/// Shows how much every project may take that has no quota of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetQuotaPolicy {}
impl Operation for GetQuotaPolicy {
    type Kind = Read;
    type Output = QuotaPolicy;
    const META: Meta<Read> = get("get_quota_policy", "/quota-policy").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Sets how much every project may take that has no quota of its own. What is not given has no limit. What projects
/// have stays, also where that is more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetQuotaPolicy {
    /// The most guests; no limit unless said.
    pub guests: Option<GuestQuota>,
    /// The most memory; no limit unless said.
    pub memory: Option<MemoryQuota>,
    /// The most processor time; no limit unless said.
    pub cpu: Option<CpuQuota>,
    /// The most storage; no limit unless said.
    pub storage: Option<StorageQuota>,
    /// The most DNS names; no limit unless said.
    pub names: Option<NameQuota>,
    /// The most published ports; no limit unless said.
    pub ports: Option<PortQuota>,
    /// The most that backups may take; no limit unless said.
    pub backups: Option<StorageQuota>,
    /// What was so when that was decided.
    pub version: Version,
}
impl Operation for SetQuotaPolicy {
    type Kind = Write;
    type Output = QuotaPolicy;
    const META: Meta<Write> = put("set_quota_policy", "/quota-policy").needs(Role::Ops).if_match("version");
    fn scope(&self) -> Scope {
        Scope::Site
    }
}
impl SetQuotaPolicy {
    /// The amount that is given of a thing.
    pub fn amount(&self, of: QuotaOf) -> Option<u64> {
        amount(of, (self.guests, self.memory, self.cpu), (self.storage, self.backups), (self.names, self.ports))
    }
}

fn amount(
    of: QuotaOf,
    (guests, memory, cpu): (Option<GuestQuota>, Option<MemoryQuota>, Option<CpuQuota>),
    (storage, backups): (Option<StorageQuota>, Option<StorageQuota>),
    (names, ports): (Option<NameQuota>, Option<PortQuota>),
) -> Option<u64> {
    match of {
        QuotaOf::Guests => guests.map(Into::into),
        QuotaOf::Memory => memory.map(Into::into),
        QuotaOf::Cpu => cpu.map(Into::into),
        QuotaOf::Storage => storage.map(Into::into),
        QuotaOf::Names => names.map(Into::into),
        QuotaOf::Ports => ports.map(Into::into),
        QuotaOf::Backups => backups.map(Into::into),
    }
}

/// How much every project may take that has no quota of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuotaPolicy {
    /// The most guests; none: no limit.
    pub guests: Option<u64>,
    /// The most memory in bytes; none: no limit.
    pub memory: Option<u64>,
    /// The most processor time in thousandths of a processor; none: no limit.
    pub cpu: Option<u64>,
    /// The most storage in bytes; none: no limit.
    pub storage: Option<u64>,
    /// The most DNS names; none: no limit.
    pub names: Option<u64>,
    /// The most published ports; none: no limit.
    pub ports: Option<u64>,
    /// The most that backups may take, in bytes; none: no limit.
    pub backups: Option<u64>,
    /// What this is a version of, to change it.
    pub version: Version,
}
impl QuotaPolicy {
    /// With its version.
    pub fn of(limit: impl Fn(QuotaOf) -> Option<u64>) -> Self {
        let all: Vec<Option<u64>> = QuotaOf::ALL.iter().map(|of| limit(*of)).collect();
        Self {
            guests: limit(QuotaOf::Guests),
            memory: limit(QuotaOf::Memory),
            cpu: limit(QuotaOf::Cpu),
            storage: limit(QuotaOf::Storage),
            names: limit(QuotaOf::Names),
            ports: limit(QuotaOf::Ports),
            backups: limit(QuotaOf::Backups),
            version: Version::of(&all),
        }
    }

    /// The most of a thing.
    pub const fn limit(&self, of: QuotaOf) -> Option<u64> {
        match of {
            QuotaOf::Guests => self.guests,
            QuotaOf::Memory => self.memory,
            QuotaOf::Cpu => self.cpu,
            QuotaOf::Storage => self.storage,
            QuotaOf::Names => self.names,
            QuotaOf::Ports => self.ports,
            QuotaOf::Backups => self.backups,
        }
    }
}
impl Reply for QuotaPolicy {
    const HAS_VERSION: bool = true;
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}

/// How much of something a project has taken, and how much it may.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct QuotaUse {
    /// How much is taken: bytes of memory, storage and backups, thousandths of a processor.
    pub used: u64,
    /// How much may be; none: there is no limit.
    pub limit: Option<u64>,
    /// How much may still be taken; none: there is no limit.
    pub left: Option<u64>,
    /// Whether the limit, or that there is none, was set for this project; the policy says it else.
    pub is_own: bool,
}
impl QuotaUse {
    /// Of what is taken, and of the limit.
    pub fn of(used: u64, limit: Option<u64>, is_own: bool) -> Self {
        Self { used, limit, left: limit.map(|limit| limit.saturating_sub(used)), is_own }
    }
}

/// What a project has taken of its quota, from each request on until it is given back, and what is left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectQuota {
    /// Which project.
    pub project: ProjectName,
    /// Guests.
    pub guests: QuotaUse,
    /// Memory that is promised to its guests.
    pub memory: QuotaUse,
    /// Processor time that is promised to its guests.
    pub cpu: QuotaUse,
    /// Storage that is promised to its guests.
    pub storage: QuotaUse,
    /// DNS names.
    pub names: QuotaUse,
    /// Published ports.
    pub ports: QuotaUse,
    /// What its repository of backups takes, in bytes.
    pub backups: QuotaUse,
    /// Which quota of its own this is, to change it.
    pub version: Version,
}
impl ProjectQuota {
    /// Of what each thing's use is.
    pub fn of(project: ProjectName, of: impl Fn(QuotaOf) -> QuotaUse) -> Self {
        // What is the policy's is told apart from what has no limit in this project.
        let told = |one: QuotaUse| -> serde_json::Value {
            match one.limit {
                _ if !one.is_own => serde_json::Value::Null,
                Some(limit) => limit.into(),
                None => "no limit".into(),
            }
        };
        let told: Vec<serde_json::Value> = QuotaOf::ALL.iter().map(|thing| told(of(*thing))).collect();
        Self {
            project,
            guests: of(QuotaOf::Guests),
            memory: of(QuotaOf::Memory),
            cpu: of(QuotaOf::Cpu),
            storage: of(QuotaOf::Storage),
            names: of(QuotaOf::Names),
            ports: of(QuotaOf::Ports),
            backups: of(QuotaOf::Backups),
            version: Version::of(&told),
        }
    }

    /// The use of a thing.
    pub const fn of_thing(&self, of: QuotaOf) -> QuotaUse {
        match of {
            QuotaOf::Guests => self.guests,
            QuotaOf::Memory => self.memory,
            QuotaOf::Cpu => self.cpu,
            QuotaOf::Storage => self.storage,
            QuotaOf::Names => self.names,
            QuotaOf::Ports => self.ports,
            QuotaOf::Backups => self.backups,
        }
    }

    /// What is taken of these things, of those that have a limit: `3 of 5 guests, 6 GiB of 8 GiB of memory`; none
    /// when none has.
    pub fn limited(&self, of: &[QuotaOf]) -> Option<String> {
        let parts = of.iter().filter_map(|thing| {
            let one = self.of_thing(*thing);
            one.limit.map(|limit| thing.taken(one.used, Some(limit)))
        });
        let parts: Vec<String> = parts.collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}
impl Reply for ProjectQuota {
    const HAS_VERSION: bool = true;
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}

crate::page!(
    /// A page of what projects have taken of their quotas.
    QuotaPage, ProjectQuota
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Input;

    fn form<O: serde::de::DeserializeOwned + ToSchema>(pairs: &[(&str, &str)]) -> Result<O, Vec<crate::Wrong>> {
        Input::form(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))).read()
    }

    #[test]
    fn a_quota_is_typed_as_people_say_it() {
        let version = ("version", "0123456789abcdef");
        let typed = [
            version,
            ("guests", "5"),
            ("memory", "8 GiB"),
            ("cpu", "0.5"),
            ("storage", ""),
            ("names", " "),
            ("ports", "7"),
        ];
        let read = form::<SetQuotaPolicy>(&typed).unwrap();
        let amounts: Vec<Option<u64>> = QuotaOf::ALL.iter().map(|of| read.amount(*of)).collect();
        assert_eq!(amounts, [Some(5), Some(8 << 30), Some(500), None, None, Some(7), None]);
        let wrong = [version, ("guests", "-1"), ("memory", "8"), ("cpu", "x"), ("storage", "1 GiB"), ("names", "1.5")];
        assert_eq!(form::<SetQuotaPolicy>(&wrong).unwrap_err().len(), 5);
        let project = ("project", "atlas");
        let own = [project, version, ("unlimited", "memory"), ("unlimited", "names"), ("guests", "0")];
        let read = form::<SetQuota>(&own).unwrap();
        assert_eq!((read.unlimited.len(), read.amount(QuotaOf::Guests)), (2, Some(0)));
        assert!(form::<SetQuota>(&[project, version, ("unlimited", "everything")]).is_err());
    }

    #[test]
    fn no_limit_of_its_own_is_another_version_than_the_policys() {
        let of = |limit, is_own| ProjectQuota::of("atlas".parse().unwrap(), |_| QuotaUse::of(7, limit, is_own));
        let versions = [of(None, false), of(None, true), of(Some(9), true)].map(|quota| quota.version.to_string());
        assert_eq!(std::collections::BTreeSet::from(versions).len(), 3);
        assert_eq!(of(Some(9), false).version, of(None, false).version, "the policy is no part of it");
        assert_eq!(of(Some(5), false).guests.left, Some(0), "what is over it is not less than nothing");
    }
}
