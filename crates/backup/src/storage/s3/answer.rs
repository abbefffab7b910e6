//! What an S3 server answers, as far as it is of interest: its errors, and the names of objects.

use rusty_s3::actions::ListObjectsV2;
use serde::Deserialize;

/// As much of a server's own words gets into an error.
const MAX_SAID: usize = 300;

/// A part of the names that there are.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Listing {
    /// Names and sizes.
    pub objects: Vec<(String, u64)>,
    /// Where the next part begins.
    pub next: Option<String>,
}

/// Reads a part of a list of objects; or says what is no such list.
pub(super) fn listing(body: &[u8]) -> Result<Listing, String> {
    let body = String::from_utf8_lossy(body);
    let read = ListObjectsV2::parse_response(&body);
    let read = read.map_err(|error| format!("what is no list of objects: {}", said(&error.to_string())))?;
    // The crate takes one that breaks off for a shorter one, and who prunes by that removes what is in use.
    if !body.trim_end().ends_with("ListBucketResult>") {
        return Err("a list of objects that breaks off".to_owned());
    }
    let sized = read.contents.into_iter().map(|object| Some((object.key, object.size?)));
    let objects = sized.collect::<Option<_>>().ok_or("a list of objects without their sizes")?;
    Ok(Listing { objects, next: read.next_continuation_token })
}

/// What a server says of an error.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Error {
    code: String,
    message: String,
}

/// The code of an error, and what there is to say of it; nothing where it is told in another way.
pub(super) fn error(body: &str) -> (String, String) {
    let Error { code, message } = quick_xml::de::from_str(body).unwrap_or_default();
    (said(&code), said(&message))
}

/// As a terminal may show it.
fn said(text: &str) -> String {
    text.chars().filter(|one| !one.is_control()).take(MAX_SAID).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(inner: &str) -> String {
        let start = r#"<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">"#;
        format!("{start}<Name>b</Name>{inner}</ListBucketResult>\n")
    }

    #[test]
    fn lists_are_read() {
        let body = list(
            r"<Prefix>p/</Prefix><IsTruncated>true</IsTruncated><EncodingType>url</EncodingType>
            <NextContinuationToken>a&amp;b/&#x3d;</NextContinuationToken>
            <Contents><Key>p/data%2Fab/cd</Key><ETag>&quot;1&quot;</ETag><Size>12</Size></Contents>
            <Contents><Owner><ID/><DisplayName/></Owner><Key>p/x+&lt;y</Key><Size>0</Size></Contents>",
        );
        let read = listing(body.as_bytes()).unwrap();
        assert_eq!(read.objects, [("p/data/ab/cd".to_owned(), 12), ("p/x <y".to_owned(), 0)]);
        assert_eq!(read.next.as_deref(), Some("a&b/="));
        for length in 0..body.trim_end().len() {
            listing(&body.as_bytes()[..length]).unwrap_err();
        }
        let empty = list("<IsTruncated>false</IsTruncated><NextContinuationToken>x</NextContinuationToken>");
        assert_eq!(listing(empty.as_bytes()).unwrap(), Listing::default());
    }

    #[test]
    fn what_is_no_list_is_said() {
        for (wrong, why) in [
            ("<html><body>hello</body></html>", "no list of objects: "),
            ("<Error><Code>\u{1b}</Code></Error>", "no list of objects: "),
            ("", "no list of objects: "),
            (&list("<a>&unknown;</a>"), "invalid entity: unknown"),
            (&list("<IsTruncated>true</IsTruncated>"), "next_continuation_token"),
            (&list("<Contents><Key>a</Key></Contents>"), "without their sizes"),
        ] {
            let error = listing(wrong.as_bytes()).unwrap_err();
            assert!(error.contains(why) && !error.contains('\u{1b}'), "{wrong}: {error}");
        }
    }

    #[test]
    fn errors_are_read() {
        let body = "<?xml version='1.0'?><Error xmlns='x'><Code>NoSuchBucket</Code><Message>&lt;none&#x3e;\u{1b}[1m\
                    </Message><Key>Code</Key><Inner><Code>Other</Code></Inner></Error>";
        assert_eq!(error(body), ("NoSuchBucket".to_owned(), "<none>[1m".to_owned()));
        assert_eq!(error("<Error><Code>A</Code><Message/></Error>"), ("A".to_owned(), String::new()));
        for other in ["no XML", "", "<!DOCTYPE html><html><meta a=b><body>busy</body></html>", "<Error><Code>A"] {
            assert_eq!(error(other), (String::new(), String::new()), "{other}");
        }
        let long = "x".repeat(1000);
        assert_eq!(error(&format!("<Error><Code>{long}</Code></Error>")).0.len(), MAX_SAID);
    }
}
