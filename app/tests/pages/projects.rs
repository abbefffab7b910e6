//! What the pages of projects and deployments say, from plain values.

use std::collections::BTreeMap;

use corpus_api::deployments::{Deployment, DeploymentPage};
use corpus_api::projects::{Project, ProjectPage};
use corpus_app::FormState;
use corpus_app::pages::deployment_log::{Log, Window};
use corpus_app::pages::{deployment, deployments, environment, environment_questions, project, projects};
use corpus_domain::{DeploymentState, ProjectRole};

use crate::{deployment_samples, html, project_samples, samples};

fn page_of_project(project: &Project, at: usize) -> String {
    let beside = project_samples::beside(at);
    html(|| project::project_view(&samples::operator(), project, &beside, &FormState::default()))
}

fn project_page(at: usize) -> String {
    page_of_project(&project_samples::project(at), at)
}

fn project_page_as(role: ProjectRole) -> String {
    page_of_project(&project_samples::seen_as(role, 0), 0)
}

fn log(window: Window) -> Log {
    Log { window, lines: deployment_samples::log(), total: 452, failing: Some(415) }
}

fn page_of(detail: &Deployment, log: &Log) -> String {
    html(|| deployment::deployment_view(detail, log, &FormState::default()))
}

fn deployment_page(state: DeploymentState, window: Window) -> String {
    page_of(&deployment_samples::deployment(state), &log(window))
}

#[test]
fn a_project_shows_the_very_commands_to_paste() {
    let page = project_page_as(ProjectRole::Maintainer);
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
    let mut project = project_samples::project(0);
    for one in &mut project.environments {
        (one.git_url, one.pillar_url) = (None, None);
    }
    let page = page_of_project(&project, 0);
    assert!(page.contains("This server takes no pushes") && !page.contains("git remote") && !page.contains("ssh://"));
}

#[test]
fn a_role_shows_what_it_may_do_and_no_more() {
    let viewer = project_page_as(ProjectRole::Viewer);
    for action in ["/deployments\" class", "/drill", "/remove\"", "/members\"", "Give the role"] {
        assert!(!viewer.contains(action), "a viewer: {action}");
    }
    let developer = project_page_as(ProjectRole::Developer);
    assert!(developer.contains("/environments/staging/deployments\"") && developer.contains("/staging/drill"));
    assert!(!developer.contains("/environments/prod/") && !developer.contains("/remove\""));
    let maintainer = project_page_as(ProjectRole::Maintainer);
    for action in ["/environments/prod/deployments\"", "/staging/drill", "/prod/remove", "/projects/carto-api/members"]
    {
        assert!(maintainer.contains(action), "a maintainer: {action}");
    }
    assert!(!maintainer.contains("/prod/drill"), "nothing is broken on purpose in prod");
    assert!(
        !maintainer.contains("/environments/dev/deployments"),
        "nothing is live there that could be deployed again"
    );
}

#[test]
fn a_role_of_the_directory_can_not_be_taken_here() {
    let page = project_page(0);
    assert!(page.contains("from the directory") && !page.contains("members/jenkins/delete"));
    assert!(page.contains("members/dev.two/delete"));
    assert!(page.contains("&lt;script&gt;alert(2)") && !page.contains("<script>alert(2)"));
}

#[test]
fn a_new_project_says_what_to_do_next() {
    let page = project_page(3);
    assert!(page.contains("/projects/new-one/environments") && page.contains("dev: new.carto.example.net"));
    assert!(page.contains("A new environment gets its repositories") && !page.contains("Another guest becomes"));
    assert!(page.contains("Nothing to measure yet") && page.contains("No deployment yet"));
    let without_guest = project_page(1);
    assert!(without_guest.contains("No guest of this project is free") && without_guest.contains("/guests/new"));
    assert!(without_guest.contains("request one for dev, staging."), "prod is there already");
}

