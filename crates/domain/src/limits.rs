//! Limits: how much of its node's memory, processors, processes and disk time a guest may take.
//!
//! A guest without limits can take a node from its neighbours. Each limit has a least value with
//! which a Debian still boots and can be entered, so that nobody locks themselves out by a typo.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::bytes::Bytes;
use crate::room::processors;
use crate::schema::schema;
use crate::size::SizeProfile;
use crate::text::Invalid;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// The name by which a deserializer knows an amount: a number in JSON, typed with its unit into a form.
pub const AMOUNT: &str = "corpus_domain::Amount";

/// Declares a limit: a number in a range, whose only ways in check it.
macro_rules! limit_type {
    ($(#[$($doc:tt)*])* $name:ident($number:ty), $what:literal, $range:expr, $expected:literal) => {
        $(#[$($doc)*])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[serde(into = "u64")]
        pub struct $name($number);

        impl $name {
            const RANGE: RangeInclusive<$number> = $range;

            /// The number.
            pub const fn get(self) -> $number {
                self.0
            }
        }

        impl TryFrom<u64> for $name {
            type Error = Invalid;
            fn try_from(given: u64) -> Result<Self, Invalid> {
                let number = <$number>::try_from(given).ok().filter(|number| Self::RANGE.contains(number));
                number.map(Self).ok_or_else(|| Invalid::new($what, &given.to_string(), $expected))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_newtype_struct(AMOUNT, Amount(std::marker::PhantomData))
            }
        }

        impl From<$name> for u64 {
            fn from(limit: $name) -> Self {
                Self::from(limit.0)
            }
        }

        schema!($name, number($crate::schema::doc_text!($([$($doc)*])*), *$name::RANGE.start(), *$name::RANGE.end()));
    };
}

pub(crate) use limit_type;

/// Reads an amount, from a number or from what a person typed.
pub(crate) struct Amount<T>(pub(crate) std::marker::PhantomData<T>);

impl<'de, T> Visitor<'de> for Amount<T>
where
    T: TryFrom<u64, Error = Invalid> + FromStr<Err = Invalid>,
{
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        u64::deserialize(deserializer)?.try_into().map_err(D::Error::custom)
    }

    fn visit_u64<E: Error>(self, given: u64) -> Result<T, E> {
        given.try_into().map_err(E::custom)
    }

    fn visit_str<E: Error>(self, given: &str) -> Result<T, E> {
        given.parse().map_err(E::custom)
    }
}

limit_type!(
    /// The most memory a guest may hold, in bytes; there is no swap beside it.
    MemoryLimit(u64), "memory", 64 * MIB..=16 * KIB * GIB, "an amount from 64 MiB to 16384 GiB, such as 512 MiB or 1.5 GiB"
);
limit_type!(
    /// The most processor time a guest may take, in thousandths of a processor.
    CpuLimit(u32), "CPU", 100..=1_024_000, "processors from 0.1 to 1024, such as 0.5 or 2"
);
limit_type!(
    /// The most processes and threads a guest may have at once.
    ProcessLimit(u32), "number of processes", 64..=4_194_304, "a number from 64 to 4194304"
);
limit_type!(
    /// A guest's share of the disk's time beside the other guests'; 100 is the usual one.
    IoWeight(u16), "I/O weight", 1..=1000, "a number from 1 to 1000"
);

impl MemoryLimit {
    /// As an amount.
    pub const fn bytes(self) -> Bytes {
        Bytes(self.0)
    }
}

impl FromStr for MemoryLimit {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        let invalid = || Invalid::new("memory", given, "an amount with its unit, such as 512 MiB or 1.5 GiB");
        let text = given.trim();
        let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(invalid)?);
        let unit = match unit.to_ascii_lowercase().as_str() {
            "m" | "mb" | "mib" => MIB,
            "g" | "gb" | "gib" => GIB,
            _ => return Err(invalid()),
        };
        let thousandths = thousandths(number.trim()).ok_or_else(invalid)?;
        let bytes = u128::from(thousandths) * u128::from(unit) / 1000;
        // Whole pages, so that the kernel holds exactly what is shown.
        u64::try_from(bytes).ok().map(|bytes| bytes / (4 * KIB) * (4 * KIB)).ok_or_else(invalid)?.try_into()
    }
}

impl fmt::Display for MemoryLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.bytes().gib())
    }
}

impl FromStr for CpuLimit {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        let millis = thousandths(given.trim());
        millis.ok_or_else(|| Invalid::new("CPU", given, "a number of processors, such as 0.5 or 2"))?.try_into()
    }
}

impl fmt::Display for CpuLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&processors(self.0.into()))
    }
}

impl FromStr for ProcessLimit {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        whole("number of processes", given)?.try_into()
    }
}

impl fmt::Display for ProcessLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for IoWeight {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        whole("I/O weight", given)?.try_into()
    }
}

impl fmt::Display for IoWeight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

pub(crate) fn whole(what: &'static str, given: &str) -> Result<u64, Invalid> {
    given.trim().parse().map_err(|_| Invalid::new(what, given, "a whole number"))
}

