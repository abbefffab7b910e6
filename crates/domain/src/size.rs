//! Size profiles: how much storage a guest may fill. What else it may take is in `limits.rs`.

use crate::bytes::Bytes;
use crate::text::word_enum;

word_enum!(
    /// A size profile of the design.
    SizeProfile, "size profile", {
        /// 500 MB.
        Xxxsmall = "xxxsmall",
        /// 1 GB.
        Xxsmall = "xxsmall",
        /// 3 GB.
        Xsmall = "xsmall",
        /// 5 GB.
        Small = "small",
        /// 10 GB.
        Medium = "medium",
        /// 20 GB.
        Large = "large",
        /// 100 GB.
        Xxxlarge = "xxxlarge",
        /// 500 GB.
        Xtrem = "xtrem",
        /// 1000 GB.
        Xxtrem = "xxtrem",
        /// 2000 GB.
        Xxxtrem = "xxxtrem",
    }
);

impl SizeProfile {
    /// What a guest has where neither its request nor a profile says anything.
    pub const USUAL: Self = Self::Small;

    /// The storage of the profile, in units of 10^9 bytes as disks are sold.
    pub const fn storage(self) -> Bytes {
        Bytes(
            1_000_000
                * match self {
                    Self::Xxxsmall => 500,
                    Self::Xxsmall => 1_000,
                    Self::Xsmall => 3_000,
                    Self::Small => 5_000,
                    Self::Medium => 10_000,
                    Self::Large => 20_000,
                    Self::Xxxlarge => 100_000,
                    Self::Xtrem => 500_000,
                    Self::Xxtrem => 1_000_000,
                    Self::Xxxtrem => 2_000_000,
                },
        )
    }

    /// The smallest profile that is larger than this one and has `needed` bytes at least; none when
    /// even the largest has not.
    pub fn next_with(self, needed: Bytes) -> Option<Self> {
        Self::larger_than(self).find(|size| size.storage() >= needed)
    }

    /// The profiles that are larger than this one, from small to large.
    pub fn larger_than(self) -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(move |size| size.storage() > self.storage())
    }

    /// The profiles that are smaller than this one, from small to large.
    pub fn smaller_than(self) -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(move |size| size.storage() < self.storage())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_listed_from_small_to_large() {
        assert!(SizeProfile::ALL.windows(2).all(|pair| pair[0].storage() < pair[1].storage()));
        let largest: Vec<_> = SizeProfile::Xtrem.larger_than().collect();
        assert_eq!(largest, [SizeProfile::Xxtrem, SizeProfile::Xxxtrem]);
        let smallest: Vec<_> = SizeProfile::Xsmall.smaller_than().collect();
        assert_eq!(smallest, [SizeProfile::Xxxsmall, SizeProfile::Xxsmall]);
    }

    #[test]
    fn the_next_profile_is_larger_and_just_large_enough() {
        let small = SizeProfile::Small;
        for (needed, next) in [
            (0, Some(SizeProfile::Medium)),
            (4_000_000_000, Some(SizeProfile::Medium)),
            (10_000_000_000, Some(SizeProfile::Medium)),
            (10_000_000_001, Some(SizeProfile::Large)),
            (2_000_000_000_000, Some(SizeProfile::Xxxtrem)),
            (2_000_000_000_001, None),
        ] {
            assert_eq!(small.next_with(Bytes(needed)), next, "{needed}");
        }
        assert_eq!(SizeProfile::Xxxtrem.next_with(Bytes(1)), None);
    }
}
