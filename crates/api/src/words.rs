//! Words that only questions have: bounds of a page, texts that people type, secrets that they send.
//!
//! Each checks itself where it is read, and its schema says the same; a bound that stood on a field
//! would be described and not held.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Days as DaysLater, NaiveDate, NaiveTime, SecondsFormat, TimeDelta, Utc};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, Serializer};
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::{KnownFormat, RefOr};
use utoipa::{PartialSchema, ToSchema};

pub use corpus_domain::Invalid;

/// A bound as schemas hold it; a browser's words are too short for some, and no browser writes a schema.
fn bound(number: u64) -> Option<utoipa::Number> {
    usize::try_from(number).ok().map(utoipa::Number::UInt)
}

/// A number within bounds.
macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $min:literal ..= $max:literal, $what:literal, $expected:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "u64", into = "u64")]
        pub struct $name(u64);

        impl $name {
            /// The number.
            pub const fn get(self) -> u64 {
                self.0
            }
        }
        impl TryFrom<u64> for $name {
            type Error = Invalid;
            fn try_from(given: u64) -> Result<Self, Invalid> {
                let fits = ($min..=$max).contains(&given);
                if fits { Ok(Self(given)) } else { Err(Invalid::new($what, &given.to_string(), $expected)) }
            }
        }
        impl From<$name> for u64 {
            fn from(value: $name) -> Self {
                value.0
            }
        }
        impl FromStr for $name {
            type Err = Invalid;
            fn from_str(given: &str) -> Result<Self, Invalid> {
                given.parse::<u64>().map_err(|_| Invalid::new($what, given, $expected))?.try_into()
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let number = ObjectBuilder::new().schema_type(Type::Integer);
                let number = number.minimum(bound($min)).maximum(bound($max));
                number.description(Some(concat!($what, ", ", $expected))).into()
            }
        }
        impl ToSchema for $name {}
    };
}

number!(
    /// How many lines of a list come at once, at most.
    Limit, 1..=200, "limit", "a number from 1 to 200"
);
number!(
    /// How long an answer may wait for the end of what it is about.
    Wait, 0..=60, "wait", "seconds from 0 to 60"
);
number!(
    /// For how many days something is good.
    Days, 1..=365, "days", "a number of days from 1 to 365"
);
number!(
    /// How many previews a project may have at once.
    PreviewCount, 0..=20, "number of previews", "a number from 0 to 20"
);
number!(
    /// For how many days a preview stays unless it is kept longer.
    PreviewDays, 1..=90, "number of days", "a number of days from 1 to 90"
);
number!(
    /// For how long resolvers may keep what is answered for a name.
    ZoneTtl, 10..=86_400, "number of seconds", "a number of seconds from 10 to 86400"
);
number!(
    /// For how long browsers ask for a name by HTTPS only.
    HstsSeconds, 1..=63_072_000, "number of seconds", "a number of seconds from 1 to 63072000, two years"
);
number!(
    /// How many of a guest's snapshots are kept that are taken by schedule: fewer than it may have.
    SnapshotsKept, 1..=12, "number of snapshots", "a number from 1 to 12"
);
number!(
    /// How many of a guest's backups are kept that are taken by schedule.
    BackupsKept, 1..=90, "number of backups", "a number from 1 to 90"
);
number!(
    /// For how many minutes an address is kept out.
    BlockMinutes, 1..=43_200, "number of minutes", "a number of minutes from 1 to 43200, thirty days"
);
number!(
    /// A port of TCP.
    Port, 1..=65_535, "port", "a number from 1 to 65535"
);
number!(
    /// A number that counts from 1.
    Number, 1..=9_007_199_254_740_991, "number", "a number from 1"
);
number!(
    /// The number of a line or change to go on after.
    After, 0..=9_007_199_254_740_991, "after", "a number from 0"
);

number!(
    /// How many lines of a log come at once, at most.
    LineLimit, 1..=5_000, "limit", "a number from 1 to 5000"
);
impl Port {
    /// Where SSH answers unless said.
    pub const SSH: Self = Self(22);

    /// As sockets have it.
    pub fn number(self) -> u16 {
        u16::try_from(self.0).unwrap_or(u16::MAX)
    }
}

impl Limit {
    /// Unless said.
    pub const USUAL: Self = Self(50);
}

impl ZoneTtl {
    /// Unless said: short, since guests move.
    pub const USUAL: Self = Self(60);
}

