//! What pages say of quotas: what is taken and left, to everybody; the forms, to operators.

use corpus_api::Principal;
use corpus_api::quotas::{ProjectQuota, QuotaPage, QuotaUse};
use corpus_app::FormState;
use corpus_app::pages::project_quota::quota_card;
use corpus_app::pages::quotas::quotas_view;
use corpus_app::pages::request;
use corpus_domain::QuotaOf;

use crate::{html, samples};

fn member() -> Principal {
    Principal { ops: false, ..samples::operator() }
}

fn page(who: &Principal, items: Vec<ProjectQuota>, form: &FormState) -> String {
    let page = QuotaPage { items, next: None };
    let (policy, backings, profiles) = (samples::quota_policy(), samples::backings(), samples::profiles());
    let kinds = (&policy, &backings, &profiles, &samples::lxc_lines());
    html(|| quotas_view(who, kinds, &page, &std::collections::BTreeMap::new(), form))
}

fn card(who: &Principal, form: &FormState) -> String {
    let policy = samples::quota_policy();
    html(|| quota_card(who, &samples::quota(), Some(&policy).filter(|_| who.ops), form))
}

#[test]
fn operators_set_what_holds_by_default_and_members_read_it() {
    let ops = page(&samples::operator(), vec![samples::quota()], &FormState::default());
    for text in ["action=\"/quota-policy\"", "value=\"4 GiB\"", "name=\"version\"", "placeholder=\"no limit\""] {
        assert!(ops.contains(text), "{text}: {ops}");
    }
    assert!(ops.contains(">3 of 5<") && ops.contains("/projects/atlas-web#quota"), "{ops}");
    let seen = page(&member(), vec![], &FormState::default());
    assert!(!seen.contains("<form method=\"post\"") && seen.contains("4 GiB") && seen.contains("No project yet"));
}

