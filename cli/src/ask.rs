//! Running a command: its arguments are the fields of its operation, read as every door reads them.

use std::io::{IsTerminal as _, Read as _};

use clap::ArgMatches;
use corpus_api::operation::{FileType, Method, Operation, Place, Plain};
use corpus_api::stream::Stream;
use corpus_api::traffic::FollowAccess;
use corpus_api::{Input, Problem, Reply, Visitor, Wire, walk, wire};
use corpus_domain::JobId;
use serde_json::Value;

use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::{access, commands, confirm, output, places, tree, wait};

/// Runs the command of these words.
pub async fn run(path: &[String], matches: &ArgMatches) -> Result<Exit, Failure> {
    let Some(one) = commands::all().into_iter().find(|one| commands::words(one.meta.id) == path) else {
        return Err(Failure::usage(format!("there is no command {}", path.join(" "))));
    };
    let client = places::client(matches).await?;
    if one.meta.id == FollowAccess::META.plain().id {
        let text = |name: &str| matches.get_one::<String>(name).map_or("", String::as_str);
        let of = match text("environment") {
            "" => access::environment(text("project"))?,
            environment => access::environment(&format!("{}/{environment}", text("project")))?,
        };
        return access::follow(&client, of, matches).await;
    }
    if one.is_stream {
        let job = resolved(&client, "job", matches.get_one::<String>("job").map_or("", String::as_str)).await?;
        return wait::follow(
            &client,
            job.parse().map_err(|_| Failure::usage("this is no id of a job"))?,
            matches,
            wait::Log::OfJob,
        )
        .await;
    }
    confirm::confirm(&client, one.meta.id, matches).await?;
    let given = given(&client, &one, matches).await?;
    let Asked { wire, output, file } = read(one.meta.id, given)?;
    if let Some(sent) = one.meta.file.filter(|sent| sent.streamed) {
        let path = matches.get_one::<String>(sent.field).map_or("", String::as_str);
        output::print(&output, &client.upload(wire, path, sent).await?, matches.get_flag("json"));
        return Ok(Exit::Done);
    }
    if file == Some(FileType::Bytes) && std::io::stdout().is_terminal() {
        // What a guest wrote may be anything, and a terminal obeys some of it.
        return Err(Failure::usage("what comes is no text for a terminal: say where it goes, as … > FILE"));
    }
    let wire = with_version(&client, &one.meta, wire).await?;
    if file.is_some() {
        return output::copy(client.send(wire).await?).await;
    }
    let answer = client.value(wire).await?;
    // What changes something and names a job is done by that.
    if let Some(job) = answer.get("job").and_then(Value::as_str).filter(|_| one.meta.method != Method::Get) {
        let job: JobId = job.parse().map_err(|_| Failure::new(Exit::Refused, "the answer names no job"))?;
        return queued(&client, job, &answer, matches).await;
    }
    let jobs = if one.meta.method == Method::Get { Vec::new() } else { jobs_of(&answer) };
    if !jobs.is_empty() {
        return all_queued(&client, jobs, (&output, &answer), matches).await;
    }
    output::print(&output, &answer, matches.get_flag("json"));
    Ok(Exit::Done)
}

async fn queued(client: &Client, job: JobId, answer: &Value, matches: &ArgMatches) -> Result<Exit, Failure> {
    if matches.get_flag("no-wait") {
        output::print("", answer, matches.get_flag("json"));
        return Ok(Exit::Done);
    }
    let deployment = answer.get("deployment").and_then(Value::as_str).and_then(|id| id.parse().ok());
    wait::follow(client, job, matches, deployment.map_or(wait::Log::No, wait::Log::Of)).await
}

/// The jobs of an answer that names one for each of several things.
fn jobs_of(answer: &Value) -> Vec<JobId> {
    let items = answer.get("items").and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|one| one.get("job")?.as_str()?.parse().ok()).collect()
}

/// One after the other; how the worst of them ended. They go on together, whoever is waited for.
async fn all_queued(
    client: &Client,
    jobs: Vec<JobId>,
    (of, answer): (&str, &Value),
    matches: &ArgMatches,
) -> Result<Exit, Failure> {
    let json = matches.get_flag("json");
    if matches.get_flag("no-wait") || !json {
        output::print(of, answer, json);
    }
    let mut worst = Exit::Done;
    let waited = if matches.get_flag("no-wait") { Vec::new() } else { jobs };
    for job in waited {
        let ended = wait::follow(client, job, matches, wait::Log::No).await?;
        if ended.is_worse_than(worst) {
            worst = ended;
        }
    }
    Ok(worst)
}

/// The fields that were given, as texts.
async fn given(
    client: &Client,
    one: &commands::Described,
    matches: &ArgMatches,
) -> Result<Vec<(String, String)>, Failure> {
    let mut given = Vec::new();
    for field in one.fields.iter().filter(|field| one.meta.if_match != Some(field.name)) {
        let Some(texts) = matches.get_many::<String>(field.name) else { continue };
        if one.meta.file.is_some_and(|sent| sent.streamed && sent.field == field.name) {
            // It goes by itself; the server calls it something.
            given.push((field.name.to_owned(), uuid::Uuid::nil().to_string()));
            continue;
        }
        for text in texts {
            let text = if field.secret { from_file(text)? } else { from_at(text)? };
            let both =
                if field.name == "project" && tree::names_environment(&one.meta) { text.split_once('/') } else { None };
            if let Some((project, environment)) = both {
                let both = [("project", project), ("environment", environment)];
                given.extend(both.map(|(name, text)| (name.to_owned(), text.to_owned())));
                continue;
            }
            // What is new has a name that nothing has yet.
            let is_new = field.name == "name" && one.meta.place("name") != Place::Path;
            let text = if is_new { text } else { resolved(client, field.name, &text).await? };
            given.push((field.name.to_owned(), text));
        }
    }
    Ok(given)
}

