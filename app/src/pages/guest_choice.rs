//! Several guests at once: one question before they are started, stopped or destroyed, and what came of it.
//!
//! What was chosen comes as a form that is kept, since so many ids are no address. Each guest is asked for by
//! itself: of one that is not there, or is not to be seen, is said that it is not there. What came of it are the
//! jobs, which stand in the address, so that the page shows how far they are whenever it is looked at.

use corpus_api::guests::{GetGuest, Guest};
use corpus_api::jobs::{JobPage, ListJobs};
use corpus_api::{Role, Scope};
use corpus_domain::{Environment, GuestId, GuestState};
use leptos::prelude::*;

use super::destroy::leaves_at;
use super::guest::interruption;
use super::jobs::table;
use super::{Asked, guest};
use crate::asked::asked;
use crate::caller::Caller;
use crate::components::{
    Field, Tone, card, count, empty, environment, error_summary, guest_status, head, notice, shown_at,
};
use crate::form::{FormState, Result, sentence};
use crate::layout::Page;

/// Where guests are chosen, and the page of what was chosen.
pub const CHOICE: &str = "/guests/choice";
/// As many at once.
pub const MOST: usize = 50;

/// What is done to all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// They are started.
    Start,
    /// They are stopped.
    Stop,
    /// They are destroyed.
    Destroy,
}

impl Deed {
    /// As a form says it.
    pub fn of(word: &str) -> Option<Self> {
        [Self::Start, Self::Stop, Self::Destroy].into_iter().find(|deed| deed.word() == word)
    }

    /// The word of a form.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Destroy => "destroy",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Start => "Start",
            Self::Stop => "Stop",
            Self::Destroy => "Destroy",
        }
    }
}

/// A guest that was chosen.
#[derive(Debug, Clone)]
pub enum Chosen {
    /// It can be done.
    Can(Box<Guest>),
    /// It can't, and why.
    Cannot(Box<Guest>, String),
    /// It is not there, as far as who asks may know.
    Missing,
}

/// Reads what was chosen, and asks; or shows what came of it.
pub async fn load(caller: &Caller, given: &Asked) -> Result<Page> {
    let page = |title: &str, view| Page::new("guest-choice", title, view).under("Guests", "/guests");
    if given.query.contains_key("job") {
        // A list that is asked for no job in particular would tell of all there are.
        let jobs = match asked::<ListJobs>(&given.query) {
            Ok(asked) if !asked.job.is_empty() => caller.ask(asked).await?,
            _ => JobPage::default(),
        };
        let refused: Vec<&str> = given.form.all("refused").collect();
        return Ok(page("What is done", done_view(&jobs, &refused)));
    }
    let Some(deed) = given.form.value("do").and_then(Deed::of) else { return Ok(page("Guests", nothing())) };
    let mut chosen = Vec::new();
    for id in given.form.all("guest").take(MOST) {
        chosen.push(read(caller, deed, id).await?);
    }
    let form_id = given.form.value("_id").map_or_else(super::request::form_id, str::to_owned);
    let title = format!("{} guests", deed.title());
    Ok(page(&title, choice_view(deed, &chosen, &given.form, &form_id)))
}

async fn read(caller: &Caller, deed: Deed, id: &str) -> Result<Chosen> {
    let Ok(id) = id.parse::<GuestId>() else { return Ok(Chosen::Missing) };
    match caller.ask(GetGuest { guest: id }).await {
        Ok(guest) => {
            let role = if deed == Deed::Destroy { Role::Maintainer } else { Role::Developer };
            let refused = caller.may(role, Scope::Guest(id)).await.err().map(|problem| problem.text().to_owned());
            Ok(match refused.or_else(|| why_not(deed, &guest)) {
                Some(why) => Chosen::Cannot(Box::new(guest), why),
                None => Chosen::Can(Box::new(guest)),
            })
        }
        Err(problem) if problem.status == 404 => Ok(Chosen::Missing),
        Err(problem) => Err(problem.into()),
    }
}

/// What stands in the way, as far as it is known now: the operation itself judges anew.
fn why_not(deed: Deed, guest: &Guest) -> Option<String> {
    let line = &guest.line;
    let in_the_way = match (deed, line.state) {
        (Deed::Start, GuestState::Stopped) | (Deed::Stop, GuestState::Running) => None,
        (Deed::Start, GuestState::Running) => Some("It runs already.".to_owned()),
        (Deed::Stop, GuestState::Stopped) => Some("It is stopped already.".to_owned()),
        (Deed::Destroy, GuestState::Running | GuestState::Stopped | GuestState::Failed) => guest
            .deployed_to
            .map(|_| format!("{} of {} is on it: remove it from there first.", line.environment, line.project)),
        (_, state) => Some(format!("It is {state}.")),
    };
    in_the_way.or_else(|| line.job.map(|_| "A job is on it.".to_owned()))
}

fn nothing() -> AnyView {
    let list = view! { "Choose some in the "<a class="link" href="/guests">"list of guests"</a>", and what is to be done with them." };
    view! {
        {head("Guests".into_any(), ().into_any(), ().into_any())}
        <section class="card">{empty("No guest is chosen", list.into_any())}</section>
    }
    .into_any()
}

