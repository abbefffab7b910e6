//! A key that another account holds: what to sign to show that one has it.

use corpus_api::keys::{GetKeyClaim, KeyClaim, ProveKey};
use corpus_domain::KeyClaimId;
use leptos::prelude::*;

use crate::caller::Caller;
use crate::components::{Field, Tone, card, clock, code, copied, error_summary, head, notice, shown_at};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Reads and shows it.
pub async fn load(caller: &Caller, id: KeyClaimId, form: &FormState) -> Result<Page> {
    let claim = caller.ask(GetKeyClaim { claim: id }).await?;
    Ok(Page::new("key-claim", "Show that the key is yours", claim_view(&claim, form)).under("SSH keys", "/keys"))
}

/// The view of plain values.
pub fn claim_view(claim: &KeyClaim, form: &FormState) -> AnyView {
    let command =
        format!("printf '%s' '{}' | ssh-keygen -Y sign -n {} -f ~/.ssh/id_ed25519", claim.text, claim.namespace);
    let below = view! { <span class="quiet">{code("key-fingerprint", claim.fingerprint.clone())}</span> };
    let why = view! {
        <span>"It was not added. If you have its private key, sign the text below with it, and the key is yours: whoever holds it now is told by mail."</span>
    };
    let post = to::<ProveKey>(&[&claim.id]);
    let body = view! {
        <form method="post" action=post class="body form">
            {shown_at(&format!("/keys/claim/{}", claim.id), "")}
            <p>"Run this where the private key is, with its file behind "<code>"-f"</code>". It counts until "{clock(claim.expires_at)}", once, for you and for this key only."</p>
            <div>{copied("claim-command", "the command", command)}</div>
            {Field::new(form, "signature", "Signature").required().mono()
                .hint("All that the command printed, from BEGIN SSH SIGNATURE to END SSH SIGNATURE. Never the private key.").lines(8)}
            <div class="submit">
                <button class="btn primary">"Take the key over"</button>
                <a class="btn" href="/keys">"Leave it"</a>
            </div>
        </form>
    };
    view! {
        {head("Show that the key is yours".into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        {notice(Tone::Warn, "Another account holds this key", why.into_any())}
        {card("claim", "Sign this text", ().into_any(), body.into_any())}
    }
    .into_any()
}
