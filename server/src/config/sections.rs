//! The sections of the configuration, and what their values must look like.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use corpus_acme::{DirectorySettings, ExternalAccount, ProofKind};
use corpus_backup::{Access, Keep};
use corpus_controller::mail::Relay;
use corpus_controller::{AcmeSettings, CertificateSettings, GuestMailSettings, ImageNames, IntrusionSettings, Issuer};
use corpus_domain::{ImageName, NodeAddress, ProviderName};
use secrecy::ExposeSecret;
use tracing_subscriber::EnvFilter;
use url::Url;

use super::places;
use super::read::Reader;
use super::{Dns, DnsKind, Git, GroupPattern, Guests, Ldap, Log, Mail};
use crate::own_backup::BackupSettings;
use crate::salt_master::{SaltMaster, Source};

pub fn log(r: &mut Reader) -> Log {
    let json = r.checked("log.format", |text| match text {
        "json" => Some(true),
        "pretty" => Some(false),
        _ => None,
    });
    let filter = r.checked("log.filter", |text| EnvFilter::try_new(text).ok().map(|_| text.to_owned()));
    Log { json: json.unwrap_or(false), filter: filter.unwrap_or_else(|| "info,sqlx::postgres::notice=warn".to_owned()) }
}

/// The names of images; a version of one is called by more than that.
pub fn images(r: &mut Reader) -> ImageNames {
    let names: Vec<ImageName> = r.list("images");
    if let Some(long) = names.iter().find(|name| name.as_str().len() > ImageNames::LONGEST) {
        r.fault(format!("images: {long} has more than {} characters", ImageNames::LONGEST));
    }
    ImageNames::new(names).unwrap_or_default()
}

pub fn backup(r: &mut Reader, access: &Access) -> Option<BackupSettings> {
    let storage = places::place(r, "backup.place", access);
    let storage = r.required("backup.place", storage);
    let file: Option<PathBuf> = r.optional("backup.password_file");
    let file = r.required("backup.password_file", file)?;
    let password = places::read_secret(&file).map_err(|error| r.fault(format!("backup.password_file: {error}"))).ok();
    let count = |r: &mut Reader, key, range: RangeInclusive<u16>| {
        r.checked(key, |text| text.parse().ok().filter(|count| range.contains(count)))
    };
    let keep = Keep {
        daily: count(r, "backup.keep_daily", 1..=366).unwrap_or(14),
        weekly: count(r, "backup.keep_weekly", 0..=520).unwrap_or(8),
        monthly: count(r, "backup.keep_monthly", 0..=120).unwrap_or(12),
    };
    let every_hours = count(r, "backup.every_hours", 0..=8_760).unwrap_or(24);
    let every_hours = Some(every_hours).filter(|hours| *hours > 0);
    Some(BackupSettings { storage: storage?, password: password?, keep, every_hours })
}

/// What git takes as a branch, without the rarer of its words.
fn is_branch(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
    let odd =
        text.starts_with(['-', '/', '.']) || text.ends_with(['/', '.']) || text.contains("..") || text.contains("//");
    (1..=200).contains(&text.len()) && text.chars().all(plain) && !odd
}

