//! What the pages of projects and deployments say, from plain values.

use std::collections::BTreeMap;

use corpus_api::deployments::{Deployment, DeploymentLine, DeploymentPage};
use corpus_api::environments::{Archive, EnvironmentSummary};
use corpus_api::projects::{Project, ProjectPage};
use corpus_api::seen::{Reached, Seen};
use corpus_app::FormState;
use corpus_app::asked::Listing;
use corpus_app::pages::deployment_log::{Log, Window};
use corpus_app::pages::deployment_test_cases::Tests;
use corpus_app::pages::{
    deployment, deployments, environment, environment_questions, project, project_destroy, projects, robot, roll_back,
};
use corpus_domain::{DeploymentState, GuestState, Phase, ProjectRole};

use crate::{deployment_samples, html, offers_again, project_samples, samples};

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
    let around = deployment_samples::around(detail);
    html(|| deployment::deployment_view(detail, around.as_ref(), (log, &Tests::default()), &FormState::default()))
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
    let restore = |number| format!("/projects/carto-api/staging/restore/{}", project_samples::id(number));
    assert!(page.contains(&format!("href=\"{}\" class=\"btn\">Roll back to #217 5aa9e10</a>", restore(218))), "{page}");
    assert!(page.contains("/projects/carto-api/deployments/218.json") && offers_again(&page));
    assert!(!page.contains("data-phase=\"rollback\""), "nothing was put back");
    let hidden = format!("name=\"commit\" value=\"{}\"", project_samples::commit_id("77b02de"));
    assert!(page.contains(&hidden) && page.contains("action=\"/projects/carto-api/environments/staging/deployments\""));
    let seen = Deployment { may_deploy: false, ..deployment_samples::deployment(DeploymentState::Live) };
    let viewer = page_of(&seen, &log(Window::Tail));
    assert!(!viewer.contains("/restore/") && !offers_again(&viewer) && viewer.contains("218.json"));
    assert!(!viewer.contains("Roll back to") && viewer.contains("Tiles from the cache first"), "{viewer}");
    // Something else went live since: this page is no place to go back from.
    let mut old = deployment_samples::deployment(DeploymentState::Live);
    old.live = Some(project_samples::live(219, 20));
    let page = page_of(&old, &log(Window::Tail));
    assert!(!page.contains("Roll back to") && offers_again(&page));
}

/// Where what is live fails to archive itself, the same again would fail again.
#[test]
fn what_cannot_archive_itself_is_gone_on_without() {
    let mut stuck = deployment_samples::deployment(DeploymentState::RolledBack);
    let fault = stuck.report.as_mut().unwrap().fault.as_mut().unwrap();
    (fault.phase, fault.recipe) = (Phase::Archive, Some("archive".into()));
    let page = page_of(&stuck, &log(Window::Tail));
    assert!(page.contains("Deploy 77b02de without the archive recipe") && !offers_again(&page));
    assert!(
        page.contains("name=\"plain_archive\" value=\"true\"")
            && page.contains("its code and pillar are kept all the same")
    );
    // Too little room for it is no fault of a recipe.
    stuck.report.as_mut().unwrap().fault.as_mut().unwrap().recipe = None;
    let page = page_of(&stuck, &log(Window::Tail));
    assert!(!page.contains("plain_archive") && offers_again(&page));
}

#[test]
fn what_is_odd_about_a_tree_is_said() {
    let mut odd = deployment_samples::deployment(DeploymentState::Live);
    assert!(page_of(&odd, &log(Window::Tail)).contains("It has fewer checks than what was live (2, before 3)"));
    odd.report.as_mut().unwrap().warnings.clear();
    assert!(!page_of(&odd, &log(Window::Tail)).contains("Was this meant?"));
}

