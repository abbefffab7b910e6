//! The member's own SSH keys.

use corpus_api::keys::{AddKey, KeyPage, ListMyKeys, OwnKey, RemoveKey};
use corpus_api::undoes::{ListUndoes, UndoLine, Undoable};
use leptos::prelude::*;

use super::{Asked, undo};
use crate::caller::Caller;
use crate::components::{Field, age, card, code, confirm, empty, error_summary, head, next_page, shown_at};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Reads and shows them.
pub async fn load(caller: &Caller, asked: &Asked) -> Result<Page> {
    let page = caller.ask(ListMyKeys { cursor: asked.cursor(), ..ListMyKeys::default() }).await?;
    let undoes = undo::few(caller, ListUndoes { of: Some(Undoable::Key), ..ListUndoes::default() }).await?;
    Ok(Page::new("keys", "SSH keys", keys_view(&page, &undoes, &asked.form)))
}

/// The view of plain values.
pub fn keys_view(page: &KeyPage, undoes: &[UndoLine], form: &FormState) -> AnyView {
    let below = view! { <span class="quiet">"They open every guest that you may enter, as sysadmin with sudo, and are gone from them when removed here"</span> };
    let post = to::<AddKey>(&[]);
    let add = view! {
        <form method="post" action=post class="body form">
            {shown_at("/keys", "")}
            {Field::new(form, "line", "Public key").required().mono()
                .hint("The line of a .pub file, such as ~/.ssh/id_ed25519.pub: ed25519, ecdsa, or rsa of 3072 bits and more. Never the private key. One that another account holds can be yours by a signature.").lines(4)}
            <div><button class="btn primary">"Add the key"</button></div>
        </form>
    };
    view! {
        {head("SSH keys".into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        {undo::offered(undoes, "/keys")}
        <div class="cols">
            <div class="stack">
                {card("keys", "Your keys", ().into_any(), table(&page.items))}
                {next_page("/keys", page.next.as_ref())}
            </div>
            <div class="stack">{card("add", "Add a key", ().into_any(), add.into_any())}</div>
        </div>
    }
    .into_any()
}

fn table(keys: &[OwnKey]) -> AnyView {
    if keys.is_empty() {
        let next =
            view! { "Make one with "<code>"ssh-keygen -t ed25519"</code>" and paste the line of its .pub file here." };
        return empty("No key yet, so no guest lets you in", next.into_any());
    }
    let rows = keys.iter().map(row).collect_view();
    view! {
        <table class="rows" aria-label="SSH keys">
            <thead><tr><th>"Comment"</th><th>"Fingerprint"</th><th>"Type"</th><th>"Added"</th><th>"Last used for git"</th><th><span class="unseen">"Actions"</span></th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row(key: &OwnKey) -> AnyView {
    let name = if key.comment.is_empty() { "without comment".to_owned() } else { key.comment.clone() };
    let question = "It is taken from every guest.";
    view! {
        <tr>
            <td data-label="Comment" class="wrap">{name.clone()}</td>
            <td data-label="Fingerprint" class="wrap">{code("key-fingerprint", key.fingerprint.clone())}</td>
            <td data-label="Type">{key.algorithm.clone()}" "<span class="quiet">{format!("{} bit", key.bits)}</span></td>
            <td data-label="Added" class="quiet">{age(key.created_at)}</td>
            <td data-label="Last used for git" class="quiet">{key.last_used_at.map_or_else(|| "never".into_any(), age)}</td>
            <td class="right">{confirm("Remove key", &name, question, to::<RemoveKey>(&[&key.id]))}</td>
        </tr>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_line_comes_back_as_it_was() {
        let form = FormState::new("", vec![("line".into(), "ssh-dss <&AAAA</textarea>".into())]).error("line", "no");
        let html = Owner::new().with(|| keys_view(&KeyPage::default(), &[], &form).to_html());
        assert!(html.contains(">ssh-dss &lt;&amp;AAAA&lt;/textarea></textarea>"), "{html}");
    }

    #[test]
    fn a_hostile_comment_stays_text() {
        let key = OwnKey {
            id: corpus_domain::SshKeyId(uuid::Uuid::nil()),
            algorithm: "ssh-ed25519".into(),
            bits: 256,
            fingerprint: "SHA256:abc".into(),
            comment: "<img src=x onerror=alert(1)>\" onclick=\"x".into(),
            created_at: chrono::Utc::now(),
            last_used_at: None,
        };
        let page = KeyPage { items: vec![key], next: None };
        let html = Owner::new().with(|| keys_view(&page, &[], &FormState::default()).to_html());
        assert!(!html.contains("<img"), "{html}");
        assert!(html.contains("aria-label=\"Remove key &lt;img src=x onerror=alert(1)&gt;&quot; onclick"), "{html}");
    }
}
