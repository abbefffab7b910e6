//! The configuration: one TOML file, overridden by the environment, read into types at start.
//!
//! A value that is not what its key takes stops the start, and so does a key nobody knows.
//! Keys are documented in `corpus.example.toml`; `CORPUS_SECTION__KEY` overrides `section.key`.

mod keys;
pub mod places;
mod read;
mod sections;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use corpus_backup::Storage;
use corpus_controller::mail::Relay;
use corpus_controller::{AddressDetail, CertificateSettings, GuestMailSettings, ImageNames, IntrusionSettings, Rules};
use corpus_domain::{
    DnsName, EgressRule, GuestNetwork, HostName, ProjectCreators, ProjectName, ProjectRole, ProviderName,
};
use ipnet::IpNet;
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;
use url::Url;

use crate::own_backup::BackupSettings;
use crate::salt_master::SaltMaster;
use read::Reader;

/// The whole configuration.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the server listens.
    pub listen: SocketAddr,
    /// What a browser's address bar shows, without a path.
    pub public_url: Url,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpAddr>,
    /// The folder of `pkg/`, `fonts/` and `hash.txt`.
    pub site_folder: PathBuf,
    /// The folder for what the server keeps.
    pub data_folder: PathBuf,
    /// The agent that is copied to nodes.
    pub agent_binary: PathBuf,
    /// The folder of `<image name>.tar.zst`.
    pub image_folder: PathBuf,
    /// What guests can be clones of.
    pub images: ImageNames,
    /// The folder of the archives of images that projects make.
    pub made_images: PathBuf,
    /// The place with the repositories of guests' backups; none: none are taken.
    pub guest_backups: Option<Storage>,
    /// The bundle of Salt that is brought to guests of projects; `None`: they have no Salt.
    pub salt_bundle: Option<PathBuf>,
    /// The controller's Salt master, if there is to be one.
    pub salt_master: Option<SaltMaster>,
    /// The folder of the operator's hooks.
    pub hooks_folder: PathBuf,
    /// The database; `None` asks for a private PostgreSQL.
    pub database_url: Option<SecretString>,
    /// The file of the key that seals secrets in the database.
    pub seal_key_file: PathBuf,
    /// How long a browser stays signed in.
    pub session_hours: u16,
    /// How many requests a member may send to the API in a minute.
    pub requests_per_minute: u32,
    /// For how many days the audit is kept; `None`: for ever.
    pub audit_days: Option<u16>,
    /// Who signs certificates of names.
    pub certificates: CertificateSettings,
    /// How much of visitors' addresses who follows their requests is told.
    pub access_addresses: AddressDetail,
    /// How many signs of intrusion are too many, and what is done then.
    pub intrusion: IntrusionSettings,
    /// After how many days a request to the operators lapses; `None`: after 14.
    pub request_days: Option<u16>,
    /// The form of the log.
    pub log: Log,
    /// The directory, if there is one.
    pub ldap: Option<Ldap>,
    /// The DNS servers.
    pub dns: Vec<Dns>,
    /// The resolvers that are asked what the world answers; none: those of the system.
    pub resolvers: Vec<SocketAddr>,
    /// The git server, if there is one.
    pub git: Option<Git>,
    /// How mail is sent, if it is.
    pub mail: Option<Mail>,
    /// How mail of guests is taken, if it is.
    pub guest_mail: Option<GuestMailSettings>,
    /// Who makes projects.
    pub project_creators: ProjectCreators,
    /// What guests get when a node says nothing else.
    pub guests: Guests,
    /// Where guests may go although it is closed to them otherwise.
    pub egress: Vec<EgressRule>,
    /// Where webhooks may lead although it is closed to them otherwise.
    pub webhooks: Vec<IpNet>,
    /// How backups of the controller itself are taken, if they are.
    pub backup: Option<BackupSettings>,
    /// The file that this was read from, if any.
    pub file: Option<PathBuf>,
    /// The files that keys name: what the configuration is incomplete without.
    pub named_files: Vec<PathBuf>,
}

/// The form of the log.
#[derive(Debug, Clone)]
pub struct Log {
    /// JSON lines instead of lines for people.
    pub json: bool,
    /// What is logged, as tracing directives.
    pub filter: String,
}