#[test]
fn a_failed_deployment_says_what_is_live_and_offers_to_go_back_further() {
    let page = deployment_page(DeploymentState::RolledBack, Window::Around(415));
    assert!(page.contains("#217 5aa9e10 is live, as before.") && offers_again(&page));
    assert!(page.contains(">Roll back to #212 1d2a9c4</a>"), "{page}");
    assert!(page.contains("until another deployment fails"));
    let mut old = deployment_samples::deployment(DeploymentState::RolledBack);
    old.live = Some(project_samples::live(219, 20));
    let page = page_of(&old, &log(Window::Tail));
    assert!(page.contains("#219 5aa9e10 is live by now.") && !page.contains("Roll back to"));
    (old.live, old.report.as_mut().unwrap().live) = (None, None);
    assert!(page_of(&old, &log(Window::Tail)).contains("Nothing is live, as before."));
    assert!(deployment_page(DeploymentState::Broken, Window::Tail).contains(">Roll back to #212 1d2a9c4</a>"));
}

/// The card of an environment on its project's page.
fn card_of(page: &str, environment: &str) -> String {
    let rest = page.split_once(&format!("data-environment=\"{environment}\"")).unwrap().1;
    rest.split_once("</section>").unwrap().0.to_owned()
}

#[test]
fn rolling_back_is_on_the_card_for_who_may_and_not_while_a_job_is_on_it() {
    let way = |environment: &str| format!("/projects/carto-api/{environment}/restore/{}", project_samples::id(217));
    let page = project_page(0);
    for environment in ["staging", "prod"] {
        let button = format!("href=\"{}\" class=\"btn\">Roll back to #212 1d2a9c4</a>", way(environment));
        assert!(card_of(&page, environment).contains(&button), "{environment}");
    }
    assert!(!card_of(&page, "dev").contains("Roll back"), "nothing is kept there");
    let developer = project_page_as(ProjectRole::Developer);
    assert!(card_of(&developer, "staging").contains("Roll back to #212"));
    assert!(!card_of(&developer, "prod").contains("Roll back"), "who may not deploy to prod sees no button");
    assert!(!project_page_as(ProjectRole::Viewer).contains("Roll back"));
    let busy = page_of_project(&project_samples::busy(), 0);
    let staging = card_of(&busy, "staging");
    assert!(
        staging.contains("disabled class=\"btn\">Roll back to #212 1d2a9c4</button>")
            && staging.contains("not now: a job is on it")
    );
    assert!(!staging.contains("/restore/"), "{staging}");
    let mut stopped = project_samples::project(0);
    stopped.environments[1].leader.guest_state = GuestState::Stopped;
    let staging = card_of(&page_of_project(&stopped, 0), "staging");
    assert!(staging.contains("not now: staging.carto.example.net does not run"), "{staging}");
}

#[test]
fn archives_say_what_they_hold_and_which_one_is_gone_back_to() {
    let staging = &project_samples::project(0).environments[1];
    let mut whole = project_samples::whole(staging);
    let (live, held) = (staging.leader.live.clone().unwrap(), whole.archives[2].clone());
    whole.archives[2] = Archive { release: Some(live.deployment), commit: live.commit, pillar: live.pillar, ..held };
    let page = html(|| environment::environment_view(&whole, None, (&[], None), &FormState::default()));
    let item = |at: usize| {
        let id = whole.archives[at].deployment;
        page.split_once(&format!("data-archive=\"{id}\"")).unwrap().1.split_once("</li>").unwrap().0.to_owned()
    };
    assert!(item(0).contains(">#212</a>") && item(0).contains("“Roll back” goes here") && item(0).contains("4.2 MB"));
    assert!(item(0).contains("Cache tiles for &lt;i&gt;a whole day") && item(0).contains("Restore #212 1d2a9c4"));
    assert!(item(1).contains("A second zoom level") && !item(1).contains("class=\"tag\""), "{}", item(1));
    assert!(item(2).contains("as is live") && item(2).contains("with a tree that failed"), "{}", item(2));
    assert!(page.contains("id=\"live-actions\"") && page.contains(">Roll back to #212 1d2a9c4</a>"));
}

