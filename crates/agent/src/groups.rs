//! The control groups of a host, whatever the version of their tree.
//!
//! On cgroup v2 there is one tree, and a controller is one of its words; on v1 each controller
//! has a tree of its own; a hybrid host has both. What holds a guest is looked up by controller,
//! so that nobody else has to know which of the three a host is.

use std::fs;
use std::path::{Path, PathBuf};

use corpus_domain::GuestName;

use crate::host::Host;

const TREE: &str = "/sys/fs/cgroup";
/// The folder of all groups of ours in each tree.
const OURS: &str = "corpus";
/// The group that a guest's limits are on, below the guest's own folder. What the guest sees as
/// the root of its tree is below it: root in the guest can't write here.
const OUTER: &str = "payload";

/// Which of the kernel's two interfaces a tree speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// One tree a controller.
    V1,
    /// One tree for all.
    V2,
}

/// A tree of control groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// Where it is mounted.
    pub root: PathBuf,
    /// What it speaks.
    pub version: Version,
}

impl Tree {
    /// The tree of a controller, by its name in v1 and in v2; none when the kernel has no such controller.
    pub fn of(host: &Host, v1: &str, v2: &str) -> Option<Self> {
        let unified = ["", "unified"].map(|folder| host.path(TREE).join(folder));
        let has = |root: &&PathBuf| words(&root.join("cgroup.controllers")).iter().any(|word| word == v2);
        if let Some(root) = unified.iter().find(has) {
            return Some(Self { root: root.clone(), version: Version::V2 });
        }
        let root = host.path(TREE).join(v1);
        root.join("cgroup.procs").exists().then_some(Self { root, version: Version::V1 })
    }

    /// A group of ours that is there to see which files the tree's groups have. A v2 tree gives its
    /// controllers to a group's children only when told to.
    pub fn sample(&self) -> PathBuf {
        if self.version == Version::V2 {
            for controller in words(&self.root.join("cgroup.controllers")) {
                let _ = fs::write(self.root.join("cgroup.subtree_control"), format!("+{controller}"));
            }
        }
        let group = self.root.join(OURS);
        let _ = fs::create_dir(&group);
        group
    }

    /// The guest's outer group, if it has one: ours by its exact name, or for a guest that was
    /// started before it had limits the one that LXC names after it.
    pub fn outer(&self, name: &GuestName) -> Option<PathBuf> {
        let groups = [format!("{OURS}/{name}/{OUTER}"), format!("lxc.payload.{name}")];
        groups.iter().map(|group| self.root.join(group)).find(|group| group.is_dir())
    }
}

/// The words of a file of the tree.
pub fn words(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// The number in a file of the tree, or the one beside `key` in a file of several lines.
pub fn number(path: &Path, key: Option<&str>) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let value = match key {
        None => text.trim(),
        Some(key) => text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))?.trim(),
    };
    value.parse().ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::files;

    /// Writes files of a tree.
    pub(crate) fn put(host: &Host, files: &[(&str, &str)]) {
        for (path, text) in files {
            files::write(&host.path(TREE).join(path), text, 0o644).unwrap();
        }
    }

    #[test]
    fn a_controller_is_found_in_each_kind_of_tree() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let memory = || Tree::of(&host, "memory", "memory");
        assert_eq!(memory(), None);
        put(&host, &[("memory/cgroup.procs", ""), ("unified/cgroup.controllers", "hugetlb\n")]);
        assert_eq!(memory(), Some(Tree { root: host.path("/sys/fs/cgroup/memory"), version: Version::V1 }));
        put(&host, &[("cgroup.controllers", "cpuset cpu io memory pids\n")]);
        assert_eq!(memory(), Some(Tree { root: host.path("/sys/fs/cgroup/"), version: Version::V2 }));
        assert_eq!(Tree::of(&host, "blkio", "io").map(|tree| tree.version), Some(Version::V2));
        assert_eq!(Tree::of(&host, "rdma", "rdma"), None);
    }

    #[test]
    fn a_guest_has_no_group_of_another_name() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        put(&host, &[("cgroup.controllers", "memory\n"), ("lxc.payload.a.org-1/cgroup.procs", "")]);
        let tree = Tree::of(&host, "memory", "memory").unwrap();
        let name = "a.org".parse().unwrap();
        assert_eq!(tree.outer(&name), None);
        put(&host, &[("lxc.payload.a.org/cgroup.procs", "")]);
        assert_eq!(tree.outer(&name), Some(tree.root.join("lxc.payload.a.org")));
        put(&host, &[("corpus/a.org/payload/cgroup.procs", "")]);
        assert_eq!(tree.outer(&name), Some(tree.root.join("corpus/a.org/payload")));
    }
}
