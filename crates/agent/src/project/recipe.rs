//! The recipes of a project: `.salt/*.sls` for Salt, and the executables of `.corpus/`.
//!
//! What runs in the install phase runs in the order of its names, of both folders together.
//! `archive`, `rollback`, `fixperms` and `notify`, before any extension, belong to the phases of
//! these names, and executables called `backup` to no deployment at all: they dump what a backup of
//! the guest is to hold ([`dumps`](crate::project::dumps)). A recipe is a file of the tree: a link
//! that leads out of it is not followed.
//!
//! A recipe runs as root in the project's tree. Its environment holds `CORPUS_CONFIGURATION` (a
//! JSON file with the whole configuration), `CORPUS_CFG_<KEY>_<KEY>` for each value of it,
//! `CORPUS_PROJECT`, `CORPUS_ENVIRONMENT`, `CORPUS_PROJECT_ROOT`, `CORPUS_PILLAR_ROOT`,
//! `CORPUS_DATA`, `CORPUS_USER`, `CORPUS_PHASE`, `CORPUS_DEPLOYMENT`, `CORPUS_COMMIT`,
//! `CORPUS_ARCHIVE` (a folder for dumps, the same one in archive and rollback), and for notify
//! `CORPUS_STATE` and `CORPUS_REPORT`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use corpus_domain::Phase;

use crate::failure::{At, Failure};

/// A recipe of a project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Recipe {
    /// The name of its file.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    /// Whether it is Salt's.
    pub salt: bool,
}

/// The recipes of a tree.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Recipes {
    recipes: Vec<Recipe>,
    /// Files that lie where recipes do and are none, each with the reason.
    pub ignored: Vec<String>,
}

impl Recipes {
    /// Finds the recipes of a tree.
    pub fn find(tree: &Path) -> Result<Self, Failure> {
        let mut found = Self::default();
        let inside = fs::canonicalize(tree).at("find", tree)?;
        for (folder, salt) in [(".corpus", false), (".salt", true)] {
            found.find_in(&tree.join(folder), &inside, salt)?;
        }
        found.recipes.sort();
        found.ignored.sort();
        Ok(found)
    }

    fn find_in(&mut self, folder: &Path, inside: &Path, salt: bool) -> Result<(), Failure> {
        if !folder.is_dir() {
            return Ok(());
        }
        let known = if salt { "PILLAR.sample" } else { "defaults.yaml" };
        for entry in fs::read_dir(folder).at("list", folder)? {
            let path = entry.at("list", folder)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Ok(about) = fs::metadata(&path) else {
                self.ignored.push(format!("{name} leads nowhere"));
                continue;
            };
            if about.is_dir() || name == known || name.starts_with('.') {
                continue;
            }
            if !fs::canonicalize(&path).is_ok_and(|real| real.starts_with(inside)) {
                self.ignored.push(format!("{name} leads out of the project's tree"));
            } else if is_recipe(&path, &about, salt) {
                self.recipes.push(Recipe { name, path, salt });
            } else {
                let wanted = if salt { "no .sls" } else { "not executable" };
                self.ignored.push(format!("{name} is {wanted}"));
            }
        }
        Ok(())
    }

    /// The recipes that a phase runs, in order.
    pub fn of(&self, phase: Phase) -> impl Iterator<Item = &Recipe> {
        self.recipes.iter().filter(move |recipe| belongs_to(recipe) == Some(phase))
    }

    /// Those that dump what a backup is to hold, in order.
    pub fn of_backups(&self) -> impl Iterator<Item = &Recipe> {
        self.recipes.iter().filter(|recipe| belongs_to(recipe).is_none())
    }
}

fn is_recipe(path: &Path, about: &fs::Metadata, salt: bool) -> bool {
    let executable = about.permissions().mode() & 0o111 != 0;
    about.is_file() && if salt { path.extension().is_some_and(|ext| ext == "sls") } else { executable }
}

/// The phase that runs it, if it is of a deployment.
fn belongs_to(recipe: &Recipe) -> Option<Phase> {
    match recipe.name.split('.').next() {
        Some("archive") => Some(Phase::Archive),
        Some("rollback") => Some(Phase::Rollback),
        Some("fixperms") => Some(Phase::Fixperms),
        Some("notify") => Some(Phase::Notify),
        Some("backup") if !recipe.salt => None,
        _ => Some(Phase::Install),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_folders_in_the_order_of_names() {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str, mode: u32| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        };
        for path in [
            ".salt/20_b.sls",
            ".salt/backup.sls",
            ".salt/notify.sls",
            ".salt/PILLAR.sample",
            ".salt/files/x",
            ".salt/README",
        ] {
            put(path, 0o644);
        }
        for path in [".corpus/10_a", ".corpus/30_c.py", ".corpus/backup.sh", ".corpus/rollback.sh"] {
            put(path, 0o755);
        }
        put(".corpus/notes.txt", 0o644);
        put(".corpus/defaults.yaml", 0o755);
        std::os::unix::fs::symlink("/bin/true", folder.path().join(".corpus/15_out")).unwrap();
        let found = Recipes::find(folder.path()).unwrap();
        let names = |phase| found.of(phase).map(|recipe| recipe.name.as_str()).collect::<Vec<_>>();
        assert_eq!(names(Phase::Install), ["10_a", "20_b.sls", "30_c.py", "backup.sls"]);
        assert_eq!(found.of_backups().map(|recipe| recipe.name.as_str()).collect::<Vec<_>>(), ["backup.sh"]);
        assert_eq!((names(Phase::Rollback), names(Phase::Notify)), (vec!["rollback.sh"], vec!["notify.sls"]));
        let ignored = ["15_out leads out of the project's tree", "README is no .sls", "notes.txt is not executable"];
        assert_eq!(found.ignored, ignored);
    }
}
