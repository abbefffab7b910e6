//! Where things are on a host. The root is `/`, except in tests.

use std::path::{Path, PathBuf};

use corpus_domain::{GuestName, ImageName};

/// A host's file system, seen from its root.
#[derive(Debug, Clone)]
pub struct Host {
    root: PathBuf,
}

impl Default for Host {
    fn default() -> Self {
        Self { root: PathBuf::from("/") }
    }
}

impl Host {
    /// A host below `root`, for tests.
    pub fn below(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The place of an absolute path.
    pub fn path(&self, absolute: impl AsRef<Path>) -> PathBuf {
        let path = absolute.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The folder of all that Corpus keeps on the host.
    pub fn corpus(&self) -> PathBuf {
        self.path("/var/lib/corpus")
    }

    /// The folder of the rendered configuration.
    pub fn configuration(&self) -> PathBuf {
        self.path("/etc/corpus")
    }

    /// The folder of an image.
    pub fn image(&self, name: &ImageName) -> PathBuf {
        self.corpus().join("images").join(name.as_str())
    }

    /// The folder of what LXC reads and starts for each guest: the agent itself, and a list of system calls.
    pub fn lxc_tools(&self) -> PathBuf {
        self.corpus().join("lxc")
    }

    /// LXC's folder, one folder a guest.
    pub fn lxc(&self) -> PathBuf {
        self.path("/var/lib/lxc")
    }

    /// The folder of an LXC guest.
    pub fn lxc_guest(&self, name: &GuestName) -> PathBuf {
        self.lxc().join(name.as_str())
    }
}
