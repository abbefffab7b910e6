//! What comes of a branch `preview/NAME` that is pushed to dev, or deleted there: the operations that do the same are asked
//! for in the pusher's name, so a push may no more than they may.
//!
//! The controller goes by what it read from the client itself; what the guest says of its branches makes no preview.

use corpus_api::Problem;
use corpus_api::previews::{MakePreview, PreviewAccepted, RemovePreview};
use corpus_domain::{CommitId, PreviewName, ProjectId, ProjectName};
use corpus_git_server::{BackendError, RefChange, Refusal};

use crate::{Controller, Error};
use corpus_api::Principal;

/// What branches of previews are called.
const BRANCHES: &str = "refs/heads/preview/";

/// A push of the branch of a preview.
#[derive(Debug)]
pub(super) struct PreviewPush {
    preview: PreviewName,
    /// What it is to be; none: the branch is deleted, and the preview with it.
    commit: Option<CommitId>,
}

impl PreviewPush {
    /// The one of these changes, if there is one: it comes alone, so that it is plain what became of a push.
    pub(super) fn of(changes: &[RefChange]) -> Result<Option<Self>, Refusal> {
        let Some((change, name)) =
            changes.iter().find_map(|change| Some((change, change.name.strip_prefix(BRANCHES)?)))
        else {
            return Ok(None);
        };
        if changes.len() > 1 {
            let why = format!("push {}{name} by itself: the branch of a preview comes alone", PreviewName::BRANCH);
            return Err(Refusal::Reason(why));
        }
        match name.parse() {
            Ok(preview) => Ok(Some(Self { preview, commit: change.to.clone() })),
            Err(invalid) => Err(Refusal::Reason(invalid.to_string())),
        }
    }
}

impl Controller {
    /// Refuses a push of a preview that nothing could come of. To delete a branch there need be no preview.
    pub(super) async fn may_push_preview(
        &self,
        of: (ProjectId, &ProjectName),
        push: &PreviewPush,
    ) -> Result<(), Refusal> {
        if push.commit.is_none() {
            return Ok(());
        }
        let mut conn = self.services.db.acquire().await.map_err(BackendError::new)?;
        match self.plan_preview(&mut conn, of, &push.preview).await {
            Ok(_) => Ok(()),
            Err(Error::Conflict(why)) => Err(Refusal::Reason(why)),
            Err(error) => Err(Refusal::Failed(BackendError::new(error))),
        }
    }

    /// The branch is pushed: its preview is made or brought to the commit, or destroyed. What the pusher is told.
    pub(super) async fn preview_pushed(
        &self,
        who: &Principal,
        project: &ProjectName,
        push: &PreviewPush,
    ) -> Vec<String> {
        let (project, preview) = (project.clone(), push.preview.clone());
        let pages = &self.services.settings.public_url;
        let Some(commit) = push.commit.clone() else {
            return match Box::pin(self.call(who, RemovePreview { project, preview }, None)).await {
                Ok(accepted) => vec![format!("the preview is being destroyed: {pages}/jobs/{}", accepted.job)],
                // A branch that never got a preview.
                Err(problem) if problem.status == 404 => Vec::new(),
                Err(problem) => told("the preview was not destroyed", &problem),
            };
        };
        let preview_name = push.preview.as_str();
        match Box::pin(self.call(who, MakePreview { project, preview, commit }, None)).await {
            Ok(PreviewAccepted { project, name, expires_at, .. }) => vec![
                format!("preview {preview_name} http://{name}/ as soon as it is deployed there"),
                format!("follow it {pages}/projects/{project}"),
                format!("it ends with its branch, or on {} (UTC)", expires_at.format("%Y-%m-%d %H:%M")),
            ],
            Err(problem) => told("the branch is stored, and its preview was not made", &problem),
        }
    }
}

/// Why not, a line each.
fn told(what: &str, problem: &Problem) -> Vec<String> {
    if problem.errors.is_empty() {
        return vec![format!("{what}: {}", problem.text())];
    }
    problem.errors.iter().map(|wrong| format!("{what}: {}", wrong.detail)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(name: &str) -> RefChange {
        RefChange { name: name.to_owned(), to: "1".repeat(40).parse().ok() }
    }

    #[test]
    fn the_branch_of_a_preview_comes_alone() {
        let of = |names: &str| PreviewPush::of(&names.split_whitespace().map(change).collect::<Vec<_>>());
        assert!(of("refs/heads/main refs/tags/preview/x refs/heads/previews/x").unwrap().is_none());
        let one = of("refs/heads/preview/login").unwrap().unwrap();
        assert_eq!((one.preview.as_str(), one.commit.is_some()), ("login", true));
        for (names, says) in [
            ("refs/heads/main refs/heads/preview/login", "by itself"),
            ("refs/heads/preview/Login", "name of a preview"),
            ("refs/heads/preview/a/b", "name of a preview"),
            ("refs/heads/preview/", "name of a preview"),
        ] {
            let refused = of(names).unwrap_err().to_string();
            assert!(refused.contains(says), "{refused}");
        }
    }
}
