//! `serve-git`: a member's git, authenticated and authorized elsewhere, on a repository here.

use std::ffi::OsString;

use corpus_domain::{DeploymentId, ProjectName};

use super::pusher::{BY, is_plain};
use super::receive::DEPLOYMENT;
use crate::failure::Failure;
use crate::project::git::{Repository, install};
use crate::project::layout::Layout;
use crate::runner;

/// A request to serve git: `NAME receive-pack|upload-pack project|pillar --by LOGIN --deployment UUID`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    project: ProjectName,
    program: &'static str,
    repository: Repository,
    by: String,
    deployment: DeploymentId,
}

impl Served {
    /// Reads the words of a command line; all of them are needed.
    pub fn parse(words: &[&str]) -> Result<Self, Failure> {
        let [project, service, repository, "--by", by, "--deployment", deployment] = words else {
            let usage = "NAME receive-pack|upload-pack project|pillar --by LOGIN --deployment UUID";
            return Err(Failure::Invalid(format!("usage: corpus-agent project serve-git {usage}")));
        };
        let program = match *service {
            "receive-pack" => "git-receive-pack",
            "upload-pack" => "git-upload-pack",
            _ => return Err(Failure::Invalid(format!("{service:?} is no service of git that is served here"))),
        };
        if !is_plain(by) {
            return Err(Failure::Invalid("a login is one line of 100 bytes at most".into()));
        }
        let deployment = deployment.parse().map_err(|_| Failure::Invalid(format!("{deployment:?} is no UUID")))?;
        let repository = repository.parse()?;
        Ok(Self { project: project.parse()?, program, repository, by: (*by).to_owned(), deployment })
    }

    /// The project.
    pub fn project(&self) -> &ProjectName {
        &self.project
    }
}

/// Becomes git; returns only what kept it from that.
pub fn serve(layout: &Layout, served: &Served) -> Failure {
    let repository = served.repository.path(layout);
    if !layout.plan().exists() || !repository.join("HEAD").exists() {
        return Failure::Missing(format!("there is no project {} here", served.project));
    }
    if let Err(failure) = install::sweep(&repository) {
        return failure;
    }
    let environment: [(&str, OsString); 2] =
        [(BY, served.by.clone().into()), (DEPLOYMENT, served.deployment.to_string().into())];
    runner::become_command(served.program, &[repository.into()], &environment)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0198a7c2-93b6-7c30-8f0e-5b1e00000001";

    #[test]
    fn the_words_are_checked() {
        let words = ["shop", "receive-pack", "pillar", "--by", "mia", "--deployment", ID];
        let served = Served::parse(&words).unwrap();
        assert_eq!((served.program, served.repository), ("git-receive-pack", Repository::Pillar));
        let wrong = [(0, "../etc"), (1, "upload-archive"), (2, "data"), (3, "--as"), (4, "a\nb"), (4, ""), (6, "1")];
        for (at, word) in wrong {
            let mut words = words;
            words[at] = word;
            assert!(Served::parse(&words).is_err(), "{word:?}");
        }
        assert!(Served::parse(&words[..6]).is_err());
    }
}
