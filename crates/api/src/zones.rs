//! DNS zones, and which projects may take names in each.

use chrono::{DateTime, Utc};
use corpus_domain::{DnsName, ProjectName, ProviderName, ZoneId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, delete, get, post, put};
use crate::words::{Limit, SearchText, ZoneTtl};
use crate::{Cursor, Version};

/// Lists the zones in which one's projects may take names, by name; all of them for operators.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListZones {
    /// Only those that have this in their name.
    pub q: Option<SearchText>,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListZones {
    type Kind = Read;
    type Output = ZonePage;
    const META: Meta<Read> = get("list_zones", "/zones").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Visible
    }
}

/// Shows a zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetZone {
    /// Which.
    pub zone: ZoneId,
}
impl Operation for GetZone {
    type Kind = Read;
    type Output = Zone;
    const META: Meta<Read> = get("get_zone", "/zones/{zone}").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Zone(self.zone)
    }
}

/// Makes a zone at the DNS server and here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreateZone {
    /// Its name.
    pub name: DnsName,
    /// Who may take names in it.
    pub access: ZoneAccess,
    /// The projects that may, when it is only for some.
    #[serde(default)]
    pub projects: ZoneProjects,
    /// The DNS server that holds it, by its name in the configuration; needed when there are several.
    #[serde(default)]
    pub provider: Option<ProviderName>,
    /// For how many seconds resolvers may keep what is answered for its names; 60 unless said.
    #[serde(default)]
    pub ttl_s: Option<ZoneTtl>,
}
impl Operation for CreateZone {
    type Kind = Write;
    type Output = ZoneCreated;
    const META: Meta<Write> = post("create_zone", "/zones").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Shows which projects may take names in a zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetZoneAccess {
    /// Which zone.
    pub zone: ZoneId,
}
impl Operation for GetZoneAccess {
    type Kind = Read;
    type Output = ZoneOpenness;
    const META: Meta<Read> = get("get_zone_access", "/zones/{zone}/access").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Zone(self.zone)
    }
}

/// Says which projects may take names in a zone. Names that are attached stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetZoneAccess {
    /// Which zone.
    pub zone: ZoneId,
    /// What is to be changed.
    pub version: Version,
    /// Who may take names in it.
    pub access: ZoneAccess,
    /// The projects that may, when it is only for some.
    #[serde(default)]
    pub projects: ZoneProjects,
}
impl Operation for SetZoneAccess {
    type Kind = Write;
    type Output = ZoneOpenness;
    const META: Meta<Write> = put("set_zone_access", "/zones/{zone}/access").needs(Role::Ops).if_match("version");
    fn scope(&self) -> Scope {
        Scope::Zone(self.zone)
    }
}

/// Says for how long resolvers may keep what is answered for a zone's names. Records that are there keep what they have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetZoneTtl {
    /// Which zone.
    pub zone: ZoneId,
    /// How many seconds.
    pub ttl_s: ZoneTtl,
}
impl Operation for SetZoneTtl {
    type Kind = Write;
    type Output = ZoneTtlSet;
    const META: Meta<Write> = put("set_zone_ttl", "/zones/{zone}/ttl").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Zone(self.zone)
    }
}

/// For how long resolvers may keep what is answered for a zone's names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ZoneTtlSet {
    /// How many seconds.
    pub ttl_s: ZoneTtl,
}
impl Reply for ZoneTtlSet {}

/// Lists the DNS servers that are configured, by name.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListDnsServers {}
impl Operation for ListDnsServers {
    type Kind = Read;
    type Output = DnsServers;
    const META: Meta<Read> = get("list_zone_servers", "/zone-servers").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// The DNS servers that are configured.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DnsServers {
    /// Their names.
    pub items: Vec<ProviderName>,
}
impl Reply for DnsServers {}

/// Removes a zone without names, here and at the DNS server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemoveZone {
    /// Which.
    pub zone: ZoneId,
}
impl Operation for RemoveZone {
    type Kind = Write;
    type Output = ZoneRemoved;
    const META: Meta<Write> = delete("remove_zone", "/zones/{zone}").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Zone(self.zone)
    }
}

/// Who may take names in a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ZoneAccess {
    /// All projects.
    All,
    /// Only those that are named.
    Only,
    /// All projects, when operators approve the name.
    Ask,
}

crate::several!(
    /// Projects by name.
    ZoneProjects, ProjectName, 200
);

/// A DNS zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Zone {
    /// Its id.
    pub id: ZoneId,
    /// Its name.
    pub name: DnsName,
    /// How many names are attached in it, of those that one may see.
    pub names: u32,
    /// Who may take names in it.
    pub access: ZoneAccess,
    /// The projects that may, when it is only for some; as a member sees it, those that are the member's.
    pub projects: Vec<ProjectName>,
    /// The DNS server that holds it.
    pub provider: ProviderName,
    /// For how many seconds resolvers may keep what is answered for its names.
    pub ttl_s: ZoneTtl,
    /// When it was made.
    pub created_at: DateTime<Utc>,
}
impl Reply for Zone {}

crate::page!(
    /// A page of zones.
    ZonePage, Zone
);

/// A zone was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ZoneCreated {
    /// Which.
    pub zone: ZoneId,
}
impl Reply for ZoneCreated {
    const STATUS: u16 = 201;
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(format!("/zones/{}", self.zone))
    }
}

/// Which projects may take names in a zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ZoneOpenness {
    /// Who may take names in it.
    pub access: ZoneAccess,
    /// The projects that may, when it is only for some.
    pub projects: Vec<ProjectName>,
    /// Which state this is, to change it.
    pub version: Version,
}
impl ZoneOpenness {
    /// With its version.
    pub fn new(access: ZoneAccess, projects: Vec<ProjectName>) -> Self {
        let version = Version::of(&(access, &projects));
        Self { access, projects, version }
    }
}
impl Reply for ZoneOpenness {
    const HAS_VERSION: bool = true;
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}

/// A zone was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ZoneRemoved {
    /// Which.
    pub zone: ZoneId,
}
impl Reply for ZoneRemoved {}
