//! How this guest is managed: by Salt without a master, by one of its own, or by one elsewhere.
//!
//! What Salt needs lies in `/etc/corpus/salt`, where no project and no image of this guest takes it along: the minion's pair of keys,
//! made here, of which only the public half leaves; its master's public key; and of a guest that has a master of its own, that
//! one's. All of it belongs to the guest with this id: in a copy of its files, which is another guest, it is removed before
//! anything is made, and until then the units' `ConditionHost` keeps it from starting.
//!
//! A mode is so when the minion was taken by its master once: not when a unit was started.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use corpus_domain::GuestId;
use corpus_protocol::{Follows, MAX_SALT_KEY, MasterPlace, ModePlan, STATES_LIMIT_S, StatesRun};
use serde_json::{Value, json};

use crate::failure::{At, Failure};
use crate::files;
use crate::host::Host;
use crate::project::{salt, saved};
use crate::runner::Argv;
use crate::task::Task;

const FOLDER: &str = "/etc/corpus/salt";
const UNITS: &str = "/etc/systemd/system";
const MASTER: &str = "corpus-salt-master.service";
const MINION: &str = "corpus-salt-minion.service";
/// Starts Salt, and tells what became of its states.
const RUN: &str = include_str!("mode/run.py");
/// What a person in the guest types.
const TYPED: &str = "/usr/local/sbin/corpus-salt";
/// A master of its own is asked at this address only.
const OWN_ADDRESS: &str = "127.0.0.1";
const PUBLISH_PORT: u16 = 4505;
const REQUEST_PORT: u16 = 4506;
/// What a master of a guest's own is called, for the names of its keys.
const OWN_MASTER: &str = "own";
/// How long a minion may take to be taken by its master.
const TAKEN: Duration = Duration::from_mins(2);
/// How much of what states came to is read.
const MAX_RESULT: u64 = 16 << 20;

/// What runs for good. What it started goes with it, and it is started again. A guest of little processor time is entered
/// before Salt has started in it.
fn unit(what: &str, guest: &str, packages: &Path, folder: &Path) -> String {
    let (packages, folder) = (packages.display(), folder.display());
    format!(
        "[Unit]\nDescription=Salt {what} of Corpus\nAfter=network.target ssh.service {MASTER}\n\
         # In a copy of this guest's files it does not start.\nConditionHost={guest}\n\n\
         [Service]\nType=exec\nExecStart=/usr/bin/python3 -B -W ignore {folder}/run.py {packages} {folder} {what}\n\
         Nice=10\nRestart=always\nRestartSec=2\nTimeoutStopSec=10\nOOMPolicy=continue\n\n\
         [Install]\nWantedBy=multi-user.target\n"
    )
}

/// What the units say that are there.
pub fn units(host: &Host) -> Result<String, Failure> {
    let text = |name| Ok(files::read(&host.path(UNITS).join(name))?.unwrap_or_default());
    [MASTER, MINION].into_iter().map(text).collect()
}

/// Where everything of Salt's is, on this guest.
struct Place<'a> {
    host: &'a Host,
    folder: PathBuf,
}

impl<'a> Place<'a> {
    fn of(host: &'a Host) -> Self {
        Self { host, folder: host.path(FOLDER) }
    }

    fn minion_keys(&self) -> PathBuf {
        self.folder.join("minion/pki")
    }

    fn master_keys(&self) -> PathBuf {
        self.folder.join("master/pki")
    }

    fn unit(&self, name: &str) -> PathBuf {
        self.host.path(UNITS).join(name)
    }

    /// What is here is this guest's: what was another one's is gone.
    fn belongs_to(&self, guest: GuestId, task: &Task<'_>) -> Result<(), Failure> {
        let (of, guest) = (self.folder.join("guest"), guest.to_string());
        if files::read(&of)?.is_some_and(|text| text.trim() == guest) {
            return Ok(());
        }
        for name in [MINION, MASTER] {
            self.ends(name, task)?;
        }
        files::remove_folder(&self.folder)?;
        files::private(&self.folder)?;
        files::write(&of, &format!("{guest}\n"), 0o600)
    }

