//! Values that only Salt can read: the sample and the pillar of a project that was made for makina-states are templates.
//!
//! They are read when they come ([`Run::render_values`]), and what was read is kept by what the file said, so that whoever asks
//! for the configuration later starts no Salt. Of older ones a few stay, for a tree that comes back.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use corpus_domain::Phase;
use corpus_protocol::{Mapping, Stream};
use serde_json::{Map, Value};

use crate::digest;
use crate::failure::{At, Failure};
use crate::files;
use crate::project::archive::Archive;
use crate::project::configuration::{Configuration, PILLAR, SAMPLE};
use crate::project::dialect::{self, Kept};
use crate::project::layout::Layout;
use crate::project::process::Bounds;
use crate::project::run::Run;
use crate::project::{salt, saved};

/// So many are kept.
const KEPT: usize = 8;

/// What Salt read of a file when it said what it says now; nothing when there is no such file.
pub fn read(layout: &Layout, path: &Path, name: &str) -> Result<Mapping, Failure> {
    let Some(text) = files::read(path)? else { return Ok(Mapping::new()) };
    let not_yet = || Failure::Missing(format!("{name} was not read by Salt yet: a deployment does that"));
    saved::read(&kept(layout, name, &text))?.ok_or_else(not_yet)
}

fn kept(layout: &Layout, name: &str, text: &str) -> PathBuf {
    layout.rendered().join(format!("{}.json", digest::sha256(format!("{name}\n{text}").as_bytes())))
}

/// Keeps what was read, and of older ones the newest.
fn keep(layout: &Layout, name: &str, text: &str, values: Value) -> Result<(), Failure> {
    let values = match values {
        Value::Null => Map::new(),
        Value::Object(values) => values,
        _ => return Err(Failure::Invalid(format!("{name} must be a mapping: `key: value` lines"))),
    };
    let folder = layout.rendered();
    if !folder.exists() {
        files::private(&folder)?;
    }
    saved::write(&kept(layout, name, text), &values)?;
    let entries = fs::read_dir(&folder).at("list", &folder)?.flatten();
    let mut all: Vec<_> =
        entries.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
    all.sort();
    let over = all.len().saturating_sub(KEPT);
    all.into_iter().take(over).try_for_each(|(_, path)| files::remove(&path).map(drop))
}

impl Run<'_> {
    /// Has Salt read the templates of values of the trees that are there now, where they are such.
    pub fn render_values(&self) -> Result<(), Failure> {
        if !dialect::is_spoken(&self.layout.tree()) {
            return Ok(());
        }
        self.with_task(&self.cancel, |task| dialect::settle(self.layout, task))?;
        let mut texts = Vec::new();
        for (path, name) in [(self.layout.tree().join(SAMPLE), SAMPLE), (self.layout.pillar().join("init.sls"), PILLAR)]
        {
            if let Some(text) = files::read(&path)? {
                texts.push((name, path, text));
            }
        }
        if texts.is_empty() {
            return Ok(());
        }
        let folder = self.layout.deployment(self.id()).join("values");
        let read = self.have_read(&folder, &texts);
        files::remove_folder(&folder)?;
        let mut read = read?;
        for (name, _, text) in texts {
            keep(self.layout, name, &text, read.remove(name).unwrap_or_default())?;
        }
        Ok(())
    }

    fn have_read(&self, folder: &Path, texts: &[(&str, PathBuf, String)]) -> Result<Map<String, Value>, Failure> {
        let paths = texts.iter().map(|(name, path, _)| ((*name).to_owned(), path.to_string_lossy().into())).collect();
        files::private(folder)?;
        let file = folder.join("configuration.json");
        // Not that of what is live: its own values are what is asked for.
        let configuration = Configuration::before_values(self.layout, &self.plan);
        saved::write(&file, configuration.values())?;
        let archive = Archive::of(self.layout, self.id());
        let kept = Kept { archive: archive.folder(), goes_back: false };
        let place = salt::Place::of(self.layout, self.host, &self.plan, (&configuration, file), &kept)?;
        let run = salt::Run::prepare(&folder.join("salt"), &place, &salt::Act::Values(paths))?;
        let limit = self.configuration.limit(Phase::ReleaseSync);
        let bounds = Bounds {
            deadline: Instant::now() + limit,
            limit,
            cancel: &self.cancel,
            mark: self.id().to_string(),
            redactor: self.journal().redactor().clone(),
        };
        let mut last = String::new();
        let failed = run.program(self.program(Phase::ReleaseSync)?).run(&bounds, &mut |stream, text| {
            if stream != Stream::Note && !text.trim().is_empty() {
                text.trim().clone_into(&mut last);
            }
        });
        match failed {
            Some(reason) if last.is_empty() => Err(Failure::Invalid(format!("Salt can't read its values: {reason}"))),
            Some(_) => Err(Failure::Invalid(last)),
            None => Ok(run.values()?),
        }
    }
}
