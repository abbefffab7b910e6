//! A server of the matrix: it takes and runs jobs like any other, in a process of its own,
//! so that it can be killed or stopped like any other. At the point that it was given it says
//! `at` on its standard output and, before or after an effect, waits for a line on its
//! standard input. The end of that input is its order to leave.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use corpus_domain::JobKind;
use corpus_jobs::testing::{Faults, Moment, Point};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::setting::{Setting, engine_config};

/// The first line on its standard input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    pub setting: Setting,
    /// Where to say `at`.
    pub point: Option<OrderedPoint>,
    /// What time limits are multiplied by.
    pub pace: f64,
}

/// Where in a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OrderedPoint {
    pub kind: JobKind,
    pub step: String,
    pub moment: OrderedMoment,
}

/// When in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OrderedMoment {
    Before,
    During { ms: u64 },
    After,
}

/// Works until it is told to leave.
pub async fn work() -> Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter("info,corpus_controller=debug").init();
    let mut lines = BufReader::new(stdin()).lines();
    let first = lines.next_line().await?.context("no order")?;
    let order: Order = serde_json::from_str(&first)?;
    let go = Arc::new(Semaphore::new(0));
    let controller = order.setting.open().await?;
    let stop = CancellationToken::new();
    let engine = controller.engine(&engine_config(faults(&order, &go)));
    let watching = tokio::spawn({
        let (controller, stop) = (controller.clone(), stop.clone());
        async move { controller.watch_nodes(stop).await }
    });
    say("ready");
    while lines.next_line().await?.is_some() {
        go.add_permits(1);
    }
    stop.cancel();
    engine.shutdown(Duration::from_secs(2)).await;
    watching.await?;
    Ok(())
}

fn faults(order: &Order, go: &Arc<Semaphore>) -> Faults {
    let Some(point) = order.point.clone() else { return Faults::default().hurried(order.pace) };
    let (moment, waits) = match point.moment {
        OrderedMoment::Before => (Moment::Before, true),
        OrderedMoment::During { ms } => (Moment::During(Duration::from_millis(ms)), false),
        OrderedMoment::After => (Moment::After, true),
    };
    let go = Arc::clone(go);
    let reached = Arc::new(move || {
        let go = Arc::clone(&go);
        Box::pin(async move {
            say("at");
            if waits && let Ok(permit) = go.acquire().await {
                permit.forget();
            }
        }) as _
    });
    Faults::at_point(Point::new(point.kind, point.step, moment, reached)).hurried(order.pace)
}

#[expect(clippy::print_stdout, reason = "this is how the conductor is told")]
fn say(word: &str) {
    println!("{word}");
}
