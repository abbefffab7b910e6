//! Which names projects get: one that the directory's groups are for would give and get roles that nobody
//! meant, to one that a destroyed project had people still push their code, and some are words of Corpus.

use corpus_domain::ProjectName;
use corpus_gate::{Change, Error, Result};

use crate::Controller;
use crate::store::projects;

/// Names that are paths of ours below `/projects`: nobody's.
const PATHS: [&str; 1] = ["new"];

/// Words that people take for Corpus itself, in the address of a repository or on a page.
const WORDS: [&str; 28] = [
    "admin",
    "api",
    "audit",
    "corpus",
    "corpus-ops",
    "deployments",
    "dns",
    "dns-names",
    "git",
    "guests",
    "health",
    "jobs",
    "keys",
    "login",
    "logout",
    "mail",
    "members",
    "metrics",
    "nodes",
    "ops",
    "pillar",
    "pkg",
    "projects",
    "root",
    "settings",
    "static",
    "system",
    "www",
];

impl Controller {
    /// Refuses a name that is nobody's, or that only operators may give to a project.
    pub(in crate::handlers) async fn may_be_called<O>(&self, change: &Change<O>, name: &ProjectName) -> Result<()> {
        let ops = change.who().ops;
        if PATHS.contains(&name.as_str()) || (!ops && WORDS.contains(&name.as_str())) {
            return Err(Error::field("name", format!("{name} is a word of Corpus itself, choose another")));
        }
        if name.as_str().contains("--") {
            return Err(Error::field(
                "name",
                "Two hyphens in a row stand in the names of previews only, choose another",
            ));
        }
        if ops {
            return Ok(());
        }
        let former = projects::is_former(&mut *change.connection().await?, name).await?;
        if former {
            return Err(Error::field("name", taken(name)));
        }
        let Some(groups) = &self.services.groups else { return Ok(()) };
        match groups.has_groups(name).await {
            Ok(false) => Ok(()),
            Ok(true) => Err(Error::field("name", taken(name))),
            Err(source) => {
                let message = format!(
                    "The directory does not answer, so it is not known whether its groups are for {name}. \
                     Try again in a moment, or ask an operator to make the project."
                );
                Err(Error::Unavailable { message, source })
            }
        }
    }
}

/// The same whatever the reason, since a project that is there is nothing for strangers to know of.
pub(super) fn taken(name: &ProjectName) -> String {
    format!("{name} is taken or reserved already: choose another name, or ask an operator to make the project.")
}
