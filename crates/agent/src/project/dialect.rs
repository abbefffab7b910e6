//! Projects that were made for makina-states, of which Corpus comes, deploy as they are.
//!
//! Such a tree's `.salt` speaks of `ms_project`: a mapping of where the project is and, below `data`, of its own values. Its
//! sample, and its pillar, are templates whose values lie below `makina-projects.NAME`; its recipes ask `mc_*` modules of Salt,
//! and include each other as `makina-projects.NAME.x`. What these projects rely on lies in `dialect/files`, is put beside
//! Salt on the guest, and used when a tree speaks so; every other tree sees nothing of it. Formulas, as of nginx, stay their
//! owners': they are found below `/srv/salt`, and below the folders of `salt_roots`.

pub mod layers;
pub mod stock;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::failure::{At, Failure};
use crate::files;
use crate::host::Host;
use crate::project::layout::Layout;
use crate::runner::Argv;
use crate::task::Task;

/// Where what such projects rely on lies on a guest.
const FOLDER: &str = "/opt/corpus/dialect";
/// The roots of states and pillars as such projects know them.
const ROOTS: [&str; 2] = ["/srv/salt", "/srv/pillar"];
/// The root of states below that folder, which is looked at last, and what of it every such project has.
pub const LAST_ROOT: &str = "roots";
const GENERIC: &str = "makina-states/projects/2/generic";
/// Below these.
const LINKS: &str = "makina-projects";
/// Those who edit files of any project.
const GROUP: &str = "editor";
/// The program that resets permissions.
const RESET: &str = "reset-perms";
/// A larger recipe is read no further.
const READ: u64 = 1 << 20;

/// By what a tree is known that speaks it: the mapping that its recipes ask for, and where a sample has its values.
const RECIPES_SAY: &str = "ms_project";
const SAMPLES_SAY: [&str; 2] = ["makina-projects.", "makina-states."];

macro_rules! files {
    ($($name:literal),* $(,)?) => { [$(($name, include_str!(concat!("dialect/files/", $name)))),*] };
}

/// What such projects rely on.
const FILES: [(&str, &str); 17] = files![
    "corpus_dialect.py",
    "reset-perms",
    "modules/mc_apache.py",
    "modules/mc_locations.py",
    "modules/mc_pkgs.py",
    "modules/mc_project.py",
    "modules/mc_usergroup.py",
    "modules/mc_utils.py",
    "states/buildout.py",
    "states/mc_git.py",
    "states/mc_proxy.py",
    "states/webutil.py",
    "roots/makina-states/_macros/h.jinja",
    "roots/makina-states/projects/2/generic/archive.sls",
    "roots/makina-states/projects/2/generic/fixperms.sls",
    "roots/makina-states/projects/2/generic/notify.sls",
    "roots/makina-states/projects/2/generic/rollback.sls",
];

/// Whether the recipes of a tree are of this kind.
pub fn is_spoken(tree: &Path) -> bool {
    let folder = tree.join(".salt");
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| {
        let text = || beginning(&path).unwrap_or_default();
        if path.file_name().is_some_and(|name| name == "PILLAR.sample") {
            return text().lines().any(|line| SAMPLES_SAY.iter().any(|word| line.starts_with(word)));
        }
        path.extension().is_some_and(|extension| extension == "sls") && text().contains(RECIPES_SAY)
    })
}

fn beginning(path: &Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let mut text = Vec::new();
    fs::File::open(path)?.take(READ).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// What was put aside of a project, for recipes that ask for it.
#[derive(Debug, Clone, Copy)]
pub struct Kept<'a> {
    /// In which folder.
    pub archive: &'a Path,
    /// Whether it is being put back.
    pub goes_back: bool,
}

/// What a run of Salt for such a project is told.
#[derive(Debug, Clone)]
pub struct Dialect {
    /// Where what it relies on lies.
    pub folder: PathBuf,
    /// The root of states that all such projects of the guest share.
    pub root: PathBuf,
    /// What the run is for.
    pub about: Value,
}

