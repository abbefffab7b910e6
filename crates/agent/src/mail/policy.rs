//! Whose mail is taken now, as the node's plan says it last: read from its file, again whenever there is another one.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use corpus_protocol::{MailGuest, MailPlan};

/// What a file is told apart by: another one is renamed over it.
type Stamp = (u64, i64, i64, u64);

/// The file, and what was read from it last.
#[derive(Debug)]
pub struct Policy {
    path: PathBuf,
    read: Mutex<Option<(Stamp, Arc<MailPlan>)>>,
}

impl Policy {
    /// Of this file.
    pub fn new(path: PathBuf) -> Self {
        Self { path, read: Mutex::default() }
    }

    /// What counts for the guest at this address, if its mail is taken.
    pub fn of(&self, ip: Ipv4Addr) -> Option<(Arc<MailPlan>, MailGuest)> {
        let plan = self.now()?;
        let guest = plan.guests.iter().find(|guest| guest.ip == ip)?.clone();
        Some((plan, guest))
    }

    /// Nobody's mail is taken while the file can't be read.
    fn now(&self) -> Option<Arc<MailPlan>> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let stat = fs::metadata(&self.path).ok()?;
        let stamp = (stat.ino(), stat.mtime(), stat.mtime_nsec(), stat.len());
        if let Some((_, plan)) = read.as_ref().filter(|(seen, _)| *seen == stamp) {
            return Some(Arc::clone(plan));
        }
        let plan: Arc<MailPlan> = Arc::new(serde_json::from_str(&fs::read_to_string(&self.path).ok()?).ok()?);
        *read = Some((stamp, Arc::clone(&plan)));
        Some(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files;

    #[test]
    fn another_plan_counts_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mail.json");
        let policy = Policy::new(path.clone());
        let ip = Ipv4Addr::new(10, 5, 0, 10);
        assert_eq!(policy.of(ip), None);
        for messages_per_hour in [100, 200] {
            let guest = MailGuest { guest: "a.example.org".parse().unwrap(), ip, messages_per_hour };
            let relay = "192.0.2.25:25".parse().unwrap();
            let plan = MailPlan { relay, max_bytes: 1 << 20, guests: vec![guest] };
            files::write(&path, &serde_json::to_string(&plan).unwrap(), 0o644).unwrap();
            assert_eq!(policy.of(ip).unwrap().1.messages_per_hour, messages_per_hour);
        }
        assert_eq!(policy.of(Ipv4Addr::new(10, 5, 0, 11)), None);
        files::write(&path, "{", 0o644).unwrap();
        assert_eq!(policy.of(ip), None);
    }
}
