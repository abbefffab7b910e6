//! What pages say of environments on several guests, from plain values, and that they say
//! nothing of it where there is one guest.

use std::collections::BTreeMap;

use chrono::{TimeDelta, Utc};
use corpus_api::deployments::Deployment;
use corpus_api::environments::EnvironmentSummary;
use corpus_api::guests::{Guest, GuestEnvironment};
use corpus_api::projects::Project;
use corpus_app::FormState;
use corpus_app::pages::deployment_log::{Log, Window};
use corpus_app::pages::deployment_test_cases::Tests;
use corpus_app::pages::guest::{Shown, guest_view};
use corpus_app::pages::{deployment, environment, environment_questions, project, projects};
use corpus_domain::{DeploymentState, EnvironmentState, GuestState, JobId, ProjectRole, Reachability};

use crate::{deployment_samples, html, offers_again, project_samples, samples};

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
    let shared = project_samples::shared(one);
    html(|| environment::environment_view(&whole, settings.as_ref(), (&[], Some(&shared)), &FormState::default()))
}

fn page_of(detail: &Deployment, window: Window) -> String {
    let log = Log { window, lines: deployment_samples::log(), total: 452, failing: Some(415) };
    let around = deployment_samples::around(detail);
    html(|| deployment::deployment_view(detail, around.as_ref(), (&log, &Tests::default()), &FormState::default()))
}

/// From the guest's name to the end of its line in a list.
fn line_of<'a>(page: &'a str, guest: &str) -> &'a str {
    let rest = page.split_once(&format!(">{guest}</a>")).unwrap().1;
    rest.split_once("</li>").unwrap().0
}

#[test]
fn who_serves_the_names_and_why_not_is_shown() {
    let page = environment_page(&sample());
    let names = page.split_once("id=\"balance\"").unwrap().1.split_once("</section>").unwrap().0;
    assert!(names.contains("href=\"http://shop.carto.example.net/\""), "{names}");
    let row = |guest: &str| {
        names.split("<tr").find(|row| row.contains(&format!("data-member=\"{guest}\""))).unwrap().to_owned()
    };
    let (leader, follower) = (row("staging.carto.example.net"), row("web-2.carto.example.net"));
    assert!(leader.contains(">In balance<") && leader.contains("data-in"), "{leader}");
    assert!(follower.contains(">Out<") && follower.contains("Deployment #217 works on it"), "{follower}");
    assert!(!follower.contains("data-in"), "{follower}");
    for button in ["Attach name", "Save balance"] {
        assert!(names.contains(&format!(">{button}</button>")), "{button}");
    }
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

type Change = fn(&mut EnvironmentSummary);

/// The sample where all guests have the same, with one thing changed, as an environment and as a line of a list.
fn with(change: impl FnOnce(&mut EnvironmentSummary)) -> (String, String) {
    let mut detail = sample();
    let staging = &mut detail.environments[SEVERAL.1];
    staging.followers.truncate(1);
    (staging.followers[0].live, staging.followers[0].site) = (staging.leader.live.clone(), staging.leader.site.clone());
    change(staging);
    *staging = staging.clone().judged();
    let mut lines = project_samples::project_page(true);
    let line = lines.items.iter_mut().flat_map(|project| &mut project.environments).find(|one| one.is_live).unwrap();
    (line.seen, line.is_everywhere) = (staging.seen.clone(), true);
    lines.items.retain_mut(|project| {
        project.environments.retain(|one| one.is_live);
        project.environments.truncate(1);
        !project.environments.is_empty()
    });
    lines.items.truncate(1);
    (environment_page(&detail), html(|| projects::projects_view(&BTreeMap::new(), &lines)))
}

#[test]
fn the_worst_of_its_guests_decides_whether_it_is_live() {
    let old = Utc::now() - TimeDelta::minutes(12);
    let (page, line) = with(|_| {});
    assert!(page.contains("status ok\">Live now<") && line.contains("status ok\">Live now<"), "{page}");
    assert_eq!(page.matches("Answers 200").count(), 2, "each guest says what its site answers");
    let changes: [(&str, Change); 5] = [
        ("warn\">Released, follower stopped<", |one| one.followers[0].guest_state = GuestState::Stopped),
        ("fail\">Released, follower answers 503<", |one| one.followers[0].site = Some(project_samples::answers(503))),
        ("warn\">Released, node unreachable<", |one| one.followers[0].node_reachability = Reachability::Unreachable),
        ("fail\">Released, answers 502<", |one| one.leader.site = Some(project_samples::answers(502))),
        ("warn\">Released, guest stopped<", |one| one.leader.guest_state = GuestState::Stopped),
    ];
    for (word, change) in changes {
        let (page, line) = with(change);
        let (head, _) = page.split_once("id=\"live-state\"").unwrap().1.split_once("id=\"live-actions\"").unwrap();
        assert!(head.contains(word) && line.contains(word), "{word}: {page}");
        assert!(!page.contains("Live now") && !line.contains("Live now"), "{word}: {page}");
        let guests = &page[page.find("guests\"").unwrap()..];
        assert!(guests.contains(word) && guests.matches("Live: #217").count() == 1, "{word}: {guests}");
    }
    let (page, line) = with(|one| one.leader.site.iter_mut().for_each(|site| site.checked_at = old));
    for page in [&page, &line] {
        assert!(page.contains("warn\">Released, not seen for 12 min<") && !page.contains("Live now"), "{page}");
    }
    assert!(page.contains("warn\">Answered 200<") && page.contains("12 min ago"), "{page}");
    assert!(!page.contains("told"), "what is said is as old as what decides");
}

#[test]
fn what_is_not_everywhere_says_what_to_do() {
    let mut detail = sample();
    let page = environment_page(&detail);
    assert!(page.contains("#217 is live on staging.carto.example.net; web-2.carto.example.net has #216."), "{page}");
    assert!(
        page.contains("Deploying it again brings all of them to the same.") && page.contains("/staging/deployments\"")
    );
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
        let quota = samples::quota();
        let shown = Shown {
            guest: &guest,
            zones: &zones,
            quota: &quota,
            lines: &samples::lxc_lines().items,
            jobs: &[],
            undoes: &[],
            asks: false,
            form: &form,
            password: None,
        };
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
    assert!(offers_again(&page));
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
    assert!(!offers_again(&page));
    for action in ["Roll back", &format!("{whole}?"), &format!("{whole}#")] {
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
    assert!(
        page.contains("it goes live when its guest answers again") && page.contains("Deploying it again brings all")
    );
    let mut later = deployment_samples::partly();
    later.live = None;
    assert!(!page_of(&later, Window::Tail).contains("Deploying it again brings all"), "another one is live by now");
}
