//! Follows a deployment's journal, from any offset, to its end.
//!
//! Who follows decides nothing, but for one thing: where nobody else starts a runner again
//! that died without an end, the follower does, and the runner rolls back what it finds.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::time::{Duration, Instant};

use corpus_domain::DeploymentId;
use corpus_protocol::{DeploymentEvent, Entry, Report};

use crate::failure::{At, Failure};
use crate::project::layout::Layout;
use crate::project::{order, saved};
use crate::task::Task;

/// How often the journal is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long an order may take to come: the push before it may be a large one.
const ORDER_TIMEOUT: Duration = Duration::from_hours(1);
/// How long nobody may run an unfinished deployment.
const VACANT: Duration = Duration::from_secs(5);
/// How often it is started again.
const STARTS: u32 = 3;
const CHUNK: u64 = 256 << 10;

/// Tells each entry with the offset of the next one; ends with the report. Waits for a journal
/// that is not there yet; a cancelled task ends it and touches nothing.
pub fn follow(
    layout: &Layout,
    id: DeploymentId,
    from: u64,
    task: &Task<'_>,
    tell: &mut dyn FnMut(u64, Entry),
) -> Result<Report, Failure> {
    let mut reader = Reader { offset: from, text: Vec::new() };
    let mut watch = Watch::default();
    let began = Instant::now();
    loop {
        task.go_on()?;
        let over = saved::read::<Report>(&layout.report(id))?;
        // After a power cut the journal may be shorter than it was when `from` was told.
        if let Some(report) = reader.read(layout, id, tell)?.or(over) {
            return Ok(report);
        }
        if layout.order(id).exists() {
            watch.look(layout, id, task)?;
        } else if began.elapsed() > ORDER_TIMEOUT {
            return Err(Failure::Missing(format!("there is no deployment {id} of {} here", layout.project())));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Reads whole lines.
struct Reader {
    offset: u64,
    text: Vec<u8>,
}

impl Reader {
    fn read(
        &mut self,
        layout: &Layout,
        id: DeploymentId,
        tell: &mut dyn FnMut(u64, Entry),
    ) -> Result<Option<Report>, Failure> {
        let path = layout.journal(id);
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).at("read", &path),
        };
        let held = u64::try_from(self.text.len()).unwrap_or_default();
        file.seek(SeekFrom::Start(self.offset + held)).at("read", &path)?;
        while (&mut file).take(CHUNK).read_to_end(&mut self.text).at("read", &path)? > 0 {
            while let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.text.drain(..=end).collect();
                self.offset += u64::try_from(line.len()).unwrap_or_default();
                // A line that a power cut tore was ended by the next runner, and tells nothing.
                let Ok(entry) = serde_json::from_slice::<Entry>(&line) else { continue };
                let report = match &entry.event {
                    DeploymentEvent::Ended { report } => Some(report.as_ref().clone()),
                    _ => None,
                };
                tell(self.offset, entry);
                if report.is_some() {
                    return Ok(report);
                }
            }
        }
        Ok(None)
    }
}

/// Sees to it that somebody runs the deployment.
#[derive(Default)]
struct Watch {
    vacant_since: Option<Instant>,
    starts: u32,
}

impl Watch {
    fn look(&mut self, layout: &Layout, id: DeploymentId, task: &Task<'_>) -> Result<(), Failure> {
        if order::runs(layout, id) {
            self.vacant_since = None;
            return Ok(());
        }
        let since = *self.vacant_since.get_or_insert_with(Instant::now);
        if since.elapsed() < VACANT {
            return Ok(());
        }
        if self.starts == STARTS {
            return Err(Failure::Missing(format!(
                "deployment {id} has no end and nobody runs it, though it was started {STARTS} times again"
            )));
        }
        self.starts += 1;
        self.vacant_since = None;
        task.note(format!("deployment {id} was left alone without an end; it is started again"));
        order::start(layout, id, task)
    }
}