/// The directory of members.
#[derive(Debug, Clone)]
pub struct Ldap {
    /// `ldaps://…` or `ldap://…`.
    pub url: Url,
    /// Whether the connection is upgraded by StartTLS; without it the URL is `ldaps://`.
    pub starttls: bool,
    /// The authorities that vouch for the directory's certificate; `None` means those of the system.
    pub ca_file: Option<PathBuf>,
    /// The account that searches.
    pub bind_dn: String,
    /// Its password.
    pub bind_password: SecretString,
    /// Where people are.
    pub people_base: String,
    /// Finds a person by `{login}`.
    pub people_filter: String,
    /// Matches people who may not sign in.
    pub disabled_filter: Option<String>,
    /// Where groups are.
    pub groups_base: String,
    /// Finds the groups of a person by `{dn}` or `{login}`.
    pub groups_filter: String,
    /// The group of the operators.
    pub ops_group: String,
    /// How the groups of a project are called.
    pub project_group_pattern: GroupPattern,
    /// How long between two rounds in which the directory is asked about all members.
    pub check: Duration,
}

/// How the group of a project's role is called: text with `{project}` and `{role}` in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupPattern(String);

impl std::str::FromStr for GroupPattern {
    type Err = ();
    fn from_str(given: &str) -> Result<Self, ()> {
        let once = |word| given.matches(word).count() == 1;
        if once("{project}") && once("{role}") { Ok(Self(given.to_owned())) } else { Err(()) }
    }
}

impl GroupPattern {
    /// The project and role that a group of this name gives.
    pub fn role(&self, group: &str) -> Option<(ProjectName, ProjectRole)> {
        ProjectRole::ALL.iter().find_map(|role| {
            let wanted = self.0.replace("{role}", role.as_str());
            let (head, tail) = wanted.split_once("{project}")?;
            let project = group.strip_prefix(head)?.strip_suffix(tail)?;
            Some((project.parse().ok()?, *role))
        })
    }

    /// The groups that would give roles in a project.
    pub fn groups(&self, project: &ProjectName) -> Vec<String> {
        let of = |role: &ProjectRole| self.0.replace("{role}", role.as_str()).replace("{project}", project.as_str());
        ProjectRole::ALL.iter().map(of).collect()
    }
}

/// A DNS server.
#[derive(Debug, Clone)]
pub struct Dns {
    /// What it is called.
    pub name: ProviderName,
    /// How it is told to change its zones.
    pub kind: DnsKind,
    /// Where the authoritative server answers queries.
    pub server: SocketAddr,
    /// Where nodes ask it for the names that their guests resolve.
    pub resolver_server: SocketAddr,
}

/// How a DNS server is told to change its zones.
#[derive(Debug, Clone)]
pub enum DnsKind {
    /// By the HTTP API of `PowerDNS`.
    PowerDns {
        /// The API.
        api_url: Url,
        /// Its key.
        api_key: SecretString,
        /// The server id in the API.
        server_id: String,
        /// The names of the name servers of new zones.
        nameservers: Vec<HostName>,
    },
    /// By updates of RFC 2136, signed with TSIG.
    Rfc2136 {
        /// The name of the key.
        key_name: HostName,
        /// The key, in base64.
        key: SecretString,
        /// The zones that it may change.
        zones: Vec<DnsName>,
    },
}

impl Dns {
    /// The names of the name servers that it gives new zones.
    pub fn nameservers(&self) -> &[HostName] {
        match &self.kind {
            DnsKind::PowerDns { nameservers, .. } => nameservers,
            DnsKind::Rfc2136 { .. } => &[],
        }
    }
}

/// The git server.
#[derive(Debug, Clone)]
pub struct Git {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The host, as members write it in URLs.
    pub public_host: String,
    /// The port, as members write it.
    pub public_port: u16,
}

impl Git {
    /// What the URLs of repositories begin with.
    pub fn url(&self) -> String {
        let Self { public_host: host, public_port: port, .. } = self;
        if *port == 22 { format!("ssh://git@{host}") } else { format!("ssh://git@{host}:{port}") }
    }
}