#[test]
fn a_running_deployment_is_looked_at_again_and_can_be_cancelled() {
    let page = deployment_page(DeploymentState::Running, Window::Tail);
    assert!(page.contains("data-busy") && page.contains("id=\"live-log\" data-live"));
    assert!(page.contains("busy t1") && page.contains("to come") && page.contains("Follow or cancel the job"));
    assert!(!offers_again(&page), "it is deploying that already");
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
    let view = |form: &FormState| html(|| environment::environment_view(&whole, settings.as_ref(), (&[], None), form));
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
    let (form, staging) = (FormState::default(), &project.environments[1]);
    let remove = html(|| environment_questions::remove_view(staging, &form));
    assert!(remove.contains("Type carto-api/staging to confirm") && remove.contains("name=\"with_data\""));
    assert!(html(|| environment_questions::drill_view(staging, &form)).contains("broken on purpose"));
}

#[test]
fn what_goes_with_a_project_is_said_before_it_goes() {
    let (form, name) = (FormState::default(), project_samples::project(0).name);
    let page = |variant: &str| html(|| project_destroy::destroy_view(&name, &project_samples::remains(variant), &form));
    let whole = page("");
    for words in [
        "312 guests",
        "web-020.carto.example.net",
        "href=\"/guests?project=carto-api\"",
        "and 292 more",
        "2 names",
        "24 archives",
        "1204 deployments",
        "4 members",
        "Prod is live",
        "of the project is not over",
        "until it begins to destroy the first guest",
        "Type carto-api to confirm",
        "name=\"_name\" value=\"carto-api\"",
        ">Destroy this project</button>",
    ] {
        assert!(whole.to_lowercase().contains(&words.to_lowercase()), "{words}: {whole}");
    }
    assert!(!whole.contains("web-021"), "the first ones are named");
    let leaving = page("leaving");
    assert!(leaving.contains("carto-api is being destroyed") && !leaving.contains("<button"), "{leaving}");
    let left = page("left");
    assert!(left.contains("was not destroyed completely") && left.contains(">Destroy this project</button>"), "{left}");
}

#[test]
fn a_project_that_is_being_destroyed_says_so_and_offers_nothing_else() {
    let page = page_of_project(&project_samples::leaving(false), 0);
    assert!(page.contains("carto-api is being destroyed") && page.contains("Open the job"), "{page}");
    for action in ["Give the role", "Destroy project", "Request a guest"] {
        assert!(!page.contains(action), "{action}");
    }
    let left = page_of_project(&project_samples::leaving(true), 0);
    assert!(left.contains("was not destroyed completely") && left.contains("Destroy project"), "{left}");
}

#[test]
fn the_question_before_a_roll_back_names_both_releases_and_what_is_not_touched() {
    let project = project_samples::project(0);
    let archive = project_samples::archives().remove(0);
    let view = |one: &EnvironmentSummary, archive: &Archive| {
        html(|| roll_back::question_view(one, archive, &FormState::default(), "7"))
    };
    let staging = view(&project.environments[1], &archive);
    for words in
        ["What is live now is archived first", "5aa9e10", "#212", "1d2a9c4", "Cache tiles for &lt;i&gt;", "4.2 MB"]
    {
        assert!(staging.contains(words), "{words}: {staging}");
    }
    assert!(staging.contains("neither the data folder nor a database") && staging.contains("<code>rollback</code>"));
    assert!(staging.contains("<button class=\"btn primary\">Roll back to #212 1d2a9c4</button>"), "{staging}");
    assert!(
        staging.contains("name=\"_id\" value=\"7\"") && staging.contains(&format!("value=\"{}\"", archive.deployment))
    );
    assert!(!staging.contains("This is prod") && !staging.contains("Nothing older comes back"));
    assert!(view(&project.environments[2], &archive).contains("This is prod"));
    let busy = view(&project_samples::busy().environments[1], &archive);
    assert!(
        busy.contains("disabled class=\"btn primary\">Roll back to #212") && busy.contains("Not now: a job is on it."),
        "{busy}"
    );
    let nothing = Archive { commit: None, number: None, subject: None, ..archive.clone() };
    let page = view(&project.environments[1], &nothing);
    assert!(page.contains("Roll back to this archive") && page.contains("a tree without a commit"));
    let live = project.environments[1].leader.live.clone().unwrap();
    let same = Archive { release: Some(live.deployment), commit: live.commit, pillar: live.pillar, ..archive };
    assert!(view(&project.environments[1], &same).contains("Nothing older comes back"));
}

