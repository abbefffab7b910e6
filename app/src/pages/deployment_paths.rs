//! Where the pages of deployments are: of the whole, which is what its leader did, and of its part
//! on a follower, which is the same path with that guest in its query.

use std::fmt::Display;

use corpus_api::deployments::DeploymentLine;
use corpus_domain::GuestName;

/// The page of the whole deployment, also of a part.
pub fn whole_path(one: &DeploymentLine) -> String {
    format!("/projects/{}/deployments/{}", one.project, one.number)
}

/// The page of its part on a follower.
pub fn part_path(one: &DeploymentLine, guest: &GuestName) -> String {
    format!("{}?guest={guest}", whole_path(one))
}

/// The page of this deployment: of the part, if it is one.
pub fn deployment_path(one: &DeploymentLine) -> String {
    part_guest(one).map_or_else(|| whole_path(one), |guest| part_path(one, guest))
}

/// The same page, asked with more; `query` may end with a fragment.
pub fn deployment_query(one: &DeploymentLine, query: &str) -> String {
    let page = deployment_path(one);
    let next = if part_guest(one).is_some() { '&' } else { '?' };
    format!("{page}{next}{query}")
}

/// The page with a line of its log, whatever part of the log is shown by then.
pub fn line_path(one: &DeploymentLine, line: impl Display) -> String {
    deployment_query(one, &format!("line={line}#L{line}"))
}

/// Its report as a file.
pub fn report_path(one: &DeploymentLine) -> String {
    let on = part_guest(one).map(|guest| format!("?guest={guest}")).unwrap_or_default();
    format!("{}.json{on}", whole_path(one))
}

/// The guest of a part; none when this is the whole.
pub fn part_guest(one: &DeploymentLine) -> Option<&GuestName> {
    one.leader.map(|_| &one.guest_name)
}
