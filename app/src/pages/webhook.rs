//! A webhook: what was sent to it lately, and what came back; sending a test, and sending again.

use std::collections::BTreeMap;

use corpus_api::webhooks::deliveries::{
    ListWebhookDeliveries, ResendWebhookDelivery, WebhookDelivery, WebhookDeliveryPage,
};
use corpus_api::webhooks::{GetWebhook, RemoveWebhook, ResumeWebhook, TestWebhook, Webhook};
use corpus_api::words::Limit;
use corpus_domain::{DeliveryState, ProjectName, WebhookEvent, WebhookId};
use leptos::prelude::*;

use super::Asked;
use super::webhooks::{state, webhook_path, webhooks_path};
use crate::caller::Caller;
use crate::components::{
    Tone, action_at, age, at, card, confirm_at, empty, error_summary, facts, head, next_link, notice, reason, shown_at,
    status, took,
};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Deliveries of a page.
const DELIVERIES: u64 = 20;

/// Reads and shows it.
pub async fn load(caller: &Caller, (project, webhook): (&ProjectName, WebhookId), asked: &Asked) -> Result<Page> {
    let one = caller.ask(GetWebhook { project: project.clone(), webhook }).await?;
    let (state, cursor) = (shown(&asked.query), asked.cursor());
    let limit = Limit::try_from(DELIVERIES).ok();
    let page = caller.ask(ListWebhookDeliveries { project: project.clone(), webhook, state, cursor, limit }).await?;
    let view = webhook_view(&one, &page, state, &asked.form);
    let page = Page::new("webhook", one.name.clone(), view);
    Ok(page.under(&format!("Webhooks of {project}"), webhooks_path(project)).under("Projects", "/projects"))
}

fn shown(query: &BTreeMap<String, String>) -> Option<DeliveryState> {
    query.get("state").and_then(|word| word.parse().ok())
}

/// The view of plain values.
pub fn webhook_view(
    one: &Webhook,
    page: &WebhookDeliveryPage,
    only: Option<DeliveryState>,
    form: &FormState,
) -> AnyView {
    let path = webhook_path(one);
    let busy = page.items.iter().any(|delivery| delivery.state == DeliveryState::Waiting && delivery.attempts == 0);
    let test = action_at(
        to::<TestWebhook>(&[&one.project, &one.id]),
        shown_at(&path, "").into_any(),
        "Send a test",
        "btn",
        None,
    );
    let next = page.next.as_ref().map(|cursor| {
        let only = only.map(|state| format!("state={state}&")).unwrap_or_default();
        format!("{path}?{only}cursor={cursor}")
    });
    let deliveries = view! { {choices(&path, only)}{table(one, &page.items)}{next_link(next)} };
    view! {
        {head(one.name.clone().into_any(), state(one), test)}
        {error_summary(form)}
        {off(one)}
        <div class="cols">
            <div class="stack" id="live-deliveries" data-live="" data-busy=busy.then_some("")>
                {card("deliveries", "Deliveries", ().into_any(), deliveries.into_any())}
            </div>
            <div class="stack">{card("about", "About", ().into_any(), about(one))}</div>
        </div>
    }
    .into_any()
}

/// Why it is switched off, and the way to switch it on again.
fn off(one: &Webhook) -> Option<AnyView> {
    let since = one.off_at?;
    let resume = action_at(
        to::<ResumeWebhook>(&[&one.project, &one.id]),
        shown_at(&webhook_path(one), "").into_any(),
        "Switch the webhook on",
        "btn",
        None,
    );
    let more = view! { <span>"It was switched off "{age(since)}" ago: nothing had arrived for three days. Nothing is sent to it since."</span>{resume} };
    Some(notice(Tone::Warn, "Switched off", more.into_any()))
}

fn about(one: &Webhook) -> AnyView {
    let events: Vec<&str> = one.events.iter().map(|event| event.as_str()).collect();
    let failing = one.failing_since.map(|since| ("Failing since", at(since)));
    let rows = [
        Some(("Address", view! { <code class="wrap">{one.url.to_string()}</code> }.into_any())),
        Some(("Tells of", events.join(", ").into_any())),
        Some(("Added", at(one.created_at))),
        failing,
    ];
    let question = "Nothing is sent to it any more, and what was sent is forgotten. Its secret can't be shown again.";
    let remove = confirm_at(
        "Remove webhook",
        "",
        question,
        to::<RemoveWebhook>(&[&one.project, &one.id]),
        shown_at(&webhook_path(one), "").into_any(),
    );
    view! { {facts(rows.into_iter().flatten().collect())}<div class="body">{remove}</div> }.into_any()
}

fn choices(path: &str, only: Option<DeliveryState>) -> AnyView {
    let choice = |word: &'static str, state: Option<DeliveryState>| {
        let path = state.map_or_else(|| path.to_owned(), |state| format!("{path}?state={state}"));
        view! { <a class="link" href=path aria-current=(only == state).then_some("true")>{word}</a>" " }
    };
    view! {
        <p class="body quiet">
            {choice("All", None)}
            {choice("Waiting", Some(DeliveryState::Waiting))}
            {choice("Delivered", Some(DeliveryState::Delivered))}
            {choice("Failed", Some(DeliveryState::Failed))}
        </p>
    }
    .into_any()
}

