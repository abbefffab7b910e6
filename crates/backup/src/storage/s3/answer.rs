//! What an S3 server answers, as far as it is of interest: its errors, and the names of objects.

use quick_xml::Reader;
use quick_xml::events::Event;

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
pub(super) fn listing(body: &str) -> Result<Listing, String> {
    let (mut listing, mut key) = (Listing::default(), None);
    let (mut is_list, mut truncated, mut next) = (false, false, None);
    each_text(body, |path, text| {
        let ["ListBucketResult", inner @ ..] = path else { return };
        is_list = true;
        match inner {
            ["Contents", "Key"] => key = Some(text),
            ["Contents", "Size"] => {
                if let (Some(key), Ok(size)) = (key.take(), text.parse()) {
                    listing.objects.push((key, size));
                }
            }
            ["IsTruncated"] => truncated = text == "true",
            ["NextContinuationToken"] => next = Some(text),
            _ => {}
        }
    })?;
    if !is_list {
        return Err("what it says is no list of objects".to_owned());
    }
    if truncated && next.is_none() {
        return Err("it does not say how its list goes on".to_owned());
    }
    listing.next = next.filter(|_| truncated);
    Ok(listing)
}

/// The code of an error, and what there is to say of it.
pub(super) fn error(body: &str) -> (String, String) {
    let (mut code, mut message) = (String::new(), String::new());
    // What could be read of it is of use.
    let _ = each_text(body, |path, text| match path {
        ["Error", "Code"] => code = text,
        ["Error", "Message"] => message = text,
        _ => {}
    });
    (said(&code), said(&message))
}

/// As a terminal may show it.
fn said(text: &str) -> String {
    text.chars().filter(|one| !one.is_control()).take(MAX_SAID).collect()
}

/// Hands on each text with the names of the elements that it is in. Elements without text have none.
fn each_text(body: &str, mut take: impl FnMut(&[&str], String)) -> Result<(), String> {
    let mut reader = Reader::from_str(body);
    let (mut path, mut text) = (Vec::<String>::new(), String::new());
    let wrong = || "its answer is no XML".to_owned();
    loop {
        match reader.read_event().map_err(|_| wrong())? {
            Event::Start(start) => {
                path.push(start.local_name().as_ref().to_owned());
                text.clear();
            }
            Event::Text(more) => text.push_str(&more),
            Event::GeneralRef(name) => text.push_str(&entity(&name).ok_or_else(wrong)?),
            Event::End(_) => {
                let names: Vec<&str> = path.iter().map(String::as_str).collect();
                take(&names, std::mem::take(&mut text));
                path.pop();
            }
            Event::Eof if path.is_empty() => return Ok(()),
            Event::Eof => return Err("its answer breaks off".to_owned()),
            _ => {}
        }
    }
}

fn entity(name: &str) -> Option<String> {
    let number = |text: &str, radix| u32::from_str_radix(text, radix).ok().and_then(char::from_u32);
    let one = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        _ => match name.strip_prefix("#x") {
            Some(digits) => number(digits, 16)?,
            None => number(name.strip_prefix('#')?, 10)?,
        },
    };
    Some(one.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_answer_is_read() {
        let body = r#"<?xml version="1.0"?>
            <ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><Prefix>p/</Prefix>
            <IsTruncated>true</IsTruncated><NextContinuationToken>a&amp;b/&#x3d;</NextContinuationToken>
            <Contents><Key>p/data/ab/cd</Key><ETag>&quot;1&quot;</ETag><Size>12</Size><Owner/></Contents>
            <Contents><Key>p/x &lt;y</Key><Size>0</Size></Contents></ListBucketResult>"#;
        let read = listing(body).unwrap();
        assert_eq!(read.objects, [("p/data/ab/cd".to_owned(), 12), ("p/x <y".to_owned(), 0)]);
        assert_eq!(read.next.as_deref(), Some("a&b/="));
        let empty = listing("<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>").unwrap();
        assert_eq!(empty, Listing::default());
        for (wrong, why) in [
            ("<html><body>hello</body></html>", "no list"),
            ("", "no list"),
            ("<ListBucketResult><Contents>", "breaks off"),
            ("<ListBucketResult><a>&unknown;</a></ListBucketResult>", "no XML"),
            ("<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>", "goes on"),
        ] {
            let error = listing(wrong).unwrap_err();
            assert!(error.contains(why), "{wrong}: {error}");
        }
        let body = "<Error><Code>NoSuchBucket</Code><Message>none\u{1b}[1m</Message><Key>Code</Key></Error>";
        assert_eq!(error(body), ("NoSuchBucket".to_owned(), "none[1m".to_owned()));
        assert_eq!(error("no XML"), (String::new(), String::new()));
    }
}
