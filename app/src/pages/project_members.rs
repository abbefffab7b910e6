//! Who is what in a project.

use corpus_controller::authz::{Operation, Principal};
use corpus_controller::project_views::{MemberView, ProjectDetail};
use corpus_domain::ProjectRole;
use leptos::prelude::*;

use super::projects::project_path;
use crate::components::{Field, card, confirm, picks};
use crate::form::FormState;

/// The card with the members, and the form for one more for who may.
pub fn members_card(principal: &Principal, detail: &ProjectDetail, form: &FormState) -> AnyView {
    let page = project_path(&detail.summary.name);
    let may = principal.may(Operation::MemberChange, Some(detail.summary.id));
    let items = detail.members.iter().map(|member| item(&page, member, may)).collect_view();
    let add = may.then(|| add(&page, form));
    card("members", "Members", ().into_any(), view! { <ul class="items members">{items}</ul>{add} }.into_any())
}

fn item(page: &str, member: &MemberView, may: bool) -> AnyView {
    let source = if member.given_here { "given here" } else { "from the directory" };
    let change = (may && member.given_here).then(|| {
        let question = format!("{} is no {} any more.", member.login, member.role);
        confirm("Remove", member.login.as_str(), question, format!("{page}/members/{}/remove", member.login))
    });
    view! {
        <li data-member=member.login.to_string()>
            <div>
                <span class="strong">{member.login.to_string()}</span>" "<span class="quiet">{member.display_name.clone()}</span>
                <div class="quiet">{format!("{}, {source}", member.role)}</div>
            </div>
            {change}
        </li>
    }
    .into_any()
}

fn add(page: &str, form: &FormState) -> AnyView {
    let roles = picks(ProjectRole::ALL.iter().map(|role| role.as_str()));
    view! {
        <form method="post" action=format!("{page}/members") class="form body foot">
            <div class="grid two">
                {Field::new(form, "login", "Login name").required().mono().input()}
                {Field::new(form, "role", "Role").suggest("developer").required().select(roles)}
            </div>
            <p class="hint">"Who is a member already gets this role. A role from the directory is changed there; the stronger one counts."</p>
            <div><button class="btn">"Give the role"</button></div>
        </form>
    }
    .into_any()
}
