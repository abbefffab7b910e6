//! What the pages of projects and deployments say, from plain values.
#![cfg(feature = "ssr")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests may fail loudly")]

#[path = "../examples/gallery/samples.rs"]
#[allow(dead_code, unused_imports, missing_docs, reason = "each user needs a part of them")]
mod samples;

#[path = "../examples/gallery/deployment_samples.rs"]
#[allow(dead_code, unused_imports, missing_docs, reason = "each user needs a part of them")]
mod deployment_samples;
#[path = "../examples/gallery/project_samples.rs"]
#[allow(dead_code, unused_imports, missing_docs, reason = "each user needs a part of them")]
mod project_samples;

use std::collections::BTreeMap;

use corpus_app::FormState;
use corpus_app::pages::deployment_log::{Log, Window};
use corpus_app::pages::{deployment, deployments, environment, environment_questions, project, projects};
use corpus_controller::authz::Principal;
use corpus_controller::project_views::DeploymentDetail;
use corpus_domain::{DeploymentState, ProjectCreators, ProjectRole};
use leptos::prelude::*;

fn html(view: impl FnOnce() -> AnyView) -> String {
    let owner = Owner::new_root(Some(std::sync::Arc::new(hydration_context::SsrSharedContext::new_islands())));
    // The renderer marks where texts end.
    owner.with(|| view().to_html()).replace("<!>", "")
}

fn with_role(role: ProjectRole) -> Principal {
    let roles = [(project_samples::project_detail(0).summary.id, role)].into();
    Principal { ops: false, roles, ..samples::operator() }
}

fn project_page(who: &Principal, at: usize) -> String {
    html(|| project::project_view(who, &project_samples::project_detail(at), &FormState::default()))
}

fn log(window: Window) -> Log {
    Log { window, lines: deployment_samples::log(), total: 452, failing: Some(415) }
}

fn page_of(who: &Principal, detail: &DeploymentDetail, log: &Log) -> String {
    html(|| deployment::deployment_view(who, detail, log, &FormState::default()))
}

fn deployment_page(who: &Principal, state: DeploymentState, window: Window) -> String {
    page_of(who, &deployment_samples::deployment(state), &log(window))
}

#[test]
fn a_project_shows_the_very_commands_to_paste() {
    let page = project_page(&with_role(ProjectRole::Maintainer), 0);
    for command in [
        ">git remote add staging ssh://git@corpus.example.net:2222/carto-api/staging<",
        ">git push staging main<",
        ">git clone ssh://git@corpus.example.net:2222/carto-api/staging/pillar staging-pillar<",
    ] {
        assert!(page.contains(command), "{command}");
    }
    assert!(page.contains("href=\"http://prod.carto.example.net/\""));
}

#[test]
fn a_server_that_takes_no_pushes_shows_no_command() {
    let who = with_role(ProjectRole::Maintainer);
    let mut detail = project_samples::project_detail(0);
    for one in &mut detail.summary.environments {
        (one.git_url, one.pillar_url) = (None, None);
    }
    let page = html(|| project::project_view(&who, &detail, &FormState::default()));
    assert!(page.contains("This server takes no pushes") && !page.contains("git remote") && !page.contains("ssh://"));
}

#[test]
fn a_role_shows_what_it_may_do_and_no_more() {
    let viewer = project_page(&with_role(ProjectRole::Viewer), 0);
    for action in ["/deploy\"", "/drill", "/remove\"", "/members\"", "Give the role"] {
        assert!(!viewer.contains(action), "a viewer: {action}");
    }
    let developer = project_page(&with_role(ProjectRole::Developer), 0);
    assert!(developer.contains("/projects/carto-api/staging/deploy") && developer.contains("/staging/drill"));
    assert!(!developer.contains("/prod/deploy") && !developer.contains("/remove\""));
    let maintainer = project_page(&with_role(ProjectRole::Maintainer), 0);
    for action in ["/prod/deploy", "/staging/drill", "/prod/remove", "/projects/carto-api/members"] {
        assert!(maintainer.contains(action), "a maintainer: {action}");
    }
    assert!(!maintainer.contains("/prod/drill"), "nothing is broken on purpose in prod");
    assert!(!maintainer.contains("/dev/deploy"), "nothing is live there that could be deployed again");
}

#[test]
fn a_role_of_the_directory_can_not_be_taken_here() {
    let page = project_page(&samples::operator(), 0);
    assert!(page.contains("from the directory") && !page.contains("members/jenkins/remove"));
    assert!(page.contains("members/dev.two/remove"));
    assert!(page.contains("&lt;script&gt;alert(2)") && !page.contains("<script>alert(2)"));
}