/// How mail is sent.
#[derive(Debug, Clone)]
pub struct Mail {
    /// The relay.
    pub relay: Relay,
    /// The sender's address.
    pub from: String,
}

impl Mail {
    /// The domain that letters come from, and the relay's host.
    fn hosts(&self) -> Vec<String> {
        let relay = Url::parse(self.relay.url.expose_secret()).ok();
        let relay = relay.as_ref().and_then(Url::host_str).map(str::to_owned);
        let domain = self.from.rsplit_once('@').map(|(_, domain)| domain.trim_end_matches('>').to_owned());
        relay.into_iter().chain(domain).collect()
    }
}

/// What guests get by default.
#[derive(Debug, Clone)]
pub struct Guests {
    /// The network of guests on a node.
    pub network: GuestNetwork,
    /// The bridge on a node.
    pub bridge: String,
}

/// The configuration can't be used.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// The named file is not there or not readable.
    #[error("the configuration file {path} can't be read: {source}")]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("{path} is not TOML: {message}")]
    Syntax {
        /// Which file.
        path: PathBuf,
        /// Where and what.
        message: String,
    },
    /// Values or keys are wrong; one line each.
    #[error("the configuration can't be used:\n  {}", .0.join("\n  "))]
    Faults(Vec<String>),
}

const PLACES: [&str; 2] = ["corpus.toml", "/etc/corpus/corpus.toml"];

impl Settings {
    /// Reads the named file, or the first there is of `./corpus.toml` and
    /// `/etc/corpus/corpus.toml`, then the environment.
    pub fn load(named: Option<&Path>) -> Result<Self, ConfigError> {
        let path = named.or_else(|| PLACES.iter().map(Path::new).find(|path| path.exists()));
        let file = path.map(|path| read_file(path).map(|table| (path, table))).transpose()?;
        Self::from_parts(file, std::env::vars())
    }

    /// Builds the settings from a file's table and variables.
    pub fn from_parts(
        file: Option<(&Path, toml::Table)>,
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let mut reader = Reader::default();
        let path = file.as_ref().map(|(path, _)| path.to_path_buf());
        if let Some((path, table)) = file {
            reader.file(path, table);
        }
        reader.environment(variables);
        let settings = read_all(&mut reader);
        let faults = reader.into_faults();
        match settings {
            Some(settings) if faults.is_empty() => Ok(Settings { file: path, ..settings }),
            _ => Err(ConfigError::Faults(faults)),
        }
    }

    /// Who makes projects, and which names are nobody's guest's.
    pub fn rules(&self) -> Rules {
        let git = self.git.as_ref().map(|git| git.public_host.as_str());
        let own = self.public_url.host_str().into_iter().chain(git);
        let mail = self.mail.iter().flat_map(Mail::hosts);
        let name_servers = self.dns.iter().flat_map(Dns::nameservers).map(ToString::to_string);
        Rules {
            project_creators: self.project_creators,
            // What is an address or a single label can't be in a zone.
            own_hosts: own.filter_map(|host| host.parse().ok()).collect(),
            service_hosts: mail.chain(name_servers).filter_map(|host| host.parse().ok()).collect(),
            request_days: self.request_days,
        }
    }

    /// Whether browsers come by https.
    pub fn is_https(&self) -> bool {
        self.public_url.scheme() == "https"
    }
}

fn read_file(path: &Path) -> Result<toml::Table, ConfigError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
    text.parse()
        .map_err(|error: toml::de::Error| ConfigError::Syntax { path: path.to_owned(), message: error.to_string() })
}

fn address_detail(text: &str) -> Option<AddressDetail> {
    match text {
        "cut" => Some(AddressDetail::Cut),
        "whole" => Some(AddressDetail::Whole),
        "none" => Some(AddressDetail::None),
        _ => None,
    }
}

