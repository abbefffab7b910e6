//! `pg_dump` and `pg_restore`: what PostgreSQL itself takes and brings back a database with.
#![expect(clippy::disallowed_methods, reason = "running PostgreSQL's own tools is this module's purpose")]

use std::path::Path;
use std::process::Stdio;

use percent_encoding::percent_decode_str;
use secrecy::{ExposeSecret, SecretString};
use thiserror::Error;
use tokio::process::Command;
use url::{Url, form_urlencoded};

use crate::postgres;

/// Whose rows are not taken along: a session that was ended since must not be good again, and nobody is to wait for a server
/// that is lost.
const NOT_TAKEN: [&str; 2] = ["--exclude-table-data=public.tower_sessions", "--exclude-table-data=public.leases"];

/// A tool can't be run, or failed.
#[derive(Debug, Error)]
pub enum ToolError {
    /// It is not installed.
    #[error("{0} is not found in /usr/lib/postgresql/*/bin or PATH: install the package postgresql-client")]
    Missing(&'static str),
    /// It did not start.
    #[error("{tool} could not be started")]
    NotStarted {
        /// Which.
        tool: &'static str,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// It says no.
    #[error("{tool} failed: {output}")]
    Failed {
        /// Which.
        tool: &'static str,
        /// The end of what it said.
        output: String,
    },
}

/// Where a database is, as the tools take it.
#[derive(Debug, Clone)]
pub struct Address {
    /// `postgres://…`, without a password: arguments can be read by everybody on the machine.
    pub url: String,
    /// The password.
    pub password: Option<SecretString>,
}

impl Address {
    /// The one of a configured database.
    pub fn of(url: &SecretString) -> Self {
        let Ok(mut parsed) = Url::parse(url.expose_secret()) else {
            return Self { url: String::new(), password: None };
        };
        let password = parsed.password().map(|text| percent_decode_str(text).decode_utf8_lossy().into_owned().into());
        // Fails for addresses that can have none.
        let _ = parsed.set_password(None);
        Self { url: parsed.into(), password }
    }

    /// The one of a private PostgreSQL that listens in a folder.
    pub fn at_socket(folder: &Path) -> Self {
        let host = folder.display().to_string();
        let parameters = form_urlencoded::Serializer::new(String::new())
            .append_pair("host", &host)
            .append_pair("user", "corpus")
            .finish();
        Self { url: format!("postgresql:///corpus?{}", parameters.replace('+', "%20")), password: None }
    }
}

/// Writes the whole database into a file, as it was at one moment.
pub async fn dump(from: &Address, file: &Path) -> Result<(), ToolError> {
    let mut args = vec!["--format=custom".to_owned()];
    args.extend(NOT_TAKEN.map(str::to_owned));
    // Uncompressed: the repository compresses, and finds again what did not change.
    args.extend(["--compress=0", "--no-owner", "--no-privileges"].map(str::to_owned));
    args.extend([format!("--file={}", file.display()), format!("--dbname={}", from.url)]);
    run("pg_dump", &args, from).await
}

/// Brings a database back into an empty one, whole or not at all.
pub async fn bring_back(to: &Address, file: &Path) -> Result<(), ToolError> {
    let mut args =
        ["--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction"].map(str::to_owned).to_vec();
    args.extend([format!("--dbname={}", to.url), file.display().to_string()]);
    run("pg_restore", &args, to).await
}

async fn run(tool: &'static str, args: &[String], address: &Address) -> Result<(), ToolError> {
    let binary = postgres::client_tool(tool).ok_or(ToolError::Missing(tool))?;
    let mut command = Command::new(binary);
    command.args(args).env_remove("DATABASE_URL").stdin(Stdio::null()).kill_on_drop(true);
    if let Some(password) = &address.password {
        command.env("PGPASSWORD", password.expose_secret());
    }
    let done = command.output().await.map_err(|source| ToolError::NotStarted { tool, source })?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let lines: Vec<&str> = said.lines().collect();
    let output = lines.get(lines.len().saturating_sub(5)..).unwrap_or_default().join("\n");
    Err(ToolError::Failed { tool, output })
}
