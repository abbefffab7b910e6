//! What the host remembers of jobs, in `/var/lib/corpus/jobs`.
//!
//! Per job the latest generation and request seen: a controller that lost its lease carries a
//! lower generation and is refused ([`admit`]), so two controllers never act for one job; and so
//! is a request that was overtaken by a later one, so nothing is done after it was undone. Who has a line of its own ends
//! when it is overtaken ([`leave_when_overtaken`]). And a journal, a
//! JSON line for each request that ended, to be read by a person after an accident. Both are
//! forgotten a week after the job's last request.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use corpus_domain::JobId;
use corpus_protocol::{JobRef, Reply, Request};
use rustix::fs::{FlockOperation, flock};
use serde_json::{Value, json};

use crate::failure::{At, Failure};
use crate::host::Host;

const RETENTION: Duration = Duration::from_hours(7 * 24);
/// How often it is looked whether a job was overtaken: much less than a request waits for another one.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// A journal that reaches this many bytes begins anew.
const MAX_JOURNAL: u64 = 256 << 10;

/// Records which request is the latest, or refuses one that comes after a later one.
pub fn admit(host: &Host, job: JobRef) -> Result<(), Failure> {
    admit_as(host, job.id, &|_| (job.generation, job.request))
}

/// The same for a line of its own, which has no number among the job's requests.
pub fn admit_line(host: &Host, job: JobId, generation: i64) -> Result<(), Failure> {
    admit_as(host, job, &|(seen, request)| (generation, if seen == generation { request } else { 0 }))
}

fn admit_as(host: &Host, job: JobId, given: &dyn Fn((i64, u64)) -> (i64, u64)) -> Result<(), Failure> {
    let folder = folder(host);
    let path = folder.join(job.to_string());
    fs::create_dir_all(&folder).at("make", &folder)?;
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .at("open", &path)?;
    flock(&file, FlockOperation::LockExclusive).at("lock", &path)?;
    let mut text = String::new();
    file.read_to_string(&mut text).at("read", &path)?;
    let seen = latest(&text);
    let given = given(seen);
    if given < seen {
        return Err(Failure::Fenced { job, given, seen });
    }
    if given > seen { remember(&mut file, given).at("write", &path) } else { Ok(()) }
}

/// Ends this process soon after a later generation of the job was here, and frees what it holds.
pub fn leave_when_overtaken(host: Host, job: JobId, generation: i64) {
    std::thread::spawn(move || {
        let path = folder(&host).join(job.to_string());
        while fs::read_to_string(&path).map_or(true, |text| latest(&text).0 <= generation) {
            std::thread::sleep(LOOK_INTERVAL);
        }
        eprintln!("corpus-agent: a later generation of job {job} was here");
        std::process::exit(1);
    });
}

/// Generation and request of the latest one. An older agent wrote the generation only.
fn latest(text: &str) -> (i64, u64) {
    let mut numbers = text.split_whitespace();
    let generation = numbers.next().and_then(|number| number.parse().ok()).unwrap_or(i64::MIN);
    (generation, numbers.next().and_then(|number| number.parse().ok()).unwrap_or(0))
}

/// Overwrites in place: the numbers have a fixed width, so no write leaves half of one behind a longer one.
fn remember(file: &mut File, (generation, request): (i64, u64)) -> std::io::Result<()> {
    file.rewind()?;
    file.write_all(format!("{generation:020} {request:020}\n").as_bytes())
}

/// Adds a line to the job's journal. A full disk does not fail the request that frees it.
pub fn journal(host: &Host, job: JobRef, request: &Request, reply: &Reply) {
    if folder(host).is_dir() {
        let path = folder(host).join(format!("{}.log", job.id));
        let line = journal_line(job, request, reply);
        let long = fs::metadata(&path).is_ok_and(|file| file.len() > MAX_JOURNAL);
        let _ = OpenOptions::new()
            .create(true)
            .append(!long)
            .write(true)
            .truncate(long)
            .mode(0o600)
            .open(&path)
            .and_then(|mut file| file.write_all(line.as_bytes()));
    }
}

