//! Every key of the configuration, in one table: what it takes, and whether it is a secret.
//!
//! The reader takes its messages from here, the environment its variable names, and a test
//! holds `corpus.example.toml` to it, so that no key is undocumented.

/// The shape of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A string.
    Text,
    /// `true` or `false`.
    Switch,
    /// A whole number.
    Number,
    /// A list of strings; in the environment joined by commas.
    List,
}

/// One key.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// The name with its section: `ldap.url`.
    pub name: &'static str,
    /// The shape of the value.
    pub kind: Kind,
    /// Whether the value must never be shown.
    pub secret: bool,
    /// What is accepted, as a person reads it.
    pub expected: &'static str,
}

const fn key(name: &'static str, kind: Kind, expected: &'static str) -> Key {
    Key { name, kind, secret: false, expected }
}

const fn secret(name: &'static str, expected: &'static str) -> Key {
    Key { name, kind: Kind::Text, secret: true, expected }
}

/// Where backups may be kept.
const PLACE: &str = "a folder by its whole path, sftp://USER@HOST[:PORT]/PATH or s3://BUCKET[/PREFIX]";

/// All keys, in the order of `corpus.example.toml`.
pub const KEYS: &[Key] = &[
    key("listen", Kind::Text, "an address and a port, such as 127.0.0.1:8080"),
    key("public_url", Kind::Text, "http:// or https://, a host, and no path, such as https://corpus.example.org"),
    key("trusted_proxies", Kind::List, "IP addresses, such as [\"127.0.0.1\"]"),
    key("site_folder", Kind::Text, "a folder"),
    key("data_folder", Kind::Text, "a folder that the server may write"),
    key("agent_binary", Kind::Text, "a file"),
    key("image_folder", Kind::Text, "a folder"),
    key("images", Kind::List, "names of images"),
    key("made_images", Kind::Text, "a folder that the server may write"),
    key("guest_backups", Kind::Text, PLACE),
    key("salt_bundle", Kind::Text, "a file"),
    key("hooks_folder", Kind::Text, "a folder"),
    secret("database_url", "postgres://USER:PASSWORD@HOST/DATABASE"),
    key("seal_key_file", Kind::Text, "a file"),
    key("session_hours", Kind::Number, "a whole number of hours, 1 to 720"),
    key("api.requests_per_minute", Kind::Number, "a whole number of requests, 60 to 1000000"),
    key("audit.keep_days", Kind::Number, "a whole number of days, 30 to 36500"),
    key("requests.lapse_days", Kind::Number, "a whole number of days, 1 to 365"),
    key("access_log.addresses", Kind::Text, "\"cut\", \"whole\" or \"none\""),
    key("backup.place", Kind::Text, PLACE),
    key("backup.password_file", Kind::Text, "a file with the password of the repository"),
    key("backup.every_hours", Kind::Number, "a whole number of hours, 0 to 8760"),
    key("backup.keep_daily", Kind::Number, "a whole number, 1 to 366"),
    key("backup.keep_weekly", Kind::Number, "a whole number, 0 to 520"),
    key("backup.keep_monthly", Kind::Number, "a whole number, 0 to 120"),
    key("sftp.key_file", Kind::Text, "a file with a private key of OpenSSH, without a passphrase"),
    key("sftp.host_keys", Kind::List, "host keys, such as [\"ssh-ed25519 AAAA…\"]"),
    key("s3.endpoint", Kind::Text, "https:// or http://, a host, and no path, such as https://s3.example.org"),
    key("s3.region", Kind::Text, "a region, such as us-east-1"),
    key("s3.access_key_id", Kind::Text, "the id of an access key"),
    key("s3.secret_access_key_file", Kind::Text, "a file that holds the secret access key"),
    key("s3.bucket_in_host", Kind::Switch, "true or false"),
    key("s3.ca_file", Kind::Text, "a file with certificates in PEM form"),
    key("log.format", Kind::Text, "\"pretty\" or \"json\""),
    key("log.filter", Kind::Text, "tracing directives, such as \"info,corpus_server=debug\""),
    key("ldap.url", Kind::Text, "ldaps://HOST[:PORT], or ldap://HOST[:PORT] with starttls = true"),
    key("ldap.starttls", Kind::Switch, "true (with ldap://) or false (with ldaps://)"),
    key("ldap.ca_file", Kind::Text, "a file with certificates in PEM form"),
    key("ldap.bind_dn", Kind::Text, "the DN of the account that searches"),
    secret("ldap.bind_password", "the password of bind_dn, not empty"),
    key("ldap.bind_password_file", Kind::Text, "a file that holds the password of bind_dn"),
    key("ldap.people_base", Kind::Text, "the DN below which people are"),
    key("ldap.people_filter", Kind::Text, "an LDAP filter in parentheses with {login} in it"),
    key("ldap.disabled_filter", Kind::Text, "an LDAP filter in parentheses"),
    key("ldap.groups_base", Kind::Text, "the DN below which groups are"),
    key("ldap.groups_filter", Kind::Text, "an LDAP filter in parentheses with {dn} or {login} in it"),
    key("ldap.ops_group", Kind::Text, "the cn of a group"),
    key("ldap.project_group_pattern", Kind::Text, "text with {project} and {role} once each"),
    key("ldap.check_s", Kind::Number, "a whole number of seconds, 1 to 30"),
    key("dns.resolvers", Kind::List, "addresses and ports of resolvers, such as [\"192.0.2.53:53\"]"),
    key("dns.kind", Kind::Text, "\"powerdns\" or \"rfc2136\""),
    key("dns.api_url", Kind::Text, "http:// or https:// and a host, such as http://127.0.0.1:8081"),
    secret("dns.api_key", "the key of the PowerDNS API, not empty"),
    key("dns.api_key_file", Kind::Text, "a file that holds the key of the PowerDNS API"),
    key("dns.server", Kind::Text, "an address and a port, such as 127.0.0.1:53"),
    key("dns.resolver_server", Kind::Text, "an address and a port that nodes reach, such as 192.0.2.53:53"),
    key("dns.server_id", Kind::Text, "the PowerDNS server id, not empty"),
    key("dns.nameservers", Kind::List, "host names, such as [\"ns1.example.org\"]"),
    key("dns.key_name", Kind::Text, "the name of the TSIG key, such as corpus"),
    secret("dns.key", "the TSIG key for HMAC-SHA256 in base64, not empty"),
    key("dns.key_file", Kind::Text, "a file that holds the TSIG key in base64"),
    key("dns.zones", Kind::List, "zones that the key may change, such as [\"example.org\"]"),
    key("certificates.issuer", Kind::Text, "\"internal\", \"acme\" or \"none\""),
    key("certificates.directory", Kind::Text, "https:// and the address of an ACME directory"),
    key("certificates.contact", Kind::Text, "a mail address, such as admin@example.org"),
    key("certificates.challenge", Kind::Text, "\"http-01\" or \"dns-01\""),
    key("certificates.profile", Kind::Text, "the name of a profile of the directory"),
    key("certificates.ca_file", Kind::Text, "a file with certificates in PEM form"),
    key("certificates.eab_key_id", Kind::Text, "the id of the key of an account at the directory"),
    secret("certificates.eab_key", "the key of that account in base64url, not empty"),
    key("certificates.eab_key_file", Kind::Text, "a file that holds the key of that account in base64url"),
    key("git.listen", Kind::Text, "an address and a port, such as 0.0.0.0:2222"),
    key("git.public_host", Kind::Text, "a host name or an address, such as git.example.org"),
    key("git.public_port", Kind::Number, "a TCP port, 1 to 65535"),
    secret("mail.relay", "smtps://HOST[:PORT], or smtp://HOST[:PORT]"),
    key("mail.starttls", Kind::Switch, "true (with smtp://) or false"),
    key("mail.ca_file", Kind::Text, "a file with certificates in PEM form"),
    key("mail.username", Kind::Text, "the login name at the relay"),
    secret("mail.password", "the password of username, not empty"),
    key("mail.password_file", Kind::Text, "a file that holds the password of username"),
    key("mail.from", Kind::Text, "a mail address, such as corpus@example.org"),
    key("guest_mail.relay", Kind::Text, "an address and a port that nodes reach, such as 192.0.2.25:25"),
    key("guest_mail.messages_per_hour", Kind::Number, "a whole number, 1 to 1000000"),
    key("guest_mail.max_message_bytes", Kind::Number, "a whole number of bytes, 65536 to 104857600"),
    key("projects.create", Kind::Text, "\"ops\" or \"members\""),
    key("guests.network", Kind::Text, "the gateway's address and a prefix of 8 to 28, such as 10.5.0.1/16"),
    key("guests.bridge", Kind::Text, "an interface name: letters, digits and hyphens, 15 characters at most"),
    key("salt_master.name", Kind::Text, "a name of small letters, digits and hyphens, 32 characters at most"),
    key("salt_master.listen", Kind::Text, "an IP address"),
    key("salt_master.address", Kind::Text, "a host name or an address, as guests reach it"),
    key("salt_master.publish_port", Kind::Number, "a port, 1 to 65535"),
    key("salt_master.request_port", Kind::Number, "a port, 1 to 65535"),
    key("salt_master.states", Kind::Text, "a folder"),
    key("salt_master.pillar", Kind::Text, "a folder"),
    key("salt_master.git", Kind::Text, "a git repository with the folders states and pillar"),
    key("salt_master.git_branch", Kind::Text, "a branch"),
    key("salt_master.git_every_s", Kind::Number, "seconds, 5 to 86400"),
    key("salt_master.folder", Kind::Text, "a folder that the service may write"),
    key("network.egress", Kind::List, "destinations such as [\"10.1.2.3:5432\", \"10.1.2.3:53/udp\", \"10.4.0.0/24\"]"),
    key("intrusion.failures", Kind::Number, "a whole number, 0 to 10000"),
    key("intrusion.window_minutes", Kind::Number, "a whole number of minutes, 1 to 120"),
    key("intrusion.block_minutes", Kind::Number, "a whole number of minutes, 0 to 43200"),
    key("intrusion.never_block", Kind::List, "networks such as [\"192.0.2.0/24\", \"2001:db8::/32\"]"),
    key("intrusion.dropped_packets", Kind::Number, "a whole number of packets in an hour, 0 to 1000000000"),
    key("intrusion.tls_errors", Kind::Number, "a whole number of connections in an hour, 0 to 1000000000"),
    key("webhooks.allowed", Kind::List, "networks such as [\"10.0.0.0/8\", \"192.0.2.7/32\", \"fd00::/8\"]"),
];

impl Key {
    /// The key of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// The environment variable that overrides it: `CORPUS_LDAP__URL`.
    pub fn variable(&self) -> String {
        format!("CORPUS_{}", self.name.replace('.', "__").to_uppercase())
    }
}

/// The known name closest to `given`, unless none is close.
pub fn closest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|name| (distance(given, name), name))
        .min()
        .filter(|(distance, name)| *distance <= name.len().max(given.len()) / 2)
        .map(|(_, name)| name)
}

/// The Levenshtein distance.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (y, cell) in b.chars().zip(row.iter_mut().skip(1)) {
            let best = (diagonal + usize::from(x != y)).min(left + 1).min(*cell + 1);
            diagonal = std::mem::replace(cell, best);
            left = best;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, expected) in [("", "", 0), ("kitten", "sitting", 3), ("listn", "listen", 1), ("abc", "", 3)] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn the_closest_is_named() {
        let names = || KEYS.iter().map(|key| key.name);
        assert_eq!(closest("lisen", names()), Some("listen"));
        assert_eq!(closest("ldap.people_bases", names()), Some("ldap.people_base"));
        assert_eq!(closest("zzzzzzzzzzzz", names()), None);
    }
}
