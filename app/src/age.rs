//! How long ago, in the words of a person; the same on the server and in the browser.

/// `4 s`, `3 min`, `2 h 5 min`, `41 days`; nothing below zero.
pub fn span(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{minutes} min"),
        3_600..36_000 if minutes % 60 > 0 => format!("{hours} h {} min", minutes % 60),
        3_600..172_800 => format!("{hours} h"),
        _ => format!("{days} days"),
    }
}

/// `4 s ago`, or `now`.
pub fn ago(seconds: i64) -> String {
    if seconds < 1 { "now".to_owned() } else { format!("{} ago", span(seconds)) }
}

/// `0.84 s`, `12.3 s`, `3 min 5 s`: how long something took.
pub fn took(milliseconds: i64) -> String {
    let ms = milliseconds.max(0);
    match ms {
        0..10_000 => format!("{}.{:02} s", ms / 1_000, ms % 1_000 / 10),
        10_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
        _ => span(ms / 1_000),
    }
}

/// How long a step may say nothing before that is told, in seconds.
const SILENT: i64 = 60;

/// `no sign of life since 15:03:02 (75 s)`, or nothing while that is not worth a word.
pub fn silence(clock: &str, seconds: i64) -> String {
    let long = if seconds < 600 { format!("{seconds} s") } else { span(seconds) };
    if seconds < SILENT { String::new() } else { format!("no sign of life since {clock} ({long})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_told_after_a_minute() {
        assert_eq!(silence("15:03:02", 59), "");
        assert_eq!(silence("15:03:02", 75), "no sign of life since 15:03:02 (75 s)");
        assert_eq!(silence("15:03:02", 3_600), "no sign of life since 15:03:02 (1 h)");
    }

    #[test]
    fn words() {
        let cases = [
            (-3, "0 s"),
            (4, "4 s"),
            (60, "1 min"),
            (3_599, "59 min"),
            (3_600, "1 h"),
            (7_500, "2 h 5 min"),
            (86_400, "24 h"),
            (3_542_400, "41 days"),
        ];
        for (seconds, words) in cases {
            assert_eq!(span(seconds), words);
        }
        assert_eq!((ago(0), ago(4)), ("now".to_owned(), "4 s ago".to_owned()));
        assert_eq!((took(840), took(12_345), took(185_000)), ("0.84 s".into(), "12.3 s".into(), "3 min 5 s".into()));
    }
}