/// A master is called and reached as its minions are told.
pub fn salt_master(r: &mut Reader, data_folder: &Path) -> Option<SaltMaster> {
    let is_name = |text: &str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        (1..=32).contains(&text.len()) && text.chars().all(plain) && !text.starts_with('-')
    };
    let name = r.checked("salt_master.name", |text| is_name(text).then(|| text.to_owned()));
    let is_address = |text: &str| text.parse::<NodeAddress>().is_ok();
    let address = r.checked("salt_master.address", |text| is_address(text).then(|| text.to_owned()));
    let address = r.required("salt_master.address", address);
    let port = |r: &mut Reader, key| r.checked(key, |text| text.parse().ok().filter(|port: &u16| *port > 0));
    let (publish, request) = (port(r, "salt_master.publish_port"), port(r, "salt_master.request_port"));
    let own = |name: &str| data_folder.join("salt").join(name);
    let is_url = |text: &str| (!text.starts_with('-') && !text.chars().any(char::is_control)).then(|| text.to_owned());
    let url = r.checked("salt_master.git", is_url);
    let branch = r.checked("salt_master.git_branch", |text| is_branch(text).then(|| text.to_owned()));
    let every = r.checked("salt_master.git_every_s", |text| text.parse().ok().filter(|s| (5..=86_400).contains(s)));
    let git = url.map(|url| {
        let branch = branch.unwrap_or_else(|| "main".to_owned());
        (Source { url, branch }, Duration::from_secs(every.unwrap_or(60)))
    });
    Some(SaltMaster {
        git,
        name: name.unwrap_or_else(|| "main".to_owned()),
        listen: r.optional("salt_master.listen").unwrap_or(IpAddr::from([0, 0, 0, 0])),
        publish_port: publish.unwrap_or(4505),
        request_port: request.unwrap_or(4506),
        states: r.optional("salt_master.states").unwrap_or_else(|| own("states")),
        pillar: r.optional("salt_master.pillar").unwrap_or_else(|| own("pillar")),
        folder: r.optional("salt_master.folder").unwrap_or_else(|| own("master")),
        address: address?,
    })
}

pub fn ldap(r: &mut Reader) -> Option<Ldap> {
    let starttls = r.optional("ldap.starttls").unwrap_or(false);
    let url = r.checked("ldap.url", |text| directory_url(text, starttls));
    let url = r.required("ldap.url", url);
    let bind_dn = r.checked("ldap.bind_dn", filled);
    let bind_dn = r.required("ldap.bind_dn", bind_dn);
    let bind_password = r.secret("ldap.bind_password", "ldap.bind_password_file");
    if bind_password.is_none() {
        r.fault("ldap.bind_password or ldap.bind_password_file is needed".to_owned());
    }
    let people_base = r.checked("ldap.people_base", filled);
    let people_base = r.required("ldap.people_base", people_base);
    let groups_base = r.checked("ldap.groups_base", filled);
    let groups_base = r.required("ldap.groups_base", groups_base);
    let people_filter = r.checked("ldap.people_filter", |text| filter_with(text, &["{login}"]));
    let groups_filter = r.checked("ldap.groups_filter", |text| filter_with(text, &["{dn}", "{login}"]));
    let disabled_filter = r.checked("ldap.disabled_filter", |text| filter_with(text, &[""]));
    let ops_group = r.checked("ldap.ops_group", filled);
    let pattern = r.optional("ldap.project_group_pattern");
    let check_s = r.checked("ldap.check_s", |text| text.parse().ok().filter(|seconds| (1..=30).contains(seconds)));
    Some(Ldap {
        url: url?,
        starttls,
        ca_file: r.optional("ldap.ca_file"),
        bind_dn: bind_dn?,
        bind_password: bind_password?,
        people_base: people_base?,
        people_filter: people_filter.unwrap_or_else(|| "(&(objectClass=inetOrgPerson)(uid={login}))".to_owned()),
        disabled_filter,
        groups_base: groups_base?,
        groups_filter: groups_filter.unwrap_or_else(|| "(&(objectClass=groupOfNames)(member={dn}))".to_owned()),
        ops_group: ops_group.unwrap_or_else(|| "corpus-ops".to_owned()),
        project_group_pattern: pattern.unwrap_or_else(|| GroupPattern("project-{project}-{role}s".to_owned())),
        check: Duration::from_secs(check_s.unwrap_or(20)),
    })
}

/// A DNS server: that of `[dns]`, or of a section `[dns.NAME]`.
pub fn dns(r: &mut Reader, name: ProviderName) -> Option<Dns> {
    let kind = r.checked("dns.kind", |text| matches!(text, "powerdns" | "rfc2136").then(|| text.to_owned()));
    let server = r.optional("dns.server");
    let server: Option<SocketAddr> = r.required("dns.server", server);
    let resolver_server = r.optional("dns.resolver_server").or(server);
    let kind = if kind.as_deref() == Some("rfc2136") { updates(r) } else { powerdns(r) };
    Some(Dns { name, kind: kind?, server: server?, resolver_server: resolver_server? })
}