    /// A unit runs as it is written here, from now on; tells whether anything had to be done.
    fn runs(&self, name: &str, text: &str, is_new: bool, task: &Task<'_>) -> Result<bool, Failure> {
        let written = files::ensure(&self.unit(name), text, 0o644)?;
        if written {
            Argv::new("systemctl").arg("daemon-reload").run(task)?;
        }
        Argv::new("systemctl").args(["enable", "--quiet", name]).quiet().run(task)?;
        let (status, _) = Argv::new("systemctl").args(["is-active", "--quiet", name]).quiet().end(task)?;
        if status.success() && !written && !is_new {
            return Ok(false);
        }
        Argv::new("systemctl").args(["restart", name]).run(task).map(|_| true)
    }

    fn ends(&self, name: &str, task: &Task<'_>) -> Result<bool, Failure> {
        if !self.unit(name).exists() {
            return Ok(false);
        }
        Argv::new("systemctl").args(["disable", "--now", "--quiet", name]).quiet().run(task)?;
        files::remove(&self.unit(name))?;
        Argv::new("systemctl").arg("daemon-reload").run(task).map(|_| true)
    }

    /// A pair of keys: the private one, and the public one beside it.
    fn pair(folder: &Path, name: &str, task: &Task<'_>) -> Result<String, Failure> {
        let (private, public) = (folder.join(format!("{name}.pem")), folder.join(format!("{name}.pub")));
        if let (true, Some(key)) = (private.exists(), files::read(&public)?) {
            return Ok(key);
        }
        files::private(folder)?;
        let part = folder.join(format!("{name}.part"));
        for path in [part.clone(), part.with_extension("part.pub")] {
            files::remove(&path)?;
        }
        let make = Argv::new("ssh-keygen").args(["-q", "-t", "rsa", "-b", "3072", "-m", "PEM", "-N", "", "-f"]);
        make.arg(&part).quiet().run(task)?;
        let told = Argv::new("ssh-keygen").args(["-e", "-m", "PKCS8", "-f"]).arg(&part).quiet().run(task)?;
        files::remove(&folder.join(format!("{name}.part.pub")))?;
        files::write(&public, &told.stdout, 0o644)?;
        fs::rename(&part, &private).at("name", &private)?;
        files::sync_folder(folder)?;
        Ok(told.stdout)
    }
}

/// The public key of the minion of the guest with this id.
pub fn minion_key(guest: GuestId, task: &Task<'_>) -> Result<String, Failure> {
    let place = Place::of(task.host);
    place.belongs_to(guest, task)?;
    Place::pair(&place.minion_keys(), "minion", task)
}

/// The guest is managed as planned; tells whether anything had to be done.
pub fn ensure(plan: &ModePlan, task: &Task<'_>) -> Result<bool, Failure> {
    let place = Place::of(task.host);
    place.belongs_to(plan.id, task)?;
    let mut changed = lay_out(&place, plan, task)?;
    let packages = salt::packages(task.host, &plan.salt)?;
    let unit = |what| unit(what, plan.guest.as_str(), &packages, &place.folder);
    match &plan.follows {
        Follows::Nobody => {
            for name in [MINION, MASTER] {
                changed |= place.ends(name, task)?;
            }
            // No master takes it any more, so none is to in another mode some day.
            changed |= files::remove_folder(&place.minion_keys())?;
            return Ok(changed | files::remove_folder(&place.folder.join("master"))?);
        }
        Follows::Itself => {
            // The master first: its minion waits for none.
            let restarts = place.runs(MASTER, &unit("master"), changed, task)?;
            changed |= restarts;
        }
        Follows::Master(_) => {
            changed |= place.ends(MASTER, task)?;
            changed |= files::remove_folder(&place.folder.join("master"))?;
        }
    }
    changed |= place.runs(MINION, &unit("minion"), changed, task)?;
    run(&place.folder, &packages, TAKEN, task, &["ping".as_ref()]).map_err(|failure| not_taken(plan, failure))?;
    Ok(changed)
}

