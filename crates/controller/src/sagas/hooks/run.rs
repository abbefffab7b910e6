//! One run of a hook: it is written down, run where it belongs, and its end is written down.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use corpus_domain::{HookFailure, HookState};
use corpus_protocol::{Event, HookOrder, Request, RequestError, Stream};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::about::{About, Host};
use crate::hooks::folder::{Hook, LARGEST};
use crate::hooks::process::Process;
use crate::jobs::{StepContext, StepError};
use crate::nodes::{Endpoint, HostId, NodeError, Pool};
use crate::sagas::guest_calls::bring_salt_to;
use crate::sagas::node_calls::{Asked, call_hearing, is_away, patiently};
use crate::services::Services;
use crate::store::hook_runs::{self, NewRun};

/// How much longer than the hook the answer of its host may take.
const MARGIN: Duration = Duration::from_secs(20);
/// Runs of a hook on a phase of one deployment: a guest can tell that a phase begins as often as it likes.
const PHASE_RUNS: i32 = 5;
/// Lines of its output that are kept with the run.
const TAIL: usize = 20;
/// The longest of them, in characters.
const TAIL_LINE: usize = 400;
/// The longest reason that is kept, in characters.
const REASON: usize = 2_000;

/// What is to be run.
pub struct Order {
    /// What it is called.
    name: String,
    /// What its lines in the log begin with.
    short: String,
    file: PathBuf,
    limit: Duration,
    is_salt: bool,
    host: Host,
    is_undo: bool,
}

impl Order {
    /// A hook's file, or its undo's.
    pub fn of(hook: &Hook, file: PathBuf, host: Host) -> Self {
        let (limit, is_salt, short) = (hook.limit, hook.is_salt(), hook.name.to_string());
        Self { name: hook.id(), short, file, limit, is_salt, host, is_undo: false }
    }

    /// The file is that of its undo.
    pub fn undoing(self) -> Self {
        Self { is_undo: true, ..self }
    }
}

/// How it ended.
#[derive(Debug)]
pub enum Ended {
    /// Well.
    Done,
    /// Not.
    Failed(String),
    /// Its host can't be reached, or the line to it was cut.
    Away {
        /// What is known.
        reason: String,
        /// Whether it never began.
        never_began: bool,
    },
    /// By a cancel.
    Cancelled,
}

/// Runs a hook of a step, and keeps what became of it.
pub async fn record<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    hook: &Hook,
    about: &About,
    step: &str,
    order: &Order,
) -> Result<Ended, StepError> {
    let host = order.host.name();
    let mut tx = ctx.begin().await?;
    let attempt = hook_runs::attempts(&mut tx, (ctx.job(), step), &order.name, &host).await?.saturating_add(1);
    if hook.stage.phase.is_some() && attempt > PHASE_RUNS {
        return Ok(Ended::Done);
    }
    let facts = with_run(about.facts(), ctx, hook, attempt);
    let new = NewRun {
        job: ctx.job(),
        step,
        hook: &order.name,
        side: hook.side,
        host: &host,
        attempt,
        facts: &facts,
        has_undo: hook.undo.is_some() && !ctx.is_undoing(),
    };
    let run = hook_runs::begin(&mut tx, &new).await?;
    tx.commit().await?;
    let again = if attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
    ctx.log(format!("hook {} on {host}{again}", order.name));
    let mut tail = VecDeque::new();
    let ended = execute(ctx, order, &facts, &mut |line: &str| {
        if tail.len() == TAIL {
            tail.pop_front();
        }
        tail.push_back(shortened(line, TAIL_LINE));
    })
    .await;
    let warns = hook.on_failure == HookFailure::Warn || ctx.is_undoing();
    let failed = if warns { HookState::Warned } else { HookState::Failed };
    let (state, reason) = match &ended {
        Ended::Done => (HookState::Done, None),
        Ended::Failed(reason) | Ended::Away { reason, .. } => (failed, Some(shortened(reason, REASON))),
        Ended::Cancelled => (HookState::Cancelled, None),
    };
    let never_began = matches!(ended, Ended::Away { never_began: true, .. });
    let mut tx = ctx.begin().await?;
    hook_runs::end(&mut tx, run, (state, never_began), reason.as_deref(), &Vec::from(tail)).await?;
    tx.commit().await?;
    Ok(ended)
}

fn with_run<P>(mut facts: Value, ctx: &StepContext<Services, P>, hook: &Hook, attempt: i32) -> Value {
    if let Some(map) = facts.as_object_mut() {
        map.insert("hook".into(), hook.id().into());
        map.insert("stage".into(), hook.stage.name.into());
        map.insert("side".into(), hook.side.as_str().into());
        map.insert("attempt".into(), attempt.into());
        map.insert("job".into(), json!({ "id": ctx.job(), "kind": ctx.kind(), "step": ctx.step() }));
    }
    facts
}

