//! Following the requests of visitors: a line for each as it ends, until one has seen enough.

use std::time::Duration;

use clap::ArgMatches;
use corpus_api::Wire;
use corpus_api::operation::Method;
use corpus_api::traffic::{AccessEvent, FollowAccess, GetTraffic};
use corpus_api::words::After;
use corpus_domain::{Environment, ProjectName, TrafficSpan};
use futures::StreamExt;

use crate::ask::stream_target;
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::wait::next_event;

/// When it is followed again: the server ends it after some minutes, and when other names lead there.
const AGAIN: Duration = Duration::from_secs(1);

/// The environment that `PROJECT/ENVIRONMENT` names.
pub fn environment(text: &str) -> Result<(ProjectName, Environment), Failure> {
    let parts = text.split_once('/').and_then(|(project, which)| Some((project.parse().ok()?, which.parse().ok()?)));
    parts.ok_or_else(|| Failure::usage("say which environment as PROJECT/ENVIRONMENT: atlas/prod"))
}

/// Prints requests as they end, for as long as it may be seen or was said.
pub async fn follow(client: &Client, of: (ProjectName, Environment), matches: &ArgMatches) -> Result<Exit, Failure> {
    let (project, environment) = of.clone();
    if client.call(&GetTraffic { project, environment, span: Some(TrafficSpan::Hour) }).await?.names == 0 {
        eprintln!("corpus: no name leads to {} {} yet; what comes once one does is shown here", of.0, of.1);
    }
    let limit = matches.get_one::<u64>("timeout").map_or(Duration::MAX, |seconds| Duration::from_secs(*seconds));
    let following = follow_on(client, of, matches.get_flag("json"));
    tokio::time::timeout(limit, following).await.unwrap_or(Ok(Exit::Done))
}

async fn follow_on(
    client: &Client,
    (project, environment): (ProjectName, Environment),
    json: bool,
) -> Result<Exit, Failure> {
    let mut last = 0_i64;
    loop {
        let after = u64::try_from(last).ok().and_then(|last| After::try_from(last).ok());
        let target = stream_target(&FollowAccess { project: project.clone(), environment, after });
        let response = client.send(Wire { method: Method::Get, target, if_match: None, body: None }).await?;
        let (mut bytes, mut rest) = (response.bytes_stream(), Vec::new());
        while let Some(Ok(chunk)) = bytes.next().await {
            rest.extend_from_slice(&chunk);
            while let Some(event) = next_event::<AccessEvent>(&mut rest) {
                last = last.max(event.number);
                print(&event, json);
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// A line for each, as JSON for programs.
fn print(event: &AccessEvent, json: bool) {
    for line in &event.lines {
        if json {
            println!("{}", serde_json::to_string(line).unwrap_or_default());
        } else {
            println!("{}", line.text());
        }
    }
    if event.left_out > 0 {
        eprintln!("corpus: {} more requests than are told", event.left_out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_named_by_its_project() {
        let (project, which) = environment("atlas/prod").unwrap();
        assert_eq!((project.as_str(), which), ("atlas", Environment::Prod));
        for text in ["", "atlas", "atlas/", "/prod", "atlas/prod/x", "atlas/live"] {
            assert!(environment(text).is_err(), "{text}");
        }
    }
}
