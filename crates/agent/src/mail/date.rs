//! Dates as messages have them (RFC 5322): `Wed, 25 Nov 2026 01:38:03 +0000`.

use std::time::{SystemTime, UNIX_EPOCH};

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Seconds since 1970; 0 where the clock stands before.
pub fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The hour of the clock, counted from 1970.
pub fn hour() -> i64 {
    i64::try_from(now_s() / 3600).unwrap_or_default()
}

/// The date of a second since 1970.
pub fn text(second: u64) -> String {
    let (day, rest) = (second / 86_400, second % 86_400);
    let (year, month, of_month) = civil(day);
    let name = |names: &[&'static str], at: u64| {
        usize::try_from(at).ok().and_then(|at| names.get(at).copied()).unwrap_or_default()
    };
    format!(
        "{}, {of_month} {} {year} {:02}:{:02}:{:02} +0000",
        name(&DAYS, day % 7),
        name(&MONTHS, month),
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

/// Year, month from 0, and day of the month from 1, of a day since 1970. Years begin in March here, so that what is
/// added in leap years is their last day.
fn civil(day: u64) -> (u64, u64, u64) {
    let day = day + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * from_march + 2) / 5 + 1;
    let month = (from_march + 2) % 12;
    (year_of_era + era * 400 + u64::from(month < 2), month, of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (second, date) in [
            (0, "Thu, 1 Jan 1970 00:00:00 +0000"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 +0000"),
            (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 +0000"),
            (1_795_571_883, "Wed, 25 Nov 2026 01:58:03 +0000"),
            (4_107_542_400, "Mon, 1 Mar 2100 00:00:00 +0000"),
        ] {
            assert_eq!(text(second), date);
        }
    }
}
