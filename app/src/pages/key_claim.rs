//! A key that another account holds: what to sign to show that one has it.

use corpus_controller::authz::Principal;
use corpus_controller::views::KeyClaimView;
use corpus_controller::{Controller, Result, ssh_keys};
use corpus_domain::KeyClaimId;
use leptos::prelude::*;

use crate::components::{Field, Tone, card, clock, code, copied, error_summary, head, notice};
use crate::form::FormState;
use crate::layout::Page;

/// Reads and shows it.
pub async fn load(controller: &Controller, principal: &Principal, id: KeyClaimId, form: &FormState) -> Result<Page> {
    let claim = controller.key_claim(principal, id).await?;
    Ok(Page::new("key-claim", "Show that the key is yours", claim_view(&claim, form)).under("SSH keys", "/keys"))
}

/// The view of plain values.
pub fn claim_view(claim: &KeyClaimView, form: &FormState) -> AnyView {
    let command =
        format!("printf '%s' '{}' | ssh-keygen -Y sign -n {} -f ~/.ssh/id_ed25519", claim.text, ssh_keys::NAMESPACE);
    let below = view! { <span class="quiet">{code("key-fingerprint", claim.fingerprint.clone())}</span> };
    let why = view! {
        <span>"It was not added. If you have its private key, sign the text below with it, and the key is yours: whoever holds it now is told by mail."</span>
    };
    let body = view! {
        <form method="post" action=format!("/keys/claim/{}", claim.id) class="body form">
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
