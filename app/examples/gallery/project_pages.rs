//! The pages of projects and deployments, with sample values.

use std::collections::BTreeMap;

use corpus_api::deployments::DeploymentPage;
use corpus_api::projects::ProjectPage;
use corpus_app::FormState;
use corpus_app::layout::Page;
use corpus_app::pages::deployment_log::{Log, Window};
use corpus_app::pages::{deployment, deployments, environment, environment_questions, project, projects};
use corpus_app::route::Route;
use corpus_domain::{DeploymentState, Environment, ProjectRole};

use crate::{deployment_samples, project_samples, samples};

/// The page of a route, if it is one of these; `variant` is a number or a word of what is shown.
pub fn page(route: &Route, variant: &str) -> Option<Page> {
    let (who, blank) = (samples::operator(), FormState::default());
    let at = variant.parse::<usize>().unwrap_or(0);
    let project = match variant {
        "viewer" => project_samples::seen_as(ProjectRole::Viewer, 0),
        _ => project_samples::project(at.min(4)),
    };
    let all = BTreeMap::new();
    let one = |which: Environment| project.environments.iter().find(|one| one.environment == which);
    let title = project.name.to_string();
    Some(match route {
        Route::Projects if variant == "empty" => {
            let none = ProjectPage { may_create: true, ..ProjectPage::default() };
            Page::new("projects", "Projects", projects::projects_view(&all, &none))
        }
        Route::Projects => {
            Page::new("projects", "Projects", projects::projects_view(&all, &project_samples::project_page(true)))
        }
        Route::NewProject => Page::new("new-project", "New project", projects::new_view(&blank)),
        Route::Project(_) => {
            let beside = project_samples::beside(at.min(4));
            Page::new("project", title, project::project_view(&who, &project, &beside, &blank))
                .under("Projects", "/projects")
        }
        Route::RemoveProject(_) => Page::new("remove-project", title, project::remove_view(&project, &blank)),
        Route::ProjectEnvironment(_, which) => {
            let wrong = FormState::new("settings", vec![("settings".into(), "a: [".into())])
                .error("settings", "line 1: expected the end of a list");
            let form = if variant == "wrong" { wrong } else { blank };
            let summary = one(*which)?;
            let settings = project_samples::settings(summary);
            let view = environment::environment_view(&project_samples::whole(summary), settings.as_ref(), &form);
            Page::new("environment", which.as_str(), view)
                .under(&title, "/projects/carto-api")
                .under("Projects", "/projects")
        }
        Route::RemoveEnvironment(_, which) => {
            Page::new("remove-environment", "Remove", environment_questions::remove_view(one(*which)?, &blank))
        }
        Route::RemoveEnvironmentGuest(_, which, _) => {
            let environment = one(*which)?;
            let follower = environment.followers.first()?;
            let view = environment_questions::leave_view(environment, follower, &blank);
            Page::new("remove-environment-guest", "Remove", view)
        }
        Route::Drill(_, which) => Page::new("drill", "Drill", environment_questions::drill_view(one(*which)?, &blank)),
        Route::Restore(_, which, _) => {
            let environment = one(*which)?;
            let archive = project_samples::archives().into_iter().next()?;
            Page::new("restore", "Restore", environment_questions::restore_view(environment, &archive, &blank))
        }
        Route::Deployments => {
            let query =
                BTreeMap::from([("environment".to_owned(), if variant == "empty" { "dev" } else { "" }.to_owned())]);
            let none = DeploymentPage::default();
            let found = if variant == "empty" { none } else { project_samples::deployment_page() };
            Page::new("deployments", "Deployments", deployments::deployments_view(&query, &found))
        }
        Route::Deployment(..) => {
            let shown = match variant {
                "refused" => deployment_samples::refused(),
                "part" => deployment_samples::part(),
                "prepared" => deployment_samples::prepared(),
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
            let view = deployment::deployment_view(&shown, &log, &blank);
            Page::new("deployment", "carto-api #218", view).under("Deployments", "/deployments")
        }
        _ => return None,
    })
}
