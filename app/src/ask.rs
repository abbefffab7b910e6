//! The one server function: islands ask any operation by it, typed at both ends.
//!
//! It is generic, so that no field is written once more, and judged like every other door: what it is
//! sent is read by the reader of the API, unknown fields refused and all wrong ones named.

use corpus_api::{Operation, Problem};
use leptos::prelude::*;
use leptos::server_fn::codec::{Json, JsonEncoding};
use leptos::server_fn::error::{FromServerFnError, ServerFnErrorErr};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A problem as the error of a server function: the trait and the type are both of others.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Failed(pub Problem);

impl FromServerFnError for Failed {
    type Encoder = JsonEncoding;

    fn from_server_fn_error(error: ServerFnErrorErr) -> Self {
        Self(match error {
            ServerFnErrorErr::Args(why) | ServerFnErrorErr::Deserialization(why) => Problem::malformed(why),
            other => Problem::internal(other.to_string()),
        })
    }
}

/// Asks for an operation by its name. What goes to and fro is JSON that nobody on the way reads.
#[server(prefix = "/fn", endpoint = "ask", input = Json, output = Json)]
pub async fn ask_by_id(
    /// Its name.
    id: String,
    /// Its fields, or those of a form as they were typed.
    operation: Box<RawValue>,
) -> Result<Box<RawValue>, Failed> {
    let answer = answer(&id, &operation).await;
    if let (Err(problem), Some(response)) = (&answer, use_context::<leptos_axum::ResponseOptions>())
        && let Ok(status) = axum::http::StatusCode::from_u16(problem.status)
    {
        response.set_status(status);
    }
    answer.map_err(Failed)
}

#[cfg(feature = "ssr")]
async fn answer(id: &str, operation: &RawValue) -> Result<Box<RawValue>, Problem> {
    let caller = use_context::<Option<crate::Caller>>().flatten();
    let caller = caller.ok_or_else(|| Problem::unauthenticated("Sign in, and try again."))?;
    let answer = caller.ask_by_id(id, read(operation.get())?).await?;
    serde_json::value::to_raw_value(&answer).map_err(on_the_way)
}

#[cfg(feature = "ssr")]
fn read(operation: &str) -> Result<corpus_api::Input, Problem> {
    if let Ok(fields) = serde_json::from_str(operation) {
        let mut input = corpus_api::Input::default();
        input.json(fields);
        return Ok(input);
    }
    let typed: Vec<(String, String)> = serde_json::from_str(operation)
        .map_err(|_| Problem::malformed("An operation is an object of its fields, or the fields of a form."))?;
    Ok(corpus_api::Input::form(typed))
}

/// Asks for an operation from the browser.
pub async fn ask<O: Operation>(operation: &O) -> Result<O::Output, Problem> {
    send::<O, O::Output>(serde_json::value::to_raw_value(operation).map_err(on_the_way)?).await
}

/// The same, of the answer only what `Part` reads of it.
pub async fn ask_part<O: Operation, Part: DeserializeOwned>(operation: &O) -> Result<Part, Problem> {
    send::<O, Part>(serde_json::value::to_raw_value(operation).map_err(on_the_way)?).await
}

/// Asks for an operation whose fields are as they were typed into a form: the server's reader reads them, so
/// that the browser has none to load.
pub async fn ask_form<O: Operation>(typed: &[(String, String)]) -> Result<O::Output, Problem> {
    send::<O, O::Output>(serde_json::value::to_raw_value(typed).map_err(on_the_way)?).await
}

async fn send<O: Operation, Answer: DeserializeOwned>(asked: Box<RawValue>) -> Result<Answer, Problem> {
    let answer = ask_by_id(O::META.plain().id.to_owned(), asked).await.map_err(|failed| failed.0)?;
    serde_json::from_str(answer.get()).map_err(on_the_way)
}

#[expect(clippy::needless_pass_by_value, reason = "map_err hands it over")]
fn on_the_way(error: serde_json::Error) -> Problem {
    Problem::internal(error.to_string())
}
