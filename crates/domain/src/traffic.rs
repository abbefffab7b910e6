//! Over how long it is told what visitors asked for.

use crate::text::word_enum;

word_enum!(
    /// How far back numbers of visitors' requests go, and how fine they are.
    TrafficSpan, "span", {
        /// An hour, by minutes.
        Hour = "hour",
        /// A day, by quarters of an hour.
        Day = "day",
        /// A week, by two hours.
        Week = "week",
        /// Thirty days, by six hours.
        Month = "month",
    }
);

impl TrafficSpan {
    /// How long one point is, in seconds; the points of all begin at a multiple of it since 1970.
    pub const fn step_s(self) -> u32 {
        match self {
            Self::Hour => 60,
            Self::Day => 15 * 60,
            Self::Week => 2 * 3_600,
            Self::Month => 6 * 3_600,
        }
    }

    /// How many points there are.
    pub const fn points(self) -> u32 {
        match self {
            Self::Hour => 60,
            Self::Day => 96,
            Self::Week => 84,
            Self::Month => 120,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_points_make_up_the_span() {
        let long = |span: TrafficSpan| u64::from(span.step_s()) * u64::from(span.points());
        assert_eq!(TrafficSpan::ALL.iter().map(|span| long(*span) / 3_600).collect::<Vec<_>>(), [1, 24, 168, 720]);
    }
}
