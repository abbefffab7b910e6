//! What this Corpus is made of, by the configuration: what guests must not reach.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use corpus_controller::Surroundings;
use corpus_domain::{EgressRule, Transport};
use secrecy::ExposeSecret;
use url::{Host, Url};

use crate::config::{DnsKind, Settings};

/// The hosts that the configuration names, and what the operator allows all the same.
pub fn of(settings: &Settings) -> Surroundings {
    let mut hosts: BTreeSet<String> = [host(&settings.public_url), Some(settings.listen.ip().to_string())]
        .into_iter()
        .chain([settings.database_url.as_ref().and_then(|url| host_in(url.expose_secret()))])
        .chain([settings.ldap.as_ref().and_then(|ldap| host(&ldap.url))])
        .chain([settings.mail.as_ref().and_then(|mail| host_in(mail.relay.url.expose_secret()))])
        .flatten()
        .collect();
    for dns in &settings.dns {
        if let DnsKind::PowerDns { api_url, .. } = &dns.kind {
            hosts.extend(host(api_url));
        }
        hosts.extend([dns.server, dns.resolver_server].map(|server| server.ip().to_string()));
    }
    if let Some(git) = &settings.git {
        hosts.extend([git.public_host.clone(), git.listen.ip().to_string()]);
    }
    hosts.extend(settings.guest_mail.map(|mail| mail.relay.ip().to_string()));
    Surroundings {
        hosts,
        allowed: settings.egress.iter().copied().chain(masters(settings)).collect(),
        webhooks: settings.webhooks.clone(),
        mail: settings.guest_mail,
    }
}

/// The two ports of the controller's own Salt master: its minions are guests.
fn masters(settings: &Settings) -> Vec<EgressRule> {
    let Some(master) = &settings.salt_master else { return Vec::new() };
    let Ok(to) = master.address.parse::<Ipv4Addr>() else { return Vec::new() };
    let rule = |port| EgressRule { to: to.into(), port: Some((Transport::Tcp, port)) };
    [master.publish_port, master.request_port].map(rule).into()
}

fn host_in(url: &str) -> Option<String> {
    host(&Url::parse(url).ok()?)
}

/// A socket in a folder has no host.
fn host(url: &Url) -> Option<String> {
    match url.host()? {
        Host::Domain(name) if name.is_empty() || name.contains('%') => None,
        Host::Domain(name) => Some(name.to_owned()),
        Host::Ipv4(ip) => Some(ip.to_string()),
        Host::Ipv6(ip) => Some(ip.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_the_configuration_names() {
        let table = r#"
            listen = "10.0.0.1:8080"
            public_url = "https://corpus.example.org"
            database_url = "postgres://corpus:secret@db.example.org:5433/corpus"
            [ldap]
            url = "ldaps://ldap.example.org"
            bind_dn = "cn=x"
            bind_password = "x"
            people_base = "ou=x"
            groups_base = "ou=x"
            [dns]
            api_url = "http://10.0.0.2:8081"
            api_key = "x"
            server = "10.0.0.3:53"
            resolver_server = "10.0.0.4:53"
            nameservers = ["ns1.example.org"]
            [dns.bind]
            kind = "rfc2136"
            server = "10.0.0.5:53"
            key_name = "corpus"
            key = "c2VjcmV0"
            zones = ["example.org"]
            [git]
            public_host = "git.example.org"
            [mail]
            relay = "smtps://corpus:secret@mail.example.org"
            from = "corpus@example.org"
            [guest_mail]
            relay = "10.0.0.6:25"
            [network]
            egress = ["10.1.2.3:5432"]
        "#;
        let path = std::path::Path::new("corpus.toml");
        let settings = Settings::from_parts(Some((path, table.parse().unwrap())), std::iter::empty()).unwrap();
        let found = of(&settings);
        let hosts: Vec<&str> = found.hosts.iter().map(String::as_str).collect();
        assert_eq!(
            hosts,
            [
                "0.0.0.0",
                "10.0.0.1",
                "10.0.0.2",
                "10.0.0.3",
                "10.0.0.4",
                "10.0.0.5",
                "10.0.0.6",
                "corpus.example.org",
                "db.example.org",
                "git.example.org",
                "ldap.example.org",
                "mail.example.org"
            ]
        );
        assert_eq!(found.allowed, ["10.1.2.3:5432".parse().unwrap()]);
        assert_eq!(host_in("postgres://corpus@%2Frun%2Fpostgresql/corpus"), None, "a socket in a folder");
        assert_eq!(host_in("postgres:///corpus?host=/run/postgresql"), None);
    }
}
