//! PEM as it is written to nodes: blocks of 64 characters a line, and nothing between them.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// A block.
pub(crate) fn block(label: &str, der: &[u8]) -> String {
    let mut text = format!("-----BEGIN {label}-----\n");
    for (at, c) in BASE64_STANDARD.encode(der).chars().enumerate() {
        if at > 0 && at % 64 == 0 {
            text.push('\n');
        }
        text.push(c);
    }
    text.push_str("\n-----END ");
    text.push_str(label);
    text.push_str("-----\n");
    text
}

/// A key in the form of its own kind as PKCS #8 (RFC 5958): version 0, the algorithm of the certificate's key, and the
/// key. None when the public key is not as it should be.
pub(crate) fn as_pkcs8(key: &[u8], public_key_info: &[u8]) -> Option<Vec<u8>> {
    let inside = contents(0x30, public_key_info)?;
    let algorithm = inside.get(..inside.len().checked_sub(after(0x30, inside)?.len())?)?;
    let mut body = vec![0x02, 0x01, 0x00];
    body.extend_from_slice(algorithm);
    body.extend(value(0x04, key)?);
    value(0x30, &body)
}

/// What is in the first value of DER, and what is after it.
fn split(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = match der {
        [first, short @ 0..=0x7f, rest @ ..] if *first == tag => (usize::from(*short), rest),
        [first, 0x81, one, rest @ ..] if *first == tag => (usize::from(*one), rest),
        [first, 0x82, high, low, rest @ ..] if *first == tag => (usize::from(u16::from_be_bytes([*high, *low])), rest),
        _ => return None,
    };
    rest.split_at_checked(length)
}

fn contents(tag: u8, der: &[u8]) -> Option<&[u8]> {
    split(tag, der).map(|(inside, _)| inside)
}

fn after(tag: u8, der: &[u8]) -> Option<&[u8]> {
    split(tag, der).map(|(_, rest)| rest)
}

fn value(tag: u8, inside: &[u8]) -> Option<Vec<u8>> {
    let mut der = vec![tag];
    match u16::try_from(inside.len()).ok()?.to_be_bytes() {
        [0, short @ 0..=0x7f] => der.push(short),
        [0, one] => der.extend([0x81, one]),
        [high, low] => der.extend([0x82, high, low]),
    }
    der.extend_from_slice(inside);
    Some(der)
}
