//! The door of plain HTML forms: 303 when it is done, else to the page again, with all that is wrong.
//!
//! A form is sent to the path of its operation, as the API has it, and says in hidden fields which page
//! shows it (`_page`, `_form`), where to go afterwards (`_next`), what makes it one request however often
//! it is sent (`_id`), which name must be typed to confirm it (`_name`, typed into `confirm`), and which
//! field is not to be left out here though its operation does without (`_needs`). Those are for the person;
//! nothing about rights is decided by them.

use axum::Router;
use axum::response::Response;
use axum::routing::post;
use corpus_api::input::is_secret;
use corpus_api::{Input, Method, Problem, Reply, Wrong};
use corpus_app::{Failure, FormState};
use corpus_controller::{Ask, Controller, Handle, Key};

use super::export::{self, Place};
use crate::forms::{MemberForm, see_other};
use crate::member::local_path;
use crate::pages::Extra;
use crate::web::Web;

/// Whether a field of a form is no field of its operation. What else begins so is shown again as it was
/// sent, when the form is refused.
fn is_own(name: &str) -> bool {
    name.starts_with('_') || name == "confirm"
}

/// The route of an operation's form, unless it only reads.
pub fn form<O: Ask>(router: Router<Web>) -> Router<Web>
where
    Controller: Handle<O>,
{
    let meta = O::META.plain();
    // What is taken while it comes is too large for a form.
    let is_none = meta.method == Method::Get || meta.file.is_some_and(|file| file.streamed);
    if is_none { router } else { router.route(&meta.form_path(), post(take::<O>)) }
}

/// Takes the form of an operation.
pub async fn take<O: Ask>(sent: MemberForm) -> Response
where
    Controller: Handle<O>,
{
    let (answer, place) = match ask::<O>(&sent).await {
        Ok(answered) => answered,
        Err(problem) => return refuse::<O>(&sent, &problem).await,
    };
    if let Some(file) = answer.file() {
        let (web, who, proof) = (sent.posted.web.clone(), sent.who.clone(), sent.posted.proof.clone());
        return match export::answer(file, place, web, who, proof).await {
            Ok(file) => {
                sent.went_through().await;
                file
            }
            Err(problem) => refuse::<O>(&sent, &problem).await,
        };
    }
    sent.went_through().await;
    if O::Output::SECRET { show(&sent, &answer).await } else { see_other(&next(&sent, &answer)) }
}

async fn ask<O: Ask>(sent: &MemberForm) -> Result<(O::Output, Option<Place>), Problem>
where
    Controller: Handle<O>,
{
    if Input::form(sent.posted.path_values()).names_nothing::<O>() {
        return Err(Problem::not_found(""));
    }
    let fields = &sent.posted.fields;
    let named = fields.raw("_name");
    if !named.is_empty() && !fields.text("confirm").is_some_and(|typed| typed.eq_ignore_ascii_case(named)) {
        return Err(Problem::wrong(vec![Wrong::new("confirm", format!("Type {named} to confirm."))]));
    }
    let needed = fields.raw("_needs");
    if !needed.is_empty() && fields.text(needed).is_none() {
        return Err(Problem::wrong(vec![Wrong::new(needed, "Choose at least one.")]));
    }
    let given = fields.pairs().iter().filter(|(name, _)| !is_own(name)).cloned();
    let operation = Input::form(given.chain(sent.posted.path_values())).read::<O>().map_err(Problem::wrong)?;
    let key: Option<Key> = fields.text("_id").map(str::parse).transpose()?;
    let place = export::place::<O::Output>(&sent.posted.web, &sent.who)?;
    Ok((sent.posted.web.controller.call(&sent.who, operation, key).await?, place))
}

/// Where to go: to what the form says, else to what was made, else back.
fn next(sent: &MemberForm, answer: &impl Reply) -> String {
    match sent.posted.fields.text("_next") {
        Some(next) => local_path(next).to_owned(),
        None => answer.location().unwrap_or_else(|| page(sent)),
    }
}

/// The page that shows the form.
fn page(sent: &MemberForm) -> String {
    sent.posted.fields.text("_page").map_or("/", local_path).to_owned()
}

/// A secret is shown in the answer, and nowhere else.
async fn show(sent: &MemberForm, answer: &impl Reply) -> Response {
    let answer = serde_json::to_value(answer).unwrap_or_default();
    sent.posted.render(&page(sent), Extra::answer(answer)).await
}

async fn refuse<O: Ask>(sent: &MemberForm, problem: &Problem) -> Response {
    let shown_at = sent.posted.page().filter(|_| !matches!(problem.status, 403 | 404));
    let Some(page) = shown_at else {
        return sent.posted.render(&page(sent), Extra::failure(Failure::from(problem))).await;
    };
    let fields = &sent.posted.fields;
    let mut values = fields.shown();
    values.retain(|(name, _)| !is_secret::<O>(name));
    let state = FormState::new(fields.raw("_form"), values).with_problem(problem);
    sent.show(&page, state).await
}
