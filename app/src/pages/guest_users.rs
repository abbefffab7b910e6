//! The users that all guests of a project have: who they are, and how to have one more.

use corpus_api::guest_users::{GuestUserLine, GuestUsers, ListGuestUsers, RemoveGuestUser, SetGuestUser};
use corpus_domain::{Environment, ProjectName};
use leptos::prelude::*;

use super::Asked;
use super::projects::project_path;
use crate::caller::Caller;
use crate::components::{
    Field, Tone, age, card, check, checks, confirm_at, count, empty, environments, error_summary, head, notice,
    stays_at,
};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Reads and shows them.
pub async fn load(caller: &Caller, project: &ProjectName, asked: &Asked) -> Result<Page> {
    let users = caller.ask(ListGuestUsers { project: project.clone() }).await?;
    let page = Page::new("guest-users", format!("Users of the guests of {project}"), users_view(&users, &asked.form));
    Ok(page.under(project.as_str(), project_path(project)).under("Projects", "/projects"))
}

/// The page of the users of a project's guests.
pub fn users_path(project: &ProjectName) -> String {
    format!("{}/users", project_path(project))
}

/// The view of plain values.
pub fn users_view(users: &GuestUsers, form: &FormState) -> AnyView {
    let title = view! { "Users of the guests of "<a href=project_path(&users.project)>{users.project.to_string()}</a> };
    let below = view! { <span class="quiet">"Accounts that each guest has beside those of its image. They enter guests, and nothing of Corpus."</span> };
    let waiting = (users.waiting > 0).then(|| {
        let text = count(usize::try_from(users.waiting).unwrap_or_default(), "guest");
        let more = view! { <span class="quiet">"Those that run have them within seconds, others when they do."</span> };
        notice(Tone::Busy, format!("{text} still without the last change"), more.into_any())
    });
    let add = users.may_change.then(
        || view! { <div class="stack">{card("set", "Add or change one", ().into_any(), set(users, form))}</div> },
    );
    let many = view! { <span class="quiet">{format!("{} of {}", users.items.len(), users.most)}</span> };
    view! {
        {head(title.into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        <div class="stack" id="live-waiting" data-live="">{waiting}</div>
        <div class="cols">
            <div class="stack">{card("users", "Users", many.into_any(), table(users))}</div>
            {add}
        </div>
    }
    .into_any()
}

fn set(users: &GuestUsers, form: &FormState) -> AnyView {
    let options: Vec<(&'static str, bool)> = Environment::ALL.iter().map(|one| (one.as_str(), false)).collect();
    view! {
        <form method="post" action={to::<SetGuestUser>(&[&users.project])} class="form body">
            {stays_at(&users_path(&users.project), "set")}
            {Field::new(form, "user", "Name").required().mono().hint("Such as deploy. One that is there already is changed.").input()}
            {Field::new(form, "keys", "Public keys").required().mono().hint("One a line, 16 at most: lines of .pub files").lines(4)}
            {checks(form, "environments", "Only in", "None chosen: in all environments", &options)}
            {check(form, "sudo", "May do all that root may", "By sudo, without a password", false)}
            <div class="submit"><button class="btn primary">"Save"</button></div>
        </form>
    }
    .into_any()
}

fn table(users: &GuestUsers) -> AnyView {
    if users.items.is_empty() {
        let how = "Members enter as sysadmin. A user is for what is no member: a backup server, a monitor, a supplier.";
        return empty("There is none", how.into_any());
    }
    let rows = users.items.iter().map(|one| row(users, one)).collect_view();
    view! {
        <table class="rows" aria-label="Users">
            <thead><tr><th>"Name"</th><th>"In"</th><th>"May"</th><th>"Keys"</th><th>"Set"</th><th><span class="unseen">"Actions"</span></th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row(users: &GuestUsers, one: &GuestUserLine) -> AnyView {
    let keys = one.keys.iter().map(|key| view! { <div class="small">{called(key)}</div> }).collect_view();
    let (every, name) = (one.environments.is_empty(), one.user.to_string());
    let within = if every { "all".into_any() } else { environments(&one.environments) };
    let remove = users.may_change.then(|| {
        let question = "Nobody enters by it any more, and what runs as it ends. Its files stay in the guests.";
        let to = to::<RemoveGuestUser>(&[&users.project, &one.user]);
        confirm_at("Remove", &name, question, to, stays_at(&users_path(&users.project), "users"))
    });
    view! {
        <tr>
            <td data-label="Name"><code>{name.clone()}</code></td>
            <td data-label="In">{within}</td>
            <td data-label="May">{if one.sudo { "all, by sudo" } else { "what an account may" }}</td>
            <td data-label="Keys" class="wrap">{keys}</td>
            <td data-label="Set" class="quiet">{age(one.at)}<div class="small">{one.by.clone()}</div></td>
            <td class="actions">{remove}</td>
        </tr>
    }
    .into_any()
}

/// A key by its comment, or by what it is.
fn called(line: &str) -> String {
    let mut parts = line.splitn(3, ' ');
    let (kind, key, comment) = (parts.next(), parts.next().unwrap_or_default(), parts.next());
    let tail: String = key.chars().rev().take(8).collect::<Vec<_>>().into_iter().rev().collect();
    format!("{} …{tail} {}", kind.unwrap_or_default(), comment.unwrap_or_default()).trim_end().to_owned()
}
