//! A file as an answer: here a list, read through the gate page by page while it is sent; a file of a backup is
//! [`fetch`](super::fetch)'s.
//!
//! What one may not list can't be exported: each page is the list's own question, asked anew by who the member is at
//! that moment. A page is in memory at a time, and nothing of the database is held while somebody reads slowly. A file
//! that can't be sent to its end breaks off, so that nobody takes a part for the whole.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use chrono::{SecondsFormat, Utc};
use corpus_api::audit::{AuditEntry, ListAudit};
use corpus_api::operation::{File, FileType};
use corpus_api::words::Limit;
use corpus_api::{Cursor, Principal, Problem, Reply};
use corpus_domain::{Door, ExportFormat, UserId};
use csv::{QuoteStyle, Terminator, WriterBuilder};

use super::fetch;
use super::proof::Proof;
use crate::shares::{Full, Limits, Share, Shares};
use crate::web::Web;

/// Exports of all members at a time.
const OF_ALL: usize = 16;
/// Fetches of all members at a time: each has a repository open.
const FETCHES: usize = 4;
/// Fetches of a member at a time.
const FETCHES_OF_ONE: usize = 2;
/// Rows that are read at a time.
const PAGE: u64 = 100;

/// The places of exports, of which a member has one, and of fetches.
#[derive(Debug)]
pub struct Exports {
    lists: Arc<Shares<UserId>>,
    fetches: Arc<Shares<UserId>>,
}

impl Default for Exports {
    fn default() -> Self {
        Self {
            lists: Shares::new(Limits { all: OF_ALL, of_one: 1 }),
            fetches: Shares::new(Limits { all: FETCHES, of_one: FETCHES_OF_ONE }),
        }
    }
}

impl Exports {
    fn take(&self, kind: FileType, who: UserId) -> Result<Place, Problem> {
        let (places, own, all) = match kind {
            FileType::Rows => (
                &self.lists,
                "You export something already. Wait until that is over.",
                "As much is exported as can be. Try again later.",
            ),
            FileType::Bytes => (
                &self.fetches,
                "You fetch as much at once as one can. Wait until some of it is over.",
                "As much is fetched as can be at once. Try again later.",
            ),
        };
        places.take(who).map_err(|full| match full {
            Full::OfOne => Problem::too_many_requests(own),
            Full::All => Problem::unavailable(all),
        })
    }
}

/// An export's place, until it is over.
pub type Place = Share<UserId>;

/// A place, if what is asked is answered with a file: taken before it is begun, so that what finds none has not been.
pub fn place<R: Reply>(web: &Web, who: &Principal) -> Result<Option<Place>, Problem> {
    R::FILE.map(|kind| web.exports.take(kind, who.id)).transpose()
}

/// Answers with the file.
pub async fn answer(
    file: File,
    place: Option<Place>,
    web: Web,
    who: Principal,
    proof: Proof,
) -> Result<Response, Problem> {
    match file {
        File::Backup(asked) => fetch::answer(*asked, place, web, who, proof).await,
        File::Audit { asked, format } => Ok(list((*asked, format), place, web, who, proof)),
    }
}

fn list(
    (asked, format): (ListAudit, ExportFormat),
    place: Option<Place>,
    web: Web,
    who: Principal,
    proof: Proof,
) -> Response {
    let (kind, ending) = match format {
        ExportFormat::Csv => ("text/csv; charset=utf-8; header=present", "csv"),
        ExportFormat::JsonLines => ("application/x-ndjson", "jsonl"),
    };
    let name = format!("attachment; filename=\"corpus-audit-{}.{ending}\"", Utc::now().format("%Y-%m-%d"));
    let name = HeaderValue::try_from(name).unwrap_or(HeaderValue::from_static("attachment"));
    let reading = Reading { web, who, proof, asked, format, next: Next::First, _until_the_end: place };
    let rows = futures::stream::try_unfold(reading, Reading::page);
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(kind)),
        (CONTENT_DISPOSITION, name),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (headers, Body::from_stream(rows)).into_response()
}

/// An export on its way.
struct Reading {
    web: Web,
    who: Principal,
    proof: Proof,
    asked: ListAudit,
    format: ExportFormat,
    next: Next,
    _until_the_end: Option<Place>,
}

/// Where it goes on.
enum Next {
    First,
    After(Cursor),
    Nowhere,
}

impl Reading {
    /// The next page of it, as bytes; none when there is none.
    async fn page(mut self) -> io::Result<Option<(Vec<u8>, Self)>> {
        let cursor = match std::mem::replace(&mut self.next, Next::Nowhere) {
            Next::First => None,
            Next::After(cursor) => {
                self.is_still_permitted().await?;
                Some(cursor)
            }
            Next::Nowhere => return Ok(None),
        };
        let is_first = cursor.is_none();
        let asked = ListAudit { cursor, limit: Limit::try_from(PAGE).ok(), ..self.asked.clone() };
        let page = self.web.controller.call(&self.who, asked, None).await;
        let page = page.map_err(|problem| io::Error::other(problem.text().to_owned()))?;
        let bytes = match self.format {
            ExportFormat::Csv => csv(&page.items, is_first)?,
            ExportFormat::JsonLines => json_lines(&page.items)?,
        };
        self.next = page.next.map_or(Next::Nowhere, Next::After);
        Ok(Some((bytes, self)))
    }