impl Dialect {
    /// Brings what such projects rely on.
    pub fn bring(layout: &Layout, host: &Host, kept: &Kept<'_>) -> Result<Self, Failure> {
        let folder = host.path(FOLDER);
        for (name, text) in FILES {
            let path = folder.join(name);
            let parent = path.parent().unwrap_or(&folder);
            fs::create_dir_all(parent).at("make", parent)?;
            files::ensure(&path, text, if name == RESET { 0o755 } else { 0o644 })?;
        }
        let about = json!({"passwords": layout.passwords(), "archive": kept.archive, "rollback": kept.goes_back});
        Ok(Self { folder, root: root(layout, ROOTS[0]), about })
    }
}

/// A root of states or pillars; in a test it is below that of the projects.
fn root(layout: &Layout, of: &str) -> PathBuf {
    if layout.is_standard() { of.into() } else { layout.root().join(format!(".{}", of.trim_start_matches('/'))) }
}

/// The links by which recipes find their own project, each with where it leads. In the last root, so that it is where the tree
/// has none: the recipes that makina-states wrote into each project, which others include (`makina-projects.NAME.fixperms`).
fn links(layout: &Layout, host: &Host) -> [(PathBuf, PathBuf); 3] {
    let below = |root: PathBuf| root.join(LINKS).join(layout.project().as_str());
    let [states, pillars] = ROOTS.map(|of| below(root(layout, of)));
    let last = host.path(FOLDER).join(LAST_ROOT);
    [(states, layout.tree().join(".salt")), (pillars, layout.pillar()), (below(last.clone()), last.join(GENERIC))]
}

/// The guest is as such a project expects it: its links are there, and the group of those who edit files.
pub fn settle(layout: &Layout, task: &Task<'_>) -> Result<(), Failure> {
    for (link, target) in links(layout, task.host) {
        if fs::read_link(&link).is_ok_and(|leads| leads == target) {
            continue;
        }
        let folder = link.parent().unwrap_or(&link);
        fs::create_dir_all(folder).at("make", folder)?;
        let beside = link.with_extension("new");
        files::remove(&beside)?;
        symlink(&target, &beside).at("make", &beside)?;
        fs::rename(&beside, &link).at("make", &link)?;
    }
    let groups = files::read(Path::new("/etc/group"))?.unwrap_or_default();
    if layout.is_standard() && !groups.lines().any(|line| line.split(':').next() == Some(GROUP)) {
        Argv::new("groupadd").args(["--system", GROUP]).run(task)?;
    }
    Ok(())
}

/// The links are gone.
pub fn forget(layout: &Layout, host: &Host) -> Result<(), Failure> {
    for (link, _) in links(layout, host) {
        if fs::symlink_metadata(&link).is_ok_and(|about| about.is_symlink()) {
            files::remove(&link)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_speaks_it_by_its_recipes_or_its_sample() {
        let spoken = |name: &str, text: &str| {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir(folder.path().join(".salt")).unwrap();
            fs::write(folder.path().join(".salt").join(name), text).unwrap();
            is_spoken(folder.path())
        };
        assert!(spoken("10_x.sls", "{% set cfg = opts['ms_project'] %}"));
        assert!(spoken("PILLAR.sample", "# values\nmakina-projects.projectname:\n  data: {}\n"));
        assert!(!spoken("PILLAR.sample", "# as of makina-projects.x\ndatabase: {host: a}\n"));
        assert!(!spoken("10_x.sls", "a: {test.nop: []}\n") && !spoken("README", "ms_project"));
        assert!(!is_spoken(Path::new("/nonexistent")));
    }

    #[test]
    fn a_guest_is_settled_for_a_project_and_forgets_it() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path(), &"shop".parse().unwrap());
        let host = Host::below(folder.path());
        crate::task::test::with_task(&host, |task| {
            for _ in 0..2 {
                settle(&layout, task).unwrap();
            }
        });
        let link = folder.path().join(".srv/salt/makina-projects/shop");
        assert_eq!(fs::read_link(&link).unwrap(), layout.tree().join(".salt"));
        let last = host.path(FOLDER).join("roots/makina-projects/shop");
        assert!(fs::read_link(&last).unwrap().ends_with(GENERIC));
        forget(&layout, &host).unwrap();
        assert!([link, last].iter().all(|link| fs::symlink_metadata(link).is_err()));
    }
}
