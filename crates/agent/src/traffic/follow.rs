//! A request that follows names: what the collector gives goes on to the controller.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use corpus_protocol::{AddressDetail, Event, FOLLOW_LIMIT_S, FOLLOWED_NAMES, LINES_AT_ONCE, MAX_LINE, RoutedName};

use super::FOLLOW;
use super::followers::{Batch, Order};
use crate::failure::{At, Failure};
use crate::task::Task;

/// How often it is looked whether the request was cancelled.
const PAUSE: Duration = Duration::from_millis(250);
const ENDED: &str = "the node's collector of requests has ended this line: it was started anew, or too many follow \
                     already; try again";
const MISSING: &str = "the node's collector of requests does not run; a repair of the node starts it";

/// Tells of requests for these names until the time is over, or the request is cancelled.
pub fn follow(task: &Task<'_>, names: &[RoutedName], addresses: AddressDetail, limit_s: u32) -> Result<bool, Failure> {
    if names.len() > FOLLOWED_NAMES {
        return Err(Failure::Invalid(format!(
            "{} names are more than the {FOLLOWED_NAMES} that are followed",
            names.len()
        )));
    }
    let end = Instant::now() + Duration::from_secs(limit_s.min(FOLLOW_LIMIT_S).into());
    let path = task.host.path(FOLLOW);
    let mut lines = match ask(&path, &Order { names: names.to_vec(), addresses }) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            return Err(Failure::Missing(MISSING.to_owned()));
        }
        asked => BufReader::new(asked.at("ask the collector by", &path)?),
    };
    let mut text = Vec::new();
    while Instant::now() < end {
        task.go_on()?;
        match next(&mut lines, &mut text) {
            Ok(Some(Batch { mut lines, left_out })) => {
                lines.truncate(LINES_AT_ONCE);
                (task.events)(Event::Access { lines, left_out });
            }
            Ok(None) => return Err(Failure::Missing(ENDED.to_owned())),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error).at("hear the collector by", &path),
        }
    }
    Ok(false)
}

fn ask(path: &std::path::Path, order: &Order) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PAUSE))?;
    stream.set_write_timeout(Some(PAUSE))?;
    let mut text = serde_json::to_vec(order)?;
    text.push(b'\n');
    stream.write_all(&text)?;
    Ok(stream)
}

/// The next batch; none when the collector has closed. What came of a line before the time was over stays in `text`.
fn next(lines: &mut BufReader<UnixStream>, text: &mut Vec<u8>) -> io::Result<Option<Batch>> {
    let room = MAX_LINE.saturating_sub(text.len()).try_into().unwrap_or(0);
    lines.by_ref().take(room).read_until(b'\n', text)?;
    if text.last() != Some(&b'\n') {
        return Ok(None);
    }
    let batch = serde_json::from_slice(text)?;
    text.clear();
    Ok(Some(batch))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use corpus_protocol::AccessLine;

    use super::super::followers::Followers;
    use super::super::followers::tests::name;
    use super::super::line::{Line, tests::line};
    use super::*;
    use crate::host::Host;
    use crate::task::{Cancel, test::with_task};

    fn host() -> (tempfile::TempDir, Host) {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        std::fs::create_dir_all(host.path(FOLLOW).parent().unwrap()).unwrap();
        (folder, host)
    }

    #[test]
    fn lines_go_on_until_it_is_cancelled() {
        let (_folder, host) = host();
        let followers = Followers::default();
        followers.listen(&host.path(FOLLOW)).unwrap();
        let (cancel, heard) = (Cancel::default(), Mutex::new(Vec::<AccessLine>::new()));
        let events = |event| {
            if let Event::Access { lines, .. } = event {
                heard.lock().unwrap().extend(lines);
            }
        };
        let ended = std::thread::scope(|scope| {
            let names = [name("a.example.org")];
            let (host, cancel, events) = (&host, &cancel, &events);
            let following =
                scope.spawn(move || follow(&Task { host, cancel, events }, &names, AddressDetail::Whole, 30));
            let end = Instant::now() + Duration::from_secs(10);
            while heard.lock().unwrap().is_empty() && Instant::now() < end {
                let text = line(1, "a.example.org", "/x", 200, "--");
                followers.tell(&Line::read(text.as_bytes()).unwrap(), 1_000);
                std::thread::sleep(Duration::from_millis(20));
            }
            cancel.set();
            following.join().unwrap()
        });
        assert!(matches!(ended, Err(Failure::Cancelled)), "{ended:?}");
        assert_eq!(heard.lock().unwrap()[0].from.as_deref(), Some("192.0.2.77"));
    }

    #[test]
    fn its_time_has_an_end_and_a_collector_that_is_none_is_said() {
        let (_folder, host) = host();
        let asked = |limit| with_task(&host, |task| follow(task, &[name("a.example.org")], AddressDetail::None, limit));
        assert!(asked(5).unwrap_err().to_string().contains("does not run"));
        Followers::default().listen(&host.path(FOLLOW)).unwrap();
        assert!(!asked(1).unwrap());
        let many = vec![name("a.example.org"); FOLLOWED_NAMES + 1];
        let refused = with_task(&host, |task| follow(task, &many, AddressDetail::None, 1)).unwrap_err();
        assert!(matches!(refused, Failure::Invalid(_)));
    }

    #[test]
    fn one_that_closes_or_floods_is_left() {
        let (_folder, host) = host();
        let listener = std::os::unix::net::UnixListener::bind(host.path(FOLLOW)).unwrap();
        std::thread::spawn(move || {
            let (closed, _) = listener.accept().unwrap();
            drop(closed);
            let (mut floods, _) = listener.accept().unwrap();
            while floods.write_all(&[b'x'; 4096]).is_ok() {}
        });
        for _ in ["closes", "floods"] {
            let ended = with_task(&host, |task| follow(task, &[name("a.example.org")], AddressDetail::None, 20));
            assert!(ended.is_err(), "{ended:?}");
        }
    }
}
