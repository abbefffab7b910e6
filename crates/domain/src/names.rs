//! Names of hosts, guests, projects, images and people.
//!
//! Host names follow RFC 1123 section 2.1 and RFC 1035 section 2.3.4: labels of 1 to 63
//! ASCII letters, digits and inner hyphens, 253 characters in all, folded to lower case.
//! What is not ASCII is refused, so that no look-alike of another name can be entered.

use crate::text::{text_type, word_enum};

/// Below this, guests find those whom rules let them reach: `db.example.org.guest.internal`. No name of the world ends so
/// (ICANN keeps it for private use).
pub const GUEST_ZONE: &str = "guest.internal";

const HOST_NAME: &str =
    "letters, digits and hyphens in labels of 1 to 63 characters joined by dots, 253 at most (RFC 1123)";

fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

fn host_name(given: &str) -> Option<String> {
    let name = given.to_ascii_lowercase();
    let all_digits = name.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()));
    (!all_digits && name.split('.').all(is_label)).then_some(name)
}

pub(crate) fn label(given: &str) -> Option<String> {
    (is_label(given) && given.starts_with(|c: char| c.is_ascii_lowercase())).then(|| given.to_owned())
}

text_type!(
    /// A host name by RFC 1123, in lower case; the last label is never all digits, so it is no address.
    HostName, "host name", HOST_NAME,
    pattern: crate::schema::patterns::host_name(), max: 253, example: "node-01.example.org", host_name
);
text_type!(
    /// The name of a guest: a host name of at most 63 characters, since Linux keeps 64 bytes for it
    /// (`sethostname(2)`), with at least two labels.
    GuestName, "guest name",
    "a full host name such as www.example.org: at least two labels of letters, digits and hyphens, 63 characters at most",
    pattern: crate::schema::patterns::short_name(), max: 63, example: "www.example.org",
    |given| host_name(given).filter(|name| name.contains('.'))
);
text_type!(
    /// A DNS name that is attached to a guest, or a zone: a host name with at least two labels.
    DnsName, "DNS name",
    "a full host name such as www.example.org: labels of letters, digits and hyphens joined by dots, 253 characters at most",
    pattern: crate::schema::patterns::full_name(), max: 253, example: "www.example.org",
    |given| host_name(given.strip_suffix('.').unwrap_or(given)).filter(|name| name.contains('.'))
);
text_type!(
    /// A name that a certificate is for: a DNS name, or `*.` and one. The star stands for one label.
    CertifiedName, "name of a certificate",
    "a full host name such as www.example.org, or *. and one, 253 characters at most",
    pattern: crate::schema::patterns::certified_name(), max: 253, example: "*.example.org",
    |given| match given.strip_prefix("*.") {
        Some(below) => below.parse::<DnsName>().ok().map(|name| format!("*.{name}")),
        None => given.parse::<DnsName>().ok().map(String::from),
    }
);
text_type!(
    /// What a DNS server is called in the configuration.
    ProviderName, "name of a DNS server", "a lower-case letter, then letters, digits and hyphens, 20 characters at most",
    pattern: "^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$", max: 20, example: "powerdns", label
);

impl ProviderName {
    /// What the one of the section `[dns]` is called.
    pub fn first() -> Self {
        Self("powerdns".to_owned())
    }
}

text_type!(
    /// The name of a project: a label that starts with a letter, 40 characters at most.
    ProjectName, "project name", "a lower-case letter, then letters, digits and hyphens, 40 characters at most",
    pattern: "^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$", max: 40, example: "website", label
);
text_type!(
    /// What people call a compute node, beside its address.
    NodeName, "name of a node", "letters, digits and inner spaces, dots, hyphens and underscores, 40 characters at most",
    pattern: "^[A-Za-z0-9]([A-Za-z0-9 ._-]{0,38}[A-Za-z0-9])?$", max: 40, example: "Paris 1",
    |given| {
        let ends = |c: char| c.is_ascii_alphanumeric();
        let fits = given.starts_with(ends)
            && given.ends_with(ends)
            && given.bytes().all(|b| b.is_ascii_alphanumeric() || b" ._-".contains(&b));
        fits.then(|| given.to_owned())
    }
);
text_type!(
    /// The name of an image, such as `debian-12`.
    ImageName, "image name", "a lower-case letter, then letters, digits and hyphens, 40 characters at most",
    pattern: "^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$", max: 40, example: "debian-12", label
);
fn login(given: &str) -> Option<String> {
    let name = given.to_ascii_lowercase();
    let fits = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_".contains(&b));
    fits.then_some(name)
}

/// A robot's name with its project's: no login name has a slash.
fn robot(given: &str) -> Option<String> {
    let (project, name) = given.split_once('/')?;
    let fits = project.parse::<ProjectName>().is_ok() && name.parse::<RobotName>().is_ok();
    fits.then(|| given.to_owned())
}