/// `1.5` as 1500; three decimals at most, no sign, no exponent.
pub(crate) fn thousandths(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > 3 {
        return None;
    }
    let part: u64 = format!("{part:0<3}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(part)
}

/// What a guest may take of its node, beside storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Limits {
    /// Memory.
    pub memory: MemoryLimit,
    /// Processor time.
    pub cpu: CpuLimit,
    /// Processes and threads.
    pub processes: ProcessLimit,
    /// Share of the disk's time.
    pub io_weight: IoWeight,
}

impl Limits {
    /// The larger one of each.
    #[must_use]
    pub fn most(self, other: Self) -> Self {
        Self {
            memory: self.memory.max(other.memory),
            cpu: self.cpu.max(other.cpu),
            processes: self.processes.max(other.processes),
            io_weight: self.io_weight.max(other.io_weight),
        }
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { memory, cpu, processes, io_weight } = self;
        write!(f, "{memory} of memory, {cpu} CPU, {processes} processes, I/O weight {io_weight}")
    }
}

/// Limits that were chosen; what was not is as it is, or the profile's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChosenLimits {
    /// Memory.
    pub memory: Option<MemoryLimit>,
    /// Processor time.
    pub cpu: Option<CpuLimit>,
    /// Processes and threads.
    pub processes: Option<ProcessLimit>,
    /// Share of the disk's time.
    pub io_weight: Option<IoWeight>,
}

impl ChosenLimits {
    /// These, and the others where nothing was chosen.
    pub fn over(self, others: Limits) -> Limits {
        Limits {
            memory: self.memory.unwrap_or(others.memory),
            cpu: self.cpu.unwrap_or(others.cpu),
            processes: self.processes.unwrap_or(others.processes),
            io_weight: self.io_weight.unwrap_or(others.io_weight),
        }
    }
}

impl SizeProfile {
    /// The limits of the profile, where none are chosen. A Debian with sshd takes 30 MiB, a
    /// deployment with Salt about 150 MiB beside the program itself.
    pub const fn limits(self) -> Limits {
        let (mib, millis, processes, weight) = match self {
            Self::Xxxsmall => (256, 500, 256, 50),
            Self::Xxsmall => (512, 1_000, 512, 50),
            Self::Xsmall => (768, 1_000, 1_024, 100),
            Self::Small => (1_024, 1_000, 1_024, 100),
            Self::Medium => (2_048, 2_000, 2_048, 100),
            Self::Large => (4_096, 2_000, 4_096, 100),
            Self::Xxxlarge => (8_192, 4_000, 8_192, 200),
            Self::Xtrem => (16_384, 8_000, 8_192, 200),
            Self::Xxtrem => (32_768, 12_000, 16_384, 300),
            Self::Xxxtrem => (65_536, 16_000, 16_384, 300),
        };
        Limits {
            memory: MemoryLimit(mib * MIB),
            cpu: CpuLimit(millis),
            processes: ProcessLimit(processes),
            io_weight: IoWeight(weight),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_types() {
        let memory = |text: &str| text.parse::<MemoryLimit>().map(MemoryLimit::get);
        assert_eq!(memory("512 MiB"), Ok(512 * MIB));
        assert_eq!(memory(" 1.5G"), Ok(1536 * MIB));
        for wrong in [
            "512",
            "63 MiB",
            "16385 GiB",
            "1 TiB",
            "-1 GiB",
            "1e3 MiB",
            "1.0001 GiB",
            "",
            "GiB",
            "99999999999999999999 GiB",
        ] {
            assert!(memory(wrong).is_err(), "{wrong}");
        }
        let cpu = |text: &str| text.parse::<CpuLimit>().map(CpuLimit::get);
        assert_eq!((cpu("2"), cpu("0.25")), (Ok(2000), Ok(250)));
        assert!(cpu("0.05").is_err() && cpu("two").is_err() && cpu(".5").is_err());
        assert!("63".parse::<ProcessLimit>().is_err() && "0".parse::<IoWeight>().is_err());
    }

    #[test]
    fn what_is_shown_can_be_typed() {
        for size in SizeProfile::ALL {
            let Limits { memory, cpu, processes, io_weight } = size.limits();
            assert_eq!(memory.to_string().parse(), Ok(memory));
            assert_eq!(cpu.to_string().parse(), Ok(cpu));
            assert_eq!(processes.to_string().parse(), Ok(processes));
            assert_eq!(io_weight.to_string().parse(), Ok(io_weight));
        }
        assert_eq!(SizeProfile::Xxxsmall.limits().cpu.to_string(), "0.5");
    }

    #[test]
    fn a_profile_has_valid_limits_that_grow_with_it() {
        for pair in SizeProfile::ALL.windows(2) {
            let (less, more) = (pair[0].limits(), pair[1].limits());
            assert!(less.memory < more.memory && less.cpu <= more.cpu && less.processes <= more.processes);
        }
        for size in SizeProfile::ALL {
            let json = serde_json::to_string(&size.limits()).unwrap();
            assert_eq!(serde_json::from_str::<Limits>(&json).unwrap(), size.limits());
        }
        assert!(serde_json::from_str::<Limits>(r#"{"memory":1,"cpu":1,"processes":1,"io_weight":1}"#).is_err());
    }

    #[test]
    fn what_was_not_chosen_stays() {
        let small = SizeProfile::Small.limits();
        let chosen = ChosenLimits { cpu: "4".parse().ok(), ..ChosenLimits::default() };
        assert_eq!(chosen.over(small), Limits { cpu: CpuLimit(4000), ..small });
    }
}