/// `@FILE` is what the file says, `@-` what comes on standard input.
fn from_at(text: &str) -> Result<String, Failure> {
    text.strip_prefix('@').map_or_else(|| Ok(text.to_owned()), from_file)
}

/// What a file says, without the newline at its end.
pub fn from_file(file: &str) -> Result<String, Failure> {
    let mut text = String::new();
    if file == "-" {
        std::io::stdin().read_to_string(&mut text)?;
    } else {
        text =
            std::fs::read_to_string(file).map_err(|error| Failure::usage(format!("{file} can't be read: {error}")))?;
    }
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

/// Where things that have ids are found by their names: the field, the list, and what the name is called there.
const NAMED: &[(&str, &str, &str)] = &[
    ("guest", "/guests", "name"),
    ("node", "/nodes", "address"),
    ("zone", "/zones", "name"),
    ("name", "/names", "name"),
];

/// The id of what a person calls by its name; an id, and what has none, stays.
pub async fn resolved(client: &Client, field: &str, text: &str) -> Result<String, Failure> {
    let Some((_, list, called)) = NAMED.iter().find(|(named, ..)| *named == field) else { return Ok(text.to_owned()) };
    if text.parse::<uuid::Uuid>().is_ok() {
        return Ok(text.to_owned());
    }
    let query: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
    let asked = Wire { method: Method::Get, target: format!("{list}?q={query}&limit=200"), if_match: None, body: None };
    let page = client.value(asked).await?;
    let is_it = |item: &&Value| item.get(*called).and_then(Value::as_str) == Some(text);
    let found = page.get("items").and_then(Value::as_array).and_then(|items| items.iter().find(is_it));
    let id = found.and_then(|item| item.get("id")).and_then(Value::as_str);
    id.map(str::to_owned)
        .ok_or_else(|| Failure::new(Exit::Refused, format!("there is no {field} {text}, or it is not yours to see")))
}

/// An operation as a request.
struct Asked {
    wire: Wire,
    /// The name of the type that comes back.
    output: String,
    /// The kind of file that comes back instead.
    file: Option<FileType>,
}

/// The request of an operation with these fields.
fn read(id: &str, given: Vec<(String, String)>) -> Result<Asked, Failure> {
    let mut reading = Reading { id, given, read: None };
    walk(&mut reading);
    reading.read.unwrap_or_else(|| Err(Problem::not_found(""))).map_err(Failure::from)
}

struct Reading<'a> {
    id: &'a str,
    given: Vec<(String, String)>,
    read: Option<Result<Asked, Problem>>,
}

impl Visitor for Reading<'_> {
    fn visit<O: Operation>(&mut self) {
        let meta = O::META.plain();
        if meta.id != self.id {
            return;
        }
        let mut input = Input::form(self.given.drain(..));
        // It is filled in from what is there now.
        if let Some(field) = meta.if_match {
            input.text(field, "0000000000000000");
        }
        let read = input.read::<O>().map_err(Problem::wrong);
        let output = <O::Output as utoipa::ToSchema>::name().into_owned();
        self.read = Some(read.map(|operation| Asked { wire: wire(&operation), output, file: O::Output::FILE }));
    }
}

/// What is set says which version it means: that which is there now.
async fn with_version(client: &Client, meta: &Plain, mut wire: Wire) -> Result<Wire, Failure> {
    if meta.if_match.is_some() {
        let now = Wire { method: Method::Get, target: wire.target.clone(), if_match: None, body: None };
        let answer = client.send(now).await?;
        wire.if_match = answer.headers().get("etag").and_then(|etag| etag.to_str().ok()).map(str::to_owned);
    }
    Ok(wire)
}

/// Who the token is of.
pub async fn whoami(client: &Client) -> Result<String, Failure> {
    let me = client.value(Wire { method: Method::Get, target: "/me".to_owned(), if_match: None, body: None }).await?;
    Ok(me.get("login").and_then(Value::as_str).unwrap_or_default().to_owned())
}

/// The path of what is followed, with its values.
pub fn stream_target<S: Stream>(stream: &S) -> String {
    let meta = S::META.plain();
    let Ok(Value::Object(fields)) = serde_json::to_value(stream) else { return meta.path.to_owned() };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (mut path, mut query) = (meta.path.to_owned(), url::form_urlencoded::Serializer::new(String::new()));
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        if meta.place(name) == Place::Path {
            path = path.replace(&format!("{{{name}}}"), &text(value));
        } else {
            query.append_pair(name, &text(value));
        }
    }
    let query = query.finish();
    if query.is_empty() { path } else { format!("{path}?{query}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_may_name_several_jobs() {
        let id = "0199d3c0-0000-7000-8000-000000000001";
        let answer = json!({ "items": [{ "name": "db", "job": id }, { "name": "web", "job": null }] });
        assert_eq!(jobs_of(&answer), [id.parse().unwrap()]);
        assert!(jobs_of(&json!({ "job": id })).is_empty() && jobs_of(&json!({ "items": 7 })).is_empty());
    }
}
