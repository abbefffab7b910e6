//! The pages of projects and deployments, with sample values.

use std::collections::BTreeMap;

use corpus_api::deployments::DeploymentPage;
use corpus_api::projects::ProjectPage;
use corpus_api::projects::badges::Badges;
use corpus_api::robots::RobotPage;
use corpus_api::webhooks::WebhookPage;
use corpus_api::webhooks::deliveries::WebhookDeliveryPage;
use corpus_app::FormState;
use corpus_app::asked::Listing;
use corpus_app::layout::Page;
use corpus_app::pages::deployment_log::{Log, Window};
use corpus_app::pages::deployment_test_cases::Tests;
use corpus_app::pages::project::Beside;
use corpus_app::pages::{
    deployment, deployments, environment, environment_questions, project, project_destroy, projects, robot, robots,
    roll_back, webhook, webhooks,
};
use corpus_app::route::Route;
use corpus_domain::{DeploymentState, Environment, ProjectRole};

use crate::{deployment_samples, preview_samples, project_samples, samples, told_samples};

/// The page of a route, if it is one of these; `variant` is a number or a word of what is shown.
pub fn page(route: &Route, variant: &str) -> Option<Page> {
    let (who, blank) = (samples::operator(), FormState::default());
    let at = variant.parse::<usize>().unwrap_or(0);
    let project = match variant {
        "viewer" => project_samples::seen_as(ProjectRole::Viewer, 0),
        "busy" => project_samples::busy(),
        "leaving" | "left" => project_samples::leaving(variant == "left"),
        "preview" => preview_samples::preview(project_samples::seen_as(ProjectRole::Maintainer, 0)),
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
            let badges = Badges { made_at: None, badges: Vec::new() };
            let badges = Some(if variant == "badges" { told_samples::badges() } else { badges });
            let beside = Beside { badges, ..project_samples::beside(at.min(4)) };
            let beside = if variant == "preview" { Beside { previews: None, ..beside } } else { beside };
            Page::new("project", title, project::project_view(&who, &project, &beside, &blank))
                .under("Projects", "/projects")
        }
        Route::RemoveProject(_) => {
            let goes = project_samples::remains(variant);
            Page::new("destroy-project", title, project_destroy::destroy_view(&project.name, &goes, &blank))
        }
        Route::Robots(_) | Route::Robot(..) | Route::Webhooks(_) | Route::Webhook(..) => {
            return of_programs(route, variant);
        }
        Route::ProjectEnvironment(_, which) => {
            let wrong = FormState::new("settings", vec![("settings".into(), "a: [".into())])
                .error("settings", "line 1: expected the end of a list");
            let form = if variant == "wrong" { wrong } else { blank };
            let summary = one(*which)?;
            let settings = project_samples::settings(summary);
            let (whole, shared) = (project_samples::whole(summary), project_samples::shared(summary));
            let view = environment::environment_view(&whole, settings.as_ref(), (&[], Some(&shared)), &form);
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
            Page::new("restore", "Roll back", roll_back::question_view(environment, &archive, &blank, "1"))
        }
        Route::Deployments => {
            let query =
                BTreeMap::from([("environment".to_owned(), if variant == "empty" { "dev" } else { "" }.to_owned())]);
            let none = DeploymentPage::default();
            let found = if variant == "empty" { none } else { project_samples::deployment_page() };
            Page::new("deployments", "Deployments", deployments::deployments_view(&found, &Listing::of(query)))
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
            let around = deployment_samples::around(&shown);
            let tests = if variant == "tests" { told_samples::tests() } else { Tests::default() };
            let view = deployment::deployment_view(&shown, around.as_ref(), (&log, &tests), &blank);
            Page::new("deployment", "carto-api #218", view).under("Deployments", "/deployments")
        }
        _ => return None,
    })
}

/// What programs have of a project: robots and webhooks.
fn of_programs(route: &Route, variant: &str) -> Option<Page> {
    let blank = FormState::default();
    Some(match route {
        Route::Robots(name) => {
            let page = RobotPage { items: vec![samples::robot().line], next: None };
            let page = if variant == "empty" { RobotPage::default() } else { page };
            Page::new("robots", "Robots", robots::robots_view(name, &page, &blank))
                .under("carto-api", "/projects/carto-api")
        }
        Route::Robot(name, _) => {
            let new = (variant == "new").then(samples::new_token);
            Page::new("robot", "ci", robot::robot_view(name, &samples::robot(), new.as_ref(), &blank))
                .under("Robots", "/projects/carto-api/robots")
        }
        Route::Webhooks(name) => {
            let page = if variant == "empty" { WebhookPage::default() } else { told_samples::webhooks() };
            let new = (variant == "new").then(told_samples::new_webhook);
            Page::new("webhooks", "Webhooks", webhooks::webhooks_view(name, &page, new.as_ref(), &blank))
                .under("Projects", "/projects")
        }
        Route::Webhook(..) => {
            let all = told_samples::webhooks().items;
            let one = all.get(variant.parse::<usize>().unwrap_or(0).min(2))?;
            let page = if variant == "empty" { WebhookDeliveryPage::default() } else { told_samples::deliveries() };
            Page::new("webhook", one.name.clone(), webhook::webhook_view(one, &page, None, &blank))
                .under("Projects", "/projects")
        }
        _ => return None,
    })
}