/// The server of `[dns]`, and those of the sections `[dns.NAME]`.
fn dns(r: &mut Reader) -> Vec<Dns> {
    let first = r.has_section_but("dns", "dns.resolvers").then(|| sections::dns(r, ProviderName::first()));
    let others = r.each_section(|name, section| {
        let name = name.parse().map_err(|error: corpus_domain::Invalid| section.fault(error.to_string())).ok()?;
        if section.is_given("dns.resolvers") {
            section.fault("resolvers are for all: they stand in [dns]".to_owned());
        }
        sections::dns(section, name)
    });
    let mut all: Vec<Dns> = first.flatten().into_iter().chain(others).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    let first = ProviderName::first();
    if all.iter().filter(|dns| dns.name == first).count() > 1 {
        r.fault(format!("the DNS server of [dns] is called {first}: give the one of [dns.{first}] another name"));
    }
    all
}

/// Reads every section, so that all faults are found at once.
fn read_all(r: &mut Reader) -> Option<Settings> {
    let named_files = r.named_files();
    let access = places::access(r);
    let listen = r.optional("listen").unwrap_or(SocketAddr::from(([127, 0, 0, 1], 8080)));
    let public_url =
        r.checked("public_url", sections::web_root).or_else(|| Url::parse(&format!("http://{listen}")).ok());
    let data_folder = r.optional("data_folder").unwrap_or_else(|| PathBuf::from("/var/lib/corpus"));
    let ldap = r.has_section("ldap").then(|| sections::ldap(r));
    let dns = dns(r);
    let public_host = public_url.as_ref().and_then(Url::host_str).unwrap_or("localhost").to_owned();
    let git = r.has_section("git").then(|| sections::git(r, public_host));
    let mail = r.has_section("mail").then(|| sections::mail(r));
    let salt_master = r.has_section("salt_master").then(|| sections::salt_master(r, &data_folder)).flatten();
    let guest_mail = r.has_section("guest_mail").then(|| sections::guest_mail(r));
    Some(Settings {
        listen,
        public_url: public_url?,
        trusted_proxies: r.list("trusted_proxies"),
        site_folder: r.optional("site_folder").unwrap_or_else(|| PathBuf::from("/usr/share/corpus/site")),
        agent_binary: r.optional("agent_binary").unwrap_or_else(|| PathBuf::from("/usr/lib/corpus/corpus-agent")),
        image_folder: r.optional("image_folder").unwrap_or_else(|| data_folder.join("images")),
        images: sections::images(r),
        made_images: r.optional("made_images").unwrap_or_else(|| data_folder.join("made-images")),
        guest_backups: places::place(r, "guest_backups", &access),
        salt_bundle: r.optional("salt_bundle"),
        salt_master,
        hooks_folder: r.optional("hooks_folder").unwrap_or_else(|| PathBuf::from("/etc/corpus/hooks")),
        database_url: r.checked("database_url", |text| sections::is_postgres(text).then(|| text.into())),
        seal_key_file: r.optional("seal_key_file").unwrap_or_else(|| data_folder.join("seal.key")),
        session_hours: r
            .checked("session_hours", |text| text.parse().ok().filter(|hours| (1..=720).contains(hours)))
            .unwrap_or(12),
        requests_per_minute: r
            .checked("api.requests_per_minute", |text| {
                text.parse().ok().filter(|count| (60..=1_000_000).contains(count))
            })
            .unwrap_or(6_000),
        audit_days: r.checked("audit.keep_days", |text| text.parse().ok().filter(|days| (30..=36_500).contains(days))),
        certificates: sections::certificates(r),
        access_addresses: r.checked("access_log.addresses", address_detail).unwrap_or_default(),
        intrusion: sections::intrusion(r),
        request_days: r
            .checked("requests.lapse_days", |text| text.parse().ok().filter(|days| (1..=365).contains(days))),
        log: sections::log(r),
        ldap: ldap.flatten(),
        dns,
        resolvers: r.list("dns.resolvers"),
        git,
        mail: mail.flatten(),
        guest_mail: guest_mail.flatten(),
        project_creators: r.optional("projects.create").unwrap_or_default(),
        guests: sections::guests(r)?,
        egress: r.list("network.egress"),
        webhooks: r.list("webhooks.allowed"),
        backup: r.has_section("backup").then(|| sections::backup(r, &access)).flatten(),
        file: None,
        named_files,
        data_folder,
    })
}
