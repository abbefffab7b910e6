//! What the pages of nodes, guests, names and jobs say: text is escaped, states have their words, and what may
//! not be done has no button.

use corpus_api::Principal;
use corpus_api::audit::{AuditEntry, AuditPage};
use corpus_api::guests::{Guest, GuestLine, GuestPage, StorageUse};
use corpus_api::names::NamePage;
use corpus_api::nodes::NodeLine;
use corpus_app::FormState;
use corpus_app::asked::{Listing, Query};
use corpus_app::pages::guest::{Shown, guest_view};
use corpus_app::pages::guest_choice::{Chosen, Deed};
use corpus_app::pages::guest_limits::limits;
use corpus_app::pages::guest_parts::storage;
use corpus_app::pages::guest_settings::settings;
use corpus_app::pages::node_promises::promises;
use corpus_app::pages::{audit, dns, guest_choice, guests, job, move_guest, node, nodes, overview, request, zone};
use corpus_domain::{Backing, Bytes, Door, GuestState, NodeId, ProjectId, ProjectRole, SizeProfile};
use leptos::prelude::*;

use crate::{html, leaving_pages, project_samples, samples};

fn viewer() -> Principal {
    let roles = [(ProjectId(uuid::Uuid::nil()), ProjectRole::Viewer)].into();
    Principal { ops: false, roles, ..samples::operator() }
}

/// As a viewer of its project is told of it.
fn seen_only(guest: &Guest) -> Guest {
    Guest { may_operate: false, may_change: false, may_move: false, ..guest.clone() }
}

fn request(who: &Principal, form: &FormState) -> AnyView {
    let (nodes, projects, sizes) = (samples::node_lines(), samples::projects(), samples::sizes());
    let quotas = [samples::quota()];
    let profiles = corpus_api::profiles::Profiles { items: Vec::new() };
    let (may_create, operators) = (false, None);
    let choices = request::Choices {
        nodes: &nodes,
        projects: &projects,
        sizes: &sizes,
        profiles: &profiles,
        lines: &samples::lxc_lines().items,
        may_create,
        operators,
        quotas: &quotas,
    };
    request::request_view(who, choices, form, "id")
}

fn guest_page(guest: &Guest, password: Option<&str>) -> String {
    let (zones, quota, form) = (samples::zones(), samples::quota(), FormState::default());
    html(|| {
        guest_view(&Shown {
            guest,
            zones: &zones,
            quota: &quota,
            lines: &samples::lxc_lines().items,
            jobs: &[],
            undoes: &[],
            asks: false,
            form: &form,
            password,
        })
    })
}

#[test]
fn a_guest_says_how_to_enter_it() {
    let page = guest_page(&samples::guests()[0], None);
    assert!(page.contains("ssh -p 40012 sysadmin@node-01.paris.example.net"));
    assert!(page.contains("Reveal, recorded in the audit log"));
    for word in ["Running", "Attached", "Wanted", "Failed"] {
        assert!(page.contains(&format!(">{word}</span>")), "{word}");
    }
}

#[test]
fn limits_are_shown_with_their_use_and_changed_by_who_may() {
    let (guest, form) = (samples::guests()[0].clone(), FormState::default());
    let card = |guest: &Guest, form: &FormState| html(|| limits(guest, &samples::quota(), form));
    let page = card(&guest, &form);
    for text in ["310 MiB of 2 GiB", "0.42 of 2 processors", "37 of 2048", "Memory used 15%", "Not held on this node"] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(page.contains("/limits\"") && page.contains("value=\"2 GiB\""), "{page}");
    assert!(page.contains(&format!("name=\"version\" value=\"{}\"", guest.limits_version)), "{page}");
    assert!(!card(&seen_only(&guest), &form).contains("/limits\""));
    let sent = FormState::new("", vec![("memory".into(), "lots".into())])
        .with_error(&corpus_controller::Error::field("memory", "no amount"));
    let page = card(&guest, &sent);
    assert!(page.contains("<details open") && page.contains("value=\"lots\"") && page.contains("No amount."), "{page}");
}