fn powerdns(r: &mut Reader) -> Option<DnsKind> {
    let api_url = r.checked("dns.api_url", web_root);
    let api_url = r.required("dns.api_url", api_url);
    let api_key = r.secret("dns.api_key", "dns.api_key_file");
    if api_key.is_none() {
        r.fault("dns.api_key or dns.api_key_file is needed".to_owned());
    }
    let server_id = r.checked("dns.server_id", filled).unwrap_or_else(|| "localhost".to_owned());
    let nameservers = r.list("dns.nameservers");
    if nameservers.is_empty() {
        r.required("dns.nameservers", None::<()>);
    }
    Some(DnsKind::PowerDns { api_url: api_url?, api_key: api_key?, server_id, nameservers })
}

fn updates(r: &mut Reader) -> Option<DnsKind> {
    let key_name = r.optional("dns.key_name");
    let key_name = r.required("dns.key_name", key_name);
    let key = r.secret("dns.key", "dns.key_file");
    if key.is_none() {
        r.fault("dns.key or dns.key_file is needed".to_owned());
    }
    let zones = r.list("dns.zones");
    if zones.is_empty() {
        r.required("dns.zones", None::<()>);
    }
    Some(DnsKind::Rfc2136 { key_name: key_name?, key: key?, zones })
}

pub fn intrusion(r: &mut Reader) -> IntrusionSettings {
    let usual = IntrusionSettings::default();
    let mut number = |name: &'static str, least: u64, most: u64| {
        r.checked(name, |text| text.parse().ok().filter(|number| (least..=most).contains(number)))
    };
    let small = |number: Option<u64>, usual: u32| number.and_then(|number| number.try_into().ok()).unwrap_or(usual);
    let failures = small(number("intrusion.failures", 0, 10_000), usual.failures);
    let window_minutes = small(number("intrusion.window_minutes", 1, 120), usual.window_minutes);
    let block_minutes = small(number("intrusion.block_minutes", 0, 43_200), usual.block_minutes);
    let dropped_packets = number("intrusion.dropped_packets", 0, 1_000_000_000).unwrap_or(usual.dropped_packets);
    let tls_errors = number("intrusion.tls_errors", 0, 1_000_000_000).unwrap_or(usual.tls_errors);
    let never_block = r.list("intrusion.never_block");
    IntrusionSettings { failures, window_minutes, block_minutes, never_block, dropped_packets, tls_errors }
}

pub fn certificates(r: &mut Reader) -> CertificateSettings {
    let issuer: Issuer = r.optional("certificates.issuer").unwrap_or_default();
    let directory = r.checked("certificates.directory", |text| {
        Url::parse(text).ok().filter(|url| url.scheme() == "https" && url.has_host())
    });
    let contact = r.checked("certificates.contact", |text| {
        (corpus_controller::mail::is_address(text) && !text.contains('<')).then(|| text.to_owned())
    });
    let challenge = r.checked("certificates.challenge", |text| {
        [ProofKind::Http01, ProofKind::Dns01].into_iter().find(|kind| kind.as_str() == text)
    });
    let profile = r.checked("certificates.profile", filled);
    let root = r.optional("certificates.ca_file");
    let key_id = r.checked("certificates.eab_key_id", filled);
    let key = r.secret("certificates.eab_key", "certificates.eab_key_file");
    if key_id.is_some() != key.is_some() {
        r.fault(
            "certificates.eab_key_id and certificates.eab_key (or certificates.eab_key_file) belong together"
                .to_owned(),
        );
    }
    let eab = key_id.zip(key).map(|(key_id, key)| ExternalAccount { key_id, key });
    let directory = if issuer == Issuer::Acme { r.required("certificates.directory", directory) } else { directory };
    let acme = directory.map(|directory| AcmeSettings {
        directory: DirectorySettings { directory, contact, eab, root },
        profile,
        challenge: challenge.unwrap_or(ProofKind::Http01),
    });
    CertificateSettings { issuer, acme }
}

