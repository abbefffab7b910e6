//! The ids that a guest's users and groups have on its node.
//!
//! Root in a guest must be nobody on the node and nobody in any other guest. So each guest has
//! 65,536 ids of its own there: its id 0 is the first of them. They lie where systemd expects the
//! users of containers (`systemd.io/UIDS-GIDS`) and where `useradd(8)` gives nothing out in
//! `/etc/subuid`, so that they are no one else's.

use serde::{Deserialize, Serialize};

use crate::schema::schema;
use crate::text::Invalid;

/// 65,536 user ids, and as many group ids, of a guest on its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct IdRange {
    first: u32,
}

schema!(
    IdRange,
    number(
        "The first of 65,536 user ids, and as many group ids, that a guest has on its node.",
        IdRange::LOWEST,
        IdRange::HIGHEST
    )
    .multiple_of(Some(crate::schema::bound(IdRange::LEN.into())))
);

impl IdRange {
    /// How many ids a range has.
    pub const LEN: u32 = 1 << 16;
    /// The first id of the lowest range.
    pub const LOWEST: u32 = 0x4000_0000;
    /// The first id of the highest range.
    pub const HIGHEST: u32 = 0x6FFF_0000;

    /// What the guest's id 0 is on the node.
    pub const fn first(self) -> u32 {
        self.first
    }

    /// What an id of the guest is on the node; none when it has no such id.
    pub const fn outside(self, inside: u32) -> Option<u32> {
        if inside < Self::LEN { Some(self.first + inside) } else { None }
    }

    /// What an id of the node is in the guest; none when it is not the guest's.
    pub const fn inside(self, outside: u32) -> Option<u32> {
        match outside.checked_sub(self.first) {
            Some(inside) if inside < Self::LEN => Some(inside),
            _ => None,
        }
    }

    /// Every range, lowest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (Self::LOWEST..=Self::HIGHEST).step_by(Self::LEN as usize).map(|first| Self { first })
    }
}

impl TryFrom<u32> for IdRange {
    type Error = Invalid;
    fn try_from(first: u32) -> Result<Self, Invalid> {
        if (Self::LOWEST..=Self::HIGHEST).contains(&first) && first.is_multiple_of(Self::LEN) {
            return Ok(Self { first });
        }
        let expected = "a multiple of 65536 from 1073741824 to 1878982656";
        Err(Invalid::new("id range", &first.to_string(), expected))
    }
}

impl From<IdRange> for u32 {
    fn from(range: IdRange) -> u32 {
        range.first
    }
}

impl std::str::FromStr for IdRange {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        let invalid = |_| Invalid::new("id range", given, "the first id as a number");
        given.parse::<u32>().map_err(invalid)?.try_into()
    }
}

impl std::fmt::Display for IdRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_disjoint_and_all_are_valid() {
        let all: Vec<IdRange> = IdRange::all().collect();
        assert_eq!((all.len(), all[0].first(), all[12_287].first()), (12_288, IdRange::LOWEST, IdRange::HIGHEST));
        assert!(all.windows(2).all(|two| two[0].first() + IdRange::LEN == two[1].first()));
        assert!(all.iter().all(|range| range.to_string().parse() == Ok(*range)));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for bad in [0, 1000, 100_000, IdRange::LOWEST + 1, IdRange::HIGHEST + IdRange::LEN, u32::MAX] {
            assert!(IdRange::try_from(bad).is_err(), "{bad} was accepted");
        }
        assert!("-65536".parse::<IdRange>().is_err());
    }

    #[test]
    fn ids_go_in_and_out() {
        let range = IdRange::try_from(IdRange::LOWEST).unwrap();
        assert_eq!((range.outside(0), range.outside(65_535)), (Some(0x4000_0000), Some(0x4000_FFFF)));
        assert_eq!((range.outside(65_536), range.inside(0), range.inside(0x4001_0000)), (None, None, None));
        assert_eq!(range.inside(0x4000_002A), Some(42));
    }
}
