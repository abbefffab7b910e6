//! Who is what in a project.

use corpus_api::Principal;
use corpus_api::projects::Project;
use corpus_api::projects::members::{Member, MemberPage, RemoveMember};
use corpus_domain::ProjectRole;
use leptos::prelude::*;

use super::projects::project_path;
use crate::components::{Field, card, confirm_as, next_page, picks, shown_at};
use crate::form::FormState;
use crate::to::to;

/// The card with the members, and the form for one more for who may.
pub fn members_card(who: &Principal, project: &Project, members: &MemberPage, form: &FormState) -> AnyView {
    let page = project_path(&project.name);
    let items = members.items.iter().map(|member| item(who, project, member)).collect_view();
    let add = project.may_change.then(|| add(&page, form));
    let next = next_page(&page, members.next.as_ref());
    card("members", "Members", ().into_any(), view! { <ul class="items members">{items}</ul>{next}{add} }.into_any())
}

fn item(who: &Principal, project: &Project, member: &Member) -> AnyView {
    let source = if member.given_here { "given here" } else { "from the directory" };
    let change = (project.may_change && member.given_here).then(|| {
        let question = format!("{} is no {} any more.", member.login, member.role);
        let page = project_path(&project.name);
        // Who takes their own role may see the project no more.
        let own = member.login.as_str() == who.login.as_str() && !who.ops;
        let next = if own { "/projects".to_owned() } else { page.clone() };
        let hidden = view! { {shown_at(&page, "member-remove")}<input type="hidden" name="_next" value=next/> };
        let post = to::<RemoveMember>(&[&project.name, &member.login]);
        confirm_as("btn small", &format!("Remove {}", member.login), "", question, post, hidden.into_any())
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
            {shown_at(page, "members")}
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
