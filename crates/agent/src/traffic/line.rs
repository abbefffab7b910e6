//! A request as haproxy writes it, and what of it is believed.
//!
//! Fields are numbers, names of the plan, haproxy's own words, and hex for what a visitor chose: none can hold a `|`, so
//! no visitor writes a field, or a line. A datagram is a line, whatever is in it.

use std::net::IpAddr;

use corpus_domain::is_harmful;
use corpus_protocol::{ACCESS_CAUSE, ACCESS_METHOD, ACCESS_PATH, AccessLine, AddressDetail, Millis, RoutedName};

use super::address;

/// haproxy's `log-format`: its process and how many lines that has told before, the name that it routed by (one, or the
/// one that others are right below), method and path, status, bytes from and to the visitor, milliseconds (the head, the
/// queue, the connection, the answer's head, all), how it ended, who it was. Of a path so much as is told, as bytes.
pub const FORMAT: &str = "corpus1|%pid|%lc|%[var(txn.site)]|%[var(txn.below)]|%[var(txn.method),bytes(0,16),hex]|\
                          %[var(txn.path),bytes(0,200),hex]|%ST|%U|%B|%TR|%Tw|%Tc|%Tr|%Ta|%ts|%ci";
/// The longest datagram: two names, 400 digits of a path, and numbers.
pub const LONGEST: usize = 2048;
const BEGIN: &str = "corpus1";
const FIELDS: usize = 17;

/// A request that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// The process of haproxy.
    pub process: u32,
    /// How many lines that process had told before.
    pub number: u64,
    /// What it was routed by; nothing where there is no such site, and for what is no request.
    pub name: Option<RoutedName>,
    /// Its status; 0 when its visitor gave it up before there was an answer.
    pub status: u16,
    /// From the visitor.
    pub bytes_in: u64,
    /// To the visitor.
    pub bytes_out: u64,
    /// As [`AccessLine::took_ms`].
    pub took_ms: u64,
    method: &'a str,
    path: &'a str,
    cause: &'a str,
    from: &'a str,
}

impl<'a> Line<'a> {
    /// From a datagram, if it is one.
    pub fn read(datagram: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(datagram).ok()?.trim_end();
        let fields: Vec<&str> = text.split('|').collect();
        let [begin, process, number, site, below, method, path, rest @ ..] = fields.as_slice() else { return None };
        let [status, bytes_in, bytes_out, head, queue, connect, answer, all, cause, from] = rest else { return None };
        if fields.len() != FIELDS || *begin != BEGIN {
            return None;
        }
        let number_of = |text: &str| text.parse::<i64>().ok();
        let bytes = |text: &str| number_of(text).map(|count| u64::try_from(count).unwrap_or(0));
        Some(Self {
            process: process.parse().ok()?,
            number: number.parse().ok()?,
            name: routed(site, below),
            status: status_of(number_of(status)?, cause),
            bytes_in: bytes(bytes_in)?,
            bytes_out: bytes(bytes_out)?,
            took_ms: took([
                number_of(head)?,
                number_of(queue)?,
                number_of(connect)?,
                number_of(answer)?,
                number_of(all)?,
            ]),
            method: *method,
            path: *path,
            cause: *cause,
            from: *from,
        })
    }

    /// Its method.
    pub fn method(&self) -> String {
        text(self.method, ACCESS_METHOD)
    }

    /// Its path, without what a query or a fragment would begin with.
    pub fn path(&self) -> String {
        let mut path = text(self.path, ACCESS_PATH);
        path.truncate(path.find(['?', '#']).unwrap_or(path.len()));
        path
    }

    /// How it ended.
    pub fn cause(&self) -> String {
        self.cause.chars().filter(char::is_ascii_graphic).take(ACCESS_CAUSE).collect()
    }

    /// As who follows is told of it.
    pub fn told(&self, name: &RoutedName, at_ms: Millis, addresses: AddressDetail) -> AccessLine {
        AccessLine {
            at_ms,
            name: name.clone(),
            method: self.method(),
            path: self.path(),
            status: self.status,
            bytes_out: self.bytes_out,
            took_ms: self.took_ms,
            from: self.from.parse::<IpAddr>().ok().and_then(|ip| address::shown(ip, addresses)),
            cause: self.cause(),
        }
    }
}

fn routed(site: &str, below: &str) -> Option<RoutedName> {
    let name = |text: &str| text.parse().ok();
    match name(site) {
        Some(name) => Some(RoutedName { name, wildcard: false }),
        None => Some(RoutedName { name: name(below)?, wildcard: true }),
    }
}

/// haproxy gives one that its visitor gave up (`C`, or `c` when it was silent) in the request, the queue, the connection or
/// before the answer's head a status of its own, or none.
fn status_of(code: i64, cause: &str) -> u16 {
    let mut letters = cause.chars();
    let visitor = letters.next().is_some_and(|who| who.eq_ignore_ascii_case(&'c'));
    let early = letters.next().is_some_and(|when| "RQCH".contains(when));
    let known = u16::try_from(code).ok().filter(|code| (100..=599).contains(code) && !(visitor && early));
    known.unwrap_or_default()
}

