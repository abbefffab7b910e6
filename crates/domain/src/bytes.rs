//! Amounts of storage and memory: bytes in the store, units on the page.

use serde::{Deserialize, Serialize};

use crate::schema::schema;

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

schema!(Bytes, number("A number of bytes.", u64::MIN, u64::MAX));

impl Bytes {
    /// In units of 10^9 bytes, as disks are sold: `6.3 GB`.
    pub fn gb(self) -> String {
        scaled(self.0, 1_000_000_000, "GB")
    }

    /// In units of 2^30 bytes, as memory is sold: `15.6 GiB`; below one of them in units of 2^20: `18.3 MiB`.
    pub fn gib(self) -> String {
        if self.0 < 1 << 30 { scaled(self.0, 1 << 20, "MiB") } else { scaled(self.0, 1 << 30, "GiB") }
    }

    /// This part of `whole`, in per cent from 0 to 100.
    pub fn percent_of(self, whole: Self) -> u8 {
        let percent = self.0.saturating_mul(100).checked_div(whole.0).unwrap_or(0);
        u8::try_from(percent.min(100)).unwrap_or(100)
    }
}

/// `amount / unit` with one decimal, rounded half up, without floating point.
fn scaled(amount: u64, unit: u64, name: &str) -> String {
    let tenths = (u128::from(amount) * 10 + u128::from(unit) / 2) / u128::from(unit);
    match (tenths / 10, tenths % 10) {
        (whole, 0) => format!("{whole} {name}"),
        (whole, tenth) => format!("{whole}.{tenth} {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        assert_eq!(Bytes(500_000_000).gb(), "0.5 GB");
        assert_eq!(Bytes(10_000_000_000).gb(), "10 GB");
        assert_eq!(Bytes(1 << 30).gib(), "1 GiB");
        assert_eq!(Bytes(20_000_000).gib(), "19.1 MiB");
        assert_eq!(Bytes(63).percent_of(Bytes(100)), 63);
        assert_eq!(Bytes(5).percent_of(Bytes(0)), 0);
    }
}