fn table(one: &Webhook, deliveries: &[WebhookDelivery]) -> AnyView {
    if deliveries.is_empty() {
        return empty("No delivery", "Send a test to see whether one arrives.".into_any());
    }
    let rows = deliveries.iter().map(|delivery| row(one, delivery)).collect_view();
    view! {
        <table class="rows" aria-label="Deliveries">
            <thead><tr><th>"Event"</th><th>"State"</th><th>"Tries"</th><th>"Sent"</th><th><span class="unseen">"Actions"</span></th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row(one: &Webhook, delivery: &WebhookDelivery) -> AnyView {
    let again = (delivery.state != DeliveryState::Waiting || delivery.attempts > 0).then(|| {
        action_at(
            to::<ResendWebhookDelivery>(&[&one.project, &one.id, &delivery.id]),
            shown_at(&webhook_path(one), "").into_any(),
            if delivery.event == WebhookEvent::Ping { "Send test again" } else { "Send again" },
            "btn small",
            None,
        )
    });
    let sent = delivery.tried_at.unwrap_or(delivery.created_at);
    let time = delivery.elapsed_ms.map(|elapsed| format!(", {}", took(elapsed)));
    let next = delivery
        .next_try_at
        .filter(|_| delivery.attempts > 0)
        .map(|next| view! { <div class="quiet">"next "{at(next)}</div> });
    view! {
        <tr>
            <td data-label="Event" class="wrap"><span class="strong">{delivery.event.as_str()}</span>{bodies(delivery)}</td>
            <td data-label="State" class="wrap">{look(delivery)}{delivery.error.as_deref().map(reason)}</td>
            <td data-label="Tries" class="quiet">{delivery.attempts.to_string()}{next}</td>
            <td data-label="Sent" class="quiet">{at(sent)}{time}</td>
            <td class="right">{again}</td>
        </tr>
    }
    .into_any()
}

fn look(delivery: &WebhookDelivery) -> AnyView {
    let code = delivery.status.map(|code| format!(" {code}")).unwrap_or_default();
    let (tone, word) = match (delivery.state, delivery.attempts) {
        (DeliveryState::Delivered, _) => (Tone::Ok, "Delivered"),
        (DeliveryState::Failed, _) => (Tone::Fail, "Failed"),
        (DeliveryState::Waiting, 0) => (Tone::Wait, "Waiting"),
        (DeliveryState::Waiting, _) => (Tone::Warn, "Tried again"),
    };
    status(tone, format!("{word}{code}"))
}

/// What was sent and what came back, when they are opened.
fn bodies(delivery: &WebhookDelivery) -> AnyView {
    let response = delivery.response.clone().map(|text| {
        view! { <p class="quiet">"Answer"</p><pre class="output" tabindex="0" role="region" aria-label=format!("Answer to {}", delivery.id)>{text}</pre> }
    });
    view! {
        <details class="more">
            <summary>"Details"</summary>
            <p class="quiet">"Delivery "<code>{delivery.id.to_string()}</code></p>
            <pre class="output" tabindex="0" role="region" aria-label=format!("Body of {}", delivery.id)>{delivery.request.clone()}</pre>
            {response}
        </details>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use corpus_domain::WebhookDeliveryId;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn what_was_sent_and_came_back_stays_text() {
        let now = chrono::Utc::now();
        let one = Webhook {
            id: WebhookId(Uuid::nil()),
            project: "atlas".parse().unwrap(),
            name: "chat".to_owned(),
            url: "https://chat.example.org/".parse().unwrap(),
            events: vec![WebhookEvent::GuestReady],
            created_at: now,
            failing_since: Some(now),
            off_at: Some(now),
        };
        let delivery = WebhookDelivery {
            id: WebhookDeliveryId(Uuid::nil()),
            event: WebhookEvent::GuestReady,
            state: DeliveryState::Waiting,
            attempts: 2,
            status: Some(500),
            elapsed_ms: Some(120),
            error: Some("it answered <b>500</b>".to_owned()),
            request: "{\"x\":\"<i>\"}".to_owned(),
            response: Some("</pre><script>x</script>".to_owned()),
            created_at: now,
            tried_at: Some(now),
            next_try_at: Some(now),
        };
        let page = WebhookDeliveryPage { items: vec![delivery], next: None };
        let html = Owner::new().with(|| webhook_view(&one, &page, None, &FormState::default()).to_html());
        assert!(!html.contains("<script>x") && !html.contains("<i>") && !html.contains("<b>5"), "{html}");
        for said in ["Tried again 500", "Send again", "Send a test", "Switch the webhook on", "Remove webhook"] {
            assert!(html.contains(said), "{said}: {html}");
        }
    }
}
