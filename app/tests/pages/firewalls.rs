//! What pages say of firewalls: what is in force, by whose word, and what can be taken away here.

use corpus_api::firewall::GuestFirewall;
use corpus_app::FormState;
use corpus_app::pages::guest_firewall::firewall_view;
use corpus_app::pages::intrusion::intrusion_view;
use corpus_app::pages::networks::networks_view;

use crate::{firewall_pages, html, samples};

fn page(firewall: &GuestFirewall, form: &FormState) -> String {
    html(|| firewall_view(firewall, &samples::quota(), form))
}

#[test]
fn what_is_in_force_is_shown_with_who_decided_it() {
    let page = page(&firewall_pages::guest(false), &FormState::default());
    for text in [
        "5432/tcp from guest:web.carto.example.net",
        "In force",
        "On its way",
        "48213 packets, 7.3 MB",
        "Port 30010/tcp of the node leads to 5432/tcp, from network:office",
        "The replica at the other site",
        "dev of carto-api",
        "2 of them on another node",
        "network:scanners is kept out",
        "203.0.113.0/24",
        "operators, everywhere",
        "worker.carto.example.net",
        "aria-label=\"Unpublish port 30010\"",
        "Publish the port",
    ] {
        assert!(page.contains(text), "{text}\n{page}");
    }
    // Its own rule that is in force, and no other: what is an environment's or the operators' goes elsewhere.
    assert_eq!(page.matches("action=\"/firewall-rules/").count(), 1);
    assert_eq!(page.matches("action=\"/published-ports/").count(), 1);
}

#[test]
fn who_may_not_change_it_sees_it_all_the_same() {
    let firewall = GuestFirewall { may_change: false, ..firewall_pages::guest(false) };
    let page = page(&firewall, &FormState::default());
    assert!(page.contains("In force") && !page.contains("<form"), "{page}");
}

#[test]
fn a_refused_rule_keeps_what_was_typed() {
    let values = [("from", "10.5.0.12"), ("ports", "53"), ("protocol", "udp")];
    let values = values.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let form = FormState::new("allow", values).error("from", "name a guest");
    let page = page(&firewall_pages::guest(true), &form);
    assert!(page.contains("href=\"#f-allow-from\"") && page.contains("id=\"f-allow-from-error\""), "{page}");
    assert!(page.contains("value=\"10.5.0.12\"") && page.contains("Nothing was kept out"), "{page}");
    // The other form of the page has fields of its own.
    assert!(page.contains("id=\"f-publish-from\""));
}

#[test]
fn a_network_that_rules_name_is_not_removed() {
    let page = html(|| networks_view(&firewall_pages::named(false), &FormState::default()));
    assert!(page.contains("Change office") && page.contains("aria-label=\"Remove scanners\""), "{page}");
    assert!(!page.contains("aria-label=\"Remove office\""));
}

#[test]
fn a_guests_own_numbers_are_shown_and_no_address() {
    let page = page(&firewall_pages::guest(false), &FormState::default());
    assert!(page.contains("Refused SSH logins") && page.contains("3762") && !page.contains("198.51.100.77"), "{page}");
}

#[test]
fn who_is_kept_out_can_be_let_in_again() {
    let shown = |is_empty| {
        let (blocked, ended) = (firewall_pages::blocked(is_empty, false), firewall_pages::blocked(is_empty, true));
        html(|| intrusion_view(&firewall_pages::found(is_empty), (&blocked, &ended.items), &FormState::default()))
    };
    let page = shown(false);
    for text in [
        "aria-label=\"Lift 198.51.100.77\"",
        "20 refused SSH logins at 3 guests within 10 minutes",
        "2001:db8:9:1::/64",
        "by ops.lead",
        "lifted by ops.lead",
        "An address with 20 refused SSH logins within 10 minutes is kept out of all nodes for 60 minutes.",
        "action=\"/blocked-addresses\"",
    ] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
    let page = shown(true);
    assert!(page.contains("Nobody is kept out") && page.contains("Nobody was refused"), "{page}");
}