#[test]
fn a_plot_is_a_table_too() {
    let page = project_page(0);
    assert_eq!(page.matches("<title id=\"plot-").count(), 2);
    assert!(page.contains("68 went live and 9 failed in 13 weeks; at most 12 in one week."));
    assert!(page.contains("<td>this week</td><td class=\"num\">4</td><td class=\"num\">1</td>"), "{page}");
    assert!(page.contains("12%") && page.contains("21 min") && page.contains("18.4 s"));
}

#[test]
fn a_failed_deployment_opens_at_its_failing_line() {
    let page = deployment_page(DeploymentState::RolledBack, Window::Around(415));
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
    let page = deployment_page(DeploymentState::Live, Window::Tail);
    assert!(page.contains("Restore what was before") && page.contains("Deploy again"));
    assert!(page.contains("/projects/carto-api/deployments/218.json"));
    assert!(!page.contains("data-phase=\"rollback\""), "nothing was put back");
    let (id, commit) = (project_samples::id(218), project_samples::commit_id("77b02de"));
    for hidden in [format!("name=\"archive\" value=\"{id}\""), format!("name=\"commit\" value=\"{commit}\"")] {
        assert!(page.contains(&hidden), "{hidden}: {page}");
    }
    assert!(page.contains("action=\"/projects/carto-api/environments/staging/deployments\""));
    let seen = Deployment { may_deploy: false, ..deployment_samples::deployment(DeploymentState::Live) };
    let viewer = page_of(&seen, &log(Window::Tail));
    assert!(!viewer.contains("Restore") && !viewer.contains("Deploy again") && viewer.contains("218.json"));
}

#[test]
fn a_running_deployment_is_looked_at_again_and_can_be_cancelled() {
    let page = deployment_page(DeploymentState::Running, Window::Tail);
    assert!(page.contains("data-busy") && page.contains("id=\"live-log\" data-live"));
    assert!(page.contains("busy t1") && page.contains("to come") && page.contains("Follow or cancel the job"));
    assert!(!page.contains("Deploy again"), "it is deploying that already");
    assert!(page.contains("?line=415#L415"), "a link that stays right while the log grows");
    let over = deployment_page(DeploymentState::Live, Window::Tail);
    assert!(!over.contains("data-busy"));
}

#[test]
fn a_search_finds_lines_and_leads_to_them() {
    let page = deployment_page(DeploymentState::Live, Window::Search("<wheel>".into()));
    assert!(page.contains("41 lines with “&lt;wheel&gt;”") && page.contains("value=\"&lt;wheel&gt;\""));
    assert!(page.contains("href=\"/projects/carto-api/deployments/218?line=420#L420\""));
    let none = Log { lines: vec![], ..log(Window::Search("x".into())) };
    assert!(page_of(&deployment_samples::deployment(DeploymentState::Live), &none).contains("No line contains this."));
}

