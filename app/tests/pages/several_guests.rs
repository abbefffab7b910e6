//! What pages say of environments on several guests, from plain values, and that they say
//! nothing of it where there is one guest.

use corpus_api::deployments::Deployment;
use corpus_api::guests::{Guest, GuestEnvironment};
use corpus_api::projects::Project;
use corpus_app::FormState;
use corpus_app::pages::deployment_log::{Log, Window};
use corpus_app::pages::guest::{Shown, guest_view};
use corpus_app::pages::{deployment, environment, environment_questions, project};
use corpus_domain::{DeploymentState, EnvironmentState, GuestState, JobId, ProjectRole};

use crate::{deployment_samples, html, project_samples, samples};

/// The sample project that has an environment on several guests, and the place of that.
const SEVERAL: (usize, usize) = (4, 1);

fn sample() -> Project {
    project_samples::project(SEVERAL.0)
}

fn project_page(project: &Project) -> String {
    let beside = project_samples::beside(SEVERAL.0);
    html(|| project::project_view(&samples::operator(), project, &beside, &FormState::default()))
}

fn environment_page(project: &Project) -> String {
    let one = &project.environments[SEVERAL.1];
    let (whole, settings) = (project_samples::whole(one), project_samples::settings(one));
    html(|| environment::environment_view(&whole, settings.as_ref(), &FormState::default()))
}

fn page_of(detail: &Deployment, window: Window) -> String {
    let log = Log { window, lines: deployment_samples::log(), total: 452, failing: Some(415) };
    html(|| deployment::deployment_view(detail, &log, &FormState::default()))
}

/// From the guest's name to the end of its line in a list.
fn line_of<'a>(page: &'a str, guest: &str) -> &'a str {
    let rest = page.split_once(&format!(">{guest}</a>")).unwrap().1;
    rest.split_once("</li>").unwrap().0
}

#[test]
fn each_guest_says_what_is_live_there() {
    let detail = sample();
    for page in [project_page(&detail), environment_page(&detail)] {
        let guests = &page[page.find("guests\"").unwrap()..];
        let leader = line_of(guests, "staging.carto.example.net");
        assert!(leader.contains("status ok\">Live: #217<") && leader.contains("leader, pushed to"), "{leader}");
        let behind = line_of(guests, "web-2.carto.example.net");
        assert!(behind.contains("status warn\">Behind: #216<"), "{behind}");
        assert!(behind.contains("reached at <a href=\"http://web-2.carto.example.net/\""), "{behind}");
        let failed = line_of(guests, "web-3.carto.example.net");
        assert!(failed.contains("status fail\">Failed<") && failed.contains("The guest has no git."), "{failed}");
        assert!(page.contains("status warn\">Not live everywhere<"), "the environment as a whole");
    }
}

#[test]
fn what_is_not_everywhere_says_what_to_do() {
    let mut detail = sample();
    let page = environment_page(&detail);
    assert!(page.contains("#217 is live on staging.carto.example.net; web-2.carto.example.net has #216."), "{page}");
    assert!(page.contains("Deploy again brings all of them to the same.") && page.contains("/staging/deployments\""));
    assert!(page.contains("web-3.carto.example.net is not deployed to. Remove it"), "{page}");

    let page = environment_page(&project_samples::seen_as(ProjectRole::Viewer, SEVERAL.0));
    assert!(page.contains("web-2.carto.example.net has #216") && !page.contains("/staging/deployments\""));
    assert!(!page.contains("/remove\""), "a viewer takes no guest");

    let staging = &mut detail.environments[SEVERAL.1];
    staging.followers[0].guest_state = GuestState::Stopped;
    let page = environment_page(&detail);
    assert!(page.contains("Start web-2.carto.example.net, or take it from the environment"), "{page}");

    detail.environments[SEVERAL.1].leader.job = Some(JobId(uuid::Uuid::nil()));
    let page = environment_page(&detail);
    assert!(!page.contains("Not live everywhere"), "a job is on it, which may be what brings it there");
    assert!(page.contains("status busy\">Behind: #216<"));

    let staging = &mut detail.environments[SEVERAL.1];
    (staging.leader.job, staging.followers[0].live) = (None, staging.leader.live.clone());
    assert!(!environment_page(&detail).contains("Not live everywhere"));
}

#[test]
fn one_guest_looks_as_ever() {
    let detail = project_samples::project(0);
    let pages = [
        project_page(&detail),
        environment_page(&detail),
        page_of(&deployment_samples::deployment(DeploymentState::Running), Window::Tail),
        page_of(&deployment_samples::deployment(DeploymentState::Live), Window::Tail),
    ];
    for page in pages {
        for word in ["leader, pushed to", "id=\"guests\"", "all go live", "data-phase=\"followers\"", "guest="] {
            assert!(!page.contains(word), "{word}: {page}");
        }
    }
}

#[test]
fn a_guest_says_whether_it_is_pushed_to() {
    let (zones, form) = (samples::zones(), FormState::default());
    let page = |is_leader| {
        let deployed_to = Some(GuestEnvironment { state: EnvironmentState::Ready, is_leader });
        let guest = Guest { deployed_to, ..samples::guests().remove(0) };
        let shown = Shown { guest: &guest, zones: &zones, jobs: &[], form: &form, password: None };
        html(|| guest_view(&shown))
    };
    let follower = "deploys what its leader does";
    assert!(page(true).contains("can be pushed to") && !page(true).contains(follower));
    assert!(page(false).contains(follower) && !page(false).contains("can be pushed to"));
}

