//! How requests to an S3 server are signed: version 4 of AWS' signatures, in headers.
//!
//! What is signed are the method, the path, the query, the time and the hash of the content: nobody on the way can make
//! another request of it, and the server finds out a content that was changed.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const SERVICE: &str = "s3";

/// Who signs, and for which region.
#[derive(Clone, Copy)]
pub(super) struct Signer<'a> {
    pub key_id: &'a str,
    pub secret: &'a SecretString,
    pub region: &'a str,
}

/// What of a request is signed.
pub(super) struct Request<'a> {
    pub method: &'a str,
    /// Encoded.
    pub path: &'a str,
    /// Encoded, in the order of names; may be empty.
    pub query: &'a str,
    /// The headers that are signed, by their names in small letters and in their order; `host` is one of them.
    pub headers: &'a [(&'a str, &'a str)],
    /// The [hash](hex_sha256) of the content.
    pub content: &'a str,
}

/// A time as signatures have it.
pub(super) fn time(at: DateTime<Utc>) -> String {
    at.format("%Y%m%dT%H%M%SZ").to_string()
}

/// SHA-256 of all parts together, in hexadecimal digits.
pub(super) fn hex_sha256<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = Sha256::new();
    parts.into_iter().for_each(|part| hasher.update(part));
    hex(&hasher.finalize())
}

/// The header `Authorization` of a request at this time.
pub(super) fn authorization(signer: Signer<'_>, request: &Request<'_>, at: DateTime<Utc>) -> String {
    let scope = format!("{}/{}/{SERVICE}/aws4_request", at.format("%Y%m%d"), signer.region);
    let names: Vec<&str> = request.headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let canonical = canonical(request, &names);
    let to_sign = format!("{ALGORITHM}\n{}\n{scope}\n{}", time(at), hex_sha256([canonical.as_bytes()]));
    let first = format!("AWS4{}", signer.secret.expose_secret());
    let key = scope.split('/').fold(first.into_bytes(), |key, part| mac(&key, part));
    let signature = hex(&mac(&key, &to_sign));
    format!("{ALGORITHM} Credential={}/{scope}, SignedHeaders={names}, Signature={signature}", signer.key_id)
}

/// The request as both sides write it down.
fn canonical(request: &Request<'_>, names: &str) -> String {
    let Request { method, path, query, headers, content } = request;
    let mut text = format!("{method}\n{path}\n{query}\n");
    for (name, value) in *headers {
        let _ = writeln!(text, "{name}:{}", value.trim());
    }
    let _ = write!(text, "\n{names}\n{content}");
    text
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    // A key of any length is taken.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return Vec::new() };
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    /// The examples of AWS' documentation, "Authenticating Requests: Using the Authorization Header".
    #[test]
    fn signatures_are_those_of_the_documentation() {
        type Case<'a> = (&'a str, &'a str, &'a str, &'a [(&'a str, &'a str)], &'a str, &'a str);
        let secret = SecretString::from("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
        let signer = Signer { key_id: "AKIAIOSFODNN7EXAMPLE", secret: &secret, region: "us-east-1" };
        let at = "2013-05-24T00:00:00Z".parse().unwrap();
        let host = ("host", "examplebucket.s3.amazonaws.com");
        let (date, empty) = (("x-amz-date", "20130524T000000Z"), ("x-amz-content-sha256", EMPTY));
        let put = hex_sha256([b"Welcome to ".as_slice(), b"Amazon S3."]);
        assert_eq!(put, "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072");
        let put_headers = [
            ("date", "Fri, 24 May 2013 00:00:00 GMT"),
            host,
            ("x-amz-content-sha256", put.as_str()),
            date,
            ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ];
        let cases: [Case<'_>; 4] = [
            (
                "GET",
                "/test.txt",
                "",
                &[host, ("range", "bytes=0-9"), empty, date],
                EMPTY,
                "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
            ),
            (
                "PUT",
                "/test%24file.text",
                "",
                &put_headers,
                &put,
                "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
            ),
            (
                "GET",
                "/",
                "lifecycle=",
                &[host, empty, date],
                EMPTY,
                "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
            ),
            (
                "GET",
                "/",
                "max-keys=2&prefix=J",
                &[host, empty, date],
                EMPTY,
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
            ),
        ];
        for (method, path, query, headers, content, wanted) in cases {
            let made = authorization(signer, &Request { method, path, query, headers, content }, at);
            assert!(made.ends_with(&format!("Signature={wanted}")), "{method} {path}?{query}: {made}");
            assert!(made.starts_with(
                "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders="
            ));
        }
    }
}
