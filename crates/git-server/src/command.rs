//! What a git client asks for in its `exec` request, read without a shell.
//!
//! Git sends one command and one path, quoted as its `sq_quote_buf` does. Neither a project nor an
//! environment has a character that needs quoting inside, so anything else is refused, not unquoted.

use corpus_domain::{GitService, Repository};

use crate::access::RepositoryPath;

/// The longest request that is looked at.
const MAX_LENGTH: usize = 200;

/// A push or fetch, as a client asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitCommand {
    /// Which way.
    pub(crate) service: GitService,
    /// Where; none when no repository can have that path.
    pub(crate) path: Option<RepositoryPath>,
}

impl GitCommand {
    /// Reads the request; none when it is anything but git's.
    pub(crate) fn parse(request: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(request).ok().filter(|text| text.len() <= MAX_LENGTH)?;
        let (program, quoted) = text.split_once(' ')?;
        let service = match program {
            "git-receive-pack" => GitService::ReceivePack,
            "git-upload-pack" => GitService::UploadPack,
            _ => return None,
        };
        let path = unquoted(quoted)?;
        Some(Self { service, path: repository_path(path) })
    }
}

/// The path within its quotes, or without any; none when it is not one plain word.
fn unquoted(quoted: &str) -> Option<&str> {
    let path = match quoted.strip_prefix('\'') {
        Some(rest) => rest.strip_suffix('\'')?,
        None => quoted,
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._/".contains(&b);
    (!path.is_empty() && path.bytes().all(plain)).then_some(path)
}

fn repository_path(path: &str) -> Option<RepositoryPath> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    let path = path.strip_suffix(".git").unwrap_or(path);
    let mut parts = path.split('/');
    let project = parts.next()?.parse().ok()?;
    let environment = parts.next()?.parse().ok()?;
    let repository = match parts.next() {
        None => Repository::Project,
        Some("pillar") => Repository::Pillar,
        Some(_) => return None,
    };
    parts.next().is_none().then_some(RepositoryPath { project, environment, repository })
}

#[cfg(test)]
mod tests {
    use corpus_domain::Environment;
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Option<GitCommand> {
        GitCommand::parse(text.as_bytes())
    }

    #[test]
    fn what_git_sends() {
        let path = |repository| {
            Some(RepositoryPath { project: "shop".parse().unwrap(), environment: Environment::Prod, repository })
        };
        for (given, service, repository) in [
            ("git-receive-pack '/shop/prod'", GitService::ReceivePack, Repository::Project),
            ("git-receive-pack 'shop/prod'", GitService::ReceivePack, Repository::Project),
            ("git-receive-pack shop/prod.git", GitService::ReceivePack, Repository::Project),
            ("git-upload-pack '/shop/prod/'", GitService::UploadPack, Repository::Project),
            ("git-upload-pack '/shop/prod/pillar.git'", GitService::UploadPack, Repository::Pillar),
        ] {
            assert_eq!(parse(given), Some(GitCommand { service, path: path(repository) }), "{given}");
        }
    }

    #[test]
    fn paths_that_lead_nowhere() {
        for path in
            ["shop", "shop/prod/x", "shop/prod/pillar/x", "shop/live", "Shop/prod", "../prod", "//shop/prod", "."]
        {
            let command = parse(&format!("git-receive-pack '{path}'"));
            assert_eq!(command, Some(GitCommand { service: GitService::ReceivePack, path: None }), "{path}");
        }
    }

    #[test]
    fn anything_else_is_not_gits() {
        for given in [
            "",
            "git-receive-pack",
            "git-receive-pack ",
            "git-receive-pack  'shop/prod'",
            "git-receive-pack 'shop/prod",
            "git-receive-pack shop/prod'",
            "git-receive-pack 'shop/prod' x",
            "git-receive-pack 'shop/prod';id",
            "git-receive-pack 'shop'\\''/prod'",
            "git-receive-pack \"shop/prod\"",
            "git-receive-pack '~/shop'",
            "git-receive-pack --stateless-rpc 'shop/prod'",
            "git-receive-pack '$(id)/prod'",
            "git-receive-pack 'shop/prod\n'",
            "git-upload-archive 'shop/prod'",
            "git receive-pack 'shop/prod'",
            " git-receive-pack 'shop/prod'",
            "bash",
            "scp -t /",
        ] {
            assert_eq!(parse(given), None, "{given:?}");
        }
        assert_eq!(GitCommand::parse(b"git-receive-pack '\xff'"), None);
        assert_eq!(parse(&format!("git-receive-pack '{}'", "a".repeat(300))), None);
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = GitCommand::parse(&bytes);
        }

        #[test]
        fn what_is_read_is_one_of_ours(path in "[a-z/.']{0,24}") {
            if let Some(GitCommand { path: Some(at), .. }) = parse(&format!("git-upload-pack {path}")) {
                prop_assert!(path.trim_start_matches(['\'', '/']).starts_with(&at.to_string()));
            }
        }
    }
}