#[test]
fn a_free_guest_is_a_new_environment_or_another_guest() {
    let mut detail = sample();
    let page = project_page(&detail);
    assert!(page.contains("staging: web-4.carto.example.net, another guest of it"), "{page}");
    assert!(page.contains("prod: www.carto.example.net, a new environment"));
    assert!(page.contains("on all guests of the environment, or on none"));
    assert!(
        !page.contains("dev: dev-2") && page.contains("but dev failed: remove it and set it up again first."),
        "{page}"
    );

    detail.free_guests.truncate(2);
    detail.environments[SEVERAL.1].leader.guest_state = GuestState::Stopped;
    let page = project_page(&detail);
    assert!(!page.contains("<select id=\"f-guest\"") && page.contains("is stopped: start it"), "{page}");
    detail.environments[SEVERAL.1].leader.state = EnvironmentState::SettingUp;
    assert!(project_page(&detail).contains("still being set up"));

    let full = project_page(&project_samples::project(0));
    assert!(
        full.contains("Add a guest") && full.contains("request another guest of it") && full.contains("/guests/new")
    );
}

#[test]
fn a_guest_is_taken_by_its_name_and_an_environment_after_its_guests() {
    let detail = sample();
    let (form, staging) = (FormState::default(), &detail.environments[SEVERAL.1]);
    let follower = &staging.followers[0];
    let path = format!("/projects/shop/staging/guests/{}/remove", follower.guest);
    assert!(environment_page(&detail).contains(&format!("href=\"{path}\"")));
    let page = html(|| environment_questions::leave_view(staging, follower, &form));
    let post = format!("/projects/shop/environments/staging/guests/{}/delete", follower.guest);
    assert!(page.contains(&format!("action=\"{post}\"")) && page.contains(&format!("value=\"{path}\"")));
    assert!(page.contains("name=\"with_data\""), "{page}");
    assert!(page.contains("Type web-2.carto.example.net to confirm") && page.contains("#216"));
    let remove = html(|| environment_questions::remove_view(staging, &form));
    assert!(remove.contains("It has 2 followers") && remove.contains(&format!("href=\"{path}\"")), "{remove}");
    let alone = project_samples::project(0);
    let remove = html(|| environment_questions::remove_view(&alone.environments[SEVERAL.1], &form));
    assert!(!remove.contains("follower"));
}

#[test]
fn a_deployment_that_failed_on_a_follower_links_to_it() {
    let page = page_of(&deployment_samples::refused(), Window::Tail);
    assert!(page.contains("Failed on web-2.carto.example.net"), "{page}");
    let part = "/projects/carto-api/deployments/218?guest=web-2.carto.example.net";
    assert!(page.contains(&format!("href=\"{part}\" class=\"link\">What happened on web-2.carto.example.net<")));
    let there = line_of(&page[page.find("items guests").unwrap()..], "web-2.carto.example.net");
    assert!(there.contains("Rolled back") && there.contains("31.0 s") && there.contains("20_migrate.sls"), "{there}");
    assert!(page.contains("class=\"fail t") && page.contains("data-phase=\"followers\""));
    assert!(page.contains("href=\"/projects/carto-api/deployments/218\" aria-current=\"page\""), "{page}");
    assert!(page.contains("Deploy again"));
    let leader = line_of(&page[page.find("items guests").unwrap()..], "staging.carto.example.net");
    assert!(leader.contains("could have gone live") && !leader.contains("20_migrate.sls"), "{leader}");
}

#[test]
fn a_part_keeps_its_guest_in_every_link() {
    let page = page_of(&deployment_samples::part(), Window::Search("wheel".into()));
    let whole = "/projects/carto-api/deployments/218";
    let part = format!("{whole}?guest=web-2.carto.example.net");
    assert!(page.contains("on web-2.carto.example.net</h1>"), "{page}");
    assert!(page.contains(&format!("href=\"{part}\" aria-current=\"page\"")));
    assert!(page.contains("<input type=\"hidden\" name=\"guest\" value=\"web-2.carto.example.net\""));
    assert!(page.contains(&format!("{whole}.json?guest=web-2.carto.example.net")));
    assert!(page.contains(&format!("{part}&amp;line=415#L415")) && page.contains(&format!("{part}#logs")));
    assert!(page.contains(&format!("href=\"{whole}\" class=\"btn\">The whole deployment<")));
    for action in ["Deploy again", "Restore what", &format!("{whole}?"), &format!("{whole}#")] {
        assert!(!page.replace(&part, "").contains(action), "{action}");
    }
    let page = page_of(&deployment_samples::part(), Window::From(207));
    for query in ["from=207#logs", "from=448#logs", "log=whole#logs"] {
        assert!(page.contains(&format!("{part}&amp;{query}")), "{query}: {page}");
    }
}

#[test]
fn one_that_waits_for_other_guests_names_them() {
    let page = page_of(&deployment_samples::prepared(), Window::Tail);
    assert!(
        page.contains("Waiting for the other guests") && page.contains("</a>, then web-3.carto.example.net"),
        "{page}"
    );
    assert!(page.contains("Now on <a") && page.contains("data-phase=\"followers\""));
    assert!(page.contains("status off\">To come<"));
    let over = page_of(&deployment_samples::refused(), Window::Tail);
    assert!(!over.contains("Waiting for the other guests") && !over.contains("To come"));
}

#[test]
fn one_that_is_not_live_everywhere_says_where() {
    let page = page_of(&deployment_samples::partly(), Window::Tail);
    assert!(page.contains("Not live everywhere") && page.contains("did not go live on 1 follower"), "{page}");
    assert!(page.contains("it goes live when its guest answers again") && page.contains("Deploy again brings all"));
    let mut later = deployment_samples::partly();
    later.live = None;
    assert!(!page_of(&later, Window::Tail).contains("Deploy again brings all"), "another one is live by now");
}
