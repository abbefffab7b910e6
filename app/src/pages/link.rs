//! Linking a host: where it is, then whether it is the right one.
//!
//! Two steps of one form, so that it works without JavaScript: the first reads the host's key
//! and nothing else; the second shows its fingerprint, and only a person's confirmation of it
//! makes the controller sign in there.

use corpus_api::nodes::{GetControlKey, LinkNode};
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
/// What goes from the first step to the second; what is shown of the key is for the person alone.
const FIRST_STEP_FIELDS: [&str; 8] =
    ["address", "port", "user", "network", "host_key", "_fingerprint", "_algorithm", "instead_of"];

/// Reads the control key and shows the step that the form is in.
pub async fn load(caller: &Caller, asked: &Asked) -> Result<Page> {
    if !caller.who.can::<LinkNode>(None) {
        let page = Page::new("ask-node", "Ask for a compute node", node_view(&asked.form));
        return Ok(page.under("Compute nodes", "/nodes"));
    }
    let begun = if asked.form.was_sent() { None } else { again::form(caller, &asked.query, JobKind::NodeLink).await };
    let form = begun.as_ref().unwrap_or(&asked.form);
    let key = caller.ask(GetControlKey {}).await?.line;
    Ok(Page::new("link-node", "Link a compute node", link_view(&key, form)).under("Compute nodes", "/nodes"))
}

/// The view of plain values.
pub fn link_view(control_key: &str, form: &FormState) -> AnyView {
    let second = form.value("host_key").is_some_and(|key| !key.is_empty());
    let below = view! { <span class="quiet">{if second { "Step 2 of 2: is this the host?" } else { "Step 1 of 2: where is it?" }}</span> };
    let step = if second { confirm(form) } else { ask(form) };
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
    let more = form.error_at("network").is_some() || form.value("network").is_some_and(|network| !network.is_empty());
    let body = view! {
        <form method="post" action=PAGE class="form body">
            {instead_of(form)}
            <div class="grid">
                {Field::new(form, "address", "Host name or address").required().mono().hint("Where it answers SSH from here").input()}
                {Field::new(form, "port", "SSH port").suggest("22").required().mono().number().input()}
                {Field::new(form, "user", "User").suggest("root").required().mono().hint("root, or a user with sudo without a password").input()}
            </div>
            {checks(form, "environments", "Environments", "Which guests it takes", &[("dev", true), ("staging", true), ("prod", true)])}
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

fn confirm(form: &FormState) -> AnyView {
    let value = |name: &str| form.value(name).unwrap_or_default().to_owned();
    let hidden =
        FIRST_STEP_FIELDS.map(|name| view! { <input type="hidden" name=name value=value(name)/> }).collect_view();
    let environments = form
        .all("environments")
        .map(|one| view! { <input type="hidden" name="environments" value=one.to_owned()/> })
        .collect_view();
    let body = view! {
        <form method="post" action={to::<LinkNode>(&[])} class="form">
            {shown_at(PAGE, "")}
            {hidden}{environments}
            <dl class="facts">
                <dt>"Host"</dt><dd id="f-address" tabindex="-1"><code>{format!("{}@{} port {}", value("user"), value("address"), value("port"))}</code></dd>
                <dt>"It shows"</dt><dd id="f-host_key" tabindex="-1">{code("fingerprint", value("_fingerprint"))}" "<span class="quiet">{value("_algorithm")}</span></dd>
                <dt>"Compare with"</dt><dd>{copied("compare", "the command", compare(&value("_algorithm")))}
                    <p class="hint">"Run it on the host itself: the same fingerprint means that nobody stands between."</p></dd>
            </dl>
            <div class="body form foot">
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

fn let_in(control_key: &str, form: &FormState) -> AnyView {
    let user = form.value("user").filter(|user| !user.is_empty()).unwrap_or("root").to_owned();
    let line = format!("mkdir -p -m 700 ~/.ssh && echo '{}' >> ~/.ssh/authorized_keys", control_key.trim());
    let body = view! {
        <div class="body form">
            <p>"Corpus enters with its own key. Paste this line on the host as "<code>{user}</code>", or give a one-time password in step 2."</p>
            <div class="paste">{copied("control-line", "the line", line)}</div>
            <details><summary>"The public key alone"</summary><div class="paste">{copied("control-key", "the public key", control_key.trim())}</div></details>
        </div>
    };
    card("let-in", "Let Corpus in", ().into_any(), body.into_any())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_asks_and_the_second_confirms() {
        let owner = Owner::new();
        owner.with(|| {
            let first = link_view("ssh-ed25519 AAAA corpus", &FormState::default()).to_html();
            assert!(first.contains("Read the host key") && first.contains("name=\"address\""));
            let values = [
                ("address", "10.0.0.9\"><script>"),
                ("host_key", "ssh-ed25519 AAAA"),
                ("_fingerprint", "SHA256:abc"),
                ("environments", "dev"),
            ];
            let form = FormState::new("", values.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec());
            let second = link_view("ssh-ed25519 AAAA corpus", &form).to_html();
            assert!(second.contains("SHA256:abc") && second.contains("This is the host: link it"));
            assert!(!second.contains("<script>"), "{second}");
        });
    }
}