#[test]
fn what_was_typed_stays_unless_somebody_was_faster() {
    let typed = |status| {
        let values = [("memory", "lots"), ("version", "seen")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        FormState::new("", values.to_vec()).error("memory", "it needs a unit").status(status)
    };
    let refused = page(&samples::operator(), vec![], &typed(422));
    assert!(refused.contains("value=\"lots\"") && refused.contains("It needs a unit.") && refused.contains("\"seen\""));
    let late = page(&samples::operator(), vec![], &typed(412));
    assert!(late.contains("value=\"4 GiB\"") && !late.contains("\"seen\""), "{late}");
}

#[test]
fn a_project_says_what_is_taken_and_what_is_left() {
    let card_of_ops = card(&samples::operator(), &FormState::default());
    for text in [
        "3 of 5<span class=\"quiet\">, 2 left",
        "6 GiB of 8 GiB<span class=\"quiet\">, 2 GiB left, set for this project",
        "4 of 2<span class=\"quiet\">, nothing left",
        "12 GB <span class=\"quiet\">no limit, set for this project",
        "placeholder=\"5, by default\"",
        "value=\"8 GiB\"",
        "action=\"/projects/atlas-web/quota\"",
    ] {
        assert!(card_of_ops.contains(text), "{text}: {card_of_ops}");
    }
    assert!(card_of_ops.contains("value=\"storage\" checked"), "{card_of_ops}");
    assert!(!card_of_ops.contains("value=\"memory\" checked"), "{card_of_ops}");
    let seen = card(&member(), &FormState::default());
    assert!(seen.contains("An operator sets it") && !seen.contains("<form"), "{seen}");
}

#[test]
fn what_is_left_stands_where_one_asks() {
    let (nodes, sizes) = (samples::node_lines(), samples::sizes());
    let view = |quotas: &[ProjectQuota], form: &FormState| {
        let projects: Vec<_> = quotas.iter().map(|quota| quota.project.clone()).collect();
        let (projects, operators) = (&projects, None);
        let choices = request::Choices {
            nodes: &nodes,
            projects,
            sizes: &sizes,
            profiles: &samples::profiles(),
            lines: &samples::lxc_lines().items,
            may_create: false,
            operators,
            quotas,
        };
        html(|| request::request_view(&member(), choices, form, "id"))
    };
    let one = view(&[samples::quota()], &FormState::default());
    assert!(
        one.contains(
            "3 of 5 guests, 6 GiB of 8 GiB of memory, 4 of 2 CPU, 1 of 10 DNS names, 0 of 5 published ports, 31 GB of 200 GB of backups taken in "
        ),
        "{one}"
    );
    let free = ProjectQuota::of("free".parse().unwrap(), |_| QuotaUse::of(1, None, false));
    assert_eq!(free.limited(QuotaOf::ALL), None);
    let two = view(&[free.clone(), samples::quota()], &FormState::default());
    assert!(two.contains("What your projects have taken") && !two.contains("/projects/free#quota"), "{two}");
    let chosen = FormState { values: vec![("project".into(), "atlas-web".into())], ..FormState::default() };
    assert!(view(&[free.clone(), samples::quota()], &chosen).contains("taken in "));
    let none = view(&[free], &FormState::default());
    assert!(!none.contains("taken in ") && !none.contains("What your projects have taken"), "{none}");
}

/// Three forms with the same fields stand there: what was typed belongs to one of them.
#[test]
fn what_guests_lie_on_is_said_to_all_and_set_by_operators() {
    let none = FormState::default();
    let seen = page(&member(), Vec::new(), &none);
    assert!(seen.contains("loop, lvm, dir; loop unless said") && !seen.contains("/backings/prod"), "{seen}");
    let text = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let typed = vec![text("allowed", "dir"), text("usual", "loop"), text("version", "seen")];
    let form = FormState::new("backings-prod", typed).error("usual", "loop is not allowed").status(422);
    let sent = page(&samples::operator(), Vec::new(), &form);
    // In the summary, whose link leads to the field, and at the form that was sent.
    assert_eq!(sent.matches("Loop is not allowed").count(), 2, "{sent}");
    assert_eq!(sent.matches(r#"id="f-usual""#).count(), 1, "{sent}");
    assert_eq!(sent.matches(r#"name="version" value="seen""#).count(), 1, "only its own form has it");
    let prod = sent.split(r#"action="/backings/prod""#).nth(1).unwrap();
    let boxes: Vec<&str> = prod.split(r#"type="checkbox""#).skip(1).take(6).collect();
    let checked: Vec<bool> = boxes.iter().map(|one| one.split('>').next().unwrap().contains("checked")).collect();
    assert_eq!(checked.iter().filter(|one| **one).count(), 1, "{prod}");
}

#[test]
fn operators_change_profiles_and_members_read_what_they_say() {
    let seen = page(&member(), vec![], &FormState::default());
    assert!(seen.contains("xsmall, on btrfs; usual in dev and staging") && !seen.contains("/profiles"), "{seen}");
    let typed = vec![("memory".to_owned(), "lots".to_owned()), ("usual_in".to_owned(), "prod".to_owned())];
    let refused = FormState::new("profile-database", typed).error("memory", "it needs a unit");
    let ops = page(&samples::operator(), vec![], &refused);
    for text in ["action=\"/profiles\"", "action=\"/profiles/database\"", "value=\"lots\"", "It needs a unit."] {
        assert!(ops.contains(text), "{text}: {ops}");
    }
    assert_eq!(ops.matches("id=\"f-comment\"").count(), 1, "each id once");
}

#[test]
fn operators_allow_lines_and_members_read_them() {
    let seen = page(&member(), vec![], &FormState::default());
    assert!(seen.contains("lxc.prlimit.nofile = 65536") && !seen.contains("/lxc-lines"), "{seen}");
    let typed = vec![("key".to_owned(), "lxc.rootfs.path".to_owned()), ("value".to_owned(), "/".to_owned())];
    let refused = FormState::new("lxc-line-routes", typed).error("key", "it is not allowed");
    let ops = page(&samples::operator(), vec![], &refused);
    for text in [
        "action=\"/lxc-lines\"",
        "action=\"/lxc-lines/routes\"",
        "value=\"lxc.rootfs.path\"",
        "It is not allowed.",
        "1 guest has it",
    ] {
        assert!(ops.contains(text), "{text}: {ops}");
    }
    assert!(
        ops.contains("/lxc-lines/routes/delete") && !ops.contains("/lxc-lines/many-files/delete"),
        "one in use stays"
    );
    assert_eq!(ops.matches("id=\"f-key\"").count(), 1, "each id once");
}

#[test]
fn a_request_leaves_to_its_profile_what_that_says() {
    let (sizes, nodes) = (samples::sizes(), samples::node_lines());
    let form = |profiles: &corpus_api::profiles::Profiles| {
        let projects = &samples::projects();
        let (may_create, operators) = (false, None);
        let choices = request::Choices {
            nodes: &nodes,
            projects,
            sizes: &sizes,
            profiles,
            lines: &[],
            may_create,
            operators,
            quotas: &[],
        };
        html(|| request::request_view(&samples::operator(), choices, &FormState::default(), "id"))
    };
    let with = form(&samples::profiles());
    let said = "database: large, on loop, 4 GiB memory, 2 CPU";
    assert!(with.contains(said) && with.contains("as the profile says"), "{with}");
    let without = form(&corpus_api::profiles::Profiles { items: Vec::new() });
    assert!(!without.contains("profile says") && !without.contains("name=\"profile\""), "{without}");
}