#[test]
fn settings_are_changed_by_who_may_and_what_runs_goes_on() {
    let (guest, lines) = (samples::guests()[0].clone(), samples::lxc_lines().items);
    let card = |guest: &Guest, form: &FormState| html(|| settings(guest, &lines, form));
    let page = card(&guest, &FormState::default());
    for text in ["lxc.prlimit.nofile = 65536", "lxc.sysctl.net.ipv4.ip_forward = 1", "next start", "Restart it"] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(page.contains("/settings\"") && page.contains(&format!("value=\"{}\"", guest.settings_version)), "{page}");
    assert_eq!(page.matches(" checked").count(), 2, "it starts at boot, and has one of the lines: {page}");
    assert!(!card(&seen_only(&guest), &FormState::default()).contains("/settings\""));
    let sent = FormState::new("", vec![("conf".into(), "routes".into()), ("conf".into(), "many-files".into())])
        .error("conf", "both set it");
    let page = card(&guest, &sent);
    assert!(page.contains("<details open") && page.contains("Both set it."), "{page}");
    assert_eq!(page.matches(" checked").count(), 2, "what was typed stays: {page}");
}

#[test]
fn a_node_says_what_it_has_promised() {
    let node = &samples::nodes()[0];
    let card = |who: &Principal| html(|| promises(who, node, &FormState::default()));
    let page = card(&samples::operator());
    for text in [
        "40 GiB of 64 GiB × 1.5",
        "31.5 of 32 × 8",
        "/overcommit",
        "room for 12 more of size small",
        "125 GB of 800 GB × 1 of storage",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(!card(&viewer()).contains("/overcommit"));
}

#[test]
fn storage_with_a_size_can_be_resized_by_who_may() {
    let (mut guest, form) = (samples::guests()[0].clone(), FormState::default());
    let card = |guest: &Guest| html(|| storage(guest, &samples::quota(), &form));
    assert!(!card(&guest).contains("/enlarge"), "{} has no size", guest.backing);
    guest.backing = Backing::Loop;
    guest.line.size = SizeProfile::Xtrem;
    let page = card(&guest);
    assert!(page.contains("/enlarge") && page.contains("xxtrem, 1000 GB") && page.contains("xxxtrem, 2000 GB"));
    assert!(!page.contains(">xtrem, "), "{page}");
    // What is in it has to fit, and that was read.
    assert!(!page.contains("/shrink"), "{page}");
    let used = Bytes(95_000_000_000);
    let full_at = Some(project_samples::before(-864_000));
    guest.storage = Some(StorageUse { used, of: Bytes(500_000_000_000), taken: used, full_at });
    let page = card(&guest);
    assert!(page.contains("/shrink") && page.contains("xxxlarge, 100 GB: 400 GB less promised"), "{page}");
    assert!(!page.contains(">large, 20 GB") && page.contains("95 GB of 500 GB") && page.contains("Full"), "{page}");
    assert!(!card(&seen_only(&guest)).contains("/shrink"));
    assert!(!card(&seen_only(&guest)).contains("/enlarge"));
    guest.line.size = SizeProfile::Xxxtrem;
    assert!(!card(&guest).contains("/enlarge"));
}

#[test]
fn a_viewer_sees_a_guest_and_no_way_to_change_it() {
    let page = guest_page(&seen_only(&samples::guests()[0]), None);
    assert!(page.contains("ssh -p 40012"));
    for action in ["/stop", "/restart", "/move", "/destroy", "/reveal", "/names\"", "/delete"] {
        assert!(!page.contains(action), "{action}");
    }
}

#[test]
fn a_guest_goes_to_another_node_that_takes_guests_or_to_any() {
    let guest = &samples::guests()[0];
    assert!(guest_page(guest, None).contains("/move\""), "a link leads there");
    let mut nodes = samples::node_lines();
    let its = nodes.iter().find(|node| node.id == guest.line.node).unwrap().clone();
    nodes.push(NodeLine { id: NodeId(uuid::Uuid::nil()), ..its });
    let (form, preview) = (FormState::default(), leaving_pages::preview(0));
    let page = |snapshots| {
        let shown = move_guest::Shown { guest, nodes: &nodes, snapshots, preview: &preview, form: &form };
        html(|| move_guest::move_view(&shown))
    };
    let shown = page(0);
    let others = nodes.iter().filter(|node| node.id != guest.line.node && node.takes_guests()).count();
    assert!(others > 0 && shown.matches("<option").count() == others + 1, "{shown}");
    assert!(!shown.contains(&format!("value=\"{}\"", guest.line.node)), "it is there already: {shown}");
    assert!(shown.contains("/move\"") && !shown.contains("left behind"), "{shown}");
    assert!(page(1).contains("Its snapshot is left behind") && page(3).contains("Its 3 snapshots are left behind"));
    assert!(!shown.contains("points back"), "{shown}");
}

#[test]
fn for_how_long_a_guest_answers_nothing_is_said_before_and_after() {
    let (guest, form) = (&samples::guests()[0], FormState::default());
    assert_eq!(guest.line.state, GuestState::Running);
    let page = |guest: &Guest, variant| {
        let preview = leaving_pages::preview(variant);
        let shown = move_guest::Shown { guest, nodes: &[], snapshots: 0, preview: &preview, form: &form };
        html(|| move_guest::move_view(&shown))
    };
    let known = page(guest, 1);
    assert!(known.contains("It will answer nothing for about 4.12 s, the median of its last 12 moves."), "{known}");
    assert!(page(guest, 2).contains("of the last 12 moves of guests with this backing"));
    assert!(page(guest, 0).contains("Nothing is known yet of how long it will answer nothing"));
    let line = GuestLine { state: GuestState::Stopped, ..guest.line.clone() };
    let stopped = page(&Guest { line, ..guest.clone() }, 0);
    assert!(!stopped.contains("it will answer nothing"), "{stopped}");

    let text = |guest: &Guest| guest_page(guest, None);
    let moved = text(&samples::guests()[1]);
    assert!(moved.contains(" from 192.0.2.7") && moved.contains("answered nothing for 4.10 s"), "{moved}");
    assert!(!text(guest).contains("answered nothing"));
}

#[test]
fn it_is_said_what_becomes_of_the_reverse_record_before_a_guest_is_moved() {
    let (guest, form) = (&samples::guests()[0], FormState::default());
    let page = |variant| {
        let preview = leaving_pages::preview(variant);
        let shown = move_guest::Shown { guest, nodes: &[], snapshots: 0, preview: &preview, form: &form };
        html(|| move_guest::move_view(&shown))
    };
    let held = page(1);
    assert!(held.contains("Its address, 10.5.0.10, points back to mail.example.net.") && !held.contains("no name"));
    let lost = page(2);
    assert!(lost.contains("No reverse zone of ours holds addresses at 192.0.2.9 and 192.0.2.10"), "{lost}");
}

#[test]
fn a_button_that_can_do_nothing_now_is_disabled() {
    let page = guest_page(&samples::guests()[3], None);
    assert_eq!(samples::guests()[3].line.state, GuestState::Creating);
    assert!(page.contains("A job is on this guest"));
    assert!(page.matches("disabled").count() >= 2, "{page}");
}

#[test]
fn a_revealed_password_is_shown_once_and_escaped() {
    let page = guest_page(&samples::guests()[1], Some("a<b>\"c\"&d"));
    assert!(page.contains("a&lt;b&gt;"));
    assert!(!page.contains("a<b>"));
}

#[test]
fn a_hostile_log_stays_text() {
    let details = samples::job_details();
    let page = html(|| job::job_view(&details[2], &samples::log(), &FormState::default()));
    assert!(page.contains("&lt;script&gt;alert(1)"));
    assert!(!page.contains("<script>alert(1)"));
    assert!(page.contains("data-state=\"undo_failed\"") && page.contains("/abandon"));
}

#[test]
fn nodes_say_what_is_wrong_with_them() {
    let page = html(|| nodes::nodes_view(&samples::operator(), &samples::node_page(5), &[], &Listing::default()));
    for word in ["Ready", "Initializing", "Linked", "Unreachable", "Host key changed"] {
        assert!(page.contains(&format!(">{word}</span>")), "{word}");
    }
}

#[test]
fn an_empty_installation_says_what_to_do_next() {
    let nothing = corpus_api::overview::Overview::default();
    let none = overview::Nodes::default();
    let steps = samples::first_steps(true);
    let ops = html(|| overview::overview_view(&samples::operator(), &nothing, &none, &[], &steps));
    assert!(ops.contains("/nodes/link") && !ops.contains("/guests/new"));
    let steps = samples::first_steps(false);
    let member = html(|| overview::overview_view(&viewer(), &nothing, &none, &[], &steps));
    assert!(!member.contains("/nodes/link") && member.contains("href=\"/keys\" class=\"btn primary\""), "{member}");
}

#[test]
fn a_refused_request_keeps_what_was_typed_but_the_password() {
    let values = [("name", "www\"><b>"), ("ip", "10.6.0.1"), ("password", "hunter2hunter2"), ("size", "large")];
    let values = values.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let form = FormState::new("", values).error("ip", "10.6.0.1 is outside of 10.5.0.0/16");
    let page = html(|| request(&viewer(), &form));
    assert!(page.contains("value=\"www&quot;&gt;&lt;b&gt;\""));
    assert!(page.contains("href=\"#f-ip\"") && page.contains("aria-invalid=\"true\"") && page.contains("f-ip-error"));
    assert!(page.contains("value=\"large\" selected"), "{page}");
    assert!(!page.contains("hunter2"));
    assert!(page.contains("<details open class=\"more\""), "the part with the error is open");
}

#[test]
fn a_request_that_a_link_begins_has_what_it_chose() {
    let nodes = samples::node_lines();
    let chosen = [("environment", "prod"), ("node", &nodes[0].id.to_string())];
    let values = chosen.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let form = FormState { values, ..FormState::default() };
    let page = html(|| request(&viewer(), &form));
    let node = format!("value=\"{}\" selected", nodes[0].id);
    assert!(page.contains("value=\"prod\" selected") && page.contains(&node), "{page}");
    assert!(page.contains("value=\"small\" selected"), "and what is suggested");
    assert!(page.contains("<details open class=\"more\""), "the part with the node is open");
}

#[test]
fn only_operators_are_asked_for_privileged_guests() {
    let form = FormState::default();
    let page = |who: &Principal| html(|| request(who, &form));
    assert!(page(&samples::operator()).contains("name=\"privileged\""));
    assert!(!page(&viewer()).contains("rivileged"));
}

#[test]
fn what_holds_a_guest_is_said_and_so_is_what_does_not() {
    let held = guest_page(&samples::guests()[0], None);
    assert!(held.contains("its root is ") && held.contains("1073741824"), "{held}");
    assert!(held.contains("AppArmor") && held.contains("not in force") && held.contains("the kernel has none"));
    let privileged = guest_page(&seen_only(&samples::guests()[2]), None);
    assert!(privileged.contains("root in it is root on its node") && privileged.contains("serves NFS to the others"));
    assert!(!privileged.contains("AppArmor"));
    let list = html(|| {
        let page = GuestPage { items: samples::lines(), next: None };
        guests::guests_view(&viewer(), &page, &samples::counts(), &[], &Listing::default())
    });
    assert_eq!(list.matches(">privileged</span>").count(), 1);
}

#[test]
fn no_page_has_an_inline_style_or_handler() {
    let page = guest_page(&samples::guests()[0], None)
        + &html(|| nodes::nodes_view(&samples::operator(), &samples::node_page(5), &[], &Listing::default()));
    assert!(!page.contains(" style=") && !page.contains(" onclick="));
}

#[test]
fn a_node_says_what_differs_and_offers_a_repair_to_who_may() {
    let (list, guests, form) = (samples::nodes(), samples::lines(), FormState::default());
    let page = |who: &Principal, at: usize| html(|| node::node_view(who, &list[at], &guests, &[], &form));
    let drifted = page(&samples::operator(), 0);
    assert!(drifted.contains("/repair") && drifted.contains("rules in the kernel were changed by someone else"));
    assert!(drifted.contains("&lt;b&gt;pet&lt;/b&gt;"), "what a node says is text");
    assert!(!page(&viewer(), 0).contains("id=\"drift\""), "it names guests of every project");
    assert!(page(&samples::operator(), 3).contains("Nothing differs"));
    assert!(!page(&samples::operator(), 2).contains("id=\"drift\""), "a linked node should be nothing yet");
    let table = |who: &Principal| html(|| nodes::nodes_view(who, &samples::node_page(5), &[], &Listing::default()));
    assert_eq!(table(&samples::operator()).matches("Drift 4").count(), 1);
    assert!(!table(&viewer()).contains("Drift"));
}

#[test]
fn a_job_that_waits_says_until_when_and_a_silent_step_says_so() {
    let details = samples::job_details();
    let page = |at: usize| html(|| job::job_view(&details[at], &samples::log(), &FormState::default()));
    let retried = page(5);
    for words in [
        "(attempt 3 of 20)",
        ", next try at ",
        "data-time=\"clock\"",
        "its node is unreachable for",
        "what it did so far is undone",
    ] {
        assert!(retried.contains(words), "{words}");
    }
    assert!(retried.contains("no sign of life since ") && retried.contains(" (75 s)"), "{retried}");
    assert!(!page(3).contains("no sign of life"), "what is done may be silent");
    let blocked = page(1);
    assert!(blocked.contains("Open that job") && blocked.contains("it has done nothing yet"));
}

#[test]
fn of_a_long_log_the_end_is_shown_and_the_rest_is_a_link_away() {
    let (whole, log) = (&samples::job_details()[2], samples::log());
    let page = |log: &job::Log| html(|| job::job_view(whole, log, &FormState::default()));
    let (earlier, last) = ("?before=1#log-heading", ">The last lines<");
    let end = page(&log);
    assert!(end.contains(earlier) && !end.contains(last), "{end}");
    let begin = page(&job::Log { has_earlier: false, is_earlier: true, ..log.clone() });
    assert!(!begin.contains(earlier) && begin.contains(last), "{begin}");
    let whole = page(&job::Log { has_earlier: false, ..log });
    assert!(!whole.contains(earlier) && !whole.contains(last), "{whole}");
}

#[test]
fn a_node_with_a_job_of_others_says_no_more_than_that() {
    let (list, form) = (samples::nodes(), FormState::default());
    let page = |at: usize| html(|| node::node_view(&viewer(), &list[at], &[], &[], &form));
    assert!(page(2).contains("Another job on this node"));
    assert!(!page(0).contains("Another job on this node"));
}

#[test]
fn who_may_take_names_in_a_zone_is_chosen_and_said() {
    let zones = samples::zones();
    let list = |who: &Principal| {
        html(|| dns::dns_view(who, &zones, &NamePage::default(), &[], dns::Beside::default(), &Listing::default()))
    };
    let ops = list(&samples::operator());
    assert!(ops.contains("only for atlas-web, carto-api") && ops.contains("open to all projects"), "{ops}");
    assert!(!ops.contains(" checked"), "nothing is chosen for whoever makes a zone: {ops}");
    assert!(ops.contains(&format!("href=\"/dns/zones/{}\"", zones[0].id)));
    assert!(!list(&viewer()).contains("href=\"/dns/zones/"));
    let form = html(|| zone::zone_view(&zones[0], &FormState::default()));
    assert!(form.contains("value=\"only\" checked") && form.contains("value=\"atlas-web, carto-api\""), "{form}");
}

fn query(pairs: &[(&str, &str)]) -> Query {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

fn guest_list(who: &Principal, listing: &Listing) -> String {
    let page = GuestPage { items: samples::lines(), next: None };
    html(|| guests::guests_view(who, &page, &samples::counts(), &[], listing))
}

#[test]
fn a_list_shows_the_views_that_are_kept_of_it() {
    let plain = guest_list(&viewer(), &samples::listing());
    assert!(plain.contains("href=\"/guests?environment=prod\"") && plain.contains("My prod guests"), "{plain}");
    assert!(plain.contains("&lt;b&gt;Failed") && !plain.contains("<b>Failed"), "{plain}");
    assert!(!plain.contains("Keep as a view") && !plain.contains("Remove this view") && !plain.contains("Show all"));
    let asked = |here: &str, pairs: &[(&str, &str)]| Listing {
        here: here.to_owned(),
        views: samples::listing().views,
        ..Listing::of(query(pairs))
    };
    let kept = guest_list(&viewer(), &asked("environment=prod", &[("environment", "prod"), ("cursor", "x")]));
    assert!(kept.contains("Remove this view") && !kept.contains("Keep as a view"), "{kept}");
    assert!(kept.contains("value=\"/guests?environment=prod\""), "one comes back to the list as it is: {kept}");
    let other = guest_list(&viewer(), &asked("q=www", &[("q", "www")]));
    assert!(other.contains("Keep as a view") && other.contains("name=\"query\" value=\"q=www\""), "{other}");
    assert!(other.contains("href=\"/guests\" class=\"btn\">Show all"), "{other}");
}

#[test]
fn guests_are_chosen_by_who_may_do_something_with_them() {
    let ops = guest_list(&samples::operator(), &Listing::default());
    assert!(ops.contains("action=\"/guests/choice\"") && ops.contains("value=\"destroy\""), "{ops}");
    for boxes in ["type=\"checkbox\" name=\"guest\"", "type=\"hidden\" name=\"listed\""] {
        assert_eq!(ops.matches(boxes).count(), samples::lines().len(), "{boxes}: {ops}");
    }
    assert!(ops.contains("name=\"all\" value=\"yes\"") && ops.contains("All on this page"), "{ops}");
    assert!(ops.contains(&format!("aria-label=\"Choose {}\"", samples::lines()[0].name)), "{ops}");
    let seen = guest_list(&viewer(), &Listing::default());
    assert!(!seen.contains("type=\"checkbox\"") && !seen.contains("/guests/choice"), "{seen}");
    assert!(ops.contains("10 GB, 2 GiB memory (medium)\"") && ops.contains(">2 GiB memory<"), "{ops}");
}

#[test]
fn several_guests_are_asked_about_once_and_what_can_not_be_is_told_apart() {
    let guest = samples::guests()[0].clone();
    let chosen = [
        Chosen::Can(Box::new(guest.clone())),
        Chosen::Cannot(Box::new(samples::guests()[1].clone()), "It is <b>stopped</b> already.".to_owned()),
        Chosen::Missing,
    ];
    let form = FormState::default();
    let page = |deed| html(|| guest_choice::choice_view(deed, &chosen, &form, "7"));
    let stop = page(Deed::Stop);
    assert!(stop.contains("Stop 1 guest") && stop.contains("Not these") && stop.contains("&lt;b&gt;stopped"), "{stop}");
    assert!(stop.contains("A guest that is not there") && !stop.contains("name=\"confirm\""), "{stop}");
    let hidden = format!("name=\"guest\" value=\"{}\"", guest.line.id);
    assert!(stop.matches("name=\"guest\"").count() == 1 && stop.contains(&hidden), "{stop}");
    let destroy = page(Deed::Destroy);
    assert!(destroy.contains("Type 1 to confirm") && destroy.contains("Detached: "), "{destroy}");
    let none = html(|| guest_choice::choice_view(Deed::Start, &[Chosen::Missing], &form, "7"));
    assert!(none.contains("None of these") && !none.contains("<form"), "{none}");
}

#[test]
fn a_size_says_what_it_is_and_where_there_is_room() {
    let page = html(|| request(&samples::operator(), &FormState::default()));
    assert!(page.contains(">5 GB, 1 GiB memory, 1 CPU (small)<"), "{page}");
    assert!(
        page.contains(">node-01.paris.example.net, node-02.paris.example.net, node-03.paris.example.net<")
            && page.contains(">no node<")
            && page.contains(">none now<"),
        "{page}"
    );
}

#[test]
fn a_query_that_a_list_does_not_take_is_said_in_its_filter() {
    let mut listing = Listing::of(query(&[("project", "No Project")]));
    listing.filter = listing.filter.error("project", "no project").status(422);
    assert_eq!(listing.status(), 422);
    let page = guest_list(&viewer(), &listing);
    assert!(page.contains("href=\"#f-project\"") && page.contains("value=\"No Project\""), "{page}");
}

#[test]
fn the_audit_says_who_did_it_and_by_which_door() {
    let row = samples::audit().remove(0);
    let robot =
        AuditEntry { robot: true, actor: "atlas/ci".to_owned(), door: Some(Door::Git), token: None, ..row.clone() };
    let before = AuditEntry { door: None, token: None, ..row.clone() };
    let page = AuditPage { items: vec![row, robot, before], next: None };
    let query: Query = [("project".to_owned(), "<atlas>".to_owned()), ("cursor".to_owned(), "abc".to_owned())].into();
    let listing = Listing::of(query);
    let shown = |who: &Principal, listing: &Listing| html(|| audit::audit_view(who, &page, &[], listing));
    let text = shown(&viewer(), &listing);
    for says in [
        "API, token Jenkins",
        ">git<",
        "not recorded",
        "atlas/ci (robot)<",
        "What concerns your projects",
        "Export as CSV",
    ] {
        assert!(text.contains(says), "{says}: {text}");
    }
    // The file is of what is asked, and not of a page of it; what was typed is text.
    assert!(text.contains("name=\"project\" value=\"&lt;atlas&gt;\"") && !text.contains("name=\"cursor\""), "{text}");
    assert!(shown(&samples::operator(), &listing).contains("Every change"));
    let mut wrong = listing;
    wrong.filter = wrong.filter.error("project", "This is no project.");
    assert!(!shown(&viewer(), &wrong).contains("/audit/export"));
}
