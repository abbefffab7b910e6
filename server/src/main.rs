//! corpus-server: parses its arguments, loads the configuration, and serves or does one task.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use corpus_backup::{Repository, Which};
use corpus_server::config::{Settings, places};
use corpus_server::database::Database;
use corpus_server::login::Accounts;
use corpus_server::own_backup;
use corpus_server::salt_master;
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
  backup                 take a backup of the controller as [backup] says, then end
  list-backups           say which there are
  check-backups          read every byte of them, and say whether all is as it was written
  salt-master            run a Salt master for guests as [salt_master] says, beside the server
  restore                bring a backup back where there is none of its files and an empty database:
                         --from PLACE --password-file FILE [--backup ID, else the newest]; PLACE is a folder, or
                         what backup.place was, with --access FILE: one with the sections [sftp] or [s3]

Without --config the configuration is ./corpus.toml, else /etc/corpus/corpus.toml.
CORPUS_SECTION__KEY in the environment overrides a key; corpus.example.toml names all.";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Command {
    #[default]
    Serve,
    Migrate,
    CheckConfig,
    ResetAdminPassword,
    Backup,
    ListBackups,
    CheckBackups,
    SaltMaster,
    Restore,
    Help,
    Version,
}

/// What was asked for.
#[derive(Debug, Default)]
struct Asked {
    command: Command,
    config: Option<PathBuf>,
    from: Option<String>,
    access: Option<PathBuf>,
    password_file: Option<PathBuf>,
    backup: Option<String>,
}

fn main() -> ExitCode {
    let done = parse(std::env::args_os().skip(1)).and_then(|asked| match asked.command {
        Command::Help => {
            println!("{HELP}");
            Ok(())
        }
        Command::Version => {
            println!("corpus-server {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        Command::Restore => restore(&asked),
        command => run(command, asked.config.as_deref()),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("corpus-server: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut args: impl Iterator<Item = OsString>) -> anyhow::Result<Asked> {
    let (mut asked, mut command) = (Asked::default(), None);
    while let Some(arg) = args.next() {
        let mut value = |what| args.next().with_context(|| format!("{} needs {what}", arg.display()));
        let next = match arg.to_str() {
            Some("--config") => {
                asked.config = Some(value("a file")?.into());
                continue;
            }
            Some("--from") => {
                let place = value("a place")?.into_string();
                asked.from = Some(place.map_err(|place| anyhow!("{} is no text in UTF-8", place.display()))?);
                continue;
            }
            Some("--access") => {
                asked.access = Some(value("a file")?.into());
                continue;
            }
            Some("--password-file") => {
                asked.password_file = Some(value("a file")?.into());
                continue;
            }
            Some("--backup") => {
                asked.backup = Some(value("the begin of an id")?.to_string_lossy().into_owned());
                continue;
            }
            Some("serve") => Command::Serve,
            Some("migrate") => Command::Migrate,
            Some("check-config") => Command::CheckConfig,
            Some("reset-admin-password") => Command::ResetAdminPassword,
            Some("backup") => Command::Backup,
            Some("list-backups") => Command::ListBackups,
            Some("check-backups") => Command::CheckBackups,
            Some("salt-master") => Command::SaltMaster,
            Some("restore") => Command::Restore,
            Some("help" | "--help" | "-h") => Command::Help,
            Some("--version" | "-V") => Command::Version,
            _ => bail!("unknown argument {}; --help tells all", arg.display()),
        };
        if command.replace(next).is_some() {
            bail!("more than one command given; --help tells all");
        }
    }
    asked.command = command.unwrap_or_default();
    let files = [&asked.access, &asked.password_file].into_iter().any(Option::is_some);
    if (files || asked.from.is_some() || asked.backup.is_some()) && asked.command != Command::Restore {
        bail!("--from, --access, --password-file and --backup are of restore; --help tells all");
    }
    Ok(asked)
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
    let runtime = runtime()?;
    let done = runtime.block_on(async {
        match command {
            Command::Migrate => migrate(&settings).await,
            Command::ResetAdminPassword => reset(&settings).await,
            Command::Backup => backup(&settings).await,
            Command::ListBackups => list_backups(&settings).await,
            Command::CheckBackups => check_backups(&settings).await,
            Command::SaltMaster => salt_master(&settings).await,
            _ => serve(settings).await,
        }
    });
    // A backup that is being written is not waited for: the next one takes what is there already.
    runtime.shutdown_timeout(Duration::from_secs(1));
    done
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime")
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

async fn salt_master(settings: &Settings) -> anyhow::Result<()> {
    let (end, at_once) = (CancellationToken::new(), CancellationToken::new());
    tokio::spawn(listen(signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?, end.clone(), at_once));
    salt_master::run(settings, end).await
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

async fn backup(settings: &Settings) -> anyhow::Result<()> {
    let database = Database::open(settings).await?;
    let taken = own_backup::take(settings, &database).await;
    database.leave().await;
    let taken = taken?;
    let (one, took) = (&taken.saved.snapshot, taken.took.as_secs_f64());
    println!(
        "Backup {} of {} bytes, {} of them new, in {took:.1} s.",
        short(&one.id),
        one.bytes,
        taken.saved.added_bytes
    );
    if taken.removed > 0 {
        println!("{} older ones need not be kept, and are gone.", taken.removed);
    }
    Ok(())
}

async fn list_backups(settings: &Settings) -> anyhow::Result<()> {
    let all = own_backup::list(settings).await?;
    for one in &all {
        println!("{}  {}  {} bytes", short(&one.id), one.at.format("%Y-%m-%d %H:%M:%S UTC"), one.bytes);
    }
    if all.is_empty() {
        println!("There is no backup of this controller yet.");
    }
    Ok(())
}

async fn check_backups(settings: &Settings) -> anyhow::Result<()> {
    own_backup::check(settings).await?;
    println!("Every byte of the backups is as it was written.");
    Ok(())
}

/// There is no configuration yet: it is in the backup.
fn restore(asked: &Asked) -> anyhow::Result<()> {
    let from = asked.from.as_deref().context("restore needs --from PLACE, where the backups are")?;
    // A folder may be said by less than its whole path here.
    let from = if from.contains("://") { from.into() } else { std::path::absolute(from)?.display().to_string() };
    let storage = places::storage(from.parse()?, asked.access.as_deref())?;
    let file = asked.password_file.as_deref().context("restore needs --password-file FILE")?;
    let password = places::read_secret(file).map_err(anyhow::Error::msg)?;
    let which = asked.backup.clone().map_or(Which::Latest, Which::Id);
    let restoring = own_backup::restore(Repository::at(storage, password), which, asked.config.as_deref());
    let restored = runtime()?.block_on(restoring)?;
    println!("The controller is what it was on {}.", restored.at.format("%Y-%m-%d at %H:%M:%S UTC"));
    for path in &restored.files {
        println!("  {}", path.display());
    }
    let config = restored.config.map(|path| format!(" --config {}", path.display())).unwrap_or_default();
    println!(
        "Start it: corpus-server{config}\nWho was signed in signs in again. What its nodes did since is shown as drift."
    );
    Ok(())
}

/// As much of an id as one types.
fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}
