//! What the file of a certificate must look like, as far as that can be told without a TLS library.
//!
//! Whether the key is the certificate's, and whether its algorithms are good enough, haproxy tells: see [`super::put`].
//! What is refused here would be more than a certificate to it, or to its admin socket: parameters, requests, a second
//! key, text between the blocks.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use corpus_protocol::MAX_CERTIFICATE;

const CERTIFICATE: &str = "CERTIFICATE";
/// PKCS #8, not encrypted.
const KEY: &str = "PRIVATE KEY";
/// RFC 7468 has lines of 64 characters; some tools write 76.
const MAX_LINE: usize = 76;
/// Longer chains are not made.
const MAX_CHAIN: usize = 10;

struct Block<'a> {
    label: &'a str,
    der: Vec<u8>,
}

/// Certificates, then one private key, and nothing else. Why not, tells no byte of it.
pub fn require(text: &str) -> Result<(), String> {
    read(text).map(drop)
}

/// The certificate itself, as DER.
pub fn leaf(text: &str) -> Result<Vec<u8>, String> {
    read(text)?.into_iter().next().map(|block| block.der).ok_or_else(|| "it is empty".to_owned())
}

/// The lines as one command of an admin socket takes them: an empty one would end it.
pub fn payload(text: &str) -> String {
    text.lines().filter(|line| !line.is_empty()).fold(String::with_capacity(text.len()), |mut lines, line| {
        lines.push_str(line);
        lines.push('\n');
        lines
    })
}

fn read(text: &str) -> Result<Vec<Block<'_>>, String> {
    if text.len() > MAX_CERTIFICATE {
        return Err(format!("it is larger than {} KiB", MAX_CERTIFICATE >> 10));
    }
    let blocks = blocks(text)?;
    let Some((key, chain)) = blocks.split_last() else { return Err("it is empty".into()) };
    if key.label != KEY || chain.iter().any(|block| block.label != CERTIFICATE) {
        return Err("it is not certificates and then one private key".into());
    }
    if !(1..=MAX_CHAIN).contains(&chain.len()) {
        return Err(format!("it has {} certificates, not 1 to {MAX_CHAIN}", chain.len()));
    }
    Ok(blocks)
}

fn blocks(text: &str) -> Result<Vec<Block<'_>>, String> {
    let mut lines = text.split('\n').zip(1_usize..);
    let mut blocks = Vec::new();
    while let Some((line, number)) = lines.next() {
        if line.is_empty() {
            continue;
        }
        let label = line.strip_prefix("-----BEGIN ").and_then(|rest| rest.strip_suffix("-----"));
        let label = label.ok_or_else(|| format!("line {number} begins no block of PEM"))?;
        let (mut body, mut end) = (String::new(), None);
        for (line, number) in lines.by_ref() {
            if line.starts_with('-') {
                end = line.strip_prefix("-----END ").and_then(|rest| rest.strip_suffix("-----"));
                break;
            }
            if !(1..=MAX_LINE).contains(&line.len()) {
                return Err(format!("line {number} is empty or too long"));
            }
            body.push_str(line);
        }
        let der = BASE64_STANDARD.decode(&body).ok().filter(|der| is_sequence(der));
        match der.filter(|_| end == Some(label)) {
            Some(der) => blocks.push(Block { label, der }),
            None => return Err(format!("the block that begins in line {number} is damaged")),
        }
    }
    Ok(blocks)
}

/// Whether this is one SEQUENCE of DER, to its last byte.
fn is_sequence(der: &[u8]) -> bool {
    let (length, rest) = match der {
        [0x30, short @ 0..=0x7f, rest @ ..] => (usize::from(*short), rest),
        [0x30, 0x81, one, rest @ ..] => (usize::from(*one), rest),
        [0x30, 0x82, high, low, rest @ ..] => (usize::from(u16::from_be_bytes([*high, *low])), rest),
        _ => return false,
    };
    rest.len() == length
}

#[cfg(test)]
pub(in crate::node) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn block(label: &str, byte: u8) -> String {
        let mut der = vec![0x30, 0x81, 200];
        der.extend([byte; 200]);
        let text = BASE64_STANDARD.encode(der);
        let lines: Vec<&str> = text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
    }

    /// A file that looks like one; all of its certificate is this byte.
    pub fn file(byte: u8) -> String {
        format!("{}\n{}{}", block(CERTIFICATE, byte), block(CERTIFICATE, 1), block(KEY, 2))
    }

    #[test]
    fn certificates_and_one_key_are_taken() {
        let file = file(7);
        require(&file).unwrap();
        require(file.trim_end()).unwrap();
        assert_eq!(leaf(&file).unwrap()[3], 7);
        let payload = payload(&file);
        assert!(!payload.contains("\n\n") && payload.ends_with("-----END PRIVATE KEY-----\n"));
        require(&payload).unwrap();
    }

    #[test]
    fn everything_else_is_refused_and_not_shown() {
        let (certificate, key, file) = (block(CERTIFICATE, 1), block(KEY, 2), file(1));
        for bad in [
            String::new(),
            "\n".into(),
            certificate.clone(),
            key.clone(),
            key.clone() + &certificate,
            certificate.clone() + &key + &key,
            certificate.clone() + &block("RSA PRIVATE KEY", 2),
            certificate.clone() + &block("ENCRYPTED PRIVATE KEY", 2),
            certificate.clone() + &block("DH PARAMETERS", 2) + &key,
            certificate.repeat(MAX_CHAIN + 1) + &key,
            format!("subject=/CN=secret\n{file}"),
            file.clone() + "secret",
            file.replace('\n', "\r\n"),
            file.replacen("-----END", "\n-----END", 1),
            file.replacen("END CERTIFICATE", "END X", 1),
            file.replacen("MI", "MA", 1),
            file.replacen("MI", "é", 1),
            file.replace("-----END PRIVATE KEY-----\n", ""),
            file.trim_end().trim_end_matches('-').to_owned(),
            file.repeat(2),
            certificate.repeat(9) + &"\n".repeat(MAX_CERTIFICATE) + &key,
        ] {
            let why = require(&bad).unwrap_err();
            assert!(why.len() < 80 && !why.contains("secret") && !why.contains("MI"), "{why}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_taken_is_lines_of_pem(text in "(-----(BEGIN|END) (CERTIFICATE|PRIVATE KEY)-----\n|MA==\n|MAA=\n|\n|.){0,12}") {
            if require(&text).is_ok() {
                let plain = |b: u8| b.is_ascii_alphanumeric() || b"+/=- \n".contains(&b);
                prop_assert!(text.bytes().all(plain) && text.matches("PRIVATE KEY").count() == 2);
            }
        }
    }
}
