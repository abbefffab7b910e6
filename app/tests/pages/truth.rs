//! That pages say what is so: what could not be made, what runs, what was cancelled, what changed meanwhile.

use corpus_api::Version;
use corpus_api::deployments::Deployment;
use corpus_api::jobs::{Job, JobLine};
use corpus_api::nodes::NodeNamed;
use corpus_api::not_created::{NotCreated, NotCreatedPage};
use corpus_app::FormState;
use corpus_app::asked::{Listing, Query};
use corpus_app::pages::deployment_log::{Log, Window};
use corpus_app::pages::deployment_test_cases::Tests;
use corpus_app::pages::guest::{Shown, guest_view};
use corpus_app::pages::node_promises::promises;
use corpus_app::pages::{deployment, dns, job, jobs, node, nodes, not_created, project, request, zone};
use corpus_domain::{DeploymentState, JobKind, JobState, Outcome, Trigger};

use crate::{deployment_samples, html, project_samples, samples};

fn undone(kind: JobKind, title: &str) -> JobLine {
    let line = samples::jobs().remove(4);
    JobLine { kind, title: title.to_owned(), project: "atlas".parse().ok(), ..line }
}

fn set_up() -> NotCreated {
    let job = undone(JobKind::EnvironmentSetUp, "Set up dev of atlas on web.example.org");
    NotCreated { job, may_decide: true }
}

fn attach() -> NotCreated {
    NotCreated { job: undone(JobKind::NameAttach, "Attach www.example.org to web.example.org"), may_decide: true }
}

#[test]
fn what_could_not_be_set_up_or_attached_is_said_where_it_would_be() {
    let (one, name) = (set_up(), attach());
    let beside = project::Beside { failed: vec![one.clone()], ..project_samples::beside(0) };
    let shown = project_samples::project(0);
    let page = html(|| project::project_view(&samples::operator(), &shown, &beside, &FormState::default()));
    assert!(page.contains("dev of atlas on web.example.org: not set up") && page.contains("did not answer for 60 s"));
    let retry = format!("href=\"/projects/atlas?again={}#set-up\"", one.job.id);
    assert!(page.contains(&retry) && page.contains(&format!("/jobs/{}/dismiss", one.job.id)), "{page}");

    let zones = samples::zones();
    let told = [name.clone()];
    let page = html(|| {
        dns::dns_view(
            &samples::operator(),
            &zones,
            &samples::names(),
            &[],
            dns::Beside { failed: &told, ..dns::Beside::default() },
            &Listing::default(),
        )
    });
    assert!(page.contains("www.example.org to web.example.org: not attached"), "{page}");
    assert!(page.contains(&format!("href=\"/dns?again={}#attach\"", name.job.id)), "{page}");

    let whole = Job { line: one.job, ..samples::job_details().remove(4) };
    let page = html(|| not_created::not_created_view(&whole));
    assert!(page.contains(">Not set up</span>") && page.contains("its guest is free"), "{page}");
    let seen = Job { may_decide: false, ..whole };
    assert!(!html(|| not_created::not_created_view(&seen)).contains("Change and retry"));
}

#[test]
fn a_list_says_three_and_leads_to_all() {
    let list = |number: usize| html(|| not_created::notices(&vec![attach(); number], "/dns"));
    assert_eq!(list(3).matches("not attached").count(), 3);
    assert!(!list(3).contains("All that could not be made"));
    assert_eq!(list(4).matches("not attached").count(), 3);
    assert!(list(4).contains("href=\"/not-created?of=name\""), "{}", list(4));
    let mixed = [attach(), attach(), set_up(), set_up()];
    assert!(html(|| not_created::notices(&mixed, "/")).contains("href=\"/not-created\""));
    let page = NotCreatedPage { items: vec![attach(); 5], next: Some("x".parse().unwrap()) };
    let query: Query = [("of".to_owned(), "name".to_owned())].into();
    let page = html(|| not_created::all_view(&page, &query));
    assert!(page.matches("not attached").count() == 5 && page.contains("/not-created?of=name&amp;cursor=x"), "{page}");
}

