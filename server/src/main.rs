//! corpus-server: parses its arguments, loads the configuration, and serves or does one task.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use corpus_server::config::Settings;
use corpus_server::database::Database;
use corpus_server::login::Accounts;
use corpus_server::serve::{Server, announcement};
use corpus_server::trace;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

const HELP: &str = "corpus-server [--config FILE] [COMMAND]

Commands:
  serve                  serve the pages and run the jobs (the default)
  migrate                bring the database up to date, then end
  check-config           say whether the configuration can be used, then end
  reset-admin-password   give the local administrator a new password and print it

Without --config the configuration is ./corpus.toml, else /etc/corpus/corpus.toml.
CORPUS_SECTION__KEY in the environment overrides a key; corpus.example.toml names all.";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Command {
    Serve,
    Migrate,
    CheckConfig,
    ResetAdminPassword,
    Help,
    Version,
}

fn main() -> ExitCode {
    let done = parse(std::env::args_os().skip(1)).and_then(|(command, config)| match command {
        Command::Help => {
            println!("{HELP}");
            Ok(())
        }
        Command::Version => {
            println!("corpus-server {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        command => run(command, config.as_deref()),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("corpus-server: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut args: impl Iterator<Item = OsString>) -> anyhow::Result<(Command, Option<PathBuf>)> {
    let (mut command, mut config) = (None, None);
    while let Some(arg) = args.next() {
        let next = match arg.to_str() {
            Some("--config") => {
                config = Some(PathBuf::from(args.next().context("--config needs a file")?));
                continue;
            }
            Some("serve") => Command::Serve,
            Some("migrate") => Command::Migrate,
            Some("check-config") => Command::CheckConfig,
            Some("reset-admin-password") => Command::ResetAdminPassword,
            Some("help" | "--help" | "-h") => Command::Help,
            Some("--version" | "-V") => Command::Version,
            _ => bail!("unknown argument {}; --help tells all", arg.display()),
        };
        if command.replace(next).is_some() {
            bail!("more than one command given; --help tells all");
        }
    }
    Ok((command.unwrap_or(Command::Serve), config))
}

fn run(command: Command, config: Option<&Path>) -> anyhow::Result<()> {
    let settings = Settings::load(config)?;
    if command == Command::CheckConfig {
        println!("The configuration is good.");
        return Ok(());
    }
    trace::init(&settings.log);
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        tracing::debug!("a provider of cryptography was installed already");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime")?;
    runtime.block_on(async {
        match command {
            Command::Migrate => migrate(&settings).await,
            Command::ResetAdminPassword => reset(&settings).await,
            _ => serve(settings).await,
        }
    })
}

async fn serve(settings: Settings) -> anyhow::Result<()> {
    let url = settings.public_url.clone();
    // Before anything that takes time, so that a signal during the start is not lost.
    let (end, at_once) = (CancellationToken::new(), CancellationToken::new());
    tokio::spawn(listen(
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
        end.clone(),
        at_once.clone(),
    ));
    let server = Server::start(settings).await?;
    if let Some(password) = &server.new_admin {
        println!("{}", announcement(password));
    }
    tracing::info!(address = %server.address()?, %url, "serving");
    tokio::select! {
        ended = server.run(end.cancelled_owned()) => ended.context("the listener failed"),
        () = at_once.cancelled() => bail!("told to end a second time: ended at once, other servers adopt what was being done"),
    }
}

/// The first signal ends the server in good order, the second at once.
async fn listen(mut term: Signal, mut int: Signal, end: CancellationToken, at_once: CancellationToken) {
    for told in [end, at_once] {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        told.cancel();
    }
}

async fn migrate(settings: &Settings) -> anyhow::Result<()> {
    Database::open(settings).await?.leave().await;
    println!("The database is up to date.");
    Ok(())
}

async fn reset(settings: &Settings) -> anyhow::Result<()> {
    let database = Database::open(settings).await?;
    let password = Accounts::new(database.db.clone()).reset_admin().await;
    database.leave().await;
    println!("{}", announcement(&password?));
    Ok(())
}
