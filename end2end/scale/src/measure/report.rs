//! What was measured, as the text of docs/reliability.md.

use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::PgConnection;

use super::load::Load;
use super::one::One;

/// Of what build on what machine.
pub(crate) fn head(filled: Duration, size: &str) -> String {
    let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    format!(
        "{profile} profile; {cores} processors that server, PostgreSQL, nodes and who asks share. The database takes {size} and was \
         filled within {:.0} s.\n\n",
        filled.as_secs_f64(),
    )
}

/// Each page: in full for the operator, what differs for the members.
pub(crate) fn pages(head: &str, measured: &[One]) -> String {
    let (ops, members): (Vec<&One>, Vec<&One>) = measured.iter().partition(|one| one.reader == "ops");
    format!("{head}As an operator, the slowest first:\n\n{}\n{}", full(ops), beside(&members))
}

/// Each GET of the JSON API; without one, that there is none.
pub(crate) fn api(measured: Option<&[One]>, left_out: &[String]) -> String {
    let Some(measured) = measured else { return "This server has no JSON API.\n".to_owned() };
    let (ops, members): (Vec<&One>, Vec<&One>) = measured.iter().partition(|one| one.reader == "ops");
    let left_out =
        if left_out.is_empty() { String::new() } else { format!("\nNot asked for: {}.\n", left_out.join(", ")) };
    format!("As an operator, the slowest first:\n\n{}\n{}{left_out}", full(ops), beside(&members))
}

fn full(mut measured: Vec<&One>) -> String {
    measured.sort_by_key(|one| std::cmp::Reverse((one.error.is_some(), one.times.percentile(95))));
    let rows = measured.into_iter().map(|one| {
        let sent = if one.encoding.is_empty() { String::new() } else { format!(" {}", one.encoding) };
        format!(
            "| {} | {} | {} | {} | {}{sent} | {} | {} |\n",
            one.name,
            ms(one.times.percentile(50)),
            late(one),
            kilobytes(one.bytes),
            kilobytes(one.sent),
            one.statements.count,
            one.statements.rows,
        )
    });
    let head = "| page | p50 | p95 | kB | kB sent | statements | rows |\n|---|---|---|---|---|---|---|\n";
    format!("{head}{}", rows.collect::<String>())
}

/// The same pages for several members, side by side.
fn beside(measured: &[&One]) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut readers: Vec<&str> = Vec::new();
    let mut cells: BTreeMap<(&str, &str), String> = BTreeMap::new();
    for one in measured {
        if !names.contains(&one.name.as_str()) {
            names.push(&one.name);
        }
        if !readers.contains(&one.reader) {
            readers.push(one.reader);
        }
        let cell = format!("{}, {}, {}", late(one), kilobytes(one.bytes), one.statements.count);
        cells.insert((one.name.as_str(), one.reader), cell);
    }
    let row = |name: &&str| {
        let cells = readers.iter().map(|reader| cells.get(&(*name, *reader)).map_or("", String::as_str));
        format!("| {name} | {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    format!(
        "As members with so many projects: p95, kB, statements:\n\n| page | {} |\n|---|{}\n{}",
        readers.join(" | "),
        "---|".repeat(readers.len()),
        names.iter().map(row).collect::<String>(),
    )
}

/// The p95; of how many when they were few; what came instead.
fn late(one: &One) -> String {
    if let Some(error) = &one.error {
        return format!("**{error}**");
    }
    let time = ms(one.times.percentile(95));
    if one.is_short() { format!("{time} (of {})", one.times.len()) } else { time }
}

/// Each rate in a column.
pub(crate) fn loads(targets: usize, loads: &[Load]) -> String {
    let row = |title: &str, cell: &dyn Fn(&Load) -> String| {
        format!("| {title} | {} |\n", loads.iter().map(cell).collect::<Vec<_>>().join(" | "))
    };
    let titles: Vec<String> = loads.iter().map(|load| format!("{} a second", load.rate)).collect();
    let rows = [
        row("requests that arrived", &|load| load.arrived.to_string()),
        row("pages answered", &|load| load.answered.to_string()),
        row("pages answered a second", &|load| format!("{:.1}", count(load.answered) / load.elapsed.as_secs_f64())),
        row("p50", &|load| ms(load.times.percentile(50))),
        row("p95", &|load| ms(load.times.percentile(95))),
        row("p99", &|load| ms(load.times.percentile(99))),
        row("errors", &|load| errors(load)),
        row("not answered in time", &|load| load.unanswered.to_string()),
        row("memory of the server before", &|load| format!("{} MiB", load.before_kb / 1024)),
        row("memory of the server after", &|load| format!("{} MiB", load.after_kb / 1024)),
        row("CPU of the server", &|load| format!("{:.0} %", load.server.percent(load.elapsed))),
        row("CPU of PostgreSQL", &|load| format!("{:.0} %", load.postgres.percent(load.elapsed))),
        row("CPU of who asks", &|load| format!("{:.0} %", load.own.percent(load.elapsed))),
    ];
    format!(
        "{targets} addresses in turn, each as each member that may see it.\n\n| | {} |\n|---|{}\n{}",
        titles.join(" | "),
        "---|".repeat(loads.len()),
        rows.concat(),
    )
}

/// The statements that PostgreSQL spent the most time on at the last rate.
pub(crate) async fn dearest(conn: &mut PgConnection) -> anyhow::Result<String> {
    let rows: Vec<(String, i64, f64, f64, f64)> = sqlx::query_as(
        "select left(regexp_replace(regexp_replace(query, '--[^\n]*', '', 'g'), '\\s+', ' ', 'g'), 100), calls, mean_exec_time,
             100 * total_exec_time / sum(total_exec_time) over (), rows::float8 / calls
         from pg_stat_statements where calls > 0 order by total_exec_time desc limit 12",
    )
    .fetch_all(conn)
    .await?;
    let row = |(query, calls, mean, part, rows): (String, i64, f64, f64, f64)| {
        format!("| `{}` | {calls} | {mean:.1} ms | {part:.0} % | {rows:.0} |\n", query.trim().replace('|', "\\|"))
    };
    let head = "| statement | calls | mean | of PostgreSQL's time | rows |\n|---|---|---|---|---|\n";
    Ok(format!("{head}{}", rows.into_iter().map(row).collect::<String>()))
}

fn errors(load: &Load) -> String {
    let told: Vec<String> = load.errors.iter().map(|(what, count)| format!("{count} × {what}")).collect();
    if told.is_empty() { "0".to_owned() } else { told.join(", ") }
}

fn ms(time: Option<Duration>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| format!("{:.0} ms", time.as_secs_f64() * 1_000.0))
}

fn kilobytes(bytes: usize) -> String {
    format!("{:.1}", count(bytes) / 1_000.0)
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn count(number: usize) -> f64 {
    number as f64
}
