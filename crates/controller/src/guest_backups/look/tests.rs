//! That a fetch holds nothing longer than somebody takes it.

use std::time::Instant;

use secrecy::SecretString;

use super::*;

/// A repository with one large file, and its backup.
fn large(at: &std::path::Path) -> (Repository, String) {
    let from = at.join("from");
    std::fs::create_dir_all(&from).unwrap();
    // Nothing makes it smaller, and it is longer than all that may wait.
    let content: Vec<u8> = (0..400_000_u64).flat_map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).collect();
    std::fs::write(from.join("large"), &content).unwrap();
    let repository = Repository::at(at.join("repository").into(), SecretString::from("correct horse"));
    let id = repository.save(&from, "guest", "here").unwrap().snapshot.id;
    (repository, id)
}

fn fetched(snapshot: &str, path: &[&str], folder: Option<&str>) -> Fetched {
    let path = path.iter().map(|name| name.as_bytes().to_vec()).collect();
    Fetched { snapshot: snapshot.to_owned(), path, folder: folder.map(str::to_owned) }
}

/// Waits until all places of fetches are free again.
async fn are_free(readers: &Readers) {
    let began = Instant::now();
    while readers.fetches.available_permits() < FETCHES {
        assert!(began.elapsed() < Duration::from_secs(20), "a thread did not end");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_reader_ends_with_who_fetches_and_when_nobody_takes_anything() {
    let at = tempfile::tempdir().unwrap();
    let (repository, id) = large(at.path());
    let readers = Readers { stalled: Duration::from_millis(300), ..Readers::default() };
    // They are gone before the first piece, and after it.
    drop(readers.fetch(repository.clone(), fetched(&id, &["large"], None)).await.unwrap());
    let mut content = readers.fetch(repository.clone(), fetched(&id, &[], Some("top"))).await.unwrap();
    assert_eq!(content.next().await.unwrap().unwrap().len(), PIECE);
    drop(content);
    are_free(&readers).await;
    // They are there, and take nothing: what they have then is not taken for the whole.
    let mut content = readers.fetch(repository, fetched(&id, &["large"], None)).await.unwrap();
    are_free(&readers).await;
    let mut pieces = 0;
    let ended = loop {
        match content.next().await {
            Some(Ok(_)) => pieces += 1,
            ended => break ended,
        }
    };
    assert!(ended.is_some_and(|ended| ended.is_err()), "after {pieces} pieces");
    assert!(pieces <= WAITING, "{pieces}");
}

#[tokio::test]
async fn few_fetch_at_once() {
    let at = tempfile::tempdir().unwrap();
    let (repository, id) = large(at.path());
    let readers = Readers { wait: Duration::from_millis(50), ..Readers::default() };
    let mut taken = Vec::new();
    for _ in 0..FETCHES {
        taken.push(readers.fetch(repository.clone(), fetched(&id, &["large"], None)).await.unwrap());
    }
    let full = readers.fetch(repository.clone(), fetched(&id, &["large"], None)).await.unwrap_err();
    assert_eq!(Problem::from(&full).status, 503, "{full}");
    // Who only looks need not wait for them.
    assert_eq!(readers.look(move || repository.list_folder(&id, &[])).await.unwrap().len(), 1);
    taken.clear();
    are_free(&readers).await;
}

#[tokio::test]
async fn what_can_not_be_read_is_told_before_anything_is_sent() {
    let at = tempfile::tempdir().unwrap();
    let (repository, id) = large(at.path());
    let readers = Readers::default();
    let status = async |repository: &Repository, fetched| {
        let refused = readers.fetch(repository.clone(), fetched).await.unwrap_err();
        Problem::from(&refused).status
    };
    assert_eq!(status(&repository, fetched(&id, &["nothing"], None)).await, 404);
    assert_eq!(status(&repository, fetched(&"0".repeat(64), &["large"], None)).await, 503);
    let none = Repository::at(at.path().join("none").into(), SecretString::from("x"));
    assert_eq!(status(&none, fetched(&id, &["large"], None)).await, 503);
    // Half of it is gone: what comes ends in a failure.
    for pack in std::fs::read_dir(at.path().join("repository/data")).unwrap() {
        for file in std::fs::read_dir(pack.unwrap().path()).unwrap() {
            let file = file.unwrap().path();
            let bytes = std::fs::read(&file).unwrap();
            if bytes.len() > 1 << 20 {
                std::fs::remove_file(&file).unwrap();
                std::fs::write(&file, vec![0; bytes.len()]).unwrap();
            }
        }
    }
    let mut content = readers.fetch(repository, fetched(&id, &["large"], None)).await.unwrap();
    let mut last = content.next().await;
    while last.as_ref().is_some_and(std::result::Result::is_ok) {
        last = content.next().await;
    }
    assert!(last.is_some_and(|last| last.is_err()));
}
