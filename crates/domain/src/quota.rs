//! Quotas: how much of what all share a project may take.
//!
//! Without one the first project takes whatever there is. A quota bounds what is promised, not what is used, so
//! that what is left of it can be relied on. None may be 0: then nothing more is given, and what is there stays.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

use crate::bytes::Bytes;
use crate::limits::{AMOUNT, Amount, limit_type, thousandths, whole};
use crate::room::processors;
use crate::schema::schema;
use crate::text::{Invalid, word_enum};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const MB: u64 = 1_000_000;
const GB: u64 = 1_000_000_000;

word_enum!(
    /// What a quota is of.
    QuotaOf, "quota", {
        /// Guests, from their request on.
        Guests = "guests",
        /// Memory that is promised to them.
        Memory = "memory",
        /// Processor time that is promised to them.
        Cpu = "cpu",
        /// Storage that is promised to them.
        Storage = "storage",
        /// DNS names that lead to them.
        Names = "names",
        /// Ports of nodes that lead to them.
        Ports = "ports",
        /// What the repository takes in which their backups are.
        Backups = "backups",
    }
);

limit_type!(
    /// The most guests that a project may have.
    GuestQuota(u32), "number of guests", 0..=1_000_000, "a number from 0 to 1000000"
);
limit_type!(
    /// The most memory that the guests of a project may be promised, in bytes.
    MemoryQuota(u64), "memory", 0..=1024 * 1024 * GIB, "an amount from 0 to 1048576 GiB, such as 512 MiB or 16 GiB"
);
limit_type!(
    /// The most processor time that the guests of a project may be promised, in thousandths of a processor.
    CpuQuota(u32), "CPU", 0..=1_000_000_000, "processors from 0 to 1000000, such as 0.5 or 8"
);
limit_type!(
    /// The most storage that the guests of a project may be promised, or its backups may take, in bytes.
    StorageQuota(u64), "storage", 0..=1_000_000 * GB, "an amount from 0 to 1000000 GB, such as 100 GB or 2 TB"
);
limit_type!(
    /// The most DNS names that may lead to the guests of a project.
    NameQuota(u32), "number of names", 0..=1_000_000, "a number from 0 to 1000000"
);
limit_type!(
    /// The most ports of nodes that may lead to the guests of a project.
    PortQuota(u32), "number of ports", 0..=1_000_000, "a number from 0 to 1000000"
);

impl FromStr for GuestQuota {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        whole("number of guests", given)?.try_into()
    }
}

impl FromStr for NameQuota {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        whole("number of names", given)?.try_into()
    }
}

impl FromStr for PortQuota {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        whole("number of ports", given)?.try_into()
    }
}

impl FromStr for CpuQuota {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        let millis = thousandths(given.trim());
        millis.ok_or_else(|| Invalid::new("CPU", given, "a number of processors, such as 0.5 or 8"))?.try_into()
    }
}

impl FromStr for MemoryQuota {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        let units = [("m", MIB), ("mb", MIB), ("mib", MIB), ("g", GIB), ("gb", GIB), ("gib", GIB), ("tib", 1024 * GIB)];
        let bytes = with_unit(given, &units);
        bytes
            .ok_or_else(|| Invalid::new("memory", given, "an amount with its unit, such as 512 MiB or 16 GiB"))?
            .try_into()
    }
}

impl FromStr for StorageQuota {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        let units = [("m", MB), ("mb", MB), ("g", GB), ("gb", GB), ("t", 1000 * GB), ("tb", 1000 * GB)];
        let bytes = with_unit(given, &units);
        bytes
            .ok_or_else(|| Invalid::new("storage", given, "an amount with its unit, such as 100 GB or 2 TB"))?
            .try_into()
    }
}

/// An amount of so many units, with three decimals at most; `0` needs none. Bytes are always understood.
fn with_unit(given: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = given.trim();
    if text == "0" {
        return Some(0);
    }
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let unit = unit.to_ascii_lowercase();
    let size = units.iter().chain(&[("b", 1)]).find(|(name, _)| *name == unit)?.1;
    u64::try_from(u128::from(thousandths(number.trim())?) * u128::from(size) / 1000).ok()
}

/// The amount in the first unit that says it exactly, so that what is shown can be sent again and changes nothing.
fn exactly(amount: u64, units: &[(&str, u64)], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let millis = |size: u64| u128::from(amount) * 1000 / u128::from(size);
    let exact = |(_, size): &&(&str, u64)| millis(*size) * u128::from(*size) == u128::from(amount) * 1000;
    let small = |(_, size): &&(&str, u64)| amount >= *size || amount == 0;
    match units.iter().filter(small).find(exact) {
        Some((name, size)) => {
            let number = processors(u64::try_from(millis(*size)).unwrap_or(u64::MAX));
            write!(f, "{number} {name}")
        }
        None => write!(f, "{amount} B"),
    }
}

impl fmt::Display for GuestQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for NameQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for PortQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for CpuQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&processors(self.0.into()))
    }
}