/// Files and keys, as planned.
fn lay_out(place: &Place<'_>, plan: &ModePlan, task: &Task<'_>) -> Result<bool, Failure> {
    let mut changed = salt::ensure(&plan.salt, task)?;
    changed |= starter(&place.folder)?;
    let packages = salt::packages(task.host, &plan.salt)?;
    let starts = format!("/usr/bin/python3 -B -W ignore {FOLDER}/run.py {} {FOLDER}", packages.display());
    files::ensure(&place.host.path(TYPED), &format!("#!/bin/sh\nexec {starts} \"$@\"\n"), 0o755)?;
    let own;
    let master = match &plan.follows {
        Follows::Nobody => None,
        Follows::Itself => {
            let minion = Place::pair(&place.minion_keys(), "minion", task)?;
            let key = Place::pair(&place.master_keys(), OWN_MASTER, task)?;
            let minions = place.master_keys().join("minions");
            changed |= files::ensure(&minions.join(plan.guest.as_str()), &minion, 0o600)?;
            changed |= configure(&place.folder.join("master/master"), &own_master(place))?;
            let (publish_port, request_port) = (PUBLISH_PORT, REQUEST_PORT);
            own = MasterPlace { address: OWN_ADDRESS.to_owned(), publish_port, request_port, key };
            Some(&own)
        }
        Follows::Master(master) => {
            Place::pair(&place.minion_keys(), "minion", task)?;
            Some(master)
        }
    };
    if let Some(master) = master {
        if master.key.len() > MAX_SALT_KEY {
            return Err(Failure::Invalid("the key of a master is longer than any is".into()));
        }
        changed |= files::ensure(&place.minion_keys().join("minion_master.pub"), &master.key, 0o644)?;
    }
    changed |= configure(&place.folder.join("minion/minion"), &minion(place, plan, master))?;
    Ok(changed)
}

/// A file of Salt's that says these values.
pub fn configure(path: &Path, values: &Value) -> Result<bool, Failure> {
    // What is JSON is YAML.
    files::ensure(path, &format!("{values:#}\n"), 0o600)
}

fn minion(place: &Place<'_>, plan: &ModePlan, master: Option<&MasterPlace>) -> Value {
    let mut values = json!({
        "id": plan.guest,
        "user": "root",
        "root_dir": "/",
        "pki_dir": place.minion_keys(),
        "cachedir": "/var/cache/corpus-salt/minion",
        "sock_dir": "/run/corpus-salt-minion",
        "pidfile": "/run/corpus-salt-minion.pid",
        "log_file": "/dev/null",
        "transport": "tcp",
        "acceptance_wait_time": 1,
        "verify_master_pubkey_sign": false,
        "open_mode": false,
        // These ask name servers and PCI; nobody is managed by their answers.
        "enable_fqdns_grains": false,
        "enable_gpu_grains": false,
        "grains": {"corpus": {
            "guest": plan.id, "project": plan.project, "environment": plan.environment, "node": plan.node,
        }},
    });
    let more = match (&plan.follows, master) {
        (Follows::Nobody, _) | (_, None) => json!({
            "file_client": "local",
            "file_roots": {"base": ["/srv/salt"]},
            "pillar_roots": {"base": ["/srv/pillar"]},
        }),
        (follows, Some(master)) => json!({
            "master": master.address,
            "publish_port": master.publish_port,
            "master_port": master.request_port,
            // Only a master elsewhere has a pillar of Corpus, which must be there.
            "corpus_pillar_of": matches!(follows, Follows::Master(_)).then_some(plan.id),
        }),
    };
    if let (Some(values), Value::Object(more)) = (values.as_object_mut(), more) {
        values.extend(more);
    }
    values
}

