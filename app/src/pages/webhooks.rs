//! The webhooks of a project, for its maintainers; the secret of a new one is shown once.

use corpus_api::webhooks::{CreateWebhook, ListWebhooks, NewWebhook, Webhook, WebhookPage};
use corpus_domain::{ProjectName, WebhookEvent};
use leptos::prelude::*;

use super::Asked;
use super::projects::project_path;
use crate::caller::Caller;
use crate::components::{
    Field, Tone, age, card, checks, copied, empty, error_summary, head, next_page, notice, shown_at, status,
};
use crate::form::{Answered, FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Reads and shows them.
pub async fn load(caller: &Caller, project: &ProjectName, asked: &Asked) -> Result<Page> {
    let page = caller.ask(ListWebhooks { project: project.clone(), cursor: asked.cursor(), limit: None }).await?;
    let new = asked.answered.as_ref().and_then(Answered::read);
    let view = webhooks_view(project, &page, new.as_ref(), &asked.form);
    let page = Page::new("webhooks", format!("Webhooks of {project}"), view);
    Ok(page.under(project.as_str(), project_path(project)).under("Projects", "/projects"))
}

/// The page of the webhooks of a project.
pub fn webhooks_path(project: &ProjectName) -> String {
    format!("{}/webhooks", project_path(project))
}

/// The view of plain values.
pub fn webhooks_view(project: &ProjectName, page: &WebhookPage, new: Option<&NewWebhook>, form: &FormState) -> AnyView {
    let title = view! { "Webhooks of "<a href=project_path(project)>{project.to_string()}</a> };
    let below =
        view! { <span class="quiet">"What happens in the project is sent to an address of yours, signed."</span> };
    let path = webhooks_path(project);
    view! {
        {head(title.into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        {new.map(shown_once)}
        <div class="cols">
            <div class="stack">
                {card("webhooks", "Webhooks", ().into_any(), table(&page.items))}
                {next_page(&path, page.next.as_ref())}
            </div>
            <div class="stack">{card("add", "Add a webhook", ().into_any(), add(project, form))}</div>
        </div>
    }
    .into_any()
}

fn shown_once(new: &NewWebhook) -> AnyView {
    let more = view! {
        {copied("secret", "the secret", new.secret.expose())}
        <span class="quiet">"Check the signature of what arrives with this secret. It is shown only now."</span>
    };
    notice(Tone::Ok, format!("{} was added", new.name), more.into_any())
}

fn add(project: &ProjectName, form: &FormState) -> AnyView {
    let events: Vec<(&str, bool)> = told_of().map(|event| (event.as_str(), is_suggested(event))).collect();
    view! {
        <form method="post" action={to::<CreateWebhook>(&[project])} class="body form">
            {shown_at(&webhooks_path(project), "")}
            {Field::new(form, "name", "Name").required().hint("What it is for, such as the team's chat.").input()}
            {Field::new(form, "url", "Address").required().mono().placeholder("https://chat.example.org/hooks/1")
                .hint("Where it is sent, by POST. Private networks are closed unless an operator opens them.").input()}
            {checks(form, "events", "Tells of", "As they stand in what is sent.", &events)}
            <div><button class="btn primary">"Add the webhook"</button></div>
        </form>
    }
    .into_any()
}

/// What can be chosen.
fn told_of() -> impl Iterator<Item = WebhookEvent> {
    WebhookEvent::ALL.iter().copied().filter(|event| *event != WebhookEvent::Ping)
}

const fn is_suggested(event: WebhookEvent) -> bool {
    matches!(event, WebhookEvent::DeploymentLive | WebhookEvent::DeploymentRolledBack | WebhookEvent::DeploymentFailed)
}

fn table(webhooks: &[Webhook]) -> AnyView {
    if webhooks.is_empty() {
        return empty("No webhook", "Add one for each place that is to be told.".into_any());
    }
    let rows = webhooks.iter().map(row).collect_view();
    view! {
        <table class="rows" aria-label="Webhooks">
            <thead><tr><th>"Name"</th><th>"State"</th><th>"Added"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row(one: &Webhook) -> AnyView {
    view! {
        <tr>
            <td data-label="Name" class="wrap"><a href=webhook_path(one)>{one.name.clone()}</a><div class="quiet">{host(one)}</div></td>
            <td data-label="State">{state(one)}</td>
            <td data-label="Added" class="quiet">{age(one.created_at)}</td>
        </tr>
    }
    .into_any()
}

/// The page of a webhook.
pub fn webhook_path(one: &Webhook) -> String {
    format!("{}/{}", webhooks_path(&one.project), one.id)
}

/// Scheme and host: what follows may be a secret of the other side.
fn host(one: &Webhook) -> String {
    let url = one.url.as_str();
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    format!("{scheme}://{}", rest.split(['/', '?']).next().unwrap_or_default())
}

/// Whether what is sent arrives.
pub fn state(one: &Webhook) -> AnyView {
    match (one.off_at, one.failing_since) {
        (Some(_), _) => status(Tone::Off, "Switched off"),
        (None, Some(_)) => status(Tone::Warn, "Failing"),
        (None, None) => status(Tone::Ok, "On"),
    }
}

#[cfg(test)]
mod tests {
    use corpus_domain::WebhookId;

    use super::*;

    fn webhook() -> Webhook {
        Webhook {
            id: WebhookId(uuid::Uuid::nil()),
            project: "atlas".parse().unwrap(),
            name: "<b>chat</b>".to_owned(),
            url: "https://chat.example.org/hooks/s3cret".parse().unwrap(),
            events: vec![WebhookEvent::DeploymentLive],
            created_at: chrono::Utc::now(),
            failing_since: None,
            off_at: None,
        }
    }

    #[test]
    fn a_list_shows_hosts_and_a_secret_once() {
        let page = WebhookPage { items: vec![webhook()], next: None };
        let project: ProjectName = "atlas".parse().unwrap();
        let secret = "whsec_x".to_owned().try_into().unwrap();
        let new = NewWebhook { id: WebhookId(uuid::Uuid::nil()), name: "chat".to_owned(), secret };
        let html = Owner::new().with(|| webhooks_view(&project, &page, Some(&new), &FormState::default()).to_html());
        assert!(
            html.contains("https://chat.example.org") && !html.contains("s3cret") && !html.contains("<b>"),
            "{html}"
        );
        assert!(html.contains("data-copy=\"whsec_x\""), "{html}");
        let later = Owner::new().with(|| webhooks_view(&project, &page, None, &FormState::default()).to_html());
        assert!(!later.contains("whsec_x"), "{later}");
        assert!(!later.contains("value=\"ping\""), "{later}");
    }
}