impl fmt::Display for MemoryQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        exactly(self.0, &[("GiB", GIB), ("MiB", MIB)], f)
    }
}

impl fmt::Display for StorageQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        exactly(self.0, &[("GB", GB), ("MB", MB)], f)
    }
}

impl QuotaOf {
    /// An amount of it in its unit: `3`, `6 GiB`, `0.5`, `10 GB`.
    pub fn amount(self, amount: u64) -> String {
        match self {
            Self::Guests | Self::Names | Self::Ports => amount.to_string(),
            Self::Memory => Bytes(amount).gib(),
            Self::Cpu => processors(amount),
            Self::Storage | Self::Backups => Bytes(amount).gb(),
        }
    }

    /// What it is, after an amount of it: `3 guests`, `6 GiB of memory`.
    pub fn named(self, amount: u64) -> String {
        let number = self.amount(amount);
        let one = amount == 1;
        match self {
            Self::Guests if one => format!("{number} guest"),
            Self::Guests => format!("{number} guests"),
            Self::Memory => format!("{number} of memory"),
            Self::Cpu => format!("{number} CPU"),
            Self::Storage => format!("{number} of storage"),
            Self::Backups => format!("{number} of backups"),
            Self::Names if one => format!("{number} DNS name"),
            Self::Names => format!("{number} DNS names"),
            Self::Ports if one => format!("{number} published port"),
            Self::Ports => format!("{number} published ports"),
        }
    }

    /// How much of it is taken, of how much may be: `3 of 5 guests`; without a limit `3 guests`.
    pub fn taken(self, taken: u64, limit: Option<u64>) -> String {
        match limit {
            Some(limit) => format!("{} of {}", self.amount(taken), self.named(limit)),
            None => self.named(taken),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_types() {
        let memory = |text: &str| text.parse::<MemoryQuota>().map(MemoryQuota::get);
        assert_eq!((memory("8 GiB"), memory("1.5g"), memory("0")), (Ok(8 * GIB), Ok(1536 * MIB), Ok(0)));
        assert_eq!((memory("1 TiB"), memory("1048576 GiB")), (Ok(1024 * GIB), Ok(1 << 50)));
        for wrong in ["8", "-1 GiB", "1e3 MiB", "1.0001 GiB", "", "GiB", "1048577 GiB", "99999999999999999999 GiB"] {
            assert!(memory(wrong).is_err(), "{wrong}");
        }
        let storage = |text: &str| text.parse::<StorageQuota>().map(StorageQuota::get);
        assert_eq!((storage("100 GB"), storage("2 TB"), storage("500mb")), (Ok(100 * GB), Ok(2000 * GB), Ok(500 * MB)));
        assert!(storage("1 GiB").is_err() && storage("1000001 GB").is_err());
        assert_eq!("0.5".parse::<CpuQuota>().map(CpuQuota::get), Ok(500));
        assert!("0".parse::<GuestQuota>().is_ok() && "-1".parse::<GuestQuota>().is_err());
        assert!("1000001".parse::<NameQuota>().is_err() && "many".parse::<NameQuota>().is_err());
    }

    #[test]
    fn what_is_shown_can_be_typed_and_changes_nothing() {
        for amount in [0, 1, 999, MIB, 1_500 * MIB, GIB + GIB / 8, GIB + MIB, GIB, 1025 * GIB, 1_234_567_890, 1 << 50] {
            let memory = MemoryQuota::try_from(amount).unwrap();
            assert_eq!(memory.to_string().parse(), Ok(memory), "{memory}");
            let storage = StorageQuota::try_from(amount.min(1_000_000 * GB)).unwrap();
            assert_eq!(storage.to_string().parse(), Ok(storage), "{storage}");
        }
        assert_eq!(MemoryQuota(GIB + GIB / 8).to_string(), "1.125 GiB");
        assert_eq!(MemoryQuota(512 * MIB).to_string(), "512 MiB");
        assert_eq!(StorageQuota(2_500 * MB).to_string(), "2.5 GB");
    }

    #[test]
    fn what_is_taken_is_said() {
        assert_eq!(QuotaOf::Guests.taken(3, Some(5)), "3 of 5 guests");
        assert_eq!(QuotaOf::Guests.taken(0, Some(1)), "0 of 1 guest");
        assert_eq!(QuotaOf::Memory.taken(6 * GIB, Some(8 * GIB)), "6 GiB of 8 GiB of memory");
        assert_eq!(QuotaOf::Cpu.taken(500, Some(2000)), "0.5 of 2 CPU");
        assert_eq!(QuotaOf::Storage.taken(0, None), "0 GB of storage");
        assert_eq!(QuotaOf::Names.taken(1, None), "1 DNS name");
        assert_eq!(QuotaOf::Ports.taken(1, Some(2)), "1 of 2 published ports");
        assert_eq!(QuotaOf::Backups.taken(GB, Some(20 * GB)), "1 GB of 20 GB of backups");
    }
}
