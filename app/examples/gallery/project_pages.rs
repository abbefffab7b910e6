//! The pages of projects and deployments, with sample values.

use std::collections::BTreeMap;

use corpus_app::FormState;
use corpus_app::layout::Page;
use corpus_app::pages::deployment_log::{Log, Window};
use corpus_app::pages::{deployment, deployments, environment, environment_questions, project, projects};
use corpus_app::place::Place;
use corpus_domain::{DeploymentState, Environment, ProjectCreators};

use crate::{deployment_samples, project_samples, samples};

/// The page of a place, if it is one of these; `variant` is a number or a word of what is shown.
pub fn page(place: &Place, variant: &str) -> Option<Page> {
    let (who, blank) = (samples::operator(), FormState::default());
    let at = variant.parse::<usize>().unwrap_or(0);
    let creators = ProjectCreators::Ops;
    let detail = project_samples::project_detail(at.min(4));
    let one = |which: Environment| detail.summary.environments.iter().find(|one| one.environment == which);
    let title = detail.summary.name.to_string();
    Some(match place {
        Place::Projects if variant == "empty" => {
            Page::new("projects", "Projects", projects::projects_view(&who, creators, &[]))
        }
        Place::Projects => {
            Page::new("projects", "Projects", projects::projects_view(&who, creators, &project_samples::projects()))
        }
        Place::NewProject => Page::new("new-project", "New project", projects::new_view(&blank)),
        Place::Project(_) => {
            Page::new("project", title, project::project_view(&who, &detail, &blank)).under("Projects", "/projects")
        }
        Place::RemoveProject(_) => Page::new("remove-project", title, project::remove_view(&detail.summary, &blank)),
        Place::ProjectEnvironment(_, which) => {
            let wrong = FormState::new("settings", vec![("settings".into(), "a: [".into())])
                .error("settings", "line 1: expected the end of a list");
            let form = if variant == "wrong" { wrong } else { blank };
            let view = environment::environment_view(&who, &detail.summary, one(*which)?, &form);
            Page::new("environment", which.as_str(), view)
                .under(&title, "/projects/carto-api")
                .under("Projects", "/projects")
        }
        Place::RemoveEnvironment(_, which) => Page::new(
            "remove-environment",
            "Remove",
            environment_questions::remove_view(&detail.summary, one(*which)?, &blank),
        ),
        Place::RemoveEnvironmentGuest(_, which, _) => {
            let environment = one(*which)?;
            let other = environment.others.first()?;
            let view = environment_questions::leave_view(&detail.summary, environment, other, &blank);
            Page::new("remove-environment-guest", "Remove", view)
        }
        Place::Drill(_, which) => {
            Page::new("drill", "Drill", environment_questions::drill_view(&detail.summary, one(*which)?, &blank))
        }
        Place::Restore(_, which, _) => {
            let environment = one(*which)?;
            let archive = environment.archives.first()?;
            Page::new(
                "restore",
                "Restore",
                environment_questions::restore_view(&detail.summary, environment, archive, &blank),
            )
        }
        Place::Deployments => {
            let query =
                BTreeMap::from([("environment".to_owned(), if variant == "empty" { "dev" } else { "" }.to_owned())]);
            let found = if variant == "empty" { vec![] } else { project_samples::deployments() };
            Page::new(
                "deployments",
                "Deployments",
                deployments::deployments_view(&samples::projects(), &query, &found, true),
            )
        }
        Place::Deployment(..) => {
            let shown = match variant {
                "refused" => deployment_samples::refused(),
                "part" => deployment_samples::part(),
                "holding" => deployment_samples::holding(),
                "partly" => deployment_samples::partly(),
                _ => deployment_samples::deployment(variant.parse().unwrap_or(DeploymentState::RolledBack)),
            };
            let failed = shown
                .report
                .as_ref()
                .is_some_and(|report| report.fault.as_ref().is_some_and(|fault| fault.line.is_some()));
            let window = match (variant, failed) {
                ("search", _) => Window::Search("wheel".into()),
                (_, true) => Window::Around(415),
                _ => Window::Tail,
            };
            let log = Log { window, lines: deployment_samples::log(), total: 452, failing: failed.then_some(415) };
            let view = deployment::deployment_view(&who, &shown, &log, &blank);
            Page::new("deployment", "carto-api #218", view).under("Deployments", "/deployments")
        }
        _ => return None,
    })
}
