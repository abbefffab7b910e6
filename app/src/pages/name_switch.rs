//! The part of a name's page that has it lead to a single guest: the page of an environment has names lead to that.

use corpus_api::guests::{GuestLine, ListGuests};
use corpus_api::names::{NameLine, SwitchName};
use corpus_api::words::Limit;
use corpus_domain::{GuestState, NameState, ProjectName};
use leptos::prelude::*;

use super::name::path;
use crate::caller::Caller;
use crate::components::{Field, stays_at};
use crate::form::{FormState, Result};
use crate::to::to;

/// Guests that are offered, by name.
const OFFERED: u64 = 50;
/// The form, to come back to.
const SWITCH: &str = "switch";

/// Running guests of a name's project, the first ones by name; whether there are more.
#[derive(Debug, Clone, Default)]
pub struct Ends {
    /// Those it can lead to.
    pub guests: Vec<GuestLine>,
    /// Whether not all fit.
    pub is_cut: bool,
}

/// Reads what a name of this project can lead to instead. Nothing while it can't be switched.
pub async fn read(caller: &Caller, name: &NameLine, project: &ProjectName) -> Result<Ends> {
    if name.wildcard || name.state != NameState::Attached {
        return Ok(Ends::default());
    }
    let running = ListGuests {
        project: Some(project.clone()),
        state: Some(GuestState::Running),
        limit: Limit::try_from(OFFERED).ok(),
        ..ListGuests::default()
    };
    let page = caller.ask(running).await?;
    Ok(Ends { guests: page.items, is_cut: page.next.is_some() })
}

/// The form; none where there is no other guest.
pub fn switch(name: &NameLine, ends: &Ends, form: &FormState) -> Option<AnyView> {
    // A guest of the environment that it leads to can have it alone.
    let leads_there = |guest: &GuestLine| name.environment.is_none() && guest.id == name.guest;
    let others = ends.guests.iter().filter(|guest| !leads_there(guest));
    let mut options: Vec<(String, String)> =
        others.map(|guest| (guest.id.to_string(), format!("{} ({})", guest.name, guest.environment))).collect();
    if options.is_empty() {
        return None;
    }
    options.insert(0, (String::new(), "Choose one".to_owned()));
    let all = if ends.is_cut {
        format!("These are the first {OFFERED} that run, by name; for another one: corpus name switch. ")
    } else {
        String::new()
    };
    let hint = format!(
        "{all}It is asked for the name first, and then the name leads to it alone in one step; no request is lost, and it can be undone."
    );
    let view = view! {
        <form method="post" action={to::<SwitchName>(&[&name.id])} class="form body">
            {stays_at(&path(name.id), SWITCH)}
            {Field::new(form, "guest", "Guest").required().hint(hint).select(options)}
            <div><button class="btn">"Switch name"</button></div>
        </form>
    };
    Some(view.into_any())
}
