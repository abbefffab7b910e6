//! Room on a node: what it has, what its guests were promised, and what may be promised still.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

use crate::bytes::Bytes;
use crate::guest::Backing;
use crate::limits::{AMOUNT, Amount, Limits, thousandths};
use crate::schema::schema;
use crate::size::SizeProfile;
use crate::text::Invalid;

/// What a guest is counted for whose storage is not held to a size: what one usually writes on top
/// of the image that it shares.
const USUAL: Bytes = Bytes(2_000_000_000);

/// An amount of each thing that a node shares out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Room {
    /// Memory.
    pub memory: Bytes,
    /// Processor time, in thousandths of a processor.
    pub cpu_millis: u64,
    /// Storage.
    pub storage: Bytes,
}

impl Room {
    /// What a guest is promised.
    pub fn of_guest(limits: Limits, backing: Backing, size: SizeProfile) -> Self {
        let storage = if backing.has_size() { size.storage() } else { size.storage().min(USUAL) };
        Self { memory: limits.memory.bytes(), cpu_millis: limits.cpu.get().into(), storage }
    }

    /// What may be promised of it.
    #[must_use]
    pub fn overcommitted(self, by: Overcommit) -> Self {
        Self {
            memory: Bytes(by.memory.of(self.memory.0)),
            cpu_millis: by.cpu.of(self.cpu_millis),
            storage: Bytes(by.storage.of(self.storage.0)),
        }
    }

    /// What is left without `other`, nothing where that is more.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self {
            memory: Bytes(self.memory.0.saturating_sub(other.memory.0)),
            cpu_millis: self.cpu_millis.saturating_sub(other.cpu_millis),
            storage: Bytes(self.storage.0.saturating_sub(other.storage.0)),
        }
    }

    /// How many times `one` fits in it.
    pub fn holds(self, one: Self) -> u64 {
        let times = |has: u64, each: u64| has.checked_div(each).unwrap_or(u64::MAX);
        times(self.memory.0, one.memory.0)
            .min(times(self.cpu_millis, one.cpu_millis))
            .min(times(self.storage.0, one.storage.0))
    }
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpu = processors(self.cpu_millis);
        write!(f, "{} of memory, {cpu} CPU and {} of storage", self.memory.gib(), self.storage.gb())
    }
}

/// Thousandths of a processor as processors: `0.5`.
pub fn processors(millis: u64) -> String {
    let text = format!("{}.{:03}", millis / 1000, millis % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// How many times what a node has may be promised, in hundredths: 150 is one and a half times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "u32")]
pub struct Factor(u32);

schema!(
    Factor,
    number(
        "How many times what a node has may be promised, in hundredths: 150 is one and a half times.",
        *Factor::PERCENT.start(),
        *Factor::PERCENT.end()
    )
);

impl Factor {
    const PERCENT: RangeInclusive<u32> = 10..=10_000;

    /// In hundredths.
    pub const fn percent(self) -> u32 {
        self.0
    }

    fn of(self, amount: u64) -> u64 {
        u64::try_from(u128::from(amount) * u128::from(self.0) / 100).unwrap_or(u64::MAX)
    }
}

/// Hundredths in JSON; in a form it is typed as a person says it: 1.5.
impl<'de> Deserialize<'de> for Factor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(AMOUNT, Amount(PhantomData))
    }
}

impl TryFrom<u64> for Factor {
    type Error = Invalid;
    fn try_from(percent: u64) -> Result<Self, Invalid> {
        u32::try_from(percent).unwrap_or(u32::MAX).try_into()
    }
}

impl TryFrom<u32> for Factor {
    type Error = Invalid;
    fn try_from(percent: u32) -> Result<Self, Invalid> {
        let valid = Self::PERCENT.contains(&percent).then_some(Self(percent));
        valid.ok_or_else(|| Invalid::new("factor", &processors(u64::from(percent) * 10), "a number from 0.1 to 100"))
    }
}

impl From<Factor> for u32 {
    fn from(factor: Factor) -> Self {
        factor.0
    }
}

impl FromStr for Factor {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        let invalid = || Invalid::new("factor", given, "a number with two decimals at most, such as 1.5");
        let thousandths = thousandths(given.trim()).filter(|number| number % 10 == 0).ok_or_else(invalid)?;
        u32::try_from(thousandths / 10).map_err(|_| invalid())?.try_into()
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&processors(u64::from(self.0) * 10))
    }
}

/// How much more of each thing than a node has may be promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Overcommit {
    /// Of memory.
    pub memory: Factor,
    /// Of processor time.
    pub cpu: Factor,
    /// Of storage.
    pub storage: Factor,
}

impl Overcommit {
    /// What a new node has: guests share processors and are slowed down at worst, while memory and
    /// storage that are not there make them fail.
    pub const DEFAULT: Self = Self { memory: Factor(150), cpu: Factor(800), storage: Factor(100) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_many_more() {
        let node = Room { memory: Bytes(16 << 30), cpu_millis: 2000, storage: Bytes(40_000_000_000) };
        let small = Room::of_guest(SizeProfile::Small.limits(), Backing::Overlayfs, SizeProfile::Small);
        let loops = Room::of_guest(SizeProfile::Small.limits(), Backing::Loop, SizeProfile::Small);
        let all = node.overcommitted(Overcommit::DEFAULT);
        assert_eq!((all.holds(small), all.holds(loops)), (16, 8));
        assert_eq!(all.without(small).without(small).holds(small), 14);
        assert_eq!(Room::default().without(small).holds(small), 0);
        assert_eq!(small.to_string(), "1 GiB of memory, 1 CPU and 2 GB of storage");
    }

    #[test]
    fn factors() {
        let factor = |text: &str| text.parse::<Factor>().map(Factor::percent);
        assert_eq!((factor("1.5"), factor("8"), factor("0.25")), (Ok(150), Ok(800), Ok(25)));
        assert!(factor("0").is_err() && factor("101").is_err() && factor("1.555").is_err() && factor("x").is_err());
        assert_eq!(Overcommit::DEFAULT.memory.to_string(), "1.5");
    }
}