#[test]
fn one_that_failed_by_itself_says_why_though_somebody_cancelled_it() {
    let line = |error: &str| JobLine {
        error: Some(error.to_owned()),
        cancel_requested_at: Some(project_samples::before(190)),
        cancelled_by: "bob".parse().ok(),
        ..undone(JobKind::GuestStop, "Stop web.example.org")
    };
    let page = |error: &str| {
        let (line, details) = (line(error), samples::job_details());
        let whole = Job { cancel_requested_by: line.cancelled_by.clone(), line, ..details[4].clone() };
        let jobs = [whole.line.clone()];
        let own = html(|| job::job_view(&whole, &samples::log(), &FormState::default()));
        (own, html(|| jobs::progress(&jobs).unwrap()))
    };
    let (own, notice) = page("cancelled");
    assert!(own.contains(">Cancelled</span>") && own.contains("By bob.") && !own.contains("banner fail"), "{own}");
    assert!(notice.contains("Stop web.example.org: cancelled by bob") && !notice.contains("banner fail"), "{notice}");
    let (own, notice) = page("Stop: it did not end within 30 s");
    for page in [own, notice] {
        assert!(page.contains("did not end within 30 s") && page.contains("banner fail"), "{page}");
        assert!(!page.contains("ancelled by"), "{page}");
    }
}

#[test]
fn a_job_that_waits_looks_like_one_that_waits() {
    let mut waits = samples::job_details().remove(1);
    assert_eq!(waits.line.state, JobState::Waiting);
    let page = |whole: &Job| html(|| job::job_view(whole, &samples::log(), &FormState::default()));
    assert!(page(&waits).contains("class=\"status wait\">Waiting</span>"), "{}", page(&waits));
    assert!(
        page(&waits).contains("class=\"banner off\"") && !page(&waits).contains("class=\"banner\""),
        "{}",
        page(&waits)
    );
    let list = [waits.line.clone()];
    assert!(html(|| jobs::list(&list, "")).contains("class=\"status wait\">Waiting</span>"));
    waits.line.state = JobState::Running;
    assert!(page(&waits).contains("class=\"banner\""), "one that runs and waits is worth a look");
}

fn page_of(detail: &Deployment) -> String {
    let log = Log { window: Window::Tail, lines: deployment_samples::log(), total: 452, failing: Some(415) };
    let around = deployment_samples::around(detail);
    html(|| deployment::deployment_view(detail, around.as_ref(), (&log, &Tests::default()), &FormState::default()))
}

#[test]
fn a_recipe_that_runs_says_for_how_long() {
    let mut detail = deployment_samples::deployment(DeploymentState::Running);
    let install = detail.report.as_mut().unwrap().phases.last_mut().unwrap();
    install.began_at = Some(project_samples::before(5));
    let first = install.recipes[0].clone();
    install.recipes[0].elapsed_ms = 2_000;
    install.recipes.push(corpus_api::deployments::report::RecipeReport {
        name: "10_venv.sls".to_owned(),
        outcome: Outcome::Skipped,
        elapsed_ms: 0,
        ..first
    });
    let page = page_of(&detail);
    let recipe = page.split_once("data-recipe=\"10_venv.sls\"").unwrap().1.split_once("</li>").unwrap().0;
    assert!(recipe.contains(">Running</span>") && recipe.contains("data-time=\"since\""), "{recipe}");
    assert!(recipe.contains(">3 s</time>") && !recipe.contains("Not run") && !recipe.contains("0.00 s"), "{recipe}");
    // When the phase is over it was not run, and took nothing.
    detail.report.as_mut().unwrap().phases.last_mut().unwrap().outcome = Outcome::Failed;
    let page = page_of(&detail);
    let recipe = page.split_once("data-recipe=\"10_venv.sls\"").unwrap().1.split_once("</li>").unwrap().0;
    assert!(recipe.contains("Not run") && !recipe.contains("0.00 s"), "{recipe}");
}

#[test]
fn one_that_was_given_up_offers_to_go_back_while_nothing_went_live_since() {
    let mut detail = deployment_samples::deployment(DeploymentState::Broken);
    detail.report = None;
    assert!(page_of(&detail).contains(">Roll back to #212 1d2a9c4</a>"));
    detail.live = Some(project_samples::live(219, 20));
    assert!(!page_of(&detail).contains("Roll back to"));
}

#[test]
fn a_drill_that_passed_is_no_failure_on_any_guest() {
    let mut detail = deployment_samples::refused();
    detail.line.trigger = Trigger::Drill;
    for part in &mut detail.followers {
        part.state = DeploymentState::RolledBack;
    }
    let page = page_of(&detail);
    let guests = page.split_once("id=\"guests\"").unwrap().1.split_once("</section>").unwrap().0;
    assert!(guests.contains("Drill passed") && !guests.contains("Rolled back"), "{guests}");
    detail.line.trigger = Trigger::Push;
    assert!(page_of(&detail).contains(">Rolled back</span>"));
}