text_type!(
    /// The login name of a member, in lower case.
    UserName, "login name", "a letter or digit, then letters, digits, dots, hyphens and underscores, 64 characters at most",
    pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", max: 64, example: "ada.lovelace", login
);
text_type!(
    /// The name of a robot in its project.
    RobotName, "name of a robot", "a lower-case letter, then letters, digits and hyphens, 23 characters at most",
    pattern: "^[a-z]([a-z0-9-]{0,21}[a-z0-9])?$", max: 23, example: "ci", label
);
text_type!(
    /// The name of a preview in its project: what follows `preview/` in the name of its branch.
    PreviewName, "name of a preview", "a lower-case letter, then letters, digits and hyphens, 20 characters at most",
    pattern: "^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$", max: 20, example: "login-page", label
);

text_type!(
    /// The name that operators gave to some networks, for rules of firewalls.
    NetworkName, "name of a network", "a lower-case letter, then letters, digits and hyphens, 40 characters at most",
    pattern: "^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$", max: 40, example: "office", label
);

text_type!(
    /// What operators call some defaults for guests.
    GuestProfileName, "name of a profile", "a lower-case letter, then letters, digits and hyphens, 40 characters at most",
    pattern: "^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$", max: 40, example: "small-website", label
);

impl ImageName {
    /// What guests are clones of where nobody says anything else.
    pub fn first() -> Self {
        Self("debian-12".to_owned())
    }
}

impl PreviewName {
    /// What the branches of previews begin with.
    pub const BRANCH: &'static str = "preview/";

    /// Its branch.
    pub fn branch(&self) -> String {
        format!("{}{self}", Self::BRANCH)
    }

    /// The project that the preview of a project is; none when its name would be too long.
    pub fn project(&self, of: &ProjectName) -> Option<ProjectName> {
        format!("{of}--{self}").parse().ok()
    }
}

text_type!(
    /// Who does something: a member by their login name, a robot by its project's name and its own, `atlas/ci`.
    ActorName, "name of a member or robot", "a login name, or a robot's as project/name, 64 characters at most",
    pattern: "^([A-Za-z0-9][A-Za-z0-9._-]{0,63}|[a-z]([a-z0-9-]{0,38}[a-z0-9])?/[a-z]([a-z0-9-]{0,21}[a-z0-9])?)$",
    max: 64, example: "ada.lovelace", |given| robot(given).or_else(|| login(given))
);

impl ActorName {
    /// A robot of a project.
    pub fn of_robot(project: &ProjectName, robot: &RobotName) -> Self {
        Self(format!("{project}/{robot}"))
    }

    /// For people, who are told what is no person.
    pub fn shown(&self) -> String {
        shown_actor(&self.0)
    }
}

impl From<UserName> for ActorName {
    fn from(login: UserName) -> Self {
        Self(login.0)
    }
}

/// The name of whoever did something, for people: `atlas/ci (robot)`. What else does something here (the directory,
/// a guest) has no slash in its name, as no login name has.
pub fn shown_actor(name: &str) -> String {
    if name.contains('/') { format!("{name} (robot)") } else { name.to_owned() }
}
text_type!(
    /// A Unix account on a host: portable user names as `useradd(8)` takes them.
    UnixUser, "user name", "a lower-case letter or underscore, then letters, digits, hyphens and underscores, 32 characters at most",
    pattern: "^[a-z_][a-z0-9_-]{0,31}$", max: 32, example: "root",
    |given| {
        let fits = given.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
            && given.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b));
        fits.then(|| given.to_owned())
    }
);

impl DnsName {
    /// Whether this name is `zone` itself or below it.
    pub fn is_in(&self, zone: &DnsName) -> bool {
        self == zone || self.as_str().strip_suffix(zone.as_str()).is_some_and(|head| head.ends_with('.'))
    }
}

impl CertifiedName {
    /// Whether a certificate for this is one for `name`: the same name, or one label more than what follows the star.
    pub fn covers(&self, name: &DnsName) -> bool {
        match self.0.strip_prefix("*.") {
            Some(below) => name.as_str().split_once('.').is_some_and(|(_, rest)| rest == below),
            None => self.0 == name.as_str(),
        }
    }
}

impl From<DnsName> for CertifiedName {
    fn from(name: DnsName) -> Self {
        Self(name.0)
    }
}

