//! Linking a host: where it is, then whether it is the right one.
//!
//! Two steps of one form, so that it works without JavaScript: the first reads the host's key
//! and nothing else; the second shows its fingerprint, and only a person's confirmation of it
//! makes the controller sign in there. A host behind a gateway takes a step between: the gateway's own key, and the
//! way into it.

use corpus_api::nodes::{ControlKey, GetControlKey, LinkNode};
use corpus_domain::JobKind;
use leptos::prelude::*;

use super::request_ask::node_view;
use super::{Asked, again};
use crate::caller::Caller;
use crate::components::{Field, Tone, card, checks, code, copied, error_summary, head, instead_of, shown_at, status};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Where the first step is sent, and what shows both.
const PAGE: &str = "/nodes/link";
/// What goes from the first step to the next ones; what is shown of a key is for the person alone.
const FIRST_STEP_FIELDS: [&str; 14] = [
    "address",
    "port",
    "user",
    "network",
    "host_key",
    "_fingerprint",
    "_algorithm",
    "instead_of",
    "gateway_address",
    "gateway_port",
    "gateway_user",
    "gateway_host_key",
    "_gateway_fingerprint",
    "_gateway_algorithm",
];

/// Reads the control key and shows the step that the form is in.
pub async fn load(caller: &Caller, asked: &Asked) -> Result<Page> {
    if !caller.who.can::<LinkNode>(None) {
        let page = Page::new("ask-node", "Ask for a compute node", node_view(&asked.form));
        return Ok(page.under("Compute nodes", "/nodes"));
    }
    let begun = if asked.form.was_sent() { None } else { again::form(caller, &asked.query, JobKind::NodeLink).await };
    let form = begun.as_ref().unwrap_or(&asked.form);
    let behind = typed(form, "gateway_address").and(typed(form, "address")).and_then(|address| address.parse().ok());
    let port = typed(form, "port").and_then(|port| port.parse().ok());
    let key = caller.ask(GetControlKey { behind, port }).await?;
    Ok(Page::new("link-node", "Link a compute node", link_view(&key, form)).under("Compute nodes", "/nodes"))
}

/// What was typed there, if anything was.
fn typed<'a>(form: &'a FormState, name: &str) -> Option<&'a str> {
    form.value(name).filter(|text| !text.is_empty())
}

