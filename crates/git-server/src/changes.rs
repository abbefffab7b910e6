//! What a push wants changed, read from what the client sends before its pack.
//!
//! A push begins with a line for each branch or tag: what it was, what it is to be, its name (gitprotocol-pack, "Reference
//! Update Request"). The lines are held until the last has come, so that the backend judges them before anything goes to
//! the guest; all that follows goes through as it comes.

use corpus_domain::CommitId;

/// The longest list that is held; one of several thousand branches goes through unread.
const MAX_LIST: usize = 1 << 20;
/// The longest packet that git takes, with its header.
const MAX_PACKET: usize = 65_520;
const HEADER: usize = 4;

/// A branch or tag that is to be something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefChange {
    /// Its whole name: `refs/heads/main`.
    pub name: String,
    /// What it is to be; none: it is deleted.
    pub to: Option<CommitId>,
}

impl RefChange {
    /// Of a line of the list; none when it says something else.
    fn parse(line: &[u8]) -> Option<Self> {
        // Behind a NUL stands what the client can.
        let line = line.split(|byte| *byte == 0).next()?;
        let text = std::str::from_utf8(line).ok()?.trim_end_matches('\n');
        let mut words = text.splitn(3, ' ');
        let (from, to, name) = (words.next()?, words.next()?, words.next()?);
        let (_, to): (CommitId, CommitId) = (from.parse().ok()?, to.parse().ok()?);
        let to = to.as_str().bytes().any(|digit| digit != b'0').then_some(to);
        Some(Self { name: name.to_owned(), to })
    }
}

/// How far the list has come.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// There is more to come; nothing goes to the guest yet.
    More,
    /// It is whole: these are the changes.
    Whole(Vec<RefChange>),
    /// It is none, or too long: git on the guest says what it thinks of it.
    Unreadable,
}

/// The list as it comes in.
#[derive(Debug, Default)]
pub(crate) struct ChangeList {
    held: Vec<u8>,
    read: usize,
    changes: Vec<RefChange>,
}

impl ChangeList {
    /// Takes what the client sent next.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Heard {
        self.held.extend_from_slice(bytes);
        loop {
            let Some(header) = self.held.get(self.read..self.read + HEADER) else { return self.unfinished() };
            let length = match length(header) {
                Some(0) => return Heard::Whole(std::mem::take(&mut self.changes)),
                Some(length @ HEADER..=MAX_PACKET) => length,
                _ => return Heard::Unreadable,
            };
            let Some(line) = self.held.get(self.read + HEADER..self.read + length) else { return self.unfinished() };
            self.changes.extend(RefChange::parse(line));
            self.read += length;
        }
    }

    fn unfinished(&self) -> Heard {
        if self.held.len() > MAX_LIST { Heard::Unreadable } else { Heard::More }
    }

    /// All that was held, for the guest.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.held
    }
}

fn length(header: &[u8]) -> Option<usize> {
    let digits = std::str::from_utf8(header).ok().filter(|text| text.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
    usize::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: &str = "0000000000000000000000000000000000000000";
    const ONE: &str = "1111111111111111111111111111111111111111";

    fn packet(line: &str) -> Vec<u8> {
        format!("{:04x}{line}", line.len() + HEADER).into_bytes()
    }

    fn change(name: &str, to: Option<&str>) -> RefChange {
        RefChange { name: name.to_owned(), to: to.map(|to| to.parse().unwrap()) }
    }

    #[test]
    fn the_list_is_read_however_it_is_cut() {
        let sent = [
            packet(&format!("{NONE} {ONE} refs/heads/preview/login\0 report-status side-band-64k agent=git/2\n")),
            packet(&format!("{ONE} {NONE} refs/tags/v 1")),
            b"0000PACK".to_vec(),
        ]
        .concat();
        let expected = vec![change("refs/heads/preview/login", Some(ONE)), change("refs/tags/v 1", None)];
        for cut in 1..sent.len() {
            let mut list = ChangeList::default();
            let mut heard = Heard::More;
            for part in sent.chunks(cut) {
                heard = list.take(part);
                if heard != Heard::More {
                    break;
                }
            }
            assert_eq!(heard, Heard::Whole(expected.clone()), "{cut}");
            assert!(sent.starts_with(&list.into_bytes()), "{cut}");
        }
    }

    #[test]
    fn what_is_no_list_is_not_held() {
        for wrong in [b"0003".as_slice(), b"zzzz", b"0001", b"fff5xxxx", b"+00f"] {
            assert_eq!(ChangeList::default().take(wrong), Heard::Unreadable, "{wrong:?}");
        }
        let mut list = ChangeList::default();
        let line = packet(&format!("{NONE} {ONE} refs/heads/{}", "x".repeat(60_000)));
        let heard = (0..MAX_LIST).map(|_| list.take(&line)).find(|heard| *heard != Heard::More);
        assert_eq!(heard, Some(Heard::Unreadable));
        assert!(list.into_bytes().len() <= MAX_LIST + line.len());
    }

    #[test]
    fn what_is_no_change_is_passed_over() {
        let mut list = ChangeList::default();
        let shallow = [packet(&format!("shallow {ONE}")), packet("push-cert\0 x"), b"0000".to_vec()].concat();
        assert_eq!(list.take(&shallow), Heard::Whole(Vec::new()));
    }
}
