//! The recipes of a project: `.salt/*.sls` for Salt, and the executables of `.corpus/`.
//!
//! What runs in the install phase runs in the order of its names, of both folders together. A folder
//! called as the environment, in either, has recipes for that one: they come besides, or in place of
//! those of the same name. `archive`, `rollback`, `fixperms` and `notify`, before any extension,
//! belong to the phases of these names; `pre_archive` and `post_archive` run around the first of
//! them, and executables called `backup` in no deployment at all: they dump what a backup of the
//! guest is to hold ([`dumps`](crate::project::dumps)). Nor do `task_*.sls`, which people run when
//! they want to ([`tasks`](crate::project::tasks)), and those of makina-states that only copy the
//! tree once more ([`stock`]). A recipe is a file of the tree: a link that leads out of it is not
//! followed.
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

use corpus_domain::{Environment, Phase};

use crate::failure::{At, Failure};
use crate::project::dialect::stock;

/// How the name of a task begins.
pub const TASK: &str = "task_";

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
    /// Finds the recipes that a tree has for an environment.
    pub fn find(tree: &Path, environment: Environment) -> Result<Self, Failure> {
        let mut found = Self::default();
        let inside = fs::canonicalize(tree).at("find", tree)?;
        for (folder, salt) in [(".corpus", false), (".salt", true)] {
            let folder = tree.join(folder);
            found.find_in(&folder, &inside, salt)?;
            found.find_in(&folder.join(environment.as_str()), &inside, salt)?;
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
                let recipe = Recipe { name, path, salt };
                if is_stock(&recipe) {
                    self.ignored.push(format!("{} only copies the tree, as Corpus does itself", recipe.name));
                } else {
                    self.recipes.retain(|other| (&other.name, other.salt) != (&recipe.name, salt));
                    self.recipes.push(recipe);
                }
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

    /// Those that are run around what is archived, in order.
    pub fn around_archive(&self, when: Around) -> impl Iterator<Item = &Recipe> {
        self.recipes.iter().filter(move |recipe| word(recipe) == when.word())
    }

    /// Those of Salt that a deployment runs later than install, or only when it has to go back.
    pub fn later(&self) -> impl Iterator<Item = &Recipe> {
        self.recipes.iter().filter(|recipe| {
            let around = [Around::Before, Around::After].iter().any(|when| word(recipe) == when.word());
            recipe.salt && (around || belongs_to(recipe).is_some_and(|phase| phase != Phase::Install))
        })
    }

    /// Those of Salt that it takes to go back.
    pub fn to_go_back(&self) -> impl Iterator<Item = &Recipe> {
        let back = [Some(Phase::Rollback), Some(Phase::Fixperms)];
        self.recipes.iter().filter(move |recipe| recipe.salt && back.contains(&belongs_to(recipe)))
    }

    /// Those that dump what a backup is to hold, in order.
    pub fn of_backups(&self) -> impl Iterator<Item = &Recipe> {
        self.recipes.iter().filter(|recipe| is_of_backups(recipe))
    }

    /// Those that people run when they want to, in order.
    pub fn tasks(&self) -> impl Iterator<Item = &Recipe> {
        self.recipes.iter().filter(|recipe| is_task(recipe))
    }
}

/// When a recipe runs that is not archive's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Around {
    /// Before anything of what is live is copied.
    Before,
    /// When that is done, or could not be.
    After,
}

impl Around {
    const fn word(self) -> &'static str {
        match self {
            Self::Before => "pre_archive",
            Self::After => "post_archive",
        }
    }
}

/// A recipe's name before any extension.
fn word(recipe: &Recipe) -> &str {
    recipe.name.split('.').next().unwrap_or_default()
}

fn is_of_backups(recipe: &Recipe) -> bool {
    word(recipe) == "backup" && !recipe.salt
}

fn is_task(recipe: &Recipe) -> bool {
    recipe.salt && recipe.name.starts_with(TASK)
}

/// Whether it is for a phase in which nothing is left to do for it.
fn is_stock(recipe: &Recipe) -> bool {
    let copies = matches!(belongs_to(recipe), Some(Phase::Archive | Phase::Rollback)) && recipe.salt;
    copies && fs::read_to_string(&recipe.path).is_ok_and(|text| stock::is_stock(&text))
}

fn is_recipe(path: &Path, about: &fs::Metadata, salt: bool) -> bool {
    let executable = about.permissions().mode() & 0o111 != 0;
    about.is_file() && if salt { path.extension().is_some_and(|ext| ext == "sls") } else { executable }
}

/// The phase that runs it, if it is of a deployment.
fn belongs_to(recipe: &Recipe) -> Option<Phase> {
    match word(recipe) {
        "archive" => Some(Phase::Archive),
        "rollback" => Some(Phase::Rollback),
        "fixperms" => Some(Phase::Fixperms),
        "notify" => Some(Phase::Notify),
        word if word == Around::Before.word() || word == Around::After.word() => None,
        _ if is_of_backups(recipe) || is_task(recipe) => None,
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
            ".salt/task_cron.sls",
            ".salt/pre_archive.sls",
            ".salt/dev/20_b.sls",
            ".salt/dev/25_d.sls",
            ".salt/prod/26_p.sls",
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
        let found = Recipes::find(folder.path(), Environment::Dev).unwrap();
        let names = |phase| found.of(phase).map(|recipe| recipe.name.as_str()).collect::<Vec<_>>();
        assert_eq!(names(Phase::Install), ["10_a", "20_b.sls", "25_d.sls", "30_c.py", "backup.sls"]);
        assert!(found.of(Phase::Install).nth(1).unwrap().path.ends_with(".salt/dev/20_b.sls"));
        let around = |when| found.around_archive(when).map(|recipe| recipe.name.as_str()).collect::<Vec<_>>();
        assert_eq!((around(Around::Before), around(Around::After)), (vec!["pre_archive.sls"], vec![]));
        assert_eq!(found.later().count(), 2);
        assert_eq!(found.to_go_back().count(), 0);
        assert_eq!(found.tasks().map(|recipe| recipe.name.as_str()).collect::<Vec<_>>(), ["task_cron.sls"]);
        assert_eq!(found.of_backups().map(|recipe| recipe.name.as_str()).collect::<Vec<_>>(), ["backup.sh"]);
        assert_eq!((names(Phase::Rollback), names(Phase::Notify)), (vec!["rollback.sh"], vec!["notify.sls"]));
        let ignored = ["15_out leads out of the project's tree", "README is no .sls", "notes.txt is not executable"];
        assert_eq!(found.ignored, ignored);
    }
}