#[test]
fn a_new_project_says_what_to_do_next() {
    let page = project_page(&samples::operator(), 3);
    assert!(page.contains("/projects/new-one/environments") && page.contains("dev: new.carto.example.net"));
    assert!(page.contains("A new environment gets its repositories") && !page.contains("Another guest gets"));
    assert!(page.contains("Nothing to measure yet") && page.contains("No deployment yet"));
    let without_guest = project_page(&samples::operator(), 1);
    assert!(without_guest.contains("No guest of this project is free") && without_guest.contains("/guests/new"));
    assert!(without_guest.contains("request one for dev, staging."), "prod is there already");
}

#[test]
fn a_plot_is_a_table_too() {
    let page = project_page(&samples::operator(), 0);
    assert_eq!(page.matches("<title id=\"plot-").count(), 2);
    assert!(page.contains("68 went live and 9 failed in 13 weeks; at most 12 in one week."));
    assert!(page.contains("<td>this week</td><td class=\"num\">4</td><td class=\"num\">1</td>"), "{page}");
    assert!(page.contains("12%") && page.contains("21 min") && page.contains("18.4 s"));
}

#[test]
fn a_failed_deployment_opens_at_its_failing_line() {
    let page = deployment_page(&samples::operator(), DeploymentState::RolledBack, Window::Around(415));
    assert!(page.contains(">Rolled back to #217</span>"));
    assert!(page.contains("id=\"L415\" class=\"err first\""), "{page}");
    assert!(page.contains("href=\"#L415\"") && page.contains("Failed in install, 20_migrate.sls"));
    assert!(page.contains("?from=207#logs") && page.contains("?from=448#logs") && page.contains("?log=whole"));
    assert!(page.contains("&lt;script&gt;alert(3)") && !page.contains("<script>alert(3)"));
    for word in ["fail t15", "wait t1", "undo t2"] {
        assert!(page.contains(&format!("class=\"{word}\"")), "{word}");
    }
    assert!(page.contains("31.6 s, failed at 20_migrate.sls") && page.contains("project.failed"));
    assert!(
        page.contains("3 states, 1 changed, 1 failed") && page.contains("<details open class=\"more salt\""),
        "{page}"
    );
}

#[test]
fn a_live_deployment_offers_what_was_before_and_a_viewer_nothing() {
    let page = deployment_page(&samples::operator(), DeploymentState::Live, Window::Tail);
    assert!(page.contains("/projects/carto-api/deployments/218/restore") && page.contains("/218/again"));
    assert!(page.contains("/projects/carto-api/deployments/218.json"));
    assert!(!page.contains("data-phase=\"rollback\""), "nothing was put back");
    let viewer = deployment_page(&with_role(ProjectRole::Viewer), DeploymentState::Live, Window::Tail);
    assert!(!viewer.contains("/218/restore") && !viewer.contains("/218/again") && viewer.contains("218.json"));
}

#[test]
fn a_running_deployment_is_looked_at_again_and_can_be_cancelled() {
    let page = deployment_page(&samples::operator(), DeploymentState::Running, Window::Tail);
    assert!(page.contains("data-busy") && page.contains("id=\"live-log\" data-live"));
    assert!(page.contains("busy t1") && page.contains("to come") && page.contains("Follow or cancel the job"));
    assert!(!page.contains("/218/again"), "it is deploying that already");
    assert!(page.contains("?line=415#L415"), "a link that stays right while the log grows");
    let over = deployment_page(&samples::operator(), DeploymentState::Live, Window::Tail);
    assert!(!over.contains("data-busy"));
}

#[test]
fn a_search_finds_lines_and_leads_to_them() {
    let page = deployment_page(&samples::operator(), DeploymentState::Live, Window::Search("<wheel>".into()));
    assert!(page.contains("41 lines with “&lt;wheel&gt;”") && page.contains("value=\"&lt;wheel&gt;\""));
    assert!(page.contains("href=\"/projects/carto-api/deployments/218?line=420#L420\""));
    let none = Log { lines: vec![], ..log(Window::Search("x".into())) };
    assert!(
        page_of(&samples::operator(), &deployment_samples::deployment(DeploymentState::Live), &none)
            .contains("No line contains this.")
    );
}