word_enum!(
    /// A stage of a project, with guests behind it.
    Environment, "environment", {
        /// Editable in place.
        Dev = "dev",
        /// Like production, for trying out.
        Staging = "staging",
        /// What users see.
        Prod = "prod",
    }
);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn refuses_what_is_no_host_name() {
        let long = "a".repeat(300);
        for bad in [
            "",
            ".",
            "a..b",
            "-a.b",
            "a-.b",
            "a b",
            "a;b",
            "$(reboot)",
            "a\nb",
            "a\n",
            "www.exаmple.org",
            "ﬀ.org",
            "a_b.org",
            "1.2.3.4",
            "a/../b",
            &long,
        ] {
            assert!(bad.parse::<HostName>().is_err(), "{bad:?} was accepted");
            assert!(bad.parse::<GuestName>().is_err(), "{bad:?} was accepted");
            assert!(bad.parse::<DnsName>().is_err(), "{bad:?} was accepted");
        }
    }

    #[test]
    fn folds_case_and_final_dot() {
        assert_eq!("WWW.Example.ORG".parse::<HostName>().unwrap().as_str(), "www.example.org");
        assert_eq!("www.example.org.".parse::<DnsName>().unwrap().as_str(), "www.example.org");
    }

    #[test]
    fn a_name_is_in_its_zone_and_no_other() {
        let zone: DnsName = "example.org".parse().unwrap();
        assert!("www.example.org".parse::<DnsName>().unwrap().is_in(&zone));
        assert!(zone.is_in(&zone));
        assert!(!"badexample.org".parse::<DnsName>().unwrap().is_in(&zone));
    }

    #[test]
    fn a_certificate_is_for_a_name_or_what_is_one_below() {
        let certified = |text: &str| text.parse::<CertifiedName>();
        assert_eq!(certified("*.WWW.Example.org.").unwrap().as_str(), "*.www.example.org");
        assert_eq!(certified("www.example.org").unwrap(), "www.example.org".parse::<DnsName>().unwrap().into());
        for bad in
            ["*", "*.", "*.org", "*.*.example.org", "www.*.example.org", "w*.example.org", "*example.org", "*.a b"]
        {
            assert!(certified(bad).is_err(), "{bad:?} was accepted");
        }
        assert!(certified(&format!("*.{}", ["a"; 126].join("."))).is_ok());
        assert!(certified(&format!("*.{}bc", ["a"; 126].join("."))).is_err(), "255 characters");
        let covers = |of: &str, name: &str| certified(of).unwrap().covers(&name.parse().unwrap());
        assert!(covers("example.org", "example.org") && covers("*.example.org", "www.example.org"));
        assert!(!covers("*.example.org", "example.org") && !covers("*.example.org", "a.www.example.org"));
        assert!(!covers("*.example.org", "www.badexample.org") && !covers("example.org", "www.example.org"));
    }

    #[test]
    fn a_robot_is_no_member() {
        let robot = ActorName::of_robot(&"atlas".parse().unwrap(), &"ci".parse().unwrap());
        assert_eq!((robot.as_str(), robot.shown().as_str()), ("atlas/ci", "atlas/ci (robot)"));
        assert_eq!("atlas/ci".parse::<ActorName>().unwrap(), robot);
        assert!("atlas/ci".parse::<UserName>().is_err());
        let ada: UserName = "Ada.Lovelace".parse().unwrap();
        assert_eq!(ActorName::from(ada).shown(), "ada.lovelace");
        for bad in ["", "/", "atlas/", "/ci", "atlas/ci/x", "atlas/ci (robot)", "Atlas/ci", "atlas/-ci", "a\nb/ci"] {
            assert!(bad.parse::<ActorName>().is_err(), "{bad:?} was accepted");
        }
        let longest = format!("{}/{}", "p".repeat(40), "r".repeat(23));
        assert_eq!(longest.parse::<ActorName>().unwrap().as_str(), longest);
    }

    #[test]
    fn a_preview_is_a_project_with_a_branch() {
        let (atlas, login): (ProjectName, PreviewName) = ("atlas".parse().unwrap(), "login".parse().unwrap());
        assert_eq!(
            (login.branch().as_str(), login.project(&atlas).unwrap().as_str()),
            ("preview/login", "atlas--login")
        );
        let long: ProjectName = "a".repeat(40).parse().unwrap();
        assert_eq!(login.project(&long), None);
        for bad in ["", "-x", "x-", "Login", "a/b", "a_b", "a.b", "1", "..", &"x".repeat(21)] {
            assert!(bad.parse::<PreviewName>().is_err(), "{bad:?} was accepted");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_accepted_is_safe(given in "\\PC{0,80}") {
            if let Ok(name) = given.parse::<HostName>() {
                prop_assert!(name.as_str().bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.'));
                prop_assert_eq!(name.as_str().parse::<HostName>().unwrap(), name);
            }
        }

        #[test]
        fn a_star_is_one_label(
            labels in prop::collection::vec("[a-z][a-z0-9]{0,5}", 1..5), below in "[a-z]{1,5}\\.[a-z]{2,4}"
        ) {
            let star: CertifiedName = format!("*.{below}").parse().unwrap();
            let name: DnsName = format!("{}.{below}", labels.join(".")).parse().unwrap();
            prop_assert_eq!(star.covers(&name), labels.len() == 1);
            prop_assert!(!star.covers(&below.parse().unwrap()));
            prop_assert!(CertifiedName::from(name.clone()).covers(&name));
        }

        #[test]
        fn every_good_name_is_accepted(name in "[a-z]([a-z0-9-]{0,20}[a-z0-9])?(\\.[a-z]([a-z0-9-]{0,10}[a-z0-9])?){1,3}") {
            prop_assert!(name.parse::<HostName>().is_ok());
        }
    }
}