fn journal_line(job: JobRef, request: &Request, reply: &Reply) -> String {
    let kind = serde_json::to_value(request).ok();
    let kind = kind.as_ref().and_then(|request| request.get("type")).and_then(Value::as_str).unwrap_or_default();
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let result = match reply {
        Ok(answer) => json!({ "answer": answer }),
        Err(error) => json!({ "error": error }),
    };
    format!(
        "{}\n",
        json!({ "unix_ms": since.as_millis(), "request": kind, "generation": job.generation, "number": job.request, "result": result })
    )
}

/// Forgets the jobs that made no request for a week.
pub fn prune(host: &Host) {
    let Ok(entries) = fs::read_dir(folder(host)) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if is_old(&path) {
            let _ = fs::remove_file(path);
        }
    }
}

fn is_old(path: &Path) -> bool {
    // The journal is written with each request, the generation only when it rises.
    let age = |path: &Path| fs::metadata(path).ok()?.modified().ok()?.elapsed().ok();
    let journal = path.with_extension("log");
    [path, &journal].into_iter().filter_map(age).min().is_some_and(|age| age > RETENTION)
}

fn folder(host: &Host) -> PathBuf {
    host.corpus().join("jobs")
}

#[cfg(test)]
mod tests {
    use super::*;
    use corpus_protocol::Answer;
    use proptest::prelude::*;

    fn job(generation: i64) -> JobRef {
        JobRef { id: corpus_domain::JobId(uuid::Uuid::from_u128(7)), generation, request: 0 }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn a_generation_passes_unless_a_higher_one_did(generations in prop::collection::vec(-3_i64..1000, 1..20)) {
            let folder = tempfile::tempdir().unwrap();
            let host = Host::below(folder.path());
            let mut highest = i64::MIN;
            for generation in generations {
                prop_assert_eq!(admit(&host, job(generation)).is_ok(), generation >= highest);
                highest = highest.max(generation);
            }
        }
    }

    #[test]
    fn a_request_that_was_overtaken_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let nth = |generation, request| JobRef { request, ..job(generation) };
        admit(&host, nth(1, 4)).unwrap();
        admit(&host, nth(1, 4)).unwrap();
        admit(&host, nth(1, 6)).unwrap();
        assert!(admit(&host, nth(1, 5)).is_err());
        admit(&host, nth(2, 0)).unwrap();
        assert!(admit(&host, nth(1, 7)).is_err());
    }

    #[test]
    fn a_line_of_its_own_is_refused_by_its_generation() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let nth = |generation, request| JobRef { request, ..job(generation) };
        admit(&host, nth(1, 4)).unwrap();
        admit_line(&host, job(1).id, 1).unwrap();
        assert!(admit(&host, nth(1, 3)).is_err());
        admit(&host, nth(1, 5)).unwrap();
        admit_line(&host, job(1).id, 2).unwrap();
        assert!(admit(&host, nth(1, 6)).is_err());
        assert!(matches!(admit_line(&host, job(1).id, 1), Err(Failure::Fenced { .. })));
    }

    #[test]
    fn the_journal_says_what_was_done_and_no_secret() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        admit(&host, job(2)).unwrap();
        journal(&host, job(2), &Request::RemoveNode, &Ok(Answer::Done { changed: true }));
        let text = fs::read_to_string(host.path(format!("/var/lib/corpus/jobs/{}.log", job(2).id))).unwrap();
        assert!(text.contains(r#""request":"remove_node""#) && text.contains(r#""generation":2"#), "{text}");
    }

    #[test]
    fn old_jobs_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        admit(&host, job(2)).unwrap();
        prune(&host);
        assert!(admit(&host, job(1)).is_err());
        let path = super::folder(&host).join(job(1).id.to_string());
        let old = SystemTime::now() - RETENTION - Duration::from_secs(1);
        File::open(path).unwrap().set_modified(old).unwrap();
        prune(&host);
        assert!(admit(&host, job(1)).is_ok());
    }
}