    /// Reads anew who the member is: what they may not see any more does not come.
    async fn is_still_permitted(&mut self) -> io::Result<()> {
        if self.web.stopping.is_cancelled() {
            return Err(io::Error::other("the server is about to end"));
        }
        let now = self.proof.principal(&self.web, &self.who).await.map_err(io::Error::other)?;
        self.who = now.ok_or_else(|| io::Error::other("the member may see nothing any more"))?;
        Ok(())
    }
}

const HEADINGS: [&str; 10] = ["id", "at", "actor", "robot", "door", "token", "action", "subject", "project", "detail"];

fn csv(rows: &[AuditEntry], with_headings: bool) -> io::Result<Vec<u8>> {
    let mut writer =
        WriterBuilder::new().quote_style(QuoteStyle::Always).terminator(Terminator::CRLF).from_writer(Vec::new());
    if with_headings {
        writer.write_record(HEADINGS)?;
    }
    for row in rows {
        writer.write_record(cells(row).iter().map(|cell| plain(cell)))?;
    }
    writer.into_inner().map_err(|error| io::Error::other(error.to_string()))
}

fn cells(row: &AuditEntry) -> [String; 10] {
    let empty = |text: &Option<String>| text.clone().unwrap_or_default();
    [
        row.id.to_string(),
        row.at.to_rfc3339_opts(SecondsFormat::Micros, true),
        row.actor.clone(),
        row.robot.to_string(),
        row.door.map_or("", Door::as_str).to_owned(),
        empty(&row.token),
        row.action.clone(),
        row.subject.clone(),
        empty(&row.project),
        row.detail.to_string(),
    ]
}

/// What a spreadsheet takes for a formula is text: some cells are what members typed. The apostrophe says so, and is
/// not shown.
fn plain(cell: &str) -> String {
    let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']);
    if is_formula { format!("'{cell}") } else { cell.to_owned() }
}

fn json_lines(rows: &[AuditEntry]) -> io::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for row in rows {
        serde_json::to_writer(&mut lines, row)?;
        lines.push(b'\n');
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(subject: &str, token: Option<&str>) -> AuditEntry {
        AuditEntry {
            id: "0199d3c0-0000-7000-8000-000000000001".parse().unwrap(),
            at: "2027-03-31T18:00:00.000001Z".parse().unwrap(),
            actor: "mia".to_owned(),
            robot: false,
            door: Some(Door::Api),
            token: token.map(str::to_owned),
            action: "key.add".to_owned(),
            subject: subject.to_owned(),
            project: None,
            detail: json!({ "reason": "a \"b\", c" }),
        }
    }

    #[test]
    fn a_line_of_csv_is_quoted_and_no_formula() {
        let token = "=HYPERLINK(\"https://evil.example\",\"x\")";
        let text = String::from_utf8(csv(&[entry("a, \"b\"\nc", Some(token))], true).unwrap()).unwrap();
        let (headings, line) = text.split_once("\r\n").unwrap();
        assert_eq!(
            headings,
            "\"id\",\"at\",\"actor\",\"robot\",\"door\",\"token\",\"action\",\"subject\",\"project\",\"detail\""
        );
        assert_eq!(
            line,
            "\"0199d3c0-0000-7000-8000-000000000001\",\"2027-03-31T18:00:00.000001Z\",\"mia\",\"false\",\"api\",\
             \"'=HYPERLINK(\"\"https://evil.example\"\",\"\"x\"\")\",\"key.add\",\"a, \"\"b\"\"\nc\",\"\",\
             \"{\"\"reason\"\":\"\"a \\\"\"b\\\"\", c\"\"}\"\r\n"
        );
        for formula in ["=1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "＝1"] {
            assert_eq!(plain(formula), format!("'{formula}"));
        }
        assert_eq!(plain("a=1"), "a=1");
        assert_eq!(csv(&[], false).unwrap(), b"");
    }

    #[test]
    fn few_fetch_at_once_and_one_member_leaves_room() {
        let exports = Exports::default();
        let fetch = |who| exports.take(FileType::Bytes, UserId(uuid::Uuid::from_u128(who)));
        let mut taken = vec![fetch(1).unwrap(), fetch(1).unwrap()];
        assert_eq!(fetch(1).unwrap_err().status, 429);
        taken.extend([fetch(2).unwrap(), fetch(3).unwrap()]);
        let full = fetch(4).unwrap_err();
        assert!(full.status == 503 && full.text().contains("As much is fetched as can be"), "{full}");
        // Lists have places of their own.
        exports.take(FileType::Rows, UserId(uuid::Uuid::from_u128(1))).unwrap();
        taken.pop();
        fetch(4).unwrap();
    }

    #[test]
    fn a_row_is_a_line_of_json() {
        let text = String::from_utf8(json_lines(&[entry("a\nb", None), entry("=c", None)]).unwrap()).unwrap();
        let lines: Vec<AuditEntry> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines, [entry("a\nb", None), entry("=c", None)]);
        assert!(text.ends_with('\n'));
    }
}