/// What lies in the guest is what its own master has.
fn own_master(place: &Place<'_>) -> Value {
    json!({
        "id": OWN_MASTER,
        "interface": OWN_ADDRESS,
        "publish_port": PUBLISH_PORT,
        "ret_port": REQUEST_PORT,
        "transport": "tcp",
        "user": "root",
        "root_dir": "/",
        "pki_dir": place.master_keys(),
        "cachedir": "/var/cache/corpus-salt/master",
        "sock_dir": "/run/corpus-salt-master",
        "pidfile": "/run/corpus-salt-master.pid",
        "log_file": "/dev/null",
        "worker_threads": 1,
        "auto_accept": false,
        "open_mode": false,
        "file_roots": {"base": ["/srv/salt"]},
        "pillar_roots": {"base": ["/srv/pillar"]},
        "enable_fqdns_grains": false,
    })
}

fn run(folder: &Path, packages: &Path, limit: Duration, task: &Task<'_>, words: &[&Path]) -> Result<(), Failure> {
    let argv = Argv::new("python3").args(["-B", "-W", "ignore"]).arg(folder.join("run.py"));
    argv.arg(packages).arg(folder).args(words).limit(limit).run(task).map(drop)
}

fn not_taken(plan: &ModePlan, failure: Failure) -> Failure {
    let at = match &plan.follows {
        Follows::Master(master) => format!("the master at {}:{}", master.address, master.request_port),
        _ => "the guest's own master".to_owned(),
    };
    match failure {
        Failure::Command { tail, .. } => {
            let said = tail.last().map(|line| format!(": {line}")).unwrap_or_default();
            if said.contains("does not answer") {
                return Failure::Invalid(format!("{at} does not answer the guest's minion{said}"));
            }
            Failure::Invalid(format!("{at} does not take the guest's minion{said}"))
        }
        Failure::TimedOut { .. } => Failure::Invalid(format!("{at} does not answer the guest's minion")),
        other => other,
    }
}

/// All states that the top file names for this guest are so, or are tried; what became of them.
pub fn apply(plan: &ModePlan, run: (bool, u32), task: &Task<'_>) -> Result<StatesRun, Failure> {
    let place = Place::of(task.host);
    place.belongs_to(plan.id, task)?;
    lay_out(&place, plan, task)?;
    states(&place.folder, &salt::packages(task.host, &plan.salt)?, run, task)
}

/// Lays down what starts Salt below a folder.
pub fn starter(folder: &Path) -> Result<bool, Failure> {
    files::ensure(&folder.join("run.py"), RUN, 0o600)
}

/// All states that the configuration below a folder names are so, or are tried.
pub fn states(
    folder: &Path,
    packages: &Path,
    (test, limit_s): (bool, u32),
    task: &Task<'_>,
) -> Result<StatesRun, Failure> {
    let result = folder.join("states.json");
    files::remove(&result)?;
    let mut words: Vec<&Path> = vec!["states".as_ref(), &result];
    words.extend(test.then_some(Path::new("test")));
    let limit = Duration::from_secs(limit_s.clamp(1, STATES_LIMIT_S).into());
    let ran = run(folder, packages, limit, task, &words);
    let about = fs::metadata(&result).ok();
    if about.is_some_and(|about| about.len() > MAX_RESULT) {
        return Err(Failure::Invalid("the states say more than is read".into()));
    }
    let told = saved::read::<StatesRun>(&result)?;
    files::remove(&result)?;
    // What they came to counts, however the program ended.
    match (told, ran) {
        (Some(told), _) => Ok(told),
        (None, Err(failure)) => Err(failure),
        (None, Ok(())) => Err(Failure::Invalid("Salt told nothing of its states".into())),
    }
}

#[cfg(test)]
mod tests;
