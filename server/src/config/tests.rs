//! The whole way from a file and an environment to settings, and the complaints on it.

use super::keys::{KEYS, Kind};
use super::*;

fn load(text: &str, variables: &[(&str, &str)]) -> Result<Settings, String> {
    let table = text.parse().unwrap();
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Settings::from_parts(Some((Path::new("corpus.toml"), table)), variables).map_err(|error| error.to_string())
}

const LDAP: &str = "[ldap]\nurl = 'ldaps://dir.example.org'\nbind_dn = 'cn=corpus'\nbind_password = 'hush-hush'\n\
                    people_base = 'ou=people'\ngroups_base = 'ou=groups'\n";

#[test]
fn an_empty_file_is_enough() {
    let settings = load("", &[]).unwrap();
    assert_eq!(settings.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(settings.public_url.as_str(), "http://127.0.0.1:8080/");
    assert_eq!(settings.project_creators, ProjectCreators::Ops);
    assert!(settings.ldap.is_none() && settings.dns.is_empty() && settings.database_url.is_none());
}

#[test]
fn the_environment_overrides_the_file() {
    let settings = load(
        &format!("listen = '127.0.0.1:1'\n{LDAP}"),
        &[
            ("CORPUS_LISTEN", "127.0.0.1:9"),
            ("CORPUS_LDAP__OPS_GROUP", "admins"),
            ("CORPUS_TRUSTED_PROXIES", "10.0.0.1, 10.0.0.2"),
            ("CORPUS_SESSION_HOURS", "3"),
            ("CORPUS_LDAP__STARTTLS", "false"),
            ("CORPUS_LAB", "0"),
            ("DATABASE_URL", "postgres://a@b/c"),
        ],
    )
    .unwrap();
    assert_eq!(settings.listen.port(), 9);
    assert_eq!(settings.ldap.unwrap().ops_group, "admins");
    assert_eq!(settings.trusted_proxies.len(), 2);
    assert_eq!(settings.session_hours, 3);
    assert!(settings.database_url.is_some());
}

/// Each fault names the key, the value, where it came from and what is expected; secrets are not shown.
#[test]
fn faults_say_what_to_do() {
    type Row = (&'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);
    let table: &[Row] = &[
        ("listen = 'here'", &[], &["listen = \"here\" in corpus.toml: expected an address and a port"]),
        ("", &[("CORPUS_LISTEN", "here")], &["from the environment variable CORPUS_LISTEN", "\"here\""]),
        ("lisen = 'x'", &[], &["unknown key lisen in corpus.toml; did you mean listen?"]),
        ("[ldpa]\nurl = 'x'", &[], &["unknown key ldpa.url in corpus.toml; did you mean ldap.url?"]),
        ("", &[("CORPUS_LISTN", "x")], &["CORPUS_LISTN", "did you mean CORPUS_LISTEN?"]),
        ("listen = 8080", &[], &["listen = 8080", "expected an address and a port"]),
        ("public_url = 'https://a/b'", &[], &["public_url = \"https://a/b\"", "no path"]),
        ("public_url = 'ftp://a'", &[], &["public_url", "http:// or https://"]),
        ("session_hours = 0", &[], &["session_hours = 0", "1 to 720"]),
        ("session_hours = -1", &[], &["session_hours = -1", "1 to 720"]),
        ("trusted_proxies = ['localhost']", &[], &["trusted_proxies", "IP addresses"]),
        ("[audit]\nkeep_days = 29", &[], &["audit.keep_days = 29", "30 to 36500"]),
        (
            "[access_log]\naddresses = \"some\"",
            &[],
            &["access_log.addresses = \"some\"", "\"cut\", \"whole\" or \"none\""],
        ),
        ("[audit]\nkeep_days = 40000", &[], &["audit.keep_days", "30 to 36500"]),
        ("[intrusion]\nfailures = -1", &[], &["intrusion.failures = -1", "0 to 10000"]),
        ("[intrusion]\nwindow_minutes = 0", &[], &["intrusion.window_minutes = 0", "1 to 120"]),
        ("[intrusion]\nnever_block = ['office']", &[], &["intrusion.never_block", "networks such as"]),
        ("[log]\nformat = 'xml'", &[], &["log.format = \"xml\"", "\"pretty\" or \"json\""]),
        ("[log]\nfilter = 'a=b=c'", &[], &["log.filter", "tracing directives"]),
        ("database_url = 'mysql://root:s3cret@h/d'", &[], &["database_url = (a secret, not shown)", "postgres://"]),
        ("[ldap]\nurl = 'ldap://h'", &[], &["ldap.url = \"ldap://h\"", "starttls = true", "ldap.bind_dn is missing"]),
        ("[ldap]\nurl = 'ldaps://h'\nstarttls = true", &[], &["ldap.url", "ldap://HOST[:PORT] with starttls"]),
        ("[ldap]\nurl = 'ldaps://h'", &[("CORPUS_LDAP__STARTTLS", "yes")], &["ldap.starttls = \"yes\"", "true"]),
        ("[ldap]\npeople_filter = '(uid=*)'", &[], &["ldap.people_filter", "{login}"]),
        ("[ldap]\nproject_group_pattern = 'x-{project}'", &[], &["ldap.project_group_pattern", "{role}"]),
        ("[ldap]\ncheck_s = 60", &[], &["ldap.check_s = 60", "1 to 30"]),
        ("[ldap]\nbind_password = ''", &[], &["ldap.bind_password = (a secret, not shown)"]),
        ("[ldap]\nbind_password_file = '/nowhere'", &[], &["ldap.bind_password_file: /nowhere can't be read"]),
        ("[dns]\napi_url = 'http://h'", &[], &["dns.api_key", "dns.server is missing", "dns.nameservers is missing"]),
        ("[dns]\nnameservers = ['-x']", &[], &["dns.nameservers", "host names"]),
        ("[dns]\nresolvers = ['x']", &[], &["dns.resolvers", "addresses and ports of resolvers"]),
        ("[dns.bind]\nkind = 'rfc2136'", &[], &["[dns.bind]: dns.key_name is missing", "dns.zones is missing"]),
        ("[dns.bind]\nkind = 'bind'", &[], &["dns.kind = \"bind\" in [dns.bind] of corpus.toml", "\"rfc2136\""]),
        (
            "[dns.bind]\nkind = 'rfc2136'\nkey = ''\nlist = 1",
            &[],
            &["(a secret, not shown) in [dns.bind]", "unknown key dns.list"],
        ),
        ("[dns.'B I']\nkind = 'rfc2136'", &[], &["[dns.B I]", "DNS server"]),
        ("[mail]\nrelay = 'http://u:s3cret@h'", &[], &["mail.relay = (a secret, not shown)", "smtps://"]),
        ("[mail]\nrelay = 'smtp://u:s3cret@h'\nfrom = 'a@h'", &[], &["password would go to h unencrypted"]),
        ("[mail]\nrelay = 'smtp://h?tls=opportunistic'\nfrom = 'a@h'", &[], &["no query but tls=required"]),
        ("[mail]\nrelay = 'smtps://h'\nstarttls = true\nfrom = 'a@h'", &[], &["mail.starttls is for smtp://"]),
        ("[mail]\nrelay = 'smtps://h'\nusername = 'u'\nfrom = 'a@h'", &[], &["mail.username and mail.password"]),
        ("[mail]\nrelay = 'smtp://h'\nusername = 'u'\npassword = 's3cret'\nfrom = 'a@h'", &[], &["unencrypted"]),
        ("[guest_mail]\nmessages_per_hour = 5", &[], &["guest_mail.relay is missing"]),
        ("[guest_mail]\nrelay = 'mail.example.org:25'", &[], &["guest_mail.relay", "an address and a port"]),
        ("[guest_mail]\nrelay = '192.0.2.25:25'\nmax_message_bytes = 10", &[], &["max_message_bytes", "65536"]),
        ("[certificates]\nissuer = 'acme'", &[], &["certificates.directory is missing"]),
        ("[certificates]\nissuer = 'lets'", &[], &["certificates.issuer = \"lets\"", "\"acme\""]),
        ("[certificates]\ndirectory = 'http://h/dir'", &[], &["certificates.directory", "https://"]),
        ("[certificates]\nchallenge = 'tls-alpn-01'", &[], &["certificates.challenge", "\"dns-01\""]),
        ("[certificates]\ncontact = 'nobody'", &[], &["certificates.contact", "a mail address"]),
        ("[certificates]\neab_key = 's3cret'", &[], &["certificates.eab_key_id", "belong together"]),
        ("[guests]\nnetwork = '10.5.0.0/16'", &[], &["guests.network = \"10.5.0.0/16\"", "10.5.0.1/16"]),
        ("[projects]\ncreate = 'all'", &[], &["projects.create = \"all\"", "\"ops\" or \"members\""]),
        ("[guests]\nbridge = 'a b'", &[], &["guests.bridge = \"a b\"", "interface name"]),
    ];
    for (text, variables, parts) in table {
        let error = load(text, variables).expect_err(text);
        for part in *parts {
            assert!(error.contains(part), "{text}\ngave\n{error}\nwithout {part:?}");
        }
        assert!(!error.contains("s3cret"), "{error}");
    }
}

#[test]
fn all_faults_are_told_at_once() {
    let error = load("listen = 'x'\npublic_url = 'y'\nzzzzzzzzzzzzz = 1", &[]).unwrap_err();
    assert_eq!(error.lines().count(), 4, "{error}");
}

#[test]
fn hosts_that_guests_must_not_have() {
    let text = "public_url = 'https://Corpus.example.org'\n[git]\npublic_host = 'git.example.org'\n\
                [mail]\nrelay = 'smtps://u:p@relay.example.org'\nfrom = 'corpus@mail.example.org'\n\
                [dns]\napi_url = 'http://h'\napi_key = 'k'\nserver = '127.0.0.1:53'\nnameservers = ['dns1.example.org']\n\
                [projects]\ncreate = 'members'";
    let rules = load(text, &[]).unwrap().rules();
    let words = |hosts: &[corpus_domain::DnsName]| hosts.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(rules.project_creators, ProjectCreators::Members);
    assert_eq!(words(&rules.own_hosts), ["corpus.example.org", "git.example.org"]);
    assert_eq!(words(&rules.service_hosts), ["relay.example.org", "mail.example.org", "dns1.example.org"]);
    assert!(load("", &[]).unwrap().rules().own_hosts.is_empty(), "an address is in no zone");
}

#[test]
fn several_dns_servers() {
    let one = "api_url = 'http://h'\napi_key = 'k'\nserver = '127.0.0.1:53'\nnameservers = ['ns.example.org']\n";
    let bind =
        "kind = 'rfc2136'\nserver = '192.0.2.1:53'\nkey_name = 'corpus'\nkey = 'c2VjcmV0'\nzones = ['example.net']\n";
    let names = |settings: &Settings| settings.dns.iter().map(|dns| dns.name.to_string()).collect::<Vec<_>>();
    let both = load(&format!("[dns]\nresolvers = ['192.0.2.9:53']\n{one}[dns.bind]\n{bind}"), &[]).unwrap();
    assert_eq!(names(&both), ["bind", "powerdns"]);
    assert_eq!(both.resolvers.len(), 1);
    let alone = load(&format!("[dns]\nresolvers = ['192.0.2.9:53']\n[dns.bind]\n{bind}"), &[]).unwrap();
    assert_eq!(names(&alone), ["bind"], "resolvers alone are no server");
    let twice = load(&format!("[dns]\n{one}[dns.powerdns]\n{bind}"), &[]).unwrap_err();
    assert!(twice.contains("give the one of [dns.powerdns] another name"), "{twice}");
}

#[test]
fn a_directory_of_certificates() {
    let text = "[certificates]\nissuer = 'acme'\ndirectory = 'https://acme.example.org/dir'\ncontact = 'a@example.org'\n\
                eab_key_id = 'kid'\neab_key = 'aHVzaA'";
    let settings = load(text, &[]).unwrap();
    assert!(!format!("{settings:?}").contains("aHVzaA"));
    let acme = settings.certificates.acme.unwrap();
    assert_eq!(acme.challenge, corpus_acme::ProofKind::Http01);
    assert_eq!(acme.directory.directory.as_str(), "https://acme.example.org/dir");
    assert_eq!(acme.directory.eab.unwrap().key_id, "kid");
    assert!(load("", &[]).unwrap().certificates.acme.is_none());
}

#[test]
fn secrets_are_not_printed() {
    let settings = load(LDAP, &[]).unwrap();
    assert!(!format!("{settings:?}").contains("hush"));
}

#[test]
fn groups_give_roles() {
    let pattern: GroupPattern = "project-{project}-{role}s".parse().unwrap();
    let (project, role) = pattern.role("project-shop-front-developers").unwrap();
    assert_eq!((project.as_str(), role), ("shop-front", ProjectRole::Developer));
    assert_eq!(pattern.role("project-shop-owners"), None);
    assert_eq!(pattern.role("project--viewers"), None);
    assert_eq!(pattern.role("shop-viewers"), None);
    let groups = pattern.groups(&"shop-front".parse().unwrap());
    assert_eq!(groups.len(), ProjectRole::ALL.len());
    assert!(
        groups.iter().all(|group| pattern.role(group).is_some_and(|(project, _)| project.as_str() == "shop-front"))
    );
}

/// The path of a private key.
#[expect(clippy::disallowed_methods, reason = "keys are made as an operator makes them")]
fn new_key(folder: &Path) -> String {
    let path = folder.join("key");
    let mut making = std::process::Command::new("ssh-keygen");
    assert!(making.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&path).status().unwrap().success());
    path.display().to_string()
}

/// Places at servers need what opens them, whose files nobody else may read and nothing of which is shown.
#[test]
fn backups_may_lie_at_servers() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let key = new_key(folder.path());
    let host_key = std::fs::read_to_string(format!("{key}.pub")).unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "hush-hush\n").unwrap();
    let mode = |mode| std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o600);
    let secret_file = secret.display().to_string();
    let sftp = format!("[sftp]\nkey_file = '{key}'\nhost_keys = ['host {}']\n", host_key.trim());
    let s3 = format!(
        "[s3]\nendpoint = 'https://s3.example.org'\naccess_key_id = 'AKID'\nsecret_access_key_file = '{secret_file}'\n"
    );
    let backup = format!("[backup]\nplace = 's3://backups/own'\npassword_file = '{secret_file}'\n");
    let both = format!("guest_backups = 'sftp://backup@host/guests'\n{backup}{sftp}{s3}");
    let settings = load(&both, &[]).unwrap();
    assert_eq!(settings.guest_backups.as_ref().unwrap().to_string(), "sftp://backup@host/guests");
    assert_eq!(settings.backup.as_ref().unwrap().storage.to_string(), "s3://backups/own");
    assert_eq!(settings.named_files, [PathBuf::from(&key), secret.clone()]);
    let shown = format!("{settings:?}");
    assert!(!shown.contains("hush-hush") && !shown.contains("OPENSSH PRIVATE KEY"), "{shown}");

    let sftp_place = "guest_backups = 'sftp://backup@host/guests'\n";
    let cases = [
        (
            "guest_backups = 'backups'".to_owned(),
            "guest_backups: a place is a folder by its whole path, sftp://USER@HOST",
        ),
        ("guest_backups = 'sftp://u:hush-hush@host/a'".to_owned(), "guest_backups: a place holds no password"),
        (sftp_place.to_owned(), "guest_backups: a place of sftp:// needs the section [sftp]"),
        (backup, "backup.place: a place of s3:// needs the section [s3]"),
        (format!("{sftp_place}[sftp]\nkey_file = '{key}'\n"), "sftp.host_keys is missing"),
        (format!("[sftp]\nkey_file = '{key}'\nhost_keys = ['AAAA']\n"), "sftp.host_keys: number 1 is no host key"),
        (sftp.replace(&key, &secret_file), "sftp.key_file: it holds no private key of OpenSSH"),
        (sftp.replace(&key, "/nonexistent/key"), "sftp.key_file: /nonexistent/key can't be read"),
        (s3.replace("https://s3.example.org", "s3.example.org"), "s3.endpoint = \"s3.example.org\""),
        (s3.replace("AKID", "a/b"), "s3.access_key_id = \"a/b\""),
        (format!("{s3}ca_file = '{secret_file}'\n"), "s3.ca_file: it holds no certificates"),
    ];
    for (text, wanted) in cases {
        let error = load(&text, &[]).unwrap_err();
        assert!(error.contains(wanted) && !error.contains("hush-hush"), "{text}: {error}");
    }
    mode(0o640);
    let error = load(&s3, &[]).unwrap_err();
    assert!(error.contains("may be read by others (mode 640): chmod 600 it"), "{error}");

    mode(0o600);
    let file = folder.path().join("access.toml");
    std::fs::write(&file, format!("of_another_release = 1\n{s3}")).unwrap();
    let storage = places::storage("s3://backups/own".parse().unwrap(), Some(&file)).unwrap();
    assert_eq!(storage.to_string(), "s3://backups/own");
    let error = places::storage("sftp://backup@host/a".parse().unwrap(), Some(&file)).unwrap_err().to_string();
    assert!(error.contains("needs the section [sftp]"), "{error}");
}