/// The view of plain values.
pub fn link_view(control_key: &ControlKey, form: &FormState) -> AnyView {
    let behind = typed(form, "gateway_address").is_some();
    let (said, step) = match (typed(form, "host_key"), typed(form, "gateway_host_key")) {
        (Some(_), _) if behind => ("Step 3 of 3: is this the host?", confirm(form)),
        (Some(_), _) => ("Step 2 of 2: is this the host?", confirm(form)),
        (None, Some(_)) if behind => ("Step 2 of 3: is this the gateway?", confirm_gateway(form)),
        _ if behind => ("Step 1 of 3: where is it?", ask(form)),
        _ => ("Step 1 of 2: where is it?", ask(form)),
    };
    let below = view! { <span class="quiet">{said}</span> };
    view! {
        {head("Link a compute node".into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        <div class="cols">
            <div class="stack">{step}</div>
            <div class="stack">{let_in(control_key, form)}</div>
        </div>
    }
    .into_any()
}

fn ask(form: &FormState) -> AnyView {
    let more = form.error_at("network").is_some() || typed(form, "network").is_some();
    let of_gateway = ["gateway_address", "gateway_port", "gateway_user"];
    let behind =
        typed(form, "gateway_address").is_some() || of_gateway.iter().any(|name| form.error_at(name).is_some());
    let body = view! {
        <form method="post" action=PAGE class="form body">
            {instead_of(form)}
            <div class="grid">
                {Field::new(form, "address", "Host name or address").required().mono().hint("Where it answers SSH from here").input()}
                {Field::new(form, "port", "SSH port").suggest("22").required().mono().number().input()}
                {Field::new(form, "user", "User").suggest("root").required().mono().hint("root, or a user with sudo without a password").input()}
            </div>
            {checks(form, "environments", "Environments", "Which guests it takes", &[("dev", true), ("staging", true), ("prod", true)])}
            <details open=behind>
                <summary>"Gateway"</summary>
                <p class="hint">"For a host that does not answer from here: the host that it is reached through by SSH, a bastion. Empty: none."</p>
                <div class="grid">
                    {Field::new(form, "gateway_address", "Gateway's host name or address").mono().hint("Where it answers SSH from here").input()}
                    {Field::new(form, "gateway_port", "Gateway's SSH port").suggest("22").mono().number().input()}
                    {Field::new(form, "gateway_user", "User on the gateway").suggest("root").mono().hint("Needs no rights there but to forward").input()}
                </div>
            </details>
            <details open=more>
                <summary>"Guests' network"</summary>
                {Field::new(form, "network", "Gateway and prefix").mono().hint("Empty: the default of this installation").input()}
            </details>
            <div class="submit"><button class="btn primary" name="step" value="probe">"Read the host key"</button>
                <span class="quiet">"Only reads the key; nothing is changed on the host"</span></div>
        </form>
    };
    card("where", "The host", ().into_any(), body.into_any())
}

/// What was typed in the first step, for the next ones.
fn carried(form: &FormState) -> AnyView {
    let fields = FIRST_STEP_FIELDS.iter().filter_map(|name| form.value(name).map(|value| (*name, value.to_owned())));
    let environments = form.all("environments").map(|one| ("environments", one.to_owned()));
    let hidden = fields.chain(environments).map(|(name, value)| view! { <input type="hidden" name=name value=value/> });
    hidden.collect_view().into_any()
}

/// The gateway's key, and how it is entered to ask the host for its own.
fn confirm_gateway(form: &FormState) -> AnyView {
    let value = |name: &str| form.value(name).unwrap_or_default().to_owned();
    let body = view! {
        <form method="post" action=PAGE class="form">
            {carried(form)}
            {gateway_facts(form)}
            <dl class="facts"><dt>"Host behind it"</dt><dd id="f-address" tabindex="-1"><code>{value("address")}</code></dd></dl>
            <div class="body form foot">
                {Field::new(form, "gateway_password", "One-time password of the gateway (optional)").password("off")
                    .hint("Of the user there, to read the host's key through it, and never stored. Not needed when the line at the right was pasted.").input()}
                <div class="submit">
                    <button class="btn primary" name="step" value="host">"This is the gateway: read the host key"</button>
                    <button class="btn" name="step" value="back" formnovalidate="">"Change the values"</button>
                </div>
                <p class="quiet">"Only reads the host's key; nothing is changed on either"</p>
            </div>
        </form>
    };
    card("confirm-gateway", "Confirm the gateway's host key", status(Tone::Warn, "Not confirmed"), body.into_any())
}

fn gateway_facts(form: &FormState) -> AnyView {
    let value = |name: &str| form.value(name).unwrap_or_default().to_owned();
    let or = |name: &str, usual: &str| typed(form, name).unwrap_or(usual).to_owned();
    view! {
        <dl class="facts">
            <dt>"Gateway"</dt><dd id="f-gateway_address" tabindex="-1"><code>{format!("{}@{} port {}", or("gateway_user", "root"), value("gateway_address"), or("gateway_port", "22"))}</code></dd>
            <dt>"It shows"</dt><dd id="f-gateway_host_key" tabindex="-1">{code("gateway-fingerprint", value("_gateway_fingerprint"))}" "<span class="quiet">{value("_gateway_algorithm")}</span></dd>
            <dt>"Compare with"</dt><dd>{copied("compare-gateway", "the command for the gateway", compare(&value("_gateway_algorithm")))}
                <p class="hint">"Run it on the gateway itself: the same fingerprint means that nobody stands between."</p></dd>
        </dl>
    }
    .into_any()
}

fn confirm(form: &FormState) -> AnyView {
    let value = |name: &str| form.value(name).unwrap_or_default().to_owned();
    let behind = typed(form, "gateway_address").is_some();
    let at_gateway = behind.then(|| {
        Field::new(form, "gateway_password", "One-time password of the gateway (optional)").password("off")
            .hint("Again, to add the key that may only reach this host. Not needed when its line at the right was pasted.").input()
    });
    let body = view! {
        <form method="post" action={to::<LinkNode>(&[])} class="form">
            {shown_at(PAGE, "")}
            {carried(form)}
            {behind.then(|| gateway_facts(form))}
            <dl class="facts">
                <dt>"Host"</dt><dd id="f-address" tabindex="-1"><code>{format!("{}@{} port {}", value("user"), value("address"), value("port"))}</code></dd>
                <dt>"It shows"</dt><dd id="f-host_key" tabindex="-1">{code("fingerprint", value("_fingerprint"))}" "<span class="quiet">{value("_algorithm")}</span></dd>
                <dt>"Compare with"</dt><dd>{copied("compare", "the command", compare(&value("_algorithm")))}
                    <p class="hint">"Run it on the host itself: the same fingerprint means that nobody stands between."</p></dd>
            </dl>
            <div class="body form foot">
                {at_gateway}
                {Field::new(form, "password", "One-time password (optional)").password("off")
                    .hint("Of the user above, used once to add Corpus' key and never stored. Not needed when the line at the right was pasted.").input()}
                <div class="submit">
                    <button class="btn primary">"This is the host: link it"</button>
                    <button class="btn" name="step" value="back" formaction=PAGE formnovalidate="">"Change the values"</button>
                </div>
            </div>
        </form>
    };
    card("confirm", "Confirm this host key", status(Tone::Warn, "Not confirmed"), body.into_any())
}

/// The command that prints the same fingerprint on the host.
fn compare(algorithm: &str) -> String {
    let file = match algorithm {
        "ssh-rsa" | "rsa-sha2-256" | "rsa-sha2-512" => "rsa",
        name if name.starts_with("ecdsa") => "ecdsa",
        _ => "ed25519",
    };
    format!("ssh-keygen -lf /etc/ssh/ssh_host_{file}_key.pub")
}

fn let_in(control_key: &ControlKey, form: &FormState) -> AnyView {
    let of = |name: &str| typed(form, name).unwrap_or("root").to_owned();
    let added = |key: &str| format!("mkdir -p -m 700 ~/.ssh && echo '{}' >> ~/.ssh/authorized_keys", key.trim());
    let key = control_key.line.trim().to_owned();
    let at_gateway = control_key.gateway_line.as_deref().map(|key| view! {
        <p>"On the gateway, as "<code>{of("gateway_user")}</code>", this one: the key that it lets in is made for this host, and reaches no other."</p>
        <div class="paste">{copied("gateway-line", "the line for the gateway", added(key))}</div>
    });
    let body = view! {
        <div class="body form">
            <p>"Corpus enters with its own key. Paste this line on the host as "<code>{of("user")}</code>", or give a one-time password in the last step."</p>
            <div class="paste">{copied("control-line", "the line", added(&key))}</div>
            {at_gateway}
            <details><summary>"The public key alone"</summary><div class="paste">{copied("control-key", "the public key", key)}</div></details>
        </div>
    };
    card("let-in", "Let Corpus in", ().into_any(), body.into_any())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(values: &[(&str, &str)]) -> String {
        let line = "ssh-ed25519 AAAA corpus".to_owned();
        let gateway_line = Some(format!("restrict,port-forwarding,permitopen=\"10.0.0.9:*\" {line}"));
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let form = FormState::new("", values.collect());
        let behind = form.value("gateway_address").is_some();
        let key = ControlKey { line, gateway_line: gateway_line.filter(|_| behind) };
        Owner::new().with(|| link_view(&key, &form).to_html())
    }

    #[test]
    fn the_first_step_asks_and_the_second_confirms() {
        let first = shown(&[]);
        assert!(first.contains("Read the host key") && first.contains("name=\"address\""));
        assert!(first.contains("name=\"gateway_address\"") && !first.contains("<details open"), "{first}");
        let second = shown(&[
            ("address", "10.0.0.9\"><script>"),
            ("host_key", "ssh-ed25519 AAAA"),
            ("_fingerprint", "SHA256:abc"),
            ("environments", "dev"),
        ]);
        assert!(second.contains("SHA256:abc") && second.contains("This is the host: link it"));
        assert!(!second.contains("<script>") && !second.contains("gateway_password"), "{second}");
    }

    #[test]
    fn a_gateway_is_confirmed_before_the_host_behind_it() {
        let first = [("address", "10.0.0.9"), ("gateway_address", "gw.test\"><script>"), ("gateway_user", "hop")];
        let asked = shown(&first);
        assert!(asked.contains("Step 1 of 3") && asked.contains("<details open"), "{asked}");
        let of_gateway = [("gateway_host_key", "ssh-ed25519 BBBB"), ("_gateway_fingerprint", "SHA256:gate")];
        let second = shown(&[first.as_slice(), &of_gateway].concat());
        assert!(second.contains("This is the gateway: read the host key") && second.contains("SHA256:gate"));
        assert!(second.contains("name=\"gateway_password\"") && !second.contains("name=\"password\""), "{second}");
        assert!(second.contains("permitopen=") && second.contains("<code>hop<"), "{second}");
        let third = shown(
            &[first.as_slice(), &of_gateway, &[("host_key", "ssh-ed25519 AAAA"), ("_fingerprint", "SHA256:abc")]]
                .concat(),
        );
        for text in
            ["SHA256:gate", "SHA256:abc", "name=\"gateway_password\"", "name=\"password\"", "This is the host: link it"]
        {
            assert!(third.contains(text), "{text}: {third}");
        }
        assert!(![asked, second, third].concat().contains("<script>"));
    }
}
