//! Several guests at once: what was chosen is asked about, then each is started, stopped or destroyed by the
//! operation of one guest, judged by itself. Of one that its sender may not see is said what is said of none.

use axum::response::Response;
use corpus_api::Problem;
use corpus_api::guests::{DestroyGuest, GetGuest, StartGuest, StopGuest};
use corpus_api::jobs::JobAccepted;
use corpus_app::FormState;
use corpus_app::pages::guest_choice::{CHOICE, Deed, MOST};
use corpus_controller::{Ask, Controller, Handle, Key};
use corpus_domain::{GuestId, JobId};

use super::{MemberForm, see_other};

/// Said of a guest that is not there, or is not to be seen.
const MISSING: &str = "A guest that is not there";

/// What was sent.
struct Choice {
    deed: Deed,
    guests: Vec<String>,
}

impl Choice {
    fn read(sent: &MemberForm) -> Result<Self, String> {
        let fields = &sent.posted.fields;
        let deed = Deed::of(fields.raw("do")).ok_or("Say what is to be done with them.")?;
        let mut guests: Vec<String> = Vec::new();
        // All that the page listed, or those of them that were chosen one by one.
        let from = if fields.raw("all") == "yes" { "listed" } else { "guest" };
        for (_, id) in fields.pairs().iter().filter(|(name, _)| name == from) {
            if !guests.contains(id) {
                guests.push(id.clone());
            }
        }
        match guests.len() {
            0 => Err("Choose at least one guest.".to_owned()),
            1..=MOST => Ok(Self { deed, guests }),
            many => Err(format!("{many} guests are chosen, and {MOST} at most are taken at once.")),
        }
    }

    /// As the page shows it.
    fn state(&self, sent: &MemberForm) -> FormState {
        let mut values = vec![("do".to_owned(), self.deed.word().to_owned())];
        values.extend(self.guests.iter().map(|id| ("guest".to_owned(), id.clone())));
        let again =
            ["_id", "confirm"].map(|name| sent.posted.fields.text(name).map(|text| (name.to_owned(), text.to_owned())));
        values.extend(again.into_iter().flatten());
        FormState::new("", values)
    }
}

/// Asks about what was chosen, or does it.
pub async fn choose(sent: MemberForm) -> Response {
    let choice = match Choice::read(&sent) {
        Ok(choice) => choice,
        Err(why) => {
            let page = sent.posted.page().unwrap_or_else(|| "/guests".to_owned());
            return sent.show(&page, sent.posted.state(sent.posted.fields.raw("_form")).message(why)).await;
        }
    };
    if sent.posted.fields.raw("step") != "yes" {
        return sent.show(CHOICE, choice.state(&sent).status(200)).await;
    }
    let number = choice.guests.len().to_string();
    if choice.deed == Deed::Destroy && sent.posted.fields.text("confirm") != Some(&number) {
        let state = choice.state(&sent).error("confirm", format!("Type {number} to confirm."));
        return sent.show(CHOICE, state).await;
    }
    done(&sent, &choice).await
}

/// One after the other; what is refused of one keeps no other from it.
async fn done(sent: &MemberForm, choice: &Choice) -> Response {
    let (mut jobs, mut refused): (Vec<JobId>, Vec<String>) = (Vec::new(), Vec::new());
    for id in &choice.guests {
        match one(sent, choice.deed, id).await {
            Ok(job) => jobs.push(job),
            Err(why) => refused.push(why),
        }
    }
    sent.went_through().await;
    let jobs = jobs.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let page = format!("{CHOICE}?job={jobs}");
    if refused.is_empty() {
        return see_other(&page);
    }
    let values = refused.into_iter().map(|why| ("refused".to_owned(), why)).collect();
    sent.show(&page, FormState::new("done", values).status(200)).await
}

async fn one(sent: &MemberForm, deed: Deed, id: &str) -> Result<JobId, String> {
    let guest: GuestId = id.parse().map_err(|_| MISSING.to_owned())?;
    let key = key(sent, guest);
    let begun = match deed {
        Deed::Start => ask(sent, StartGuest { guest }, key).await,
        Deed::Stop => ask(sent, StopGuest { guest }, key).await,
        Deed::Destroy => ask(sent, DestroyGuest { guest }, key).await,
    };
    match begun {
        Ok(accepted) => Ok(accepted.job),
        Err(problem) => Err(why(sent, guest, &problem).await),
    }
}

async fn ask<O: Ask<Output = JobAccepted>>(
    sent: &MemberForm,
    operation: O,
    key: Option<Key>,
) -> Result<JobAccepted, Problem>
where
    Controller: Handle<O>,
{
    sent.posted.web.controller.call(&sent.who, operation, key).await
}

/// The same form sent twice is one request of each guest.
fn key(sent: &MemberForm, guest: GuestId) -> Option<Key> {
    let form: String = sent.posted.fields.text("_id")?.chars().filter(char::is_ascii_alphanumeric).take(31).collect();
    format!("{form}-{}", guest.0.simple()).parse().ok()
}

/// Why one is left as it was, with its name where that may be known.
async fn why(sent: &MemberForm, guest: GuestId, problem: &Problem) -> String {
    if problem.status == 404 {
        return MISSING.to_owned();
    }
    let text = problem.text();
    match sent.posted.web.controller.call(&sent.who, GetGuest { guest }, None).await {
        Ok(guest) if !text.contains(guest.line.name.as_str()) => format!("{}: {text}", guest.line.name),
        _ => text.to_owned(),
    }
}
