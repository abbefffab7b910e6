//! The image of guests on volumes: a volume of its own, as large as what is in it, of which theirs are copies.
//!
//! It is made beside and renamed when it is whole, so an agent that ended meanwhile leaves a piece that the next one takes
//! away.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use corpus_domain::Bytes;

use super::{Name, OnVolumes, Use, Volumes, begin, named, read, require_device, require_unused};
use crate::backings::filesystem::{self, sizes};
use crate::backings::{Backing, COPY, Store};
use crate::failure::{At, Failure};
use crate::files;
use crate::host::Host;
use crate::lock::{self as locks, Wanted};
use crate::runner::Argv;
use crate::task::Task;

impl<V: Volumes> OnVolumes<V> {
    /// The image as a volume; it is made anew when the image was.
    pub(super) fn base(&self, task: &Task<'_>, store: &Store) -> Result<Name, Failure> {
        let image = store.image.file_name().unwrap_or_default().to_string_lossy();
        // Two guests may want it at once.
        let lock = Wanted { name: format!("{}-volume-of-{image}", self.kind()), shared: false };
        let _lock = locks::take(&[lock], task)?;
        let base = self.images(task.host).join(&*image);
        let origin = files::read(&store.image.join("sha256"))?.unwrap_or_default();
        if files::read(&base.join("sha256"))?.as_deref() == Some(&origin) {
            return named(&base);
        }
        task.note("making a volume of the image");
        let beside = self.images(task.host).join(format!(".new-{image}"));
        self.remove_base(task, &beside)?;
        let made = self.make_base(task, &store.image_root(), &beside).and_then(|()| {
            files::write(&beside.join("sha256"), &origin, 0o600)?;
            self.remove_base(task, &base)?;
            fs::rename(&beside, &base).at("make", &base)
        });
        if made.is_err() {
            let _ = self.remove_base(task, &beside);
        }
        made.and_then(|()| named(&base))
    }

    fn make_base(&self, task: &Task<'_>, root: &Path, base: &Path) -> Result<(), Failure> {
        let name = begin(base, Use::Image)?;
        let argv = Argv::new("du").args(["--summarize", "--apparent-size", "--block-size=1", "--"]).arg(root);
        let said = argv.limit(COPY).quiet().run(task)?.stdout;
        let bytes: Option<u64> = said.split_whitespace().next().and_then(|word| word.parse().ok());
        let bytes = bytes.ok_or_else(|| Failure::Invalid(format!("du said {said:?}, no number")))?;
        // Blocks of files and what is said of them; what is too much is cut off.
        let large = self.0.found(task)?.rounded(Bytes(bytes * 2 + (1 << 30)));
        self.0.make(task, &name, large)?;
        self.0.attach(task, &name)?;
        let device = self.0.device(task.host, &name);
        require_device(&device)?;
        filesystem::make(task, root, &device)?;
        let made = sizes(&File::open(&device).at("open", &device)?).map(|[of, _]| of);
        let made = made.ok_or_else(|| Failure::Invalid(format!("there is no file system on {name}")))?;
        let found = self.0.found(task)?;
        if found.rounded(made) < large {
            self.0.resize(task, &name, large, found.rounded(made))?;
        }
        self.0.detach(task, &name)
    }

    pub(super) fn images(&self, host: &Host) -> PathBuf {
        host.corpus().join(format!("{}-images", self.piece()))
    }

    pub(super) fn remove_base(&self, task: &Task<'_>, base: &Path) -> Result<(), Failure> {
        if let Some(name) = read(base)? {
            require_unused(task, &self.0.device(task.host, &name))?;
        }
        self.remove(task, base)?;
        files::remove_folder(base).map(drop)
    }
}
