//! What operators want of every node, beside what makes it one: packages, their own accounts, how SSH lets in, the time, mail.
//!
//! It is said by states of Salt, run without a master, so that what is not so can be told without a change ([`crate::mode`]
//! does the same in guests). Ours are in an environment of their own, so that `/srv/salt` of the node is whatever operators
//! make of it, and is applied beside them.

use std::path::Path;

use corpus_protocol::{BaselinePlan, StatesRun};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::files;
use crate::host::Host;
use crate::mode::{configure, starter, states};
use crate::project::salt;
use crate::task::Task;

const FOLDER: &str = "/etc/corpus/baseline";
const CACHE: &str = "/var/cache/corpus-salt";
/// What is to be so, by the pillar `baseline`.
const STATES: &str = include_str!("baseline/baseline.sls");
const TOP: &str = "corpus:\n  '*':\n    - baseline\n";
const PILLAR_TOP: &str = "base:\n  '*':\n    - baseline\n";

/// The node is as planned, or it is told what is not so; what became of each state.
pub fn apply(plan: &BaselinePlan, run: (bool, u32), task: &Task<'_>) -> Result<StatesRun, Failure> {
    let folder = task.host.path(FOLDER);
    files::private(&folder)?;
    salt::ensure(&plan.salt, task)?;
    starter(&folder)?;
    files::ensure(&folder.join("states/top.sls"), TOP, 0o600)?;
    files::ensure(&folder.join("states/baseline.sls"), STATES, 0o600)?;
    files::ensure(&folder.join("pillar/top.sls"), PILLAR_TOP, 0o600)?;
    files::ensure(&folder.join("pillar/baseline.sls"), &pillar(plan), 0o600)?;
    configure(&folder.join("minion/minion"), &minion(&folder, plan))?;
    states(&folder, &salt::packages(task.host, &plan.salt)?, run, task)
}

/// Salt is gone with all that it kept. What operators wanted stays theirs: packages, accounts, keys and the settings of SSH.
pub fn remove(host: &Host) -> Result<bool, Failure> {
    let mut changed = false;
    for folder in [FOLDER, CACHE, salt::FOLDER] {
        changed |= files::remove_folder(&host.path(folder))?;
    }
    Ok(changed)
}

/// JSON, and no template: what somebody wrote in a value is not rendered.
fn pillar(plan: &BaselinePlan) -> String {
    let wanted = json!({
        "packages": plan.packages,
        "operators": plan.operators,
        "password_login": plan.password_login,
        "time_servers": plan.time_servers,
        "root_mail": plan.root_mail,
    });
    format!("#!json\n{:#}\n", json!({ "baseline": wanted }))
}

fn minion(folder: &Path, plan: &BaselinePlan) -> Value {
    json!({
        "id": plan.address,
        "user": "root",
        "root_dir": "/",
        "pki_dir": folder.join("minion/pki"),
        "cachedir": "/var/cache/corpus-salt/baseline",
        "sock_dir": "/run/corpus-salt-baseline",
        "log_file": "/dev/null",
        "file_client": "local",
        "file_roots": {"corpus": [folder.join("states")], "base": ["/srv/salt"]},
        "pillar_roots": {"base": [folder.join("pillar")]},
        "enable_fqdns_grains": false,
        "enable_gpu_grains": false,
        "grains": {"corpus": {"node": plan.node, "address": plan.address}},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_is_a_pillar_and_no_part_of_the_states() {
        let plan = BaselinePlan {
            node: corpus_domain::NodeId(uuid::Uuid::nil()),
            address: "node.example.org".to_owned(),
            salt: corpus_protocol::SaltBundle { path: "/x".to_owned(), sha256: "0".repeat(64) },
            packages: vec!["htop".to_owned()],
            operators: vec![],
            password_login: false,
            time_servers: vec![],
            root_mail: Some("{{ 1 + 1 }}".to_owned()),
        };
        let text = pillar(&plan);
        assert!(text.starts_with("#!json\n") && text.contains("{{ 1 + 1 }}"), "{text}");
    }
}
