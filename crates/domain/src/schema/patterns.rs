//! Regular expressions of names and addresses.
//!
//! They are for any reader of JSON Schema: no lookahead, since generators of test data take none.

use std::collections::{BTreeMap, BTreeSet};

/// A number from 0 to 255.
const OCTET: &str = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
/// Sixteen bits of an IPv6 address.
const GROUP: &str = "[0-9A-Fa-f]{1,4}";
const PORT: &str = "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])";

/// A label that begins with `first`; so many characters, hyphens too, stand before its last one.
fn label(first: &str, inner: &str) -> String {
    format!("{first}([A-Za-z0-9-]{inner}[A-Za-z0-9])?")
}

/// A host name with a dot whose last label is not all digits. For names of at most 63 characters:
/// what is part of one is no longer than a label may be.
pub(crate) fn short_name() -> String {
    let (label, lettered) = (label("[A-Za-z0-9]", "*"), label("[0-9]*[A-Za-z]", "*"));
    format!(r"^({label}\.)+({lettered}|[0-9]+-[A-Za-z0-9-]*[A-Za-z0-9])$")
}

/// A host name of any length with so many labels before the last, which is not all digits. It has
/// at most 20 digits before its first letter or hyphen: their number and what may follow can't both vary.
fn name(labels: &str) -> String {
    let (before, last) = (label("[A-Za-z0-9]", "{0,61}"), label("[A-Za-z]", "{0,61}"));
    let after_digits = format!("{}|-[A-Za-z0-9-]{{0,41}}[A-Za-z0-9]", label("[A-Za-z]", "{0,41}"));
    format!(r"({before}\.){labels}({last}|[0-9]{{1,20}}({after_digits}))")
}

/// A host name.
pub(crate) fn host_name() -> String {
    format!("^{}$", name("*"))
}

/// A host name with a dot.
pub(crate) fn full_name() -> String {
    format!("^{}$", name("+"))
}

/// The same, or `*.` before it.
pub(crate) fn certified_name() -> String {
    format!(r"^(\*\.)?{}$", name("+"))
}

/// A host name or an IP address, one of IPv6 without brackets.
pub(crate) fn address() -> String {
    format!("^({}|{}|{})$", name("*"), ipv4(), ipv6())
}

fn ipv4() -> String {
    format!(r"({OCTET}\.){{3}}{OCTET}")
}

/// Eight groups, or fewer around `::`, which stands for one at least; IPv4 in the end only where it is shown so.
fn ipv6() -> String {
    let rest = |most: usize| match most {
        0 => String::new(),
        1 => format!("({GROUP})?"),
        _ => format!("({GROUP}(:{GROUP}){{0,{}}})?", most - 1),
    };
    let shortened = (1..=7).map(|groups| format!("({GROUP}:){{{groups}}}:{}", rest(7 - groups)));
    let shortened = shortened.collect::<Vec<_>>().join("|");
    format!("(({GROUP}:){{7}}{GROUP}|{shortened}|::{}|::[Ff]{{4}}:{})", rest(7), ipv4())
}

/// The numbers from 0 to 255 that fit.
fn octet(fits: impl Fn(u8) -> bool) -> String {
    format!("({})", numbers((0..=255).filter(|number| fits(*number))))
}

/// The numbers, one or another: those that share their last digits are what stands before, then these.
fn numbers(all: impl Iterator<Item = u8>) -> String {
    let mut digits: BTreeMap<u8, String> = BTreeMap::new();
    for number in all {
        digits.entry(number / 10).or_default().push(char::from(b'0' + number % 10));
    }
    let mut heads: BTreeMap<String, BTreeSet<u8>> = BTreeMap::new();
    for (head, digits) in digits {
        heads.entry(digits).or_default().insert(head);
    }
    heads.into_iter().map(|(digits, heads)| before(heads) + &class(&digits)).collect::<Vec<_>>().join("|")
}

/// What stands before last digits; 0 is nothing.
fn before(mut heads: BTreeSet<u8>) -> String {
    let optional = if heads.remove(&0) { "?" } else { "" };
    match heads.len() {
        0 => String::new(),
        1 if optional.is_empty() => numbers(heads.into_iter()),
        _ => format!("({}){optional}", numbers(heads.into_iter())),
    }
}

/// One of the digits, which are in order.
fn class(digits: &str) -> String {
    match digits.as_bytes() {
        [_] => digits.to_owned(),
        [first, .., last] if "0123456789".contains(digits) => format!("[{}-{}]", char::from(*first), char::from(*last)),
        _ => format!("[{digits}]"),
    }
}

/// An IPv4 address, or one and a prefix after which all its bits are zero.
fn network() -> String {
    let prefixed = |(before, zeros): (usize, &str)| {
        let ended = (1..=8).map(|bits: usize| {
            let last = octet(|last| last.trailing_zeros() as usize + bits >= 8);
            format!("{last}{zeros}/{}", before * 8 + bits)
        });
        format!(r"{}({})", format!(r"{OCTET}\.").repeat(before), ended.collect::<Vec<_>>().join("|"))
    };
    let zeros = [r"(\.0){3}", r"(\.0){2}", r"\.0", ""];
    let networks: Vec<String> = zeros.into_iter().enumerate().map(prefixed).collect();
    format!(r"({}|0\.0\.0\.0/0|{})", ipv4(), networks.join("|"))
}

/// An IPv4 network.
pub(crate) fn ipv4_network() -> String {
    format!("^{}$", network())
}

/// An IP address, or a network of IPv6 of 64 bits.
pub(crate) fn source_address() -> String {
    format!("^({}|{}|({GROUP}:){{1,4}}:/64|::/64)$", ipv4(), ipv6())
}

/// An IPv4 network, and a port of it perhaps.
pub(crate) fn egress_rule() -> String {
    format!("^{}(:{PORT}(/(tcp|udp))?)?$", network())
}

/// A path of names, none of which is `.` or `..`.
pub(crate) fn file_path() -> String {
    let (any, no_dot) = (r"[^/\x00-\x1f\x7f-\x9f]", r"[^/.\x00-\x1f\x7f-\x9f]");
    let name = format!(r"({no_dot}{any}*|\.{no_dot}{any}*|\.\.{any}+)");
    format!("^/({name}(/{name})*/?)?$")
}

/// A port, or the first and the last of a range.
pub(crate) fn port_range() -> String {
    format!("^{PORT}(-{PORT})?$")
}

/// Who a rule of a firewall lets in: a guest by its name, an environment, a named network, addresses, or anybody.
pub(crate) fn rule_source() -> String {
    let guest = short_name();
    let guest = guest.trim_start_matches('^').trim_end_matches('$');
    let label = "[a-z]([a-z0-9-]{0,38}[a-z0-9])?";
    format!("^(anywhere|{}|guest:{guest}|environment:(dev|staging|prod)|network:{label})$", network())
}

/// A private address and a prefix. That it is not the network's own address nor its broadcast is told
/// by its last number alone: not 0 nor 255, and beyond /24 not the first nor the last of a /28.
pub(crate) fn guest_network() -> String {
    let (large, small) = (octet(|last| last != 0 && last != 255), octet(|last| (1..15).contains(&(last % 16))));
    let private = format!(r"(10\.{OCTET}|172\.(1[6-9]|2[0-9]|3[01])|192\.168)\.{OCTET}");
    format!(r"^{private}\.({large}/([89]|1[0-9]|2[0-4])|{small}/2[5-8])$")
}
