//! Waiting for a job: its steps as they happen, and how it ended.
//!
//! The events are the same as those of its page. A line that was cut is taken up again where it was.

use std::time::Duration;

use clap::ArgMatches;
use corpus_api::Wire;
use corpus_api::deployments::log::ReadDeploymentLog;
use corpus_api::jobs::{FollowJob, GetJob, Job, JobChange, JobEvent};
use corpus_api::operation::Method;
use corpus_api::words::{After, LineLimit};
use corpus_domain::{DeploymentId, JobId, JobState, StepState};
use futures::StreamExt;
use serde::de::DeserializeOwned;

use crate::ask::stream_target;
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output;

/// How often a deployment's log is read.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// What of a job is printed besides its steps.
#[derive(Debug, Clone, Copy)]
pub enum Log {
    /// Nothing.
    No,
    /// Its own log.
    OfJob,
    /// That of the deployment which it sees to its end.
    Of(DeploymentId),
}

/// Follows a job until it is over, with a log.
pub async fn follow(client: &Client, job: JobId, matches: &ArgMatches, log: Log) -> Result<Exit, Failure> {
    let limit = matches.get_one::<u64>("timeout").map_or(Duration::MAX, |seconds| Duration::from_secs(*seconds));
    let json = matches.get_flag("json");
    let watching = async {
        match log {
            Log::Of(deployment) if !json => watch_deployment(client, job, deployment).await,
            log => watch(client, job, !json, matches!(log, Log::OfJob)).await,
        }
    };
    let Ok(watched) = tokio::time::timeout(limit, watching).await else {
        eprintln!("corpus: it is not over yet, and goes on: corpus job follow {job}");
        return Ok(Exit::TimedOut);
    };
    watched?;
    let ended = client.call(&GetJob { job, wait: None }).await?;
    if json {
        output::print("Job", &serde_json::to_value(&ended).unwrap_or_default(), true);
    } else {
        told(&ended);
    }
    Ok(exit_of(ended.line.state))
}

fn exit_of(state: JobState) -> Exit {
    match state {
        JobState::Done => Exit::Done,
        JobState::Stuck => Exit::Stuck,
        JobState::Undone | JobState::Abandoned => Exit::Undone,
        JobState::Waiting | JobState::Running | JobState::Undoing => Exit::TimedOut,
    }
}

fn told(job: &Job) {
    let error = job.line.error.as_deref().map(|error| format!(": {error}")).unwrap_or_default();
    eprintln!("{} {}{error}", job.line.title, job.line.state);
}

/// Shows what happens until it is over, and what the deployment writes meanwhile.
async fn watch_deployment(client: &Client, job: JobId, deployment: DeploymentId) -> Result<(), Failure> {
    let mut printed = None;
    let watching = watch(client, job, true, false);
    tokio::pin!(watching);
    loop {
        tokio::select! {
            watched = &mut watching => {
                print_lines(client, deployment, &mut printed).await?;
                return watched;
            }
            () = tokio::time::sleep(LOG_INTERVAL) => print_lines(client, deployment, &mut printed).await?,
        }
    }
}

/// Prints the lines of a deployment's log after the last one that was printed.
async fn print_lines(client: &Client, deployment: DeploymentId, printed: &mut Option<After>) -> Result<(), Failure> {
    loop {
        let limit = LineLimit::try_from(5_000).ok();
        let lines = client.call(&ReadDeploymentLog { deployment, after: *printed, limit }).await?.lines;
        let Some(last) = lines.last() else { return Ok(()) };
        *printed = u64::try_from(last.number).ok().and_then(|number| After::try_from(number).ok());
        for line in &lines {
            println!("{}", line.text);
        }
    }
}

/// Shows what happens until it is over.
async fn watch(client: &Client, job: JobId, show: bool, log: bool) -> Result<(), Failure> {
    let mut last = 0_i64;
    loop {
        let after = u64::try_from(last).ok().and_then(|last| After::try_from(last).ok());
        let target = stream_target(&FollowJob { job, after });
        let response = client.send(Wire { method: Method::Get, target, if_match: None, body: None }).await?;
        let (mut bytes, mut rest) = (response.bytes_stream(), Vec::new());
        while let Some(Ok(chunk)) = bytes.next().await {
            rest.extend_from_slice(&chunk);
            while let Some(event) = next_event::<JobEvent>(&mut rest) {
                last = last.max(event.number);
                if show {
                    print(&event.change, log);
                }
                if matches!(&event.change, JobChange::State(line) if line.state.is_over()) {
                    return Ok(());
                }
            }
        }
        if client.call(&GetJob { job, wait: None }).await?.line.state.is_over() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Takes a whole event from what has come; what is none of ours is skipped.
pub fn next_event<T: DeserializeOwned>(rest: &mut Vec<u8>) -> Option<T> {
    loop {
        let end = rest.windows(2).position(|two| two == b"\n\n")?;
        let block: Vec<u8> = rest.drain(..end + 2).collect();
        let text = String::from_utf8_lossy(&block).into_owned();
        let data: String = text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim_start).collect();
        if let Ok(event) = serde_json::from_str(&data) {
            return Some(event);
        }
    }
}

/// On standard error: what a script reads is the end.
fn print(change: &JobChange, log: bool) {
    match change {
        JobChange::Log(line) if log => println!("{} {}", line.at.format("%H:%M:%S"), line.text),
        JobChange::Log(_) | JobChange::State(_) => {}
        JobChange::Step(step) => {
            let error = step.error.as_deref().or(step.undo_error.as_deref());
            let error = error.map(|error| format!(": {error}")).unwrap_or_default();
            match step.state {
                StepState::Pending | StepState::Running => {}
                state => eprintln!("  {} {state}{error}", step.title),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_pieces() {
        let mut rest = b": keep-alive\n\nid: 3\ndata: {\"number\":3,\"change\":{\"type\":\"log\",\"number\":3,\"at\":\"2026-11-23T00:00:00Z\",\"step\":null,\"stream\":\"out\",\"text\":\"a\\nb\"}}\n\nid: 4".to_vec();
        let event: JobEvent = next_event(&mut rest).unwrap();
        assert_eq!(event.number, 3);
        assert!(next_event::<JobEvent>(&mut rest).is_none());
        assert_eq!(rest, b"id: 4");
    }
}
