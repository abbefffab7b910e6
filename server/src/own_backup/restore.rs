//! Bringing a controller back on an empty machine.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use corpus_backup::{Repository, Saved, Snapshot, Which};
use corpus_controller::own_backups;

use super::{LABEL, OwnBackupError, Result, parts, told, tools};
use crate::config::Settings;
use crate::database::Database;

/// What was brought back.
#[derive(Debug)]
pub struct Restored {
    /// The backup.
    pub snapshot: Snapshot,
    /// When it was taken.
    pub at: DateTime<Utc>,
    /// Files that were not here.
    pub files: Vec<PathBuf>,
    /// The configuration to serve with.
    pub config: Option<PathBuf>,
}

/// Brings a backup back: files to where they lay, and the database into an empty one. What is here already and says
/// something else is a reason to do nothing.
pub async fn restore(repository: Repository, which: Which, config: Option<&Path>) -> Result<Restored> {
    let staging = parts::private_folder(&std::env::temp_dir())?;
    let into = staging.path().join("backup");
    let place = into.clone();
    let snapshot = tokio::task::spawn_blocking(move || repository.restore(LABEL, &which, &place)).await??;
    let about = parts::read_about(&into)?;
    let files = parts::put_back(&into)?;
    let config = config.map(Path::to_owned).or_else(|| about.config.clone());
    let settings = Settings::load(config.as_deref())?;
    let database = Database::reach(&settings).await?;
    let from = Saved { snapshot: snapshot.clone(), added_bytes: 0 };
    let done = fill(&database, &into.join(parts::DATABASE), about.at, &from).await;
    database.leave().await;
    done?;
    Ok(Restored { snapshot, at: about.at, files, config })
}

async fn fill(database: &Database, file: &Path, at: DateTime<Utc>, from: &Saved) -> Result<()> {
    let (tables,): (i64,) = sqlx::query_as("select count(*) from pg_tables where schemaname = 'public'")
        .fetch_one(&mut *database.db.acquire().await?)
        .await?;
    if tables > 0 {
        return Err(OwnBackupError::NotEmpty);
    }
    tools::bring_back(database.address(), file).await?;
    // What an older version of Corpus had is brought up to date; of a later one nothing is known here.
    database.migrate().await?;
    Ok(own_backups::restored(&database.db, at, &told(from)).await?)
}