/// A text that a person types: its length in characters, and whether it may have several lines.
macro_rules! typed {
    ($(#[$doc:meta])* $name:ident, $min:literal ..= $max:literal, $pattern:literal, $lines:literal, $what:literal, $expected:literal, $example:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl FromStr for $name {
            type Err = Invalid;
            fn from_str(given: &str) -> Result<Self, Invalid> {
                let plain = |c: char| !c.is_control() || ($lines && matches!(c, '\n' | '\r' | '\t'));
                let fits = ($min..=$max).contains(&given.chars().count()) && given.chars().all(plain);
                if fits { Ok(Self(given.to_owned())) } else { Err(Invalid::new($what, given, $expected)) }
            }
        }
        impl TryFrom<String> for $name {
            type Error = Invalid;
            fn try_from(given: String) -> Result<Self, Invalid> {
                given.parse()
            }
        }
        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some($pattern));
                let text = text.min_length(Some($min)).max_length(Some($max)).examples([$example]);
                text.description(Some(concat!($what, ": ", $expected))).into()
            }
        }
        impl ToSchema for $name {}
    };
}

typed!(
    /// Why something was done, for who reads of it later.
    Comment, 1..=1000, r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]{1,1000}$", true, "comment", "1 to 1000 characters", "the disk was replaced"
);
typed!(
    /// What is looked for.
    SearchText, 1..=200, r"^[^\x00-\x1f\x7f-\x9f]{1,200}$", false, "text to look for", "1 to 200 characters on one line", "timed out"
);
typed!(
    /// A name that a person gives to something of their own.
    Label, 1..=60, r"^[^\x00-\x1f\x7f-\x9f]{1,60}$", false, "name", "1 to 60 characters on one line", "Jenkins"
);
typed!(
    /// What a list is asked, as an address has it after its question mark.
    QueryText, 1..=1000, r"^[^\x00-\x1f\x7f-\x9f]{1,1000}$", false, "query", "1 to 1000 characters on one line", "environment=prod&q=www"
);
typed!(
    /// Several lines of text, as a form or a file has them.
    Text, 0..=65_536, r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]{0,65536}$", true, "text", "65536 characters at most", "key: value"
);
typed!(
    /// A public key or a host key as OpenSSH writes it, one line.
    KeyText, 1..=16_384, r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]{1,16384}$", true, "key", "one line as a .pub file has it", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI… mia@desk"
);
typed!(
    /// A signature as `ssh-keygen -Y sign` prints it.
    SignatureText, 1..=16_384, r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]{1,16384}$", true, "signature", "what ssh-keygen -Y sign printed, 16384 characters at most", "-----BEGIN SSH SIGNATURE-----\n…\n-----END SSH SIGNATURE-----"
);

/// A day of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Day(NaiveDate);

impl Day {
    /// The day.
    pub const fn get(self) -> NaiveDate {
        self.0
    }
}
impl FromStr for Day {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        let wrong = || Invalid::new("day", given, "a day such as 2027-03-31");
        // Four digits for the year: chrono takes more, and a sign.
        let plain = given.len() == 10 && given.bytes().all(|b| b.is_ascii_digit() || b == b'-');
        let day = NaiveDate::parse_from_str(given, "%Y-%m-%d").ok().filter(|_| plain);
        day.map(Self).ok_or_else(wrong)
    }
}
impl TryFrom<String> for Day {
    type Error = Invalid;
    fn try_from(given: String) -> Result<Self, Invalid> {
        given.parse()
    }
}
impl From<Day> for String {
    fn from(day: Day) -> Self {
        day.0.to_string()
    }
}
impl PartialSchema for Day {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String);
        let text = text.format(Some(SchemaFormat::KnownFormat(KnownFormat::Date))).examples(["2027-03-31"]);
        text.description(Some("A day of the calendar")).into()
    }
}
impl ToSchema for Day {}

/// A time to look from or up to: a day of the calendar, which is one of UTC, or an instant of RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum When {
    /// The whole day.
    Day(Day),
    /// The instant.
    Instant(DateTime<Utc>),
}

impl When {
    /// The first instant of it.
    pub fn begin(self) -> DateTime<Utc> {
        match self {
            Self::Day(day) => day.get().and_time(NaiveTime::MIN).and_utc(),
            Self::Instant(instant) => instant,
        }
    }

    /// The first instant that is after it: a day is meant whole.
    pub fn end(self) -> DateTime<Utc> {
        match self {
            Self::Day(day) => {
                let next = day.get().checked_add_days(DaysLater::new(1));
                next.map_or(DateTime::<Utc>::MAX_UTC, |next| next.and_time(NaiveTime::MIN).and_utc())
            }
            Self::Instant(instant) => instant,
        }
    }

