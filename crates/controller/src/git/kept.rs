//! Snapshots that are wanted before a deployment, when it comes as a push: the push goes to the guest when they are there.

use std::time::Duration;

use corpus_domain::{DeploymentId, GuestId};
use corpus_git_server::RefChange;

use super::GitTarget;
use crate::handlers::Kept;
use crate::store::environments;
use crate::{Controller, Result};
use corpus_api::Principal;

/// How long they may take: git's client waits, and is told nothing meanwhile.
const AT_MOST: Duration = Duration::from_mins(9);
/// What is deployed where nothing else is said.
const USUAL: [&str; 2] = ["main", "master"];

impl Controller {
    /// Takes those that are wanted before these changes come to the guests of an environment; nothing where they deploy
    /// nothing. The error says why there is none.
    pub(super) async fn keep_before_push(
        &self,
        who: &Principal,
        target: &GitTarget,
        deployment: DeploymentId,
        changes: &[RefChange],
    ) -> Result<Vec<Kept>> {
        let mut tx = self.services.begin().await?;
        let branches = environments::branches(&mut tx, target.guest_id).await?;
        if !deploys(&branches.unwrap_or_default(), changes) {
            return Ok(Vec::new());
        }
        let followers = environments::followers(&mut tx, target.project_id, target.environment).await?;
        let guests: Vec<GuestId> = followers.iter().map(|on| on.guest).chain([target.guest_id]).collect();
        let kept = self.keep_before(&mut tx, &guests, deployment, who).await?;
        tx.commit().await?;
        if let Err(error) = self.are_kept(&kept, AT_MOST).await {
            self.let_go(&kept, who).await?;
            return Err(error);
        }
        Ok(kept)
    }
}

/// Whether one of these branches comes to be something else.
fn deploys(branches: &[String], changes: &[RefChange]) -> bool {
    let is_one = |name: &str| match branches {
        [] => USUAL.contains(&name),
        some => some.iter().any(|branch| branch == name),
    };
    changes.iter().any(|change| change.to.is_some() && change.name.strip_prefix("refs/heads/").is_some_and(is_one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_only_stored_deploys_nothing() {
        let change = |name: &str, to: Option<&str>| RefChange {
            name: name.to_owned(),
            to: to.map(|digit| digit.repeat(40).parse().unwrap()),
        };
        let set = ["release/1.0".to_owned()];
        for (branches, name, to, expected) in [
            (&[] as &[String], "refs/heads/main", Some("1"), true),
            (&[], "refs/heads/master", Some("1"), true),
            (&[], "refs/heads/master", None, false),
            (&[], "refs/heads/main2", Some("1"), false),
            (&[], "refs/tags/main", Some("1"), false),
            (&set, "refs/heads/main", Some("1"), false),
            (&set, "refs/heads/release/1.0", Some("1"), true),
        ] {
            assert_eq!(deploys(branches, &[change(name, to)]), expected, "{name}");
        }
        assert!(deploys(&set, &[change("refs/heads/x", Some("1")), change("refs/heads/release/1.0", Some("2"))]));
    }
}
