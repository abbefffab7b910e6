//! What guests told, as it is shown: times as times, and nothing that looks like a secret.

use chrono::{DateTime, Utc};
use corpus_api::deployments::report::{
    DeployedCommit, DeploymentFault, DeploymentReport, PhaseReport, Proof, ProofMoment, RecipeReport, SaltState,
};
use corpus_api::environments::{Archive, ConfigurationValue, LiveRelease};
use corpus_protocol::{self as protocol, Millis, Moment, Report};
use serde_json::Value;

/// What stands for a secret.
const MASKED: &str = "(a secret)";
/// Words in a key by which its value is a secret.
const SECRET: [&str; 5] = ["password", "secret", "token", "key", "dsn"];

/// A moment by the guest's clock; none for what no calendar holds.
pub fn moment(millis: Millis) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_millis(i64::try_from(millis).ok()?)
}

/// What is live, with the number of the deployment that brought it.
pub fn live(live: protocol::Live, number: Option<i64>) -> LiveRelease {
    let protocol::Live { deployment, commit, pillar, since_ms } = live;
    LiveRelease { deployment, number, commit, pillar, since: moment(since_ms) }
}

/// A kept copy of the project tree; what is known here of the release that it holds is not in what its guest told.
pub fn archive(entry: protocol::ArchiveEntry) -> Archive {
    let protocol::ArchiveEntry { id, release, commit, pillar, at_ms, bytes, has_failed_tree } = entry;
    let (number, subject, at) = (None, None, moment(at_ms));
    Archive { deployment: id, release, number, commit, subject, pillar, at, bytes, has_failed_tree }
}

/// A value of the configuration: guests mask their secrets, and what looks like one is masked all the same.
pub fn configuration(entry: protocol::ConfigurationEntry) -> ConfigurationValue {
    let protocol::ConfigurationEntry { key, value, origin } = entry;
    let value = value.filter(|_| !is_secret(&key)).map(masked);
    ConfigurationValue { key, value, origin }
}

fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    SECRET.iter().any(|word| key.contains(word))
}

/// A value with the secrets in it masked.
fn masked(value: Value) -> Value {
    match value {
        Value::Array(all) => all.into_iter().map(masked).collect(),
        Value::Object(all) => all
            .into_iter()
            .map(|(key, value)| {
                let value = if is_secret(&key) { MASKED.into() } else { masked(value) };
                (key, value)
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        value => value,
    }
}

/// What a guest told of a deployment.
pub fn report(told: Report) -> DeploymentReport {
    DeploymentReport {
        state: told.state,
        commit: told.commit,
        pillar: told.pillar,
        previous: told.previous,
        commits: told.commits.into_iter().map(commit).collect(),
        began_at: moment(told.began_ms).filter(|_| told.began_ms > 0),
        phases: told.phases.into_iter().map(phase).collect(),
        fault: told.fault.map(fault),
        proofs: told.proofs.into_iter().map(proof).collect(),
        warnings: told.warnings,
        live: told.live.map(|told| live(told, None)),
        failed_tree: told.failed_tree,
        archives: told.archives.into_iter().map(archive).collect(),
        lines: told.lines,
    }
}

fn commit(told: protocol::Commit) -> DeployedCommit {
    let protocol::Commit { id, subject, author, at_ms } = told;
    DeployedCommit { id, subject, author, at: moment(at_ms) }
}

fn phase(told: protocol::PhaseReport) -> PhaseReport {
    let protocol::PhaseReport { phase, outcome, began_ms, elapsed_ms, recipes } = told;
    let recipes = recipes.into_iter().map(recipe).collect();
    PhaseReport { phase, outcome, began_at: began_ms.and_then(moment), elapsed_ms, recipes }
}

fn recipe(told: protocol::RecipeReport) -> RecipeReport {
    RecipeReport {
        name: told.name,
        outcome: told.outcome,
        elapsed_ms: told.elapsed_ms,
        reason: told.reason,
        first_line: told.lines.map(|(first, _)| first),
        last_line: told.lines.map(|(_, last)| last),
        failing_line: told.failing_line,
        states: told.states.into_iter().map(state).collect(),
    }
}

/// What a host told of a state.
pub fn state(told: protocol::SaltState) -> SaltState {
    let protocol::SaltState { id, function, name, ok, changed, comment, elapsed_ms } = told;
    SaltState { id, function, name, ok, changed, comment, elapsed_ms }
}

fn proof(told: protocol::Proof) -> Proof {
    let protocol::Proof { moment, check, passed, seen, elapsed_ms } = told;
    let moment = match moment {
        Moment::Before => ProofMoment::Before,
        Moment::After => ProofMoment::After,
        Moment::RolledBack => ProofMoment::RolledBack,
    };
    Proof { moment, check, passed, seen, elapsed_ms }
}

fn fault(told: protocol::Fault) -> DeploymentFault {
    let protocol::Fault { phase, recipe, message, line } = told;
    DeploymentFault { phase, recipe, message, line }
}

#[cfg(test)]
mod tests {
    use corpus_domain::Origin;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_looks_like_a_secret_is_masked() {
        let shown = |key: &str, value| {
            configuration(protocol::ConfigurationEntry {
                key: key.to_owned(),
                value: Some(value),
                origin: Origin::Defaults,
            })
            .value
        };
        assert_eq!(shown("database.Password", json!("hush")), None);
        assert_eq!(shown("port", json!(80)), Some(json!(80)));
        assert_eq!(
            shown("users", json!([{ "user": "u", "Api_Token": "t0p", "more": { "dsn": "x" } }])),
            Some(json!([{ "user": "u", "Api_Token": "(a secret)", "more": { "dsn": "(a secret)" } }]))
        );
    }

    #[test]
    fn a_moment_is_one_of_the_calendar() {
        assert_eq!(moment(0).map(|at| at.timestamp()), Some(0));
        assert_eq!(moment(u64::MAX), None);
    }
}