    /// The last instant of it, as far as PostgreSQL tells instants apart: what is not after it was by then.
    pub fn last(self) -> DateTime<Utc> {
        match self {
            Self::Day(_) => self.end() - TimeDelta::microseconds(1),
            Self::Instant(instant) => instant,
        }
    }
}
impl FromStr for When {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        let wrong =
            || Invalid::new("time", given, "a day such as 2027-03-31, or an instant such as 2027-03-31T18:00:00Z");
        if given.len() <= 10 {
            return given.parse().map(Self::Day).map_err(|_| wrong());
        }
        // Four digits for the year: PostgreSQL has no other instants that chrono has.
        let plain = given.len() <= 40 && given.bytes().take(4).all(|b| b.is_ascii_digit());
        let instant = DateTime::parse_from_rfc3339(given).ok().filter(|_| plain).map(|instant| instant.to_utc());
        instant.map(Self::Instant).ok_or_else(wrong)
    }
}
impl TryFrom<String> for When {
    type Error = Invalid;
    fn try_from(given: String) -> Result<Self, Invalid> {
        given.parse()
    }
}
impl From<When> for String {
    fn from(when: When) -> Self {
        match when {
            When::Day(day) => day.into(),
            When::Instant(instant) => instant.to_rfc3339_opts(SecondsFormat::AutoSi, true),
        }
    }
}
impl PartialSchema for When {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String).max_length(Some(40));
        let text = text.pattern(Some("^[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ][0-9:.]{8,20}([Zz]|[+-][0-9]{2}:[0-9]{2}))?$"));
        let text = text.examples(["2027-03-31", "2027-03-31T18:00:00Z"]);
        text.description(Some("A day of the calendar (UTC), or an instant of RFC 3339")).into()
    }
}
impl ToSchema for When {}

typed!(
    /// The fingerprint of a host key as `ssh-keygen -l` prints it.
    Fingerprint, 1..=100, r"^[^\x00-\x1f\x7f-\x9f]{1,100}$", false, "fingerprint", "SHA256: and 43 characters", "SHA256:3J8b1J3l1m6dQ0ZkVQm0x1k0iB1kqf0YyJ8e0oLr6u4"
);

typed!(
    /// A certificate and those that lead from it to an authority.
    CertificateChain, 1..=61_440, r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]{1,61440}$", true, "chain of certificates", "certificates as PEM, the one of the name first; 61440 characters at most", "-----BEGIN CERTIFICATE-----"
);

/// A secret that is sent: shown nowhere, in no log, and not repeated when it is refused.
macro_rules! secret {
    ($(#[$doc:meta])* $name:ident, $min:literal ..= $max:literal, $pattern:literal, $expected:literal) => {
        $(#[$doc])*
        #[derive(Clone, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(SecretString);

        impl $name {
            /// The secret, for who uses it.
            pub const fn secret(&self) -> &SecretString {
                &self.0
            }
        }
        impl TryFrom<String> for $name {
            type Error = Invalid;
            fn try_from(given: String) -> Result<Self, Invalid> {
                let fits = ($min..=$max).contains(&given.chars().count()) && !given.chars().any(char::is_control);
                if fits { Ok(Self(given.into())) } else { Err(Invalid::new("password", "…", $expected)) }
            }
        }
        impl FromStr for $name {
            type Err = Invalid;
            fn from_str(given: &str) -> Result<Self, Invalid> {
                given.to_owned().try_into()
            }
        }
        /// Clients send it.
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.0.expose_secret())
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("…")
            }
        }
        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let format = SchemaFormat::KnownFormat(KnownFormat::Password);
                let text = ObjectBuilder::new().schema_type(Type::String).format(Some(format));
                let text = text.min_length(Some($min)).max_length(Some($max)).pattern(Some($pattern));
                text.description(Some(concat!("A password: ", $expected))).into()
            }
        }
        impl ToSchema for $name {}
    };
}

secret!(
    /// A password that is sent.
    Password, 1..=128, r"^[^\x00-\x1f\x7f-\x9f]{1,128}$", "1 to 128 characters"
);
secret!(
    /// A password that is chosen for a guest.
    GuestPassword, 12..=128, r"^[^\x00-\x1f\x7f-\x9f]{12,128}$", "12 to 128 characters; leave it empty for a generated one"
);