#[test]
fn what_is_promised_of_the_storage_is_not_free() {
    let mut lines = samples::node_lines();
    let used = lines[0].used.as_mut().unwrap();
    let bytes = |gb: u64| corpus_domain::Bytes(gb * 1_000_000_000);
    (used.storage_total, used.storage_used, used.storage_promised) = (bytes(270), bytes(32), bytes(174));
    let whole = corpus_api::nodes::Node { line: lines[0].clone(), ..samples::nodes().remove(0) };
    let page = html(|| node::node_view(&samples::operator(), &whole, &[], &[], &FormState::default()));
    assert!(page.contains("64 GB of 270 GB free for new guests (174 GB promised)"), "{page}");
    let row = html(|| nodes::readings(&lines[0]));
    assert!(row.contains("Storage where guests live, used or promised 76%"), "{row}");
}

#[test]
fn a_guest_that_drifted_is_not_as_it_should_be() {
    let (zones, form, quota) = (samples::zones(), FormState::default(), samples::quota());
    let guest = samples::guests().into_iter().find(|guest| !guest.drift.is_empty()).unwrap();
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
    let page = html(|| guest_view(&shown));
    assert!(page.contains("Not as it should be") && !page.contains(">As it should be"), "{page}");
}

/// A form that came too late.
fn too_late(form: &str, values: &[(&str, &str)]) -> FormState {
    let values = values.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    FormState::new(form, values).status(412).message("Changed by dan a minute ago.")
}

#[test]
fn who_comes_too_late_sees_what_is_so_now_beside_what_they_typed() {
    let node_of = samples::nodes().remove(0);
    let form = too_late("overcommit", &[("memory", "3"), ("cpu", "8"), ("version", "seen")]);
    let page = html(|| promises(&samples::operator(), &node_of, &form));
    assert!(
        page.contains("value=\"3\"") && page.contains("id=\"f-memory-now\" class=\"hint strong\">Now: 1.5</p>"),
        "{page}"
    );
    assert!(!page.contains("f-cpu-now"), "what is the same needs no word: {page}");
    let refused = FormState { status: 422, ..form };
    assert!(!html(|| promises(&samples::operator(), &node_of, &refused)).contains("Now: "));

    let open = samples::zones().remove(0);
    let form = too_late("", &[("access", "only"), ("projects", "atlas")]);
    let page = html(|| zone::zone_view(&open, &form));
    assert!(
        page.contains("id=\"f-access-now\" class=\"hint strong\">Now: only for atlas-web, carto-api</p>"),
        "{page}"
    );
    assert!(!html(|| zone::zone_view(&open, &FormState::default())).contains("Now: "));

    let page = html(|| node::node_view(&samples::operator(), &node_of, &[], &[], &FormState::default()));
    let version: Version = NodeNamed::of(node_of.line.id, node_of.line.name.clone()).version;
    let form = page.split_once("id=\"name\"").unwrap().1.split_once("</section>").unwrap().0;
    assert!(form.contains(&format!("name=\"version\" value=\"{version}\"")), "{form}");
}

#[test]
fn a_request_that_can_go_nowhere_leads_on() {
    let (nodes, sizes, none) = (samples::node_lines(), samples::sizes(), []);
    let asked = |projects: &[corpus_domain::ProjectName], nodes, may_create, operators| {
        let choices = request::Choices {
            nodes,
            projects,
            sizes: &sizes,
            profiles: &samples::profiles(),
            lines: &samples::lxc_lines().items,
            may_create,
            operators,
            quotas: &[],
        };
        html(|| request::request_view(&samples::operator(), choices, &FormState::default(), "id"))
    };
    let page = asked(&none, &nodes, true, None);
    assert!(page.contains("href=\"/projects/new\"") && page.contains("Make a project"), "{page}");
    assert!(!asked(&none, &nodes, false, Some("")).contains("/projects/new"));
    let projects = samples::projects();
    let operators = "Only operators may do this. alice and ada are operators.";
    let page = asked(&projects, &[], false, Some(operators));
    assert!(page.contains(operators) && !page.contains("Initialize one"), "{page}");
    assert!(asked(&projects, &[], false, None).contains("Initialize one, or free a slot."));
}