#[test]
fn what_of_the_log_is_shown() {
    let failed = deployment_samples::deployment(DeploymentState::RolledBack);
    let running = deployment_samples::deployment(DeploymentState::Running);
    let of = |pairs: &[(&str, &str)], detail: &Deployment| {
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
    let page = deployment_page(DeploymentState::Broken, Window::Around(415));
    assert!(page.contains(">Broken</span>") && page.contains("a person must look at the guest"));
}

#[test]
fn the_configuration_says_where_values_come_from_and_no_secret() {
    let staging = &project_samples::project(0).environments[1];
    let (whole, settings) = (project_samples::whole(staging), project_samples::settings(staging));
    let view = |form: &FormState| html(|| environment::environment_view(&whole, settings.as_ref(), form));
    let page = view(&FormState::default());
    for words in ["built in", "the project&#x27;s defaults", "set here", "pillar", "a secret, not shown"] {
        assert!(page.contains(words) || page.contains(&words.replace("&#x27;", "'")), "{words}");
    }
    assert!(page.contains("workers: 4") && page.contains("database:\n  host: db"), "{page}");
    assert!(page.contains(&format!("/staging/restore/{}", whole.archives[0].deployment)));
    let refused = FormState::new("settings", vec![("settings".into(), "a: [".into())])
        .error("settings", "neither YAML nor JSON in line 1");
    let page = view(&refused);
    assert!(page.contains("f-settings-error") && page.contains(">a: [</textarea>"));
}

#[test]
fn questions_say_what_will_happen() {
    let project = project_samples::project(0);
    let (form, staging, archives) = (FormState::default(), &project.environments[1], project_samples::archives());
    let restore = html(|| environment_questions::restore_view(staging, &archives[0], &form));
    assert!(restore.contains("what is live now is archived first") && restore.contains("5aa9e10"));
    let remove = html(|| environment_questions::remove_view(staging, &form));
    assert!(remove.contains("Type carto-api/staging to confirm") && remove.contains("name=\"with_data\""));
    assert!(html(|| environment_questions::drill_view(staging, &form)).contains("broken on purpose"));
    let whole = html(|| project::remove_view(&project, &form));
    assert!(whole.contains("Remove its environments first: dev, staging, prod."));
}

#[test]
fn lists_say_states_and_go_on() {
    let query = BTreeMap::from([("project".to_owned(), "carto-api".to_owned()), ("by".to_owned(), "a&b".to_owned())]);
    let page = html(|| deployments::deployments_view(&query, &project_samples::deployment_page()));
    for word in ["Running", "Rolled back", "Live", "Superseded", "Broken", "Waiting"] {
        assert!(page.contains(&format!(">{word}</span>")), "{word}");
    }
    assert!(
        page.contains(">carto-api #218</a>") && page.contains("name=\"project\" type=\"text\" value=\"carto-api\"")
    );
    assert!(page.contains("/deployments?by=a%26b&amp;project=carto-api&amp;cursor=abc"), "{page}");
    assert!(page.contains("&lt;b&gt;") && !page.contains("store <b>"));
    let none = html(|| deployments::deployments_view(&query, &DeploymentPage::default()));
    assert!(none.contains("No deployment like that"));
}

#[test]
fn the_list_of_projects_shows_what_is_live_where() {
    let all = BTreeMap::new();
    let page = html(|| projects::projects_view(&all, &project_samples::project_page(true)));
    for word in ["Live", "Nothing live yet", "Setting up", "Failed", "none yet", "maintainer", "operator"] {
        assert!(page.contains(word), "{word}");
    }
    assert!(page.contains("/projects/carto-api/staging") && page.contains("/projects/carto-api/deployments/218"));
    let none = ProjectPage { may_create: true, ..ProjectPage::default() };
    assert!(html(|| projects::projects_view(&all, &none)).contains("Make the first one"));
    let asked = BTreeMap::from([("q".to_owned(), "a&b".to_owned())]);
    let more = ProjectPage { next: "abc".parse().ok(), ..project_samples::project_page(true) };
    let page = html(|| projects::projects_view(&asked, &more));
    assert!(page.contains("/projects?q=a%26b&amp;cursor=abc") && page.contains("on this page"), "{page}");
    assert!(html(|| projects::projects_view(&asked, &none)).contains("No project like that"));
}

#[test]
fn who_makes_projects_is_said_where_the_button_would_be() {
    let page = |may_create| {
        let none = ProjectPage { may_create, ..ProjectPage::default() };
        html(|| projects::projects_view(&BTreeMap::new(), &none))
    };
    assert!(page(true).contains("/projects/new"));
    assert!(!page(false).contains("/projects/new") && page(false).contains("Operators make new projects"));
}

#[test]
fn no_page_has_an_inline_style_or_handler() {
    let page = project_page(0) + &deployment_page(DeploymentState::RolledBack, Window::Around(415));
    assert!(!page.contains(" style=") && !page.contains(" onclick="));
}
