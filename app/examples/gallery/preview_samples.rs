//! Sample values of previews: one that is live, one that is being made, one that goes.

use chrono::{TimeDelta, Utc};
use corpus_api::previews::{PreviewLine, PreviewOf, PreviewRules, Previews};
use corpus_api::projects::{EnvironmentLine, NewestDeployment, Project, ProjectLine};
use corpus_domain::{
    DeploymentId, DeploymentState, Environment, EnvironmentState, JobId, PreviewName, ProjectRole, SizeProfile, Trigger,
};

use crate::project_samples::{before, commit_id, id, word};

/// The previews of a project, and how many it may have; none of one at first.
pub fn previews(is_empty: bool) -> (Previews, PreviewRules) {
    let (most, days) = (if is_empty { "0" } else { "5" }, "14");
    let domain = (!is_empty).then(|| word("preview.carto.example.net"));
    let rules = PreviewRules::of(word(most), domain, SizeProfile::Xsmall, word(days));
    let live = Some(EnvironmentState::Ready);
    let making = Some(EnvironmentState::SettingUp);
    let items = vec![line("login", live, None), line("maps-v2", making, None), line("old", None, Some(JobId(id(41))))];
    (Previews { items: if is_empty { Vec::new() } else { items }, may_change: true }, rules)
}

fn line(name: &str, state: Option<EnvironmentState>, leaving: Option<JobId>) -> PreviewLine {
    let preview: PreviewName = word(name);
    let is_live = state == Some(EnvironmentState::Ready);
    let newest = NewestDeployment {
        id: DeploymentId(id(71)),
        number: 3,
        state: if is_live { DeploymentState::Live } else { DeploymentState::Waiting },
        trigger: Trigger::Push,
        ordered_at: before(400),
        ended_at: is_live.then(|| before(380)),
    };
    let environment = |state| EnvironmentLine {
        environment: Environment::Dev,
        state,
        is_live,
        seen: None,
        number: is_live.then_some(3),
        commit: is_live.then(|| commit_id("77b02de")),
        is_everywhere: true,
        job: (!is_live).then(|| JobId(id(42))),
    };
    PreviewLine {
        branch: preview.branch(),
        project: ProjectLine {
            name: word(&format!("carto-api--{name}")),
            role: Some(ProjectRole::Developer),
            members: 4,
            environments: state.map(environment).into_iter().collect(),
            newest: Some(newest),
            created_at: before(90_000),
        },
        name: is_live.then(|| word(&format!("{name}.preview.carto.example.net"))),
        by: Some(word(if is_live { "carto-api/ci" } else { "dev.lead" })),
        expires_at: Utc::now() + TimeDelta::days(9),
        leaving,
        preview,
    }
}

/// A project that is a preview.
pub fn preview(project: Project) -> Project {
    let of =
        PreviewOf { project: word("carto-api"), preview: word("login"), expires_at: Utc::now() + TimeDelta::days(9) };
    Project { name: word("carto-api--login"), preview: Some(of), ..project }
}
