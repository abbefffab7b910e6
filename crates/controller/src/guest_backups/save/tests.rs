//! What a node that was taken over may say, and what becomes of it.

use std::collections::VecDeque;

use corpus_protocol::{BROKEN, MAX_PIECE, TreeEntry, TreeKind, TreeLine};

use super::*;

/// Says this, in these pieces, and ends or goes on for ever.
struct Says {
    pieces: VecDeque<Vec<u8>>,
    again: bool,
}

impl Output for Says {
    async fn next(&mut self) -> Result<Option<Bytes>, CarryError> {
        let piece = self.pieces.pop_front();
        if let (Some(piece), true) = (&piece, self.again) {
            self.pieces.push_back(piece.clone());
        }
        Ok(piece.map(Bytes::from))
    }
}

/// In pieces of seven bytes, so that nothing begins where a piece does.
fn says(text: impl AsRef<[u8]>) -> Incoming<Says> {
    let pieces = text.as_ref().chunks(7).map(<[u8]>::to_vec).collect();
    Incoming::new(Says { pieces, again: false })
}

fn line(line: &TreeLine) -> String {
    serde_json::to_string(line).unwrap() + "\n"
}

fn file(name: &str, size: u64) -> TreeLine {
    TreeLine::Entry(Box::new(TreeEntry {
        depth: u32::from(!name.is_empty()),
        name: name.into(),
        kind: if name.is_empty() { TreeKind::Folder } else { TreeKind::File },
        mode: 0o755,
        uid: 0,
        gid: 0,
        modified: (1, 0),
        changed: (1, 0),
        inode: 1,
        links: 1,
        size,
        attributes: vec![],
    }))
}

const LIMITS: Limits = Limits { bytes: 100 };

async fn refused(text: impl AsRef<[u8]>) -> String {
    match Listed::read(&mut says(text), LIMITS).await {
        Ok(_) => panic!("it was taken"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn a_list_is_taken_as_it_was_said() {
    let all = [file("", 0), file("it", 60), file("too", 40)];
    let text = all.iter().map(line).collect::<String>() + &line(&TreeLine::End { entries: 3 }) + "the next";
    let mut from = says(text);
    let listed = Listed::read(&mut from, LIMITS).await.unwrap();
    assert_eq!(listed.bytes, 100);
    let entries: Vec<_> = listed.entries().map(|entry| TreeLine::Entry(Box::new(entry.unwrap()))).collect();
    assert_eq!(entries, all);
    from.fill(8).await.unwrap();
    assert_eq!(&from.kept[..], b"the next");
}

#[tokio::test]
async fn a_list_that_is_none_is_refused() {
    let end = line(&TreeLine::End { entries: 2 });
    for (text, why) in [
        (String::new(), "ended in the middle"),
        (line(&file("", 0)), "ended in the middle"),
        (line(&file("", 0)) + &end, "2 files were listed, and 1 came"),
        (line(&file("", 101)), "more in its files than is brought"),
        (line(&file("", 60)) + &line(&file("it", u64::MAX)), "more in its files than is brought"),
        ("rubbish\n".to_owned(), "not understood"),
        (format!("{{\"entry\":{{\"depth\":{}}}}}\n", u64::MAX), "not understood"),
        (line(&TreeLine::Failed("no \u{1b}[2J disk".to_owned())), "no [2J disk"),
    ] {
        let said = refused(&text).await;
        assert!(said.contains(why), "{text}: {said}");
    }
    // A line without an end, and one too long.
    let mut endless = Incoming::new(Says { pieces: [vec![b'a'; 4096]].into(), again: true });
    let said = Listed::read(&mut endless, LIMITS).await.err().unwrap().to_string();
    assert!(said.contains("longer than"), "{said}");
    // A list without an end.
    let mut endless = Incoming::new(Says { pieces: [line(&file("it", 1)).into_bytes()].into(), again: true });
    let said = Listed::read(&mut endless, LIMITS).await.err().unwrap().to_string();
    assert!(said.contains("more in its files"), "{said}");
}

fn pieces(all: &[&[u8]]) -> Vec<u8> {
    let piece = |piece: &&[u8]| [&u32::try_from(piece.len()).unwrap().to_be_bytes(), *piece].concat();
    all.iter().flat_map(piece).collect()
}

/// What a thread reads that wants one file, and what the line says of it.
async fn reads(said: Vec<u8>, most: u64) -> (io::Result<Vec<u8>>, Result<(), CarryError>) {
    let (to, from) = mpsc::channel(PIECES);
    let reading = tokio::task::spawn_blocking(move || {
        let mut all = Vec::new();
        let mut reading = Reading { from, piece: Bytes::new(), is_over: false };
        reading.read_to_end(&mut all).map(|_| all)
    });
    let handed = hand_on(&mut says(said), &to, most, &mut 0, &|_, _| {}).await;
    drop(to);
    (reading.await.unwrap(), handed)
}

#[tokio::test]
async fn a_content_is_whole_or_an_error() {
    let (read, handed) = reads(pieces(&[b"some ", b"text", b""]), 9).await;
    assert_eq!(read.unwrap(), b"some text");
    handed.unwrap();

    let broken = [&pieces(&[b"some"])[..], &BROKEN.to_be_bytes(), b"no \x07 sector\n"].concat();
    for (said, why) in [
        (pieces(&[b"some "]), "ended in the middle"),
        (pieces(&[b"some text", b"more", b""]), "more came than was listed"),
        ((MAX_PIECE + 1).to_be_bytes().to_vec(), "a piece of 262145 bytes"),
        (broken, "no  sector"),
    ] {
        let (read, handed) = reads(said, 9).await;
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "{why}");
        let handed = handed.unwrap_err().to_string();
        assert!(handed.contains(why), "{why}: {handed}");
    }
}
