//! When two copies are of one release: what counts when archives are kept, and when one goes back.
//!
//! Guest and controller ask this alike, so that what the one keeps is what the other offers.

use crate::{CommitId, DeploymentId};

/// What a deployment made live, or what an archive is a copy of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release<'a> {
    /// The deployment that made it live; none when that was not told.
    pub deployment: Option<DeploymentId>,
    /// Its commit.
    pub commit: Option<&'a CommitId>,
    /// Its pillar's commit.
    pub pillar: Option<&'a CommitId>,
}

impl Release<'_> {
    /// Whether they are the same: of the same commits of code and pillar, whichever deployments made them live;
    /// without a commit, of the same deployment. Where the deployment was not told, neither was the pillar: then
    /// the code alone decides.
    pub fn is_same(&self, other: &Release<'_>) -> bool {
        let is_whole = self.deployment.is_some() && other.deployment.is_some();
        match (self.commit, other.commit) {
            (Some(here), Some(there)) => here == there && (!is_whole || self.pillar == other.pillar),
            (None, None) => is_whole && self.deployment == other.deployment,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_code_and_pillar_or_by_deployment() {
        let [code, other]: [CommitId; 2] = [1, 2].map(|digit: u8| digit.to_string().repeat(40).parse().unwrap());
        let [first, second] = [1, 2].map(|number| Some(DeploymentId(uuid::Uuid::from_u128(number))));
        let of = |deployment, commit, pillar| Release { deployment, commit, pillar };
        let (code, other) = (Some(&code), Some(&other));
        let table = [
            (of(first, code, other), of(second, code, other), true, "deployed twice"),
            (of(first, code, None), of(second, other, None), false, "other code"),
            (of(first, code, other), of(second, code, None), false, "another pillar"),
            (of(first, None, None), of(first, None, None), true, "one deployment without a commit"),
            (of(first, None, None), of(second, None, None), false, "two without a commit"),
            (of(first, code, None), of(first, None, None), false, "with and without a commit"),
            (of(None, code, None), of(second, code, other), true, "a pillar that was not told"),
            (of(None, None, None), of(None, None, None), false, "nothing was told"),
        ];
        for (one, another, same, what) in table {
            assert_eq!((one.is_same(&another), another.is_same(&one)), (same, same), "{what}");
        }
    }
}