/// Declares a list of words: so many at most.
#[macro_export]
macro_rules! several {
    ($(#[$doc:meta])* $name:ident, $item:ty, $max:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
        #[serde(transparent)]
        pub struct $name(Vec<$item>);

        impl From<$name> for Vec<$item> {
            fn from(list: $name) -> Self {
                list.0
            }
        }
        impl TryFrom<Vec<$item>> for $name {
            type Error = String;
            fn try_from(given: Vec<$item>) -> Result<Self, String> {
                let count = given.len();
                if count <= $max { Ok(Self(given)) } else { Err(format!("There are {count}, and {} at most are taken.", $max)) }
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Vec::deserialize(deserializer)?.try_into().map_err(serde::de::Error::custom)
            }
        }
        impl std::ops::Deref for $name {
            type Target = [$item];
            fn deref(&self) -> &[$item] {
                &self.0
            }
        }
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                let item = utoipa::openapi::Ref::from_schema_name(<$item as utoipa::ToSchema>::name());
                utoipa::openapi::schema::ArrayBuilder::new().items(item).max_items(Some($max)).into()
            }
        }
        impl utoipa::ToSchema for $name {
            fn schemas(schemas: &mut Vec<(String, utoipa::openapi::RefOr<utoipa::openapi::schema::Schema>)>) {
                let (name, schema) = (<$item as utoipa::ToSchema>::name(), <$item as utoipa::PartialSchema>::schema());
                schemas.push((name.into_owned(), schema));
                <$item as utoipa::ToSchema>::schemas(schemas);
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_held() {
        assert!("0".parse::<Limit>().is_err() && "201".parse::<Limit>().is_err() && "200".parse::<Limit>().is_ok());
        assert!("".parse::<Comment>().is_err() && "a\nb".parse::<Comment>().is_ok());
        assert!("a\nb".parse::<SearchText>().is_err() && "a\0".parse::<Comment>().is_err());
        several!(
            /// Two of them.
            Two, Label, 2
        );
        let labels = |count| vec!["a".parse::<Label>().unwrap(); count];
        assert!(
            Two::try_from(labels(3)).is_err() && Two::try_from(labels(2)).is_ok_and(|two| Vec::from(two).len() == 2)
        );
    }

    #[test]
    fn a_day_is_one_of_the_calendar() {
        assert_eq!(String::from("2028-02-29".parse::<Day>().unwrap()), "2028-02-29");
        for wrong in ["2027-02-29", "27-02-01", "2027-2-1", "+2027-02-1", "tomorrow", ""] {
            assert!(wrong.parse::<Day>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_time_is_a_day_or_an_instant() {
        let when = |text: &str| text.parse::<When>().unwrap();
        let said = |text: &str| String::from(when(text));
        assert_eq!(said("2028-02-29"), "2028-02-29");
        assert_eq!(said("2028-02-29T23:30:00+01:00"), "2028-02-29T22:30:00Z");
        assert_eq!(said(&said("2028-02-29T23:30:00.25+01:00")), "2028-02-29T22:30:00.250Z", "and stays as it is");
        assert_eq!(when("2028-02-29").begin().to_rfc3339(), "2028-02-29T00:00:00+00:00");
        assert_eq!(when("2028-02-29").end().to_rfc3339(), "2028-03-01T00:00:00+00:00", "a day is meant whole");
        assert_eq!(when("2028-02-29T12:00:00Z").begin(), when("2028-02-29T12:00:00Z").end());
        assert_eq!(when("2028-02-29").last().to_rfc3339(), "2028-02-29T23:59:59.999999+00:00");
        assert_eq!(when("2028-02-29T12:00:00Z").last(), when("2028-02-29T12:00:00Z").end());
        assert!(when("9999-12-31").end() > when("9999-12-31").begin());
        let wrong =
            ["2027-02-29", "2027-2-1", "yesterday", "", "2027-02-01T25:00:00Z", "2027-02-01T12:00:00", "2027-02-01 12"];
        for wrong in wrong.into_iter().chain(["+12027-02-01T12:00:00Z", "-0001-02-01T12:00:00Z", "infinity", "now"]) {
            assert!(wrong.parse::<When>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_password_is_not_shown() {
        let password: Password = "correct horse".parse().unwrap();
        assert_eq!(format!("{password:?}"), "…");
        let refused = "x\0hush".parse::<Password>().unwrap_err();
        assert!(!refused.to_string().contains("hush"));
        assert!("elevenchars".parse::<GuestPassword>().is_err() && "twelve chars".parse::<GuestPassword>().is_ok());
    }
}