#[test]
fn lists_say_states_and_go_on() {
    let query = BTreeMap::from([("project".to_owned(), "carto-api".to_owned()), ("by".to_owned(), "a&b".to_owned())]);
    let listing = Listing::of(query);
    let mut shown = project_samples::deployment_page();
    let before = shown.items.iter().find(|one| one.is_live).cloned();
    shown.items.extend(before.map(|one| DeploymentLine { is_live: false, ..one }));
    let page = html(|| deployments::deployments_view(&shown, &listing));
    for word in ["Running", "Rolled back", "Live now", "Was live", "Superseded", "Broken", "Waiting"] {
        assert!(page.contains(&format!(">{word}</span>")), "{word}");
    }
    let seen = shown.items.iter().find_map(|one| one.seen.clone()).unwrap();
    let turned =
        DeploymentLine { seen: Some(Seen { reached: Reached::NodeUnreachable, ..seen }), ..shown.items[2].clone() };
    let line = html(|| deployments::deployments_view(&DeploymentPage { items: vec![turned], next: None }, &listing));
    assert!(line.contains("warn\">Released, node unreachable<") && !line.contains("Live now"), "{line}");
    assert!(
        page.contains(">carto-api #218</a>") && page.contains("name=\"project\" type=\"text\" value=\"carto-api\"")
    );
    assert!(page.contains("/deployments?by=a%26b&amp;project=carto-api&amp;cursor=abc"), "{page}");
    assert!(page.contains("&lt;b&gt;") && !page.contains("store <b>"));
    let none = html(|| deployments::deployments_view(&DeploymentPage::default(), &listing));
    assert!(none.contains("No deployment like that"));
}

#[test]
fn the_list_of_projects_shows_what_is_live_where() {
    let all = BTreeMap::new();
    let page = html(|| projects::projects_view(&all, &project_samples::project_page(true)));
    for word in ["Live now", "Nothing live yet", "Setting up", "Failed", "none yet", "maintainer", "operator"] {
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
    assert!(page(false).contains("Ask for a project") && page(false).contains("Operators make new projects"));
}

#[test]
fn no_page_has_an_inline_style_or_handler() {
    let page = project_page(0) + &deployment_page(DeploymentState::RolledBack, Window::Around(415));
    assert!(!page.contains(" style=") && !page.contains(" onclick="));
}

#[test]
fn robots_are_shown_to_who_makes_them() {
    let link = "href=\"/projects/carto-api/robots\"";
    assert!(project_page_as(ProjectRole::Maintainer).contains(link));
    assert!(!project_page_as(ProjectRole::Developer).contains(link));
}

#[test]
fn a_robot_shows_what_it_holds_and_a_new_token_once() {
    let (project, robot) = ("carto-api".parse().unwrap(), samples::robot());
    let page = |new| html(|| robot::robot_view(&project, &robot, new, &FormState::default()));
    let shown = page(None);
    for said in ["carto-api/ci", "Jenkins", "Fetching and pushing", "value=\"staging\"", "/robots/ci/delete"] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    assert!(!shown.contains("<img") && !shown.contains("data-copy=\"corpus_"), "{shown}");
    let new = samples::new_token();
    assert!(page(Some(&new)).contains(&format!("data-copy=\"{}\"", new.token.expose())));
}
