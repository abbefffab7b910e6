//! The mark of what is ours in a zone that is changed by RFC 2136, where records have no comments.
//!
//! Beside each name of ours stands a TXT record `_corpus.NAME` (of a wildcard `_corpus-wildcard.NAME`) that says which
//! name it is of and what we wrote there, line by line. It comes and goes in the same update as the records. So what
//! somebody else wrote under the name is told from what we wrote, also when they changed ours.

use hickory_proto::rr::rdata::TXT;
use hickory_proto::rr::{RData, RecordType};

use crate::authority::{self, AuthorityError};
use crate::{Owner, Record};

/// What the TXT record begins with.
const MARK: &str = "made by Corpus";

/// What we wrote under a name: types and contents.
pub(super) type Lines = Vec<(String, String)>;

/// The name of the mark.
pub(super) fn name(owner: &Owner) -> String {
    let label = if owner.is_wildcard() { "_corpus-wildcard" } else { "_corpus" };
    format!("{label}.{}", owner.name())
}

/// The mark of these lines.
pub(super) fn of(owner: &Owner, lines: &Lines) -> RData {
    let lines = lines.iter().map(|(kind, content)| format!("{kind} {content}"));
    RData::TXT(TXT::new([MARK.to_owned(), owner.to_string()].into_iter().chain(lines).collect()))
}

/// The lines of a record.
pub(super) fn lines(record: &Record) -> Lines {
    record.lines().into_iter().map(|(kind, content)| (kind.to_owned(), content)).collect()
}

/// What stands as the mark of a name, and the lines that it tells; none where nothing of ours is.
pub(super) async fn read(
    server: std::net::SocketAddr,
    owner: &Owner,
) -> Result<Option<(RData, Lines)>, AuthorityError> {
    let answer = authority::ask(server, &name(owner), RecordType::TXT).await?;
    let mut texts = answer.answers.into_iter().map(|record| record.data);
    Ok(texts.find_map(|data| parse(owner, &data).map(|lines| (data, lines))))
}

/// A mark of another name is none: a wildcard of others may answer for every name.
fn parse(owner: &Owner, data: &RData) -> Option<Lines> {
    let RData::TXT(text) = data else { return None };
    let strings: Option<Vec<&str>> = text.txt_data.iter().map(|one| std::str::from_utf8(one).ok()).collect();
    let strings = strings?;
    let (mark, rest) = strings.split_first()?;
    let (of, lines) = rest.split_first()?;
    if *mark != MARK || *of != owner.to_string() {
        return None;
    }
    let line = |line: &&str| line.split_once(' ').map(|(kind, content)| (kind.to_owned(), content.to_owned()));
    lines.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_of_one_name() {
        let owner = Owner::new("www.example.org".parse().unwrap(), false);
        let lines: Lines = vec![("A".to_owned(), "192.0.2.1".to_owned())];
        let data = of(&owner, &lines);
        assert_eq!(parse(&owner, &data), Some(lines.clone()));
        assert_eq!(parse(&Owner::wildcard(owner.name().clone()), &data), None);
        assert_eq!(parse(&owner, &RData::TXT(TXT::new(vec!["v=spf1 -all".to_owned()]))), None);
        assert_eq!(name(&owner), "_corpus.www.example.org");
        let torn = TXT::new(vec![MARK.to_owned(), owner.to_string(), "A".to_owned()]);
        assert_eq!(parse(&owner, &RData::TXT(torn)), None);
    }
}
