//! A recorded job, as it is kept in a file. Plain shapes of its own: the types of later releases
//! may differ, the files don't change.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use corpus_simulation::Host;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A job from its first event to its last.
#[derive(Debug, Serialize, Deserialize)]
pub struct Recorded {
    /// The release that made it.
    pub release: String,
    /// The last migration of that release.
    pub migration: i64,
    /// Its kind.
    pub kind: String,
    /// Its row when it was taken.
    pub job: Value,
    /// Its locks.
    pub locks: Vec<Value>,
    /// Rows that it depends on and does not change, by table, in the order of their keys.
    pub around: Vec<(String, Vec<Value>)>,
    /// Its steps before the first event.
    pub steps: Vec<Value>,
    /// What was written together, in order.
    pub flushes: Vec<Flush>,
    /// When all was over.
    pub end: Moment,
}

/// Events that were written together.
#[derive(Debug, Serialize, Deserialize)]
pub struct Flush {
    /// How node and rows were just before.
    pub before: Moment,
    /// The events, rows of `job_events`.
    pub events: Vec<Value>,
    /// The steps afterwards.
    pub steps: Vec<Value>,
}

/// Node and rows at a moment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Moment {
    /// Rows by table, in the order of their keys.
    pub rows: Vec<(String, Vec<Value>)>,
    /// The node.
    pub host: RecordedHost,
    /// What the DNS server answers: name and address.
    pub records: Vec<(String, String)>,
}

/// A simulated host.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RecordedHost {
    /// Guests: whether each runs, and whether it has a host key.
    pub guests: BTreeMap<String, (bool, bool)>,
    /// Images.
    pub images: Vec<String>,
    /// The revision of the plan in force.
    pub revision: Option<i64>,
    /// The routes in it: guest, port, address.
    pub routes: Vec<(String, u16, String)>,
    /// Its DNS names: name, guest, address.
    pub names: Vec<(String, String, String)>,
}

impl RecordedHost {
    /// A host as it is now.
    pub fn of(host: &Host) -> Self {
        let guests = host.guests().iter().map(|(name, one)| (name.to_string(), (one.running, one.host_key.is_some())));
        let plan = host.plan();
        let routes = plan.into_iter().flat_map(|plan| &plan.ssh_routes);
        let names = plan.into_iter().flat_map(|plan| &plan.http_routes);
        Self {
            guests: guests.collect(),
            images: host.images().keys().map(ToString::to_string).collect(),
            revision: plan.map(|plan| plan.revision),
            routes: routes.map(|to| (to.guest.to_string(), to.port.get(), to.ip.to_string())).collect(),
            names: names.map(|to| (to.name.to_string(), to.guest.to_string(), to.ip.to_string())).collect(),
        }
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("recorded")
}

fn entries(folder: PathBuf) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The releases that there are records of.
pub fn releases() -> Vec<String> {
    entries(folder())
}

/// The jobs that a release has recorded, by name.
pub fn kinds(release: &str) -> Vec<String> {
    entries(folder().join(release)).iter().filter_map(|name| Some(name.strip_suffix(".json")?.to_owned())).collect()
}

/// A recorded job.
pub fn load(release: &str, name: &str) -> Recorded {
    let path = folder().join(release).join(format!("{name}.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

/// Keeps a recorded job under a name.
pub fn save(recorded: &Recorded, name: &str) {
    let folder = folder().join(&recorded.release);
    fs::create_dir_all(&folder).unwrap();
    let text = serde_json::to_string(recorded).unwrap();
    fs::write(folder.join(format!("{name}.json")), text + "\n").unwrap();
}
