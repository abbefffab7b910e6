//! Names of hosts, guests, projects, images and people.
//!
//! Host names follow RFC 1123 section 2.1 and RFC 1035 section 2.3.4: labels of 1 to 63
//! ASCII letters, digits and inner hyphens, 253 characters in all, folded to lower case.
//! What is not ASCII is refused, so that no look-alike of another name can be entered.

use crate::text::{text_type, word_enum};

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

fn label(given: &str) -> Option<String> {
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
    /// The name of a project: a label that starts with a letter, 40 characters at most.
    ProjectName, "project name", "a lower-case letter, then letters, digits and hyphens, 40 characters at most",
    pattern: "^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$", max: 40, example: "website", label
);
text_type!(
    /// The name of an image, such as `debian-12`.
    ImageName, "image name", "a lower-case letter, then letters, digits and hyphens, 40 characters at most",
    pattern: "^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$", max: 40, example: "debian-12", label
);
text_type!(
    /// The login name of a member, in lower case.
    UserName, "login name", "a letter or digit, then letters, digits, dots, hyphens and underscores, 64 characters at most",
    pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", max: 64, example: "ada.lovelace",
    |given| {
        let name = given.to_ascii_lowercase();
        let fits = name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_".contains(&b));
        fits.then_some(name)
    }
);
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

    proptest! {
        #[test]
        fn whatever_is_accepted_is_safe(given in "\\PC{0,80}") {
            if let Ok(name) = given.parse::<HostName>() {
                prop_assert!(name.as_str().bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.'));
                prop_assert_eq!(name.as_str().parse::<HostName>().unwrap(), name);
            }
        }

        #[test]
        fn every_good_name_is_accepted(name in "[a-z]([a-z0-9-]{0,20}[a-z0-9])?(\\.[a-z]([a-z0-9-]{0,10}[a-z0-9])?){1,3}") {
            prop_assert!(name.parse::<HostName>().is_ok());
        }
    }
}
