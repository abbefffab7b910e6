//! The sets of recipes that a project can begin with, by name, and how one comes into a tree.
//!
//! Only what is missing is written: a tree that has a recipe of that name has its own. `generic` is what makina-states wrote into
//! each project; the others are those of our examples. A tree belongs to an account that may change it while we write, so each
//! path is resolved within it.

use std::os::unix::fs::MetadataExt;

use crate::failure::{At, Failure};
use crate::guest_root::{GuestRoot, Owner};
use crate::project::layout::Layout;

/// A file of a set: where, whether it is executed, and what it says.
type File = (&'static str, bool, &'static str);

macro_rules! example {
    ($path:literal) => {
        include_str!(concat!("../../../../examples/", $path))
    };
}

const GENERIC: &[File] = &[
    ("/.salt/PILLAR.sample", false, "# The values of this project, and what they are unless somebody sets them.\n{}\n"),
    ("/.salt/archive.sls", false, "include:\n  - makina-states.projects.2.generic.archive\n"),
    ("/.salt/fixperms.sls", false, "include:\n  - makina-states.projects.2.generic.fixperms\n"),
    ("/.salt/notify.sls", false, "include:\n  - makina-states.projects.2.generic.notify\n"),
    ("/.salt/rollback.sls", false, "include:\n  - makina-states.projects.2.generic.rollback\n"),
];
const STATIC: &[File] = &[
    ("/.corpus/defaults.yaml", false, example!("static-site/.corpus/defaults.yaml")),
    ("/.corpus/10_web", true, example!("static-site/.corpus/10_web")),
    ("/.corpus/rollback", true, example!("static-site/.corpus/rollback")),
];
const PYTHON: &[File] = &[
    ("/.corpus/defaults.yaml", false, example!("python-app/.corpus/defaults.yaml")),
    ("/.corpus/10_venv", true, example!("python-app/.corpus/10_venv")),
    ("/.corpus/20_migrate", true, example!("python-app/.corpus/20_migrate")),
    ("/.corpus/30_service", true, example!("python-app/.corpus/30_service")),
    ("/.corpus/archive", true, example!("python-app/.corpus/archive")),
    ("/.corpus/rollback", true, example!("python-app/.corpus/rollback")),
];
const SETS: &[(&str, &[File])] = &[("generic", GENERIC), ("python", PYTHON), ("static", STATIC)];

/// What the sets are called.
pub fn names() -> String {
    SETS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// The recipes of a set that the tree has not are in it; tells which these are.
pub fn write_missing(layout: &Layout, set: &str) -> Result<Vec<&'static str>, Failure> {
    let files = SETS.iter().find(|(name, _)| *name == set).map(|(_, files)| *files);
    let files = files.ok_or_else(|| Failure::Invalid(format!("there is no set {set:?} of recipes: {}", names())))?;
    let tree = layout.tree();
    let about = std::fs::metadata(&tree).at("look at", &tree)?;
    let root = GuestRoot::folder(&tree)?;
    let mut written = Vec::new();
    for (path, executed, text) in files {
        let at = path.parse()?;
        if root.read(&at)?.is_some() {
            continue;
        }
        root.ensure(&at, text, Owner::of(about.uid(), about.gid(), if *executed { 0o755 } else { 0o644 }))?;
        written.push(path.trim_start_matches('/'));
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn only_what_is_missing_is_written_and_within_the_tree() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path(), &"shop".parse().unwrap());
        let tree = layout.tree();
        fs::create_dir_all(tree.join(".corpus")).unwrap();
        fs::write(tree.join(".corpus/10_venv"), "my own").unwrap();
        let written = write_missing(&layout, "python").unwrap();
        assert!(written.contains(&".corpus/30_service") && !written.contains(&".corpus/10_venv"), "{written:?}");
        assert_eq!(fs::read_to_string(tree.join(".corpus/10_venv")).unwrap(), "my own");
        let mode = |path| fs::metadata(tree.join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(".corpus/archive"), mode(".corpus/defaults.yaml")), (0o755, 0o644));
        assert!(write_missing(&layout, "python").unwrap().is_empty());
        assert!(write_missing(&layout, "cobol").unwrap_err().to_string().contains("generic, python, static"));
        // A folder that is a link to elsewhere is one within the tree, or none.
        let outside = folder.path().join("outside");
        fs::create_dir_all(&outside).unwrap();
        symlink(&outside, tree.join(".salt")).unwrap();
        let _ = write_missing(&layout, "generic");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    }
}
