//! What is odd about a tree, and does not keep it from going live: it is told in the push and on the page, since whoever
//! pushed may not have meant it.

use std::fs;
use std::path::Path;

use crate::project::checks::Prover;
use crate::project::configuration::Check;
use crate::project::run::Run;
use crate::project::steps::{Span, Stop};

/// The folders of recipes.
const FOLDERS: [&str; 2] = [".corpus", ".salt"];
/// So many checks are named.
const NAMED: usize = 5;

impl Run<'_> {
    /// Tells what is odd about the tree that is there now.
    pub fn warn_of_tree(&self) {
        let now = self.configuration.checks().unwrap_or_default();
        let dropped = dropped(&self.checks_before(), &now, &self.prover(false));
        for text in links(&self.layout.tree()).into_iter().chain(dropped) {
            self.journal().warn(&text);
        }
    }

    /// Tells that what is live could not be put back, before anything is changed. It is gone on: else nothing could ever be
    /// deployed that mends it.
    pub fn warn_of_way_back(&self, span: &Span) -> Result<(), Stop> {
        if self.target.previous.is_none() {
            return Ok(());
        }
        let rendered = self.render(span, self.found()?.to_go_back());
        if self.cancel.is_set() {
            return rendered;
        }
        if let Err(Stop { recipe, message, .. }) = rendered {
            let recipe = recipe.unwrap_or_default();
            self.journal().warn(&format!("what is live could not be put back, should this fail: {recipe}: {message}"));
        }
        Ok(())
    }
}

/// Folders of recipes that are links: a tree that was copied by a tool that follows none has lost its recipes.
fn links(tree: &Path) -> Vec<String> {
    let inside = fs::canonicalize(tree);
    let odd = FOLDERS.iter().filter_map(|name| {
        let folder = tree.join(name);
        fs::symlink_metadata(&folder).ok().filter(fs::Metadata::is_symlink)?;
        let to = fs::read_link(&folder).unwrap_or_default();
        let leads = match (fs::canonicalize(&folder), &inside) {
            (Ok(real), Ok(inside)) if real.is_dir() && real.starts_with(inside) => "what is there is taken",
            (Ok(_), _) => "it is no folder of the tree: no recipe in it runs",
            (Err(_), _) => "it is not there: there are no recipes in it",
        };
        Some(format!("{name} is a link to {}; {leads}", to.display()))
    });
    odd.collect()
}

/// What proved the release that is live and would not prove this one.
fn dropped(before: &[Check], now: &[Check], prover: &Prover<'_>) -> Option<String> {
    if now.len() >= before.len() {
        return None;
    }
    let gone: Vec<String> =
        before.iter().filter(|check| !now.contains(check)).map(|check| prover.words(check)).collect();
    let more = match gone.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let named = gone.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
    let (had, has) = (before.len(), now.len());
    Some(format!(
        "it has fewer checks than what was live ({has}, before {had}): it is not proven any more that {named}{more}"
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn folders_that_are_links() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path();
        fs::create_dir_all(tree.join("deploy/corpus")).unwrap();
        assert_eq!(links(tree), Vec::<String>::new());
        symlink("deploy/corpus", tree.join(".corpus")).unwrap();
        symlink("/nowhere/at/all", tree.join(".salt")).unwrap();
        let told = links(tree);
        assert_eq!(told[0], ".corpus is a link to deploy/corpus; what is there is taken");
        assert_eq!(told[1], ".salt is a link to /nowhere/at/all; it is not there: there are no recipes in it");
        fs::remove_file(tree.join(".salt")).unwrap();
        symlink("/etc", tree.join(".salt")).unwrap();
        assert!(links(tree)[1].ends_with("no folder of the tree: no recipe in it runs"), "{:?}", links(tree));
    }
}
