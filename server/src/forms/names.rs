//! A name that is attached from the list of names: its guest is typed by name, and looked for here.

use axum::response::Response;
use corpus_api::names::AttachName;
use corpus_api::not_created::DismissJob;
use corpus_api::search::{HitKind, Search};
use corpus_api::{Input, Problem, Wrong};
use corpus_domain::{DnsName, GuestId, GuestName};

use super::{MemberForm, see_other};

const PAGE: &str = "/dns";
const FORM: &str = "attach";

/// Attaches it, or shows the form again with what is wrong beside the field.
pub async fn attach(sent: MemberForm) -> Response {
    match attached(&sent).await {
        Ok(name) => {
            sent.went_through().await;
            dismiss_first(&sent).await;
            // Among many it would not be seen.
            see_other(&format!("{PAGE}?q={name}"))
        }
        Err(problem) => {
            let state = sent.posted.state(FORM).with_problem(&problem);
            sent.show(PAGE, state).await
        }
    }
}

async fn attached(sent: &MemberForm) -> Result<DnsName, Problem> {
    let typed = sent.posted.fields.text("guest").unwrap_or_default().to_owned();
    let found = guest(sent, &typed).await;
    let name = ("name".to_owned(), sent.posted.fields.raw("name").to_owned());
    // Both fields are judged at once.
    let someone = found.as_ref().map_or_else(|_| GuestId(uuid::Uuid::nil()), |guest| *guest);
    let guest_of = |guest: GuestId| ("guest".to_owned(), guest.to_string());
    // A box that is not ticked is not sent.
    let raw = sent.posted.fields.raw("wildcard");
    let wildcard = (!raw.is_empty()).then(|| ("wildcard".to_owned(), raw.to_owned()));
    let given = [name.clone(), guest_of(someone)].into_iter().chain(wildcard.clone());
    let mut wrong = Input::form(given).read::<AttachName>().err().unwrap_or_default();
    let guest = match found {
        Ok(guest) => guest,
        Err(problem) => {
            wrong.extend(problem.errors.clone());
            return Err(if wrong.is_empty() { problem } else { Problem::wrong(wrong) });
        }
    };
    if !wrong.is_empty() {
        return Err(Problem::wrong(wrong));
    }
    let given = [name, guest_of(guest)].into_iter().chain(wildcard);
    let operation = Input::form(given).read::<AttachName>().map_err(Problem::wrong)?;
    let name = operation.name.clone();
    let answer = sent.posted.web.controller.call(&sent.who, operation, None).await;
    answer.map(|_| name).map_err(at_guest)
}

/// The one that could not be attached, which this one is attached instead of, is read by now.
async fn dismiss_first(sent: &MemberForm) {
    let Ok(job) = sent.posted.fields.raw("instead_of").parse() else { return };
    if let Err(problem) = sent.posted.web.controller.call(&sent.who, DismissJob { job }, None).await {
        tracing::info!(%job, problem = problem.text(), "what was attached instead could not be dismissed");
    }
}

/// The guest of that name, among those that one may see.
async fn guest(sent: &MemberForm, typed: &str) -> Result<GuestId, Problem> {
    let name: GuestName = match typed.parse() {
        Ok(name) => name,
        Err(_) if typed.is_empty() => return Err(wrong("This field is needed.".to_owned())),
        Err(_) => return Err(none(typed)),
    };
    let q = name.as_str().parse().map_err(|_| none(typed))?;
    let found = sent.posted.web.controller.call(&sent.who, Search { q }, None).await?;
    // Those that begin so come first, the shortest of them before all others.
    let hit = found.items.iter().find(|hit| hit.kind == HitKind::Guest && hit.name == name.as_str());
    let id = hit.and_then(|hit| hit.path.rsplit('/').next()?.parse().ok());
    id.ok_or_else(|| none(typed))
}

fn none(typed: &str) -> Problem {
    let shown: String = typed.chars().take(80).collect();
    wrong(format!("There is no guest {shown} that you may see."))
}

fn wrong(detail: String) -> Problem {
    Problem::wrong(vec![Wrong::new("guest", detail)])
}

/// What is refused because of the guest stands beside it.
fn at_guest(problem: Problem) -> Problem {
    if problem.errors.is_empty() && matches!(problem.status, 403 | 404 | 409) {
        let errors = vec![Wrong::new("guest", problem.text())];
        return Problem { errors, ..problem };
    }
    problem
}