#[test]
fn what_of_the_log_is_shown() {
    let failed = deployment_samples::deployment(DeploymentState::RolledBack);
    let running = deployment_samples::deployment(DeploymentState::Running);
    let of = |pairs: &[(&str, &str)], detail: &DeploymentDetail| {
        Window::of(&pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect(), detail)
    };
    assert_eq!(of(&[], &failed), Window::Around(415));
    assert_eq!(of(&[], &running), Window::Tail);
    assert_eq!(of(&[("line", "7")], &failed), Window::Around(7));
    assert_eq!(of(&[("from", "200")], &failed), Window::From(200));
    assert_eq!(of(&[("line", "-7"), ("from", "x")], &failed), Window::Around(415));
    assert_eq!(of(&[("log", "whole")], &failed), Window::Whole);
    assert_eq!(of(&[("q", " a "), ("line", "7")], &failed), Window::Search("a".into()));
}

#[test]
fn a_broken_one_says_that_a_person_must_look() {
    let page = deployment_page(&samples::operator(), DeploymentState::Broken, Window::Around(415));
    assert!(page.contains(">Broken</span>") && page.contains("a person must look at the guest"));
}

#[test]
fn the_configuration_says_where_values_come_from_and_no_secret() {
    let detail = project_samples::project_detail(0);
    let staging = &detail.summary.environments[1];
    let view =
        |form: &FormState| html(|| environment::environment_view(&samples::operator(), &detail.summary, staging, form));
    let page = view(&FormState::default());
    for words in ["built in", "the project&#x27;s defaults", "set here", "pillar", "a secret, not shown"] {
        assert!(page.contains(words) || page.contains(&words.replace("&#x27;", "'")), "{words}");
    }
    assert!(page.contains("workers: 4") && page.contains("database:\n  host: db"), "{page}");
    assert!(page.contains(&format!("/staging/restore/{}", staging.archives[0].id)));
    let refused = FormState::new("settings", vec![("settings".into(), "a: [".into())])
        .error("settings", "neither YAML nor JSON in line 1");
    let page = view(&refused);
    assert!(page.contains("f-settings-error") && page.contains(">a: [</textarea>"));
}

#[test]
fn questions_say_what_will_happen() {
    let detail = project_samples::project_detail(0);
    let (form, staging) = (FormState::default(), &detail.summary.environments[1]);
    let restore = html(|| environment_questions::restore_view(&detail.summary, staging, &staging.archives[0], &form));
    assert!(restore.contains("what is live now is archived first") && restore.contains("5aa9e10"));
    let remove = html(|| environment_questions::remove_view(&detail.summary, staging, &form));
    assert!(remove.contains("Type carto-api/staging to confirm") && remove.contains("name=\"with_data\""));
    assert!(html(|| environment_questions::drill_view(&detail.summary, staging, &form)).contains("broken on purpose"));
    let whole = html(|| project::remove_view(&detail.summary, &form));
    assert!(whole.contains("Remove its environments first: dev, staging, prod."));
}

#[test]
fn lists_say_states_and_go_on() {
    let query = BTreeMap::from([("project".to_owned(), "carto-api".to_owned()), ("by".to_owned(), "a&b".to_owned())]);
    let found = project_samples::deployments();
    let page = html(|| deployments::deployments_view(&samples::projects(), &query, &found, true));
    for word in ["Running", "Rolled back", "Live", "Superseded", "Broken", "Waiting"] {
        assert!(page.contains(&format!(">{word}</span>")), "{word}");
    }
    assert!(page.contains(">carto-api #218</a>") && page.contains("value=\"carto-api\" selected"));
    let last = found.last().unwrap().id;
    assert!(page.contains(&format!("/deployments?by=a%26b&amp;project=carto-api&amp;before={last}")), "{page}");
    assert!(page.contains("&lt;b&gt;") && !page.contains("store <b>"));
    let none = html(|| deployments::deployments_view(&samples::projects(), &query, &[], false));
    assert!(none.contains("No deployment like that"));
}

#[test]
fn the_list_of_projects_shows_what_is_live_where() {
    let page =
        html(|| projects::projects_view(&samples::operator(), ProjectCreators::Ops, &project_samples::projects()));
    for word in ["Live", "Nothing live yet", "Setting up", "Failed", "none yet", "maintainer", "operator"] {
        assert!(page.contains(word), "{word}");
    }
    assert!(page.contains("/projects/carto-api/staging") && page.contains("/projects/carto-api/deployments/218"));
    assert!(
        html(|| projects::projects_view(&samples::operator(), ProjectCreators::Ops, &[]))
            .contains("Make the first one")
    );
}

#[test]
fn no_page_has_an_inline_style_or_handler() {
    let page = project_page(&samples::operator(), 0)
        + &deployment_page(&samples::operator(), DeploymentState::RolledBack, Window::Around(415));
    assert!(!page.contains(" style=") && !page.contains(" onclick="));
}
