//! What was measured, as the text of docs/reliability.md.

use std::time::Duration;

use super::Stretch;
use super::work::Worked;

/// All of it.
pub(crate) struct Report {
    pub(crate) nodes: usize,
    pub(crate) guests: usize,
    pub(crate) bad: usize,
    pub(crate) first: Duration,
    pub(crate) before_kb: u64,
    pub(crate) watched_kb: u64,
    pub(crate) after_kb: u64,
    pub(crate) quiet: Stretch,
    pub(crate) busy: Stretch,
    pub(crate) faulty: Stretch,
    pub(crate) worked: Worked,
}

impl Report {
    /// As Markdown.
    pub(crate) fn markdown(&self) -> String {
        let Self { nodes, guests, bad, worked, .. } = self;
        let jobs = worked.jobs;
        let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
        let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
        let rows = [
            self.row("readings kept per second", |part| format!("{:.0}", per_second(part))),
            self.row("age of a status: median", |part| seconds(part.ages.percentile(0.5))),
            self.row("age of a status: p95", |part| seconds(part.ages.percentile(0.95))),
            self.row("age of a status: oldest", |part| seconds(part.ages.percentile(1.0))),
            self.row("CPU of the controller", |part| percent(part, |part| part.controller)),
            self.row("CPU of PostgreSQL", |part| percent(part, |part| part.postgres)),
            self.row("CPU of the simulated nodes", |part| percent(part, |part| part.simulation)),
            self.row("CPU of everything else on the machine", |part| percent(part, others)),
            self.row("statements per second", |part| format!("{:.0}", rate(part))),
        ];
        let (statements, cpu) = (self.per_job(rate), self.per_job(busy_ms));
        format!(
            "One controller, {nodes} simulated nodes with {guests} guests, each node read every 5 s over its own SSH \
             connection; {cores} processors that controller, PostgreSQL and the simulated nodes share; {profile} profile.\n\n\
             | | only watching | with {jobs} jobs at once | {bad} nodes silent, {bad} slow: the others |\n|---|---|---|---|\n{}\n\
             \n- All nodes connected and read for the first time: {:.1} s.\n\
             - Memory of the controller: {} MiB before, {} MiB with {nodes} connections, {} MiB after the jobs.\n\
             - {jobs} jobs (half make a guest, up to a login over SSH; half destroy one) asked for within {:.1} s: all over after \
             {:.1} s, {:.0} a second, {} failed. A job ran {} (median), {} (p95); with its time in the queue {} and {}.\n\
             - A job costs {statements:.0} statements and {cpu:.0} ms of the controller's CPU, those of its request included.\n",
            rows.join("\n"),
            self.first.as_secs_f64(),
            self.before_kb / 1024,
            self.watched_kb / 1024,
            self.after_kb / 1024,
            worked.asked.as_secs_f64(),
            worked.elapsed.as_secs_f64(),
            count(jobs) / worked.elapsed.as_secs_f64(),
            worked.failed,
            seconds(at(&worked.ran, 50)),
            seconds(at(&worked.ran, 95)),
            seconds(at(&worked.waited, 50)),
            seconds(at(&worked.waited, 95)),
        )
    }

    fn row(&self, title: &str, value: impl Fn(&Stretch) -> String) -> String {
        format!("| {title} | {} | {} | {} |", value(&self.quiet), value(&self.busy), value(&self.faulty))
    }

    /// What the stretch with jobs had of this rate more than watching alone, for each job.
    fn per_job(&self, rate: impl Fn(&Stretch) -> f64) -> f64 {
        (rate(&self.busy) - rate(&self.quiet)) * self.busy.elapsed.as_secs_f64() / count(self.worked.jobs)
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn many(number: i64) -> f64 {
    number as f64
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn count(number: usize) -> f64 {
    number as f64
}

fn rate(part: &Stretch) -> f64 {
    many(part.statements) / part.elapsed.as_secs_f64()
}

fn busy_ms(part: &Stretch) -> f64 {
    part.controller.millis() / part.elapsed.as_secs_f64()
}

fn others(part: &Stretch) -> super::Usage {
    part.machine.since(part.controller).since(part.simulation).since(part.postgres)
}

fn per_second(part: &Stretch) -> f64 {
    many(part.ages.refreshed) / part.ages.seconds
}

fn percent(part: &Stretch, of: impl Fn(&Stretch) -> super::Usage) -> String {
    format!("{:.0} %", of(part).percent(part.elapsed))
}

fn seconds(value: f64) -> String {
    format!("{value:.1} s")
}

fn at(sorted: &[f64], percent: usize) -> f64 {
    let index = sorted.len().saturating_sub(1) * percent / 100;
    sorted.get(index).copied().unwrap_or(f64::NAN)
}