pub fn git(r: &mut Reader, host: String) -> Git {
    let listen = r.optional("git.listen").unwrap_or(SocketAddr::from(([0, 0, 0, 0], 2222)));
    let public_host = r.checked("git.public_host", |text| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b".-:[]".contains(&b);
        (!text.is_empty() && text.bytes().all(plain)).then(|| text.to_owned())
    });
    let public_port = r.checked("git.public_port", |text| text.parse().ok().filter(|port| *port != 0));
    Git { listen, public_host: public_host.unwrap_or(host), public_port: public_port.unwrap_or(listen.port()) }
}

pub fn mail(r: &mut Reader) -> Option<Mail> {
    let url = r.checked("mail.relay", |text| is_relay(text).then(|| text.into()));
    let url = r.required("mail.relay", url);
    let from = r.checked("mail.from", |text| corpus_controller::mail::is_address(text).then(|| text.to_owned()));
    let from = r.required("mail.from", from);
    let starttls = r.optional("mail.starttls").unwrap_or(false);
    let ca_file = r.optional("mail.ca_file");
    let username = r.checked("mail.username", filled);
    let password = r.secret("mail.password", "mail.password_file");
    if username.is_some() != password.is_some() {
        r.fault("mail.username and mail.password (or mail.password_file) belong together".to_owned());
    }
    let relay = Relay { url: url?, starttls, login: username.zip(password), ca_file };
    if starttls && relay.url.expose_secret().starts_with("smtps:") {
        r.fault("mail.starttls is for smtp://: smtps:// is TLS from the start".to_owned());
    }
    if let Err(error) = relay.check() {
        r.fault(error.to_string());
    }
    Some(Mail { relay, from: from? })
}

/// Without a relay there is no place for it to go, and a limit alone is a mistake.
pub fn guest_mail(r: &mut Reader) -> Option<GuestMailSettings> {
    let relay = r.checked("guest_mail.relay", |text| {
        text.parse().ok().filter(|relay: &SocketAddr| relay.port() != 0 && !relay.ip().is_unspecified())
    });
    let relay = r.required("guest_mail.relay", relay);
    let messages = r.checked("guest_mail.messages_per_hour", |text| {
        text.parse().ok().filter(|count| (1..=1_000_000).contains(count))
    });
    let bytes = r.checked("guest_mail.max_message_bytes", |text| {
        text.parse().ok().filter(|bytes| (64 << 10..=100 << 20).contains(bytes))
    });
    Some(GuestMailSettings {
        relay: relay?,
        messages_per_hour: messages.unwrap_or(100),
        max_message_bytes: bytes.unwrap_or(25 << 20),
    })
}

pub fn guests(r: &mut Reader) -> Option<Guests> {
    let network = r.optional("guests.network").or_else(|| "10.5.0.1/16".parse().ok());
    let bridge = r.checked("guests.bridge", |text| {
        let fits = (1..=15).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        fits.then(|| text.to_owned())
    });
    Some(Guests { network: network?, bridge: bridge.unwrap_or_else(|| "lxcbr1".to_owned()) })
}

fn filled(text: &str) -> Option<String> {
    (!text.trim().is_empty()).then(|| text.to_owned())
}

pub fn web_root(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
    (matches!(url.scheme(), "http" | "https") && url.has_host() && bare).then_some(url)
}

fn directory_url(text: &str, starttls: bool) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let wanted = if starttls { "ldap" } else { "ldaps" };
    (url.scheme() == wanted && url.host_str().is_some_and(|host| !host.is_empty())).then_some(url)
}

fn filter_with(text: &str, one_of: &[&str]) -> Option<String> {
    let shaped = text.starts_with('(') && text.ends_with(')');
    (shaped && one_of.iter().any(|word| text.contains(word))).then(|| text.to_owned())
}

fn is_relay(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "smtp" | "smtps") && url.has_host())
}

pub fn is_postgres(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "postgres" | "postgresql"))
}