/// What a host says may be of any length, and the database takes no null.
fn shortened(text: &str, most: usize) -> String {
    text.chars().filter(|letter| *letter != '\0').take(most).collect()
}

/// Runs it where it belongs; `keep` hears its lines too.
pub async fn execute<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    order: &Order,
    facts: &Value,
    keep: &mut (dyn FnMut(&str) + Send),
) -> Ended {
    let mut facts = facts.clone();
    if let Some(map) = facts.as_object_mut() {
        map.insert("undo".into(), order.is_undo.into());
    }
    let mut tell = |stream: Stream, text: &str| {
        ctx.log_from(stream, format!("{}: {text}", order.short));
        keep(text);
    };
    match &order.host {
        Host::Controller => here(ctx, order, &facts, &mut tell).await,
        Host::Node(endpoint) => there(ctx, &ctx.services().nodes, endpoint, order, (facts, None), &mut tell).await,
        Host::Guest(endpoint, name) => {
            let mut salt = None;
            if order.is_salt {
                match bring_salt_to(ctx, endpoint, &format!("guest {name} to answer")).await {
                    Ok(Some(bundle)) => salt = Some(bundle),
                    Ok(None) => {
                        return Ended::Failed(
                            "no bundle of Salt is configured (salt_bundle), so no .sls can run".into(),
                        );
                    }
                    Err(_) if ctx.is_cancelled() => return Ended::Cancelled,
                    Err(error) => return Ended::Away { reason: error.to_string(), never_began: true },
                }
            }
            there(ctx, &ctx.services().guests, endpoint, order, (facts, salt), &mut tell).await
        }
    }
}

async fn here<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    order: &Order,
    facts: &Value,
    tell: &mut (dyn FnMut(Stream, &str) + Send),
) -> Ended {
    let stop = CancellationToken::new();
    let process =
        Process { path: order.file.clone(), name: order.name.clone(), input: facts.to_string(), limit: order.limit };
    let mut running = std::pin::pin!(process.run(stop.clone(), tell));
    let ended = tokio::select! {
        ended = &mut running => ended,
        () = ctx.cancelled() => {
            stop.cancel();
            // It says when nothing of it is left.
            let _ = running.await;
            return Ended::Cancelled;
        }
    };
    ended.map_or_else(|failed| Ended::Failed(failed.0), |()| Ended::Done)
}

async fn there<P: Send + Sync, Id: HostId>(
    ctx: &StepContext<Services, P>,
    pool: &Pool<Id>,
    to: &Endpoint<Id>,
    order: &Order,
    (facts, salt): (Value, Option<corpus_protocol::SaltBundle>),
    tell: &mut (dyn FnMut(Stream, &str) + Send),
) -> Ended {
    let content = match tokio::fs::read(&order.file).await {
        Ok(bytes) if bytes.len() as u64 > LARGEST => {
            return Ended::Failed("it is too large to be brought there".into());
        }
        Ok(bytes) => bytes,
        Err(error) => return Ended::Failed(format!("it can't be read: {error}")),
    };
    let Ok(content) = String::from_utf8(content) else {
        return Ended::Failed("it is no text: only scripts are brought to nodes and guests".into());
    };
    let limit_s = u32::try_from(order.limit.as_secs()).unwrap_or(u32::MAX);
    let hook = HookOrder { name: order.name.clone(), content, facts, limit_s, salt };
    let request = Request::RunHook { hook: Box::new(hook) };
    let tell = tokio::sync::Mutex::new(tell);
    let once = || async {
        let mut tell = tell.lock().await;
        let hear = |event: Event| match event {
            Event::Log { stream, text } => (*tell)(stream, &text),
            other => ctx.report(&other),
        };
        let answer = call_hearing(ctx, pool, to, (request.clone(), order.limit + MARGIN), hear).await;
        Ok(Asked { awaited: format!("{} to answer", to.address), answer })
    };
    let Ok(asked) = patiently(ctx, is_away, once).await else { return Ended::Cancelled };
    match asked.answer {
        Ok(_) => Ended::Done,
        Err(NodeError::Cancelled { .. }) => Ended::Cancelled,
        Err(NodeError::Remote(RequestError { kind: corpus_protocol::ErrorKind::Cancelled, .. }))
            if ctx.is_cancelled() =>
        {
            Ended::Cancelled
        }
        Err(NodeError::Remote(RequestError { message, .. })) => Ended::Failed(message),
        Err(error) => Ended::Away { reason: error.to_string(), never_began: is_away(&error) },
    }
}
