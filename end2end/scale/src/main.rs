//! corpus-scale: fills a database, and measures what pages and JSON API of a server on it cost.
//! `scripts/scale pages` runs it.

mod measure;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, bail};
use corpus_scale::fill::{Sizes, fill};
use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;

const HELP: &str = "corpus-scale FOLDER OF PART…

Fills the database DATABASE_URL, which must be empty, with one in OF of what is measured (1 for all of it),
and measures the server beside this program on it. Writes PART.md into the folder for each part:

  pages   each page by itself: time, size, statements; and the same of each GET of the JSON API
  load    all of them at 30 and at 300 requests a second";

#[tokio::main]
async fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            Ok(())
        }
        [folder, of, parts @ ..] if !parts.is_empty() => run(folder, of, parts).await,
        _ => Err(anyhow::anyhow!("{HELP}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("corpus-scale: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(folder: &str, of: &str, parts: &[&str]) -> anyhow::Result<()> {
    if let Some(unknown) = parts.iter().find(|part| !["pages", "load"].contains(part)) {
        bail!("there is no part {unknown}; --help tells all");
    }
    let url = std::env::var("DATABASE_URL").context("DATABASE_URL is not set")?;
    let database: PgConnectOptions = url.parse()?;
    let began = Instant::now();
    prepare(&database, Sizes::FULL.part(of.parse()?)).await?;
    let filled = began.elapsed();
    let setting = measure::Setting::new(database, &url).await?;
    eprintln!("filled within {:.1} s, {}", filled.as_secs_f64(), setting.size);
    for part in parts {
        let texts = if *part == "pages" { setting.pages(filled).await? } else { setting.load().await? };
        for (name, text) in texts {
            tokio::fs::write(format!("{folder}/{name}.md"), text).await?;
        }
    }
    Ok(())
}

async fn prepare(database: &PgConnectOptions, sizes: Sizes) -> anyhow::Result<()> {
    let pool = PgPool::connect_with(database.clone()).await?;
    sqlx::migrate!("../../migrations").run(&pool).await?;
    sqlx::query("create extension if not exists pg_stat_statements").execute(&pool).await?;
    pool.close().await;
    fill(database, sizes).await
}