/// The example names every key, and with every line of it uncommented it loads.
#[test]
fn the_example_documents_every_key() {
    let text = include_str!("../../../corpus.example.toml");
    let uncommented: Vec<&str> =
        text.lines().map(|line| line.strip_prefix('#').filter(|key| !key.starts_with(' ')).unwrap_or(line)).collect();
    let mut table: toml::Table = uncommented.join("\n").parse().unwrap();
    for key in KEYS {
        let value = match key.name.split_once('.') {
            // What only servers that take updates have stands in their section.
            Some((section, name)) => table.get(section).and_then(|section| {
                section.get(name).or_else(|| section.get("bind").and_then(|below| below.get(name)))
            }),
            None => table.get(key.name),
        };
        let value = value.unwrap_or_else(|| panic!("{} is not in the example", key.name));
        let fits = match key.kind {
            Kind::Text => value.is_str(),
            Kind::Switch => value.is_bool(),
            Kind::Number => value.is_integer(),
            Kind::List => value.is_array(),
        };
        assert!(fits, "{} = {value}", key.name);
    }
    for (section, file) in [
        ("ldap", "bind_password_file"),
        ("dns", "api_key_file"),
        ("mail", "password_file"),
        ("certificates", "eab_key_file"),
    ] {
        table.get_mut(section).unwrap().as_table_mut().unwrap().remove(file).unwrap();
    }
    let password = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(password.path(), "correct horse\n").unwrap();
    let backup = table.get_mut("backup").unwrap().as_table_mut().unwrap();
    backup.insert("password_file".to_owned(), password.path().display().to_string().into());
    let s3 = table.get_mut("s3").unwrap().as_table_mut().unwrap();
    s3.insert("secret_access_key_file".to_owned(), password.path().display().to_string().into());
    s3.remove("ca_file").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let sftp = table.get_mut("sftp").unwrap().as_table_mut().unwrap();
    sftp.insert("key_file".to_owned(), new_key(folder.path()).into());
    let bind = table.get_mut("dns").unwrap().as_table_mut().unwrap().get_mut("bind").unwrap();
    bind.as_table_mut().unwrap().remove("key_file").unwrap();
    Settings::from_parts(Some((Path::new("corpus.example.toml"), table)), std::iter::empty()).unwrap();
    let as_given: toml::Table = text.parse().unwrap();
    Settings::from_parts(Some((Path::new("corpus.example.toml"), as_given)), std::iter::empty()).unwrap();
}
