//! Rules of firewalls on pages: what is in force, by whose word, what it let through; and the forms of new ones.

use corpus_api::firewall::{FirewallRuleLine, RemoveFirewallRule, UnpublishPort};
use corpus_domain::{GUEST_ZONE, RuleAction, RuleSource, RuleState, Transport};
use leptos::prelude::*;

use crate::components::{Field, Tone, confirm_at, empty, picks, status, stays_at};
use crate::form::FormState;
use crate::to::to;

/// The list of who can be named, for fields.
const CHOICES: &str = "sources";

/// The rules of a page. `page` is shown again when one is removed; which can be removed there, `may_remove` says.
pub fn table(
    rules: &[FirewallRuleLine],
    page: &str,
    nothing: &'static str,
    may_remove: impl Fn(&FirewallRuleLine) -> bool,
) -> AnyView {
    if rules.is_empty() {
        return empty("No rule", nothing.into_any());
    }
    let rows = rules.iter().map(|rule| row(rule, page, may_remove(rule))).collect_view();
    view! {
        <table class="rows" aria-label="Rules">
            <thead><tr><th>"Rule"</th><th>"Of"</th><th>"So far"</th><th>"State"</th><th><span class="unseen">"Actions"</span></th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row(rule: &FirewallRuleLine, page: &str, may_remove: bool) -> AnyView {
    let comment = rule.comment.clone().map(|text| view! { <div class="quiet small">{text}</div> });
    let elsewhere = (rule.elsewhere > 0).then(|| {
        let text = format!("{} of them on another node, and can't come that way", rule.elsewhere);
        view! { <div class="quiet small">{text}</div> }
    });
    let by = rule.by.as_ref().map(|login| view! { <div class="quiet small">{format!("by {login}")}</div> });
    let removes = (may_remove && rule.state == RuleState::InForce).then(|| remove(rule, page));
    view! {
        <tr>
            <td data-label="Rule" class="wrap">{what(rule)}{stands_for(rule)}{reached(rule)}{elsewhere}{comment}</td>
            <td data-label="Of" class="wrap">{whose(rule)}{by}</td>
            <td data-label="So far" class="quiet">{so_far(rule)}</td>
            <td data-label="State">{state(rule)}</td>
            <td class="right">{removes}</td>
        </tr>
    }
    .into_any()
}

/// What a rule does, in words: `5432/tcp from guest:web.example.org`.
pub fn what(rule: &FirewallRuleLine) -> String {
    let from = &rule.from;
    let ports = rule.protocol.zip(rule.ports).map(|(protocol, ports)| format!("{ports}/{protocol}"));
    match (rule.action, ports, rule.node_port) {
        (RuleAction::Publish, Some(ports), Some(port)) => {
            let protocol = rule.protocol.map(Transport::as_str).unwrap_or_default();
            format!("Port {port}/{protocol} of the node leads to {ports}, from {from}")
        }
        (RuleAction::Block, Some(ports), _) => format!("{from} is kept from {ports}"),
        (RuleAction::Block, None, _) => format!("{from} is kept out"),
        (_, ports, _) => format!("{} from {from}", ports.unwrap_or_default()),
    }
}

fn stands_for(rule: &FirewallRuleLine) -> Option<AnyView> {
    let networks: Vec<String> = rule.networks.iter().take(5).map(ToString::to_string).collect();
    let more = if rule.networks.len() > networks.len() { ", …" } else { "" };
    let text = format!("{}{more}", networks.join(", "));
    (!networks.is_empty()).then(|| view! { <div class="quiet small mono">{text}</div> }.into_any())
}

/// By what those who are let in find the guest: a name, and the address that stands in for it on other nodes.
fn reached(rule: &FirewallRuleLine) -> Option<AnyView> {
    let by_guests = matches!(rule.from, RuleSource::Guest(_) | RuleSource::Environment(_));
    if rule.action != RuleAction::Allow || !by_guests {
        return None;
    }
    let far = rule.far.iter().map(|one| format!("{}.{GUEST_ZONE}: {} from other nodes", one.guest, one.address));
    let far: Vec<String> = far.take(5).collect();
    let more = if rule.far.len() > far.len() { ", …" } else { "" };
    let text = match &rule.guest_name {
        _ if !far.is_empty() => format!("{}{more}", far.join(", ")),
        Some(guest) => format!("{guest}.{GUEST_ZONE}"),
        None => return None,
    };
    Some(view! { <div class="quiet small mono">{text}</div> }.into_any())
}

/// Whose rule it is: a guest's, an environment's, the operators'.
fn whose(rule: &FirewallRuleLine) -> AnyView {
    if let (Some(guest), Some(name)) = (rule.guest, &rule.guest_name) {
        let path = format!("/guests/{guest}/firewall");
        return view! { <a class="link" href=path>{name.to_string()}</a> }.into_any();
    }
    if let (Some(project), Some(environment)) = (&rule.project, rule.environment) {
        let path = format!("/projects/{project}/{environment}/firewall");
        return view! { <a class="link" href=path>{format!("{environment} of {project}")}</a> }.into_any();
    }
    match &rule.node_address {
        Some(address) => format!("operators, at {address}").into_any(),
        None => "operators, everywhere".into_any(),
    }
}

fn so_far(rule: &FirewallRuleLine) -> String {
    let packets = rule.packets.unwrap_or_default();
    match rule.bytes {
        None => "not read yet".to_owned(),
        Some(_) if packets == 0 => "nothing".to_owned(),
        Some(bytes) => format!(
            "{}, {}",
            if packets == 1 { "1 packet".to_owned() } else { format!("{packets} packets") },
            size(bytes)
        ),
    }
}

/// `640 B`, `12 kB`, `3.4 MB`.
fn size(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0..1_000 => return format!("{bytes} B"),
        1_000..1_000_000 => (1_000, "kB"),
        1_000_000..1_000_000_000 => (1_000_000, "MB"),
        _ => (1_000_000_000, "GB"),
    };
    let tenths = bytes / (unit / 10);
    if tenths < 100 { format!("{}.{} {name}", tenths / 10, tenths % 10) } else { format!("{} {name}", tenths / 10) }
}

fn state(rule: &FirewallRuleLine) -> AnyView {
    let (tone, word) = match rule.state {
        RuleState::InForce => (Tone::Ok, "In force"),
        RuleState::Wanted => (Tone::Busy, "On its way"),
        RuleState::Removing => (Tone::Busy, "Being removed"),
    };
    let job = rule.job.map(|job| view! { " "<a class="link" href=format!("/jobs/{job}")>"Job"</a> });
    view! { {status(tone, word)}{job} }.into_any()
}

fn remove(rule: &FirewallRuleLine, page: &str) -> AnyView {
    let what = what(rule);
    if let Some(port) = rule.node_port {
        let question = format!("Port {port} of the node leads nowhere from then on. Connections that are there end.");
        let subject = format!("port {port}");
        return confirm_at("Unpublish", &subject, question, to::<UnpublishPort>(&[&rule.id]), stays_at(page, "rules"));
    }
    let question = match rule.action {
        RuleAction::Block => format!("“{what}” does not hold any more."),
        _ => format!("{what}: closed from then on. Connections that are there end."),
    };
    confirm_at("Remove", &what, question, to::<RemoveFirewallRule>(&[&rule.id]), stays_at(page, "rules"))
}

/// Who can be named in the fields of a page; once on it.
pub fn choices(sources: &[RuleSource]) -> AnyView {
    let options = sources.iter().map(|source| view! { <option value=source.to_string()></option> }).collect_view();
    view! { <datalist id=CHOICES>{options}</datalist> }.into_any()
}

/// The fields of a rule that lets something in.
pub fn allow_fields(form: &FormState, hint: &'static str) -> AnyView {
    view! {
        {Field::new(form, "from", "From").beside("allow").choices(CHOICES).required().mono().hint(hint).input()}
        <div class="grid two">
            {protocol(form, "allow")}
            {Field::new(form, "ports", "Ports").beside("allow").required().mono().hint("One, or a range: 8000-8010").input()}
        </div>
        {Field::new(form, "comment", "What for").beside("allow").input()}
    }
    .into_any()
}

/// The fields of what is kept out.
pub fn block_fields(form: &FormState) -> AnyView {
    let protocols = vec![
        (String::new(), "both".to_owned()),
        ("tcp".to_owned(), "tcp".to_owned()),
        ("udp".to_owned(), "udp".to_owned()),
    ];
    view! {
        {Field::new(form, "from", "From").beside("block").choices(CHOICES).required().mono().hint("An address, a network such as 192.0.2.0/24, or network:NAME").input()}
        <div class="grid two">
            {Field::new(form, "protocol", "Protocol").beside("block").select(protocols)}
            {Field::new(form, "ports", "Ports").beside("block").mono().hint("All unless said").input()}
        </div>
        {Field::new(form, "comment", "What for").beside("block").input()}
    }
    .into_any()
}

/// The choice of TCP or UDP.
pub fn protocol(form: &FormState, beside: &'static str) -> AnyView {
    let words = picks(Transport::ALL.iter().map(|one| one.as_str()));
    Field::new(form, "protocol", "Protocol").beside(beside).suggest("tcp").required().select(words)
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_that_are_read() {
        for (bytes, told) in [(0, "0 B"), (999, "999 B"), (1_500, "1.5 kB"), (64_000, "64 kB"), (2_340_000, "2.3 MB")] {
            assert_eq!(size(bytes), told);
        }
    }
}
