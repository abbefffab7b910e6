//! Size profiles: how much storage a guest may fill.

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
}