/// A time that did not come to be is -1.
fn took([head, queue, connect, answer, all]: [i64; 5]) -> u64 {
    let ms = if answer < 0 {
        all.max(0).saturating_sub(head.max(0))
    } else {
        queue.max(0).saturating_add(connect.max(0)).saturating_add(answer)
    };
    ms.try_into().unwrap_or(0)
}

/// What a visitor wrote, so that it only stands where it is shown: at most so many bytes of UTF-8.
fn text(hex: &str, longest: usize) -> String {
    let digit = |digit: &u8| char::from(*digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    let (pairs, _) = hex.as_bytes().as_chunks::<2>();
    let bytes: Vec<u8> = pairs.iter().map_while(|[high, low]| Some(digit(high)? * 16 + digit(low)?)).collect();
    let mut shown = String::new();
    for c in String::from_utf8_lossy(&bytes).chars() {
        let before = shown.len();
        if is_harmful(c) || c == '\t' || c == '\n' {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
        if shown.len() > longest {
            shown.truncate(before);
            break;
        }
    }
    shown
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A line of haproxy 2.6 about `GET PATH` for a name.
    pub fn line(number: u64, name: &str, path: &str, status: i64, cause: &str) -> String {
        let hex: String = path.bytes().map(|byte| format!("{byte:02X}")).collect();
        format!("corpus1|4711|{number}|{name}||474554|{hex}|{status}|80|1200|0|1|2|30|40|{cause}|::ffff:192.0.2.77\n")
    }

    fn read(text: &str) -> Option<Line<'_>> {
        Line::read(text.as_bytes())
    }

    #[test]
    fn a_line_of_haproxy() {
        let text = line(7, "www.example.org", "/a b", 200, "--");
        let line = read(&text).unwrap();
        let name = line.name.clone().unwrap();
        assert_eq!((line.process, line.number, line.bytes_in, line.bytes_out), (4711, 7, 80, 1200));
        let told = line.told(&name, 5, AddressDetail::Cut);
        assert_eq!((told.method.as_str(), told.path.as_str(), told.status, told.took_ms), ("GET", "/a b", 200, 33));
        assert_eq!((told.from.as_deref(), told.cause.as_str()), (Some("192.0.2.0/24"), "--"));
        assert_eq!((name.name.as_str(), name.wildcard), ("www.example.org", false));
        let below = text.replace("www.example.org||", "|example.org|");
        assert!(read(&below).unwrap().name.unwrap().wildcard);
        for none in ["||", "-|-|", "No Name||"] {
            assert_eq!(read(&text.replace("www.example.org||", none)).unwrap().name, None, "{none}");
        }
    }

    #[test]
    fn what_is_no_line_is_none() {
        let text = line(7, "www.example.org", "/", 200, "--");
        assert!(read(&text).is_some());
        for other in
            ["", "corpus1", "Proxy http started.\n", &text.replace("|40|", "|40|40|"), &text.replace("|--", "")]
        {
            assert_eq!(read(other), None, "{other}");
        }
        assert_eq!(Line::read(&[0xff; 40]), None);
        assert_eq!(read(&text.replacen("corpus1", "corpus2", 1)), None);
    }

    #[test]
    fn what_visitors_write_only_stands_there() {
        let of = |path: &str| read(&line(1, "a.example.org", path, 200, "--")).unwrap().path();
        assert_eq!(of("/a\n\u{1b}[2J\u{202e}b"), "/a\\u{a}\\u{1b}[2J\\u{202e}b");
        assert_eq!(of("/x?token=1"), "/x");
        assert_eq!(of("/x#token"), "/x");
        assert_eq!(of(&format!("/{}", "é".repeat(200))).len(), 199);
        assert!(of(&"\u{1b}".repeat(200)).len() <= ACCESS_PATH);
        assert_eq!(text("2FC3", 200), "/\u{fffd}");
        assert_eq!(
            (text("", 9), text("2f", 9), text("2F6", 9), text("zz", 9)),
            (String::new(), "/".into(), "/".into(), String::new())
        );
    }

    #[test]
    fn one_that_was_given_up_has_no_status() {
        for (status, cause, told) in [
            (200, "--", 200),
            (503, "SC", 503),
            (504, "sH", 504),
            (308, "LR", 308),
            (429, "PR", 429),
            (200, "CD", 200),
            (400, "CH", 0),
            (408, "cR", 0),
            (-1, "CH", 0),
            (999, "--", 0),
        ] {
            assert_eq!(status_of(status, cause), told, "{status} {cause}");
        }
    }

    #[test]
    fn what_a_visitor_takes_to_fetch_is_not_the_sites_time() {
        assert_eq!(took([5, 1, 2, 30, 90_000]), 33);
        assert_eq!(took([5, -1, -1, -1, 6]), 1);
        assert_eq!(took([2, 0, 1, -1, 300_003]), 300_001);
        assert_eq!(took([-1, -1, -1, -1, -1]), 0);
    }

    proptest! {
        #[test]
        fn nothing_breaks_it(bytes: Vec<u8>, path in ".{0,300}") {
            let _ = Line::read(&bytes);
            let text = line(1, "a.example.org", &path, 200, "--");
            let line = read(&text).unwrap();
            prop_assert!(line.path().len() <= ACCESS_PATH && !line.path().contains(is_harmful));
            prop_assert!(line.name.is_some_and(|name| name.name.as_str() == "a.example.org"));
        }
    }
}
