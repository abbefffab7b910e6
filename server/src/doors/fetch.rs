//! A file of a backup as an answer, sent while it is read.
//!
//! What is in it was written by whoever is root in a guest, so a browser is told to save it and never to show it. While it is
//! sent nothing of the database is held, and now and then it is asked anew whether who fetches it still may. What can't be
//! sent to its end breaks off, so that nobody takes a part for the whole.

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use corpus_api::backup_files::BackupFetch;
use corpus_api::{Principal, Problem};
use corpus_controller::BackupContent;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::time::Instant;

use super::export::Place;
use super::proof::Proof;
use crate::pages;
use crate::web::Web;

/// How often it is asked anew whether they may.
const LOOK_EVERY: Duration = Duration::from_secs(15);
/// What of a name stands in RFC 8187's form as it is.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// Answers with what was fetched.
pub async fn answer(
    fetch: BackupFetch,
    place: Option<Place>,
    web: Web,
    who: Principal,
    proof: Proof,
) -> Result<Response, Problem> {
    let content = web.controller.backup_content(&who, &fetch).await.inspect_err(pages::log_failure)?;
    let headers = headers(&fetch);
    let sending = Sending { content, fetch, web, who, proof, judged_at: Instant::now(), _until_the_end: place };
    Ok((headers, Body::from_stream(futures::stream::try_unfold(sending, Sending::piece))).into_response())
}

fn headers(fetch: &BackupFetch) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(CONTENT_DISPOSITION, disposition(&fetch.name));
    if let Some(bytes) = fetch.bytes {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes.0));
    }
    headers
}

/// To be saved by this name, in the two ways of RFC 6266: as far as it is plain, and all of it.
fn disposition(name: &str) -> HeaderValue {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " -._+@=,()".contains(c);
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let whole = utf8_percent_encode(name, ESCAPED);
    let text = format!("attachment; filename=\"{plain}\"; filename*=UTF-8''{whole}");
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("attachment"))
}

/// A fetch on its way.
struct Sending {
    content: BackupContent,
    fetch: BackupFetch,
    web: Web,
    who: Principal,
    proof: Proof,
    judged_at: Instant,
    _until_the_end: Option<Place>,
}

impl Sending {
    /// The next piece of it; none when there is none.
    async fn piece(mut self) -> io::Result<Option<(Bytes, Self)>> {
        if self.judged_at.elapsed() >= LOOK_EVERY {
            self.is_still_permitted().await?;
            self.judged_at = Instant::now();
        }
        let next = tokio::select! {
            next = self.content.next() => next,
            () = self.web.stopping.cancelled() => Some(Err(io::Error::other("the server is about to end"))),
        };
        match next {
            Some(piece) => {
                let piece = piece.inspect_err(|error| {
                    tracing::warn!(error = error as &dyn std::error::Error, "a fetch from a backup broke off");
                })?;
                Ok(Some((piece, self)))
            }
            None => Ok(None),
        }
    }

    /// Reads anew who the member is, and what they may. While the database does not answer nothing ends.
    async fn is_still_permitted(&mut self) -> io::Result<()> {
        let gone = || io::Error::other("the member may not fetch it any more");
        match self.proof.principal(&self.web, &self.who).await {
            Ok(Some(now)) => self.who = now,
            Ok(None) => return Err(gone()),
            Err(_) => return Ok(()),
        }
        match self.web.controller.may_fetch(&self.who, &self.fetch).await {
            Err(error) if Problem::from(&error).status < 500 => Err(gone()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use corpus_domain::Bytes as Size;

    use super::*;

    #[test]
    fn a_name_is_told_in_two_ways_and_never_ends_the_header() {
        for (name, told) in [
            ("hosts", "filename=\"hosts\"; filename*=UTF-8''hosts"),
            ("a b.tar", "filename=\"a b.tar\"; filename*=UTF-8''a%20b.tar"),
            ("\u{e4}\u{65e5}", "filename=\"__\"; filename*=UTF-8''%C3%A4%E6%97%A5"),
            ("a\"; x=\"b\\", "filename=\"a__ x=_b_\"; filename*=UTF-8''a%22%3B%20x%3D%22b%5C"),
            ("%41'\r\n", "filename=\"_41___\"; filename*=UTF-8''%2541%27%0D%0A"),
        ] {
            assert_eq!(disposition(name).to_str().unwrap(), format!("attachment; {told}"));
        }
    }

    #[test]
    fn it_is_saved_and_never_shown_or_kept() {
        let asked = corpus_api::backup_files::FetchBackupFile {
            project: "atlas".parse().unwrap(),
            backup: "0199d3c0-0000-7000-8000-000000000001".parse().unwrap(),
            path: "/index.html".parse().unwrap(),
        };
        let fetch = BackupFetch { asked, name: "index.html".to_owned(), bytes: Some(Size(7)) };
        let all = headers(&fetch);
        let text = |name| all.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        assert_eq!((text(CONTENT_TYPE), text(CACHE_CONTROL)), ("application/octet-stream", "no-store"));
        assert!(text(CONTENT_DISPOSITION).starts_with("attachment;"));
        assert_eq!(text(CONTENT_LENGTH), "7");
        assert!(!headers(&BackupFetch { bytes: None, ..fetch }).contains_key(CONTENT_LENGTH));
    }
}