/// The question before it is done.
pub fn choice_view(deed: Deed, chosen: &[Chosen], form: &FormState, form_id: &str) -> AnyView {
    let can: Vec<&Guest> =
        chosen.iter().filter_map(|one| if let Chosen::Can(guest) = one { Some(&**guest) } else { None }).collect();
    let others = chosen.iter().filter(|one| !matches!(one, Chosen::Can(_))).count();
    let number = count(can.len(), "guest");
    let not_done = chosen.iter().filter_map(|one| match one {
        Chosen::Can(_) => None,
        Chosen::Cannot(guest, why) => {
            let first = leaves_at(guest).filter(|_| deed == Deed::Destroy && guest.may_change);
            let first = first.map(|path| view! { " "<a class="link" href=path>"Remove it"</a> });
            Some(item(guest, view! { <div class="quiet">{why.clone()}{first}</div> }.into_any()))
        }
        Chosen::Missing => Some(view! { <li><div>"A guest that is not there"</div></li> }.into_any()),
    });
    let not_done = not_done.collect_view();
    let rest = (others > 0).then(|| {
        let title = if can.is_empty() { "None of these" } else { "Not these" };
        card("left-out", title, ().into_any(), view! { <ul class="items">{not_done}</ul> }.into_any())
    });
    let question = (!can.is_empty()).then(|| {
        let items = can.iter().map(|guest| item(guest, consequence(deed, guest).into_any())).collect_view();
        let body = view! { <ul class="items">{items}</ul>{question(deed, &can, form, form_id)} };
        card("question", "What happens", ().into_any(), body.into_any())
    });
    view! {
        {head(format!("{} {number}", deed.title()).into_any(), ().into_any(), ().into_any())}
        {error_summary(form)}
        {question}
        {rest}
        {can.is_empty().then(|| view! { <div class="submit"><a class="btn" href="/guests">"Back to the guests"</a></div> })}
    }
    .into_any()
}

fn item(guest: &Guest, more: AnyView) -> AnyView {
    let line = &guest.line;
    view! {
        <li>
            <div><a class="strong" href=guest::path(guest)>{line.name.to_string()}</a>" "{environment(line.environment)}<div class="quiet">{line.project.to_string()}</div>{more}</div>
            <span class="nowrap">{guest_status(line)}</span>
        </li>
    }
    .into_any()
}

/// What it interrupts or takes away.
fn consequence(deed: Deed, guest: &Guest) -> Option<AnyView> {
    let names: Vec<&str> = guest.names.iter().take(3).map(|name| name.name.as_str()).collect();
    let more = guest.names.len().saturating_sub(names.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let text = match deed {
        Deed::Start => return None,
        Deed::Stop => interruption(guest).or_else(|| {
            (!names.is_empty()).then(|| format!("{}{more} will not answer until it runs again.", names.join(", ")))
        })?,
        Deed::Destroy => {
            let prod = (guest.line.environment == Environment::Prod)
                .then(|| format!("This is prod of {}. ", guest.line.project));
            let detached = (!names.is_empty()).then(|| format!("Detached: {}{more}.", names.join(", ")));
            let both = prod.unwrap_or_default() + &detached.unwrap_or_default();
            (!both.is_empty()).then_some(both)?
        }
    };
    Some(view! { <div class="quiet">{text}</div> }.into_any())
}

fn question(deed: Deed, can: &[&Guest], form: &FormState, form_id: &str) -> AnyView {
    let ids = can
        .iter()
        .map(|guest| view! { <input type="hidden" name="guest" value=guest.line.id.to_string()/> })
        .collect_view();
    let number = can.len();
    let gone = (deed == Deed::Destroy).then(|| {
        let label = format!("Type {number} to confirm");
        view! {
            <p>"The guests and everything on their file systems are gone for good; their addresses and ports become free."</p>
            {Field::new(form, "confirm", label).required().number().mono().hint("How many guests these are").input()}
        }
    });
    let class = if deed == Deed::Destroy { "btn danger" } else { "btn primary" };
    let these = if number == 1 { "this guest".to_owned() } else { format!("these {number} guests") };
    view! {
        <form method="post" action=CHOICE class="form body foot">
            {shown_at(CHOICE, "")}
            <input type="hidden" name="_id" value=form_id.to_owned()/>
            <input type="hidden" name="step" value="yes"/>
            <input type="hidden" name="do" value=deed.word()/>
            {ids}
            {gone}
            <div class="submit"><button class=class>{format!("{} {these}", deed.title())}</button><a class="btn" href="/guests">"Not now"</a></div>
        </form>
    }
    .into_any()
}

fn left(guests: usize) -> String {
    if guests == 1 { "1 guest left as it was".to_owned() } else { format!("{guests} guests left as they were") }
}

/// What came of it: the jobs, and why there is none for some.
pub fn done_view(jobs: &JobPage, refused: &[&str]) -> AnyView {
    let busy = jobs.items.iter().any(|job| !job.state.is_over()).then_some("");
    let reasons = refused.iter().map(|why| view! { <li>{sentence(why)}</li> }).collect_view();
    let reasons = (!refused.is_empty()).then(|| {
        let more = view! { <ul class="plain">{reasons}</ul> };
        notice(Tone::Fail, left(refused.len()), more.into_any())
    });
    let below = view! { <span class="quiet">"Each guest is a job of its own"</span> };
    let back = view! { <a class="btn" href="/guests">"Back to the guests"</a> };
    view! {
        {head("What is done".into_any(), below.into_any(), back.into_any())}
        {reasons}
        <section class="card" id="live-jobs" data-live="" data-busy=busy>{table(&jobs.items, "No job was begun")}</section>
    }
    .into_any()
}
