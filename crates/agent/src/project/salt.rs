//! Real masterless Salt for `.sls` recipes: `salt-call --local` from a bundle of Python packages.
//!
//! The bundle is unpacked once, under its SHA-256, so that a guest needs no way out. Each recipe
//! is one run with a configuration of its own below the deployment, the project's `.salt` as its
//! file root, and the project's configuration as `cfg`: in the context of everything that is
//! rendered, in the pillar, and its keys in the pillar themselves. Salt's own result is read back
//! state by state, in the order in which they ran. Further roots of states, and their modules, are
//! those that the configuration names (`salt_roots`) and those of the project's [`Dialect`].

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use corpus_domain::Environment;
use corpus_protocol::{ProjectPlan, SaltBundle, SaltState};
use serde_json::{Map, Value, json};

use crate::failure::{At, Failure};
use crate::files;
use crate::host::Host;
use crate::image::archive;
use crate::mode;
use crate::project::configuration::Configuration;
use crate::project::dialect::{self, Dialect, Kept};
use crate::project::layout::Layout;
use crate::project::process::Program;
use crate::project::saved;
use crate::runner::Argv;
use crate::task::Task;

/// Where bundles are unpacked.
pub const FOLDER: &str = "/opt/corpus/salt";
/// Starts Salt, gives it `cfg`, and tells its states as they end.
const LAUNCH: &str = include_str!("salt/launch.py");
/// How long unpacking may take: a few thousand small files.
const UNPACK_TIMEOUT: Duration = Duration::from_mins(2);
/// The longest comment of a state that is reported, in characters; the log has all of it.
const COMMENT: usize = 4096;

/// Where a bundle is unpacked, or will be.
pub fn packages(host: &Host, bundle: &SaltBundle) -> Result<PathBuf, Failure> {
    let digest = &bundle.sha256;
    if digest.len() != 64 || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Failure::Invalid(format!("{digest:?} is no SHA-256")));
    }
    Ok(host.path(FOLDER).join(digest.to_ascii_lowercase()))
}

/// The bundle is unpacked, whole; the ones before it are gone. Tells whether anything changed.
pub fn ensure(bundle: &SaltBundle, task: &Task<'_>) -> Result<bool, Failure> {
    let packages = packages(task.host, bundle)?;
    if packages.exists() {
        return Ok(false);
    }
    let packed = Path::new(&bundle.path);
    if archive::hash(task, packed)? != bundle.sha256.to_ascii_lowercase() {
        return Err(Failure::Invalid(format!("{} is not the bundle of Salt that was sent", bundle.path)));
    }
    let part = packages.with_extension("part");
    files::remove_folder(&part)?;
    fs::create_dir_all(&part).at("make", &part)?;
    let unpack = Argv::new("tar").arg("-C").arg(&part).args(["--no-same-owner", "-xf"]).arg(packed);
    unpack.limit(UNPACK_TIMEOUT).run(task)?;
    fs::rename(&part, &packages).at("name", &packages)?;
    remove_others(&packages, &mode::units(task.host)?)?;
    Ok(true)
}

/// A bundle that lies here packed.
pub fn packed(path: &Path, task: &Task<'_>) -> Result<SaltBundle, Failure> {
    let path = fs::canonicalize(path).at("find", path)?;
    Ok(SaltBundle { sha256: archive::hash(task, &path)?, path: path.to_string_lossy().into_owned() })
}

/// The bundle that was unpacked here last, if one was.
pub fn unpacked(host: &Host) -> Option<SaltBundle> {
    let folder = host.path(FOLDER);
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let newest = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let digest = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
            Some((entry.metadata().ok()?.modified().ok()?, name)).filter(|_| digest)
        })
        .max();
    newest.map(|(_, sha256)| SaltBundle { path: String::new(), sha256 })
}

/// A run that uses an older bundle has read what it needs, but for rare modules: that is why
/// the last but one stays; and so does one that a unit of Salt is started from.
fn remove_others(packages: &Path, units: &str) -> Result<(), Failure> {
    let folder = packages.parent().unwrap_or(packages);
    let entries = fs::read_dir(folder).at("list", folder)?.flatten();
    let mut others: Vec<_> = entries
        .filter(|entry| entry.path() != packages && !units.contains(&*entry.file_name().to_string_lossy()))
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    others.sort();
    others.pop();
    for (_, other) in others {
        files::remove_folder(&other)?;
    }
    Ok(())
}

/// What Salt does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act<'a> {
    /// Sees to it that the states of a recipe (`20_migrate.sls`) are so.
    Apply(&'a str),
    /// Tells whether it could.
    Render(&'a str),
    /// Reads files of values: each name with its path.
    Values(Map<String, Value>),
}

impl Act<'_> {
    fn recipe(&self) -> &str {
        match self {
            Self::Apply(recipe) | Self::Render(recipe) => recipe,
            Self::Values(_) => "",
        }
    }
}

/// What a run of Salt works with.
#[derive(Debug, Clone)]
pub struct Place {
    /// Salt, as unpacked by [`ensure`].
    packages: PathBuf,
    /// The tree with the `.salt` that holds the recipe, and the environment that may have a folder in it.
    tree: PathBuf,
    environment: Option<Environment>,
    /// A JSON file that holds `cfg`.
    configuration: PathBuf,
    /// Further roots of states.
    roots: Vec<PathBuf>,
    /// How the project's recipes speak, if not as ours.
    dialect: Option<Dialect>,
}

impl Place {
    /// That of a project whose configuration lies in the file, and of which `kept` was put aside.
    pub fn of(
        layout: &Layout,
        host: &Host,
        plan: &ProjectPlan,
        (configuration, file): (&Configuration, PathBuf),
        kept: &Kept<'_>,
    ) -> Result<Self, Failure> {
        let missing = || Failure::Missing("Salt was not put on this guest".into());
        let tree = layout.tree();
        Ok(Self {
            packages: packages(host, plan.salt.as_ref().ok_or_else(missing)?)?,
            configuration: file,
            roots: configuration.salt_roots()?,
            environment: Some(plan.environment),
            dialect: dialect::is_spoken(&tree).then(|| Dialect::bring(layout, host, kept)).transpose()?,
            tree,
        })
    }

    /// That of a recipe which is no project's.
    pub fn of_tree(packages: PathBuf, tree: PathBuf, configuration: PathBuf) -> Self {
        Self { packages, tree, environment: None, configuration, roots: Vec::new(), dialect: None }
    }

    /// The roots of states, the first that has a file before the others.
    fn roots(&self) -> Vec<PathBuf> {
        let salt = self.tree.join(".salt");
        let own = self.environment.map(|environment| salt.join(environment.as_str()));
        let mut roots: Vec<PathBuf> = own.filter(|folder| folder.is_dir()).into_iter().chain([salt]).collect();
        roots.extend(self.roots.iter().map(|root| self.tree.join(root)));
        roots.extend(self.dialect.iter().map(|dialect| dialect.root.clone()));
        roots
    }

    fn minion(&self, folder: &Path) -> Value {
        let mut roots = self.roots();
        let own = |name: &str| self.dialect.as_ref().map(|dialect| dialect.folder.join(name));
        let below = |roots: &[PathBuf], name: &str| roots.iter().map(|root| root.join(name)).collect::<Vec<_>>();
        let modules: Vec<_> = below(&roots, "_modules").into_iter().chain(own("modules")).collect();
        let states: Vec<_> = below(&roots, "_states").into_iter().chain(own("states")).collect();
        roots.extend(own(dialect::LAST_ROOT));
        json!({
            "id": "guest",
            "file_client": "local",
            "root_dir": folder.join("var"),
            "file_roots": {"base": roots},
            "pillar_roots": {"base": [folder.join("pillar")]},
            "module_dirs": modules,
            "states_dirs": states,
            "log_file": folder.join("salt.log"),
            "log_level_logfile": "warning",
            // These ask name servers and PCI; nobody deploys by their answers.
            "enable_fqdns_grains": false,
            "enable_gpu_grains": false,
        })
    }
}

/// A run of Salt for one recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    folder: PathBuf,
    recipe: String,
}

impl Run {
    /// Prepares a run in an empty `folder` of its own.
    pub fn prepare(folder: &Path, place: &Place, act: &Act<'_>) -> Result<Self, Failure> {
        let recipe = act.recipe();
        let sls = recipe.strip_suffix(".sls").unwrap_or(recipe);
        if sls.contains('.') {
            return Err(Failure::Invalid(format!("{recipe}: Salt takes a dot in a name for a folder; rename it")));
        }
        files::remove_folder(folder)?;
        let run = Self { folder: folder.to_owned(), recipe: recipe.to_owned() };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).at("make", folder)?;
        saved::write(&folder.join("minion"), &place.minion(folder))?;
        let pillar = folder.join("pillar");
        fs::create_dir_all(&pillar).at("make", &pillar)?;
        saved::write(&pillar.join("top.sls"), &json!({"base": {"*": ["corpus"]}}))?;
        let path = Value::String(place.configuration.to_string_lossy().into_owned());
        files::write(&pillar.join("corpus.sls"), &PILLAR.replace("PATH", &path.to_string()), 0o600)?;
        files::write(&folder.join("launch.py"), LAUNCH, 0o600)?;
        let (word, paths) = match act {
            Act::Apply(_) => ("apply", None),
            Act::Render(_) => ("render", None),
            Act::Values(paths) => ("values", Some(paths)),
        };
        let order = json!({
            "packages": place.packages, "folder": folder, "act": word, "sls": sls, "paths": paths,
            "configuration": place.configuration, "result": run.result_path(),
            "dialect": place.dialect.as_ref().map(|dialect| json!({"folder": dialect.folder, "about": dialect.about})),
        });
        saved::write(&folder.join("launch.json"), &order)?;
        Ok(run)
    }

    fn result_path(&self) -> PathBuf {
        self.folder.join("result.json")
    }

    /// The command; its environment is that of every recipe.
    pub fn argv(&self) -> Vec<OsString> {
        let (launch, order) = (self.folder.join("launch.py"), self.folder.join("launch.json"));
        ["python3".into(), "-W".into(), "ignore".into(), launch.into(), order.into()].into()
    }

    /// The same as a program in these surroundings, by whose `PATH` it is looked up.
    pub fn program(&self, surroundings: Program) -> Program {
        let mut argv = self.argv().into_iter();
        let path = PathBuf::from(argv.next().unwrap_or_default());
        Program { path, args: argv.collect(), ..surroundings }
    }

    /// Nothing is left of a run that was not for its states.
    pub fn forget(&self) -> Result<(), Failure> {
        files::remove_folder(&self.folder).map(drop)
    }

    /// The values that were read, by their names.
    pub fn values(&self) -> Result<Map<String, Value>, Failure> {
        Ok(saved::read(&self.result_path())?.unwrap_or_default())
    }

    /// What became of each state, in the order in which they ran; for a recipe that Salt could
    /// not render, one that failed, with the reason. Nothing when Salt was ended before it could
    /// tell. Then the run's own files go, but for Salt's log.
    pub fn result(&self) -> Result<Vec<SaltState>, Failure> {
        let result = files::read(&self.result_path())?;
        files::remove_folder(&self.folder.join("var"))?;
        let Some(result) = result.and_then(|text| serde_json::from_str::<Value>(&text).ok()) else {
            return Ok(Vec::new());
        };
        Ok(states(result.get("local").unwrap_or(&result), &self.recipe))
    }
}

/// The pillar is read from the configuration's own file, so that its secrets are written once.
const PILLAR: &str = "#!py\n\
    import json\n\
    def run():\n\
    \x20   with open(PATH, encoding='utf-8') as file:\n\
    \x20       cfg = json.load(file)\n\
    \x20   own = {'makina-projects.' + cfg['name']: cfg['ms_project']} if 'ms_project' in cfg else {}\n\
    \x20   return {**cfg, 'cfg': cfg, **own}\n";

fn states(result: &Value, recipe: &str) -> Vec<SaltState> {
    let Some(told) = result.as_object() else { return vec![error(result, recipe)] };
    let mut told: Vec<_> = told.iter().collect();
    told.sort_by_key(|(_, state)| state.get("__run_num__").and_then(Value::as_u64).unwrap_or(u64::MAX));
    told.into_iter().map(|(tag, state)| one(tag, state)).collect()
}

/// A state by its tag, `module_|-id_|-name_|-function`, and what Salt says of it.
fn one(tag: &str, state: &Value) -> SaltState {
    let parts: Vec<&str> = tag.split("_|-").collect();
    let part = |at: usize| parts.get(at).copied().unwrap_or_default();
    let text = |key: &str| state.get(key).map(in_words);
    SaltState {
        id: text("__id__").unwrap_or_else(|| part(1).to_owned()),
        function: format!("{}.{}", part(0), parts.last().copied().unwrap_or_default()),
        name: text("name").unwrap_or_else(|| part(2).to_owned()),
        // None is what Salt says of a state that was only tried out.
        ok: state.get("result").is_none_or(|result| *result != Value::Bool(false)),
        changed: state.get("changes").is_some_and(|changes| changes.as_object().is_none_or(|map| !map.is_empty())),
        comment: short(&reason_first(text("comment").unwrap_or_default())),
        elapsed_ms: state.get("duration").map(millis).unwrap_or_default(),
    }
}

fn error(result: &Value, recipe: &str) -> SaltState {
    let told = match result {
        Value::Array(errors) => errors.iter().map(in_words).collect::<Vec<_>>().join("\n"),
        other => in_words(other),
    };
    SaltState {
        id: recipe.to_owned(),
        function: "sls.render".into(),
        name: recipe.to_owned(),
        ok: false,
        changed: false,
        comment: short(&told),
        elapsed_ms: 0,
    }
}

/// Where a state's own code broke, its last line says why, and stands at the end of where it broke.
fn reason_first(comment: String) -> String {
    let Some((_, trace)) = comment.split_once("Traceback (most recent call last):") else { return comment };
    let reason = trace.lines().map(str::trim).rfind(|line| !line.is_empty()).map(|line| format!("{line}\n"));
    reason.unwrap_or_default() + &comment
}

fn in_words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn short(text: &str) -> String {
    text.trim_end().chars().take(COMMENT).collect()
}

/// Salt's own milliseconds, a number or a text like `12.5 ms`.
fn millis(duration: &Value) -> u64 {
    let text = in_words(duration);
    let number = text.split_whitespace().next().and_then(|number| number.parse::<f64>().ok());
    number
        .and_then(|millis| Duration::try_from_secs_f64(millis / 1000.0).ok())
        .map_or(0, |duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// Whether a line of a run is where to begin to read when it failed: the result of a failed
/// state, or what Salt says of a file that it can't render.
pub fn tells_failure(line: &str) -> bool {
    line == "      Result: False" || line.starts_with("Rendering SLS ") || line.starts_with(MISSING)
}

/// What a line says of somebody else's that is not there, and is why Salt failed.
pub fn missing(line: &str) -> Option<&str> {
    line.strip_prefix(MISSING)
}

/// How such a line begins (launch.py).
const MISSING: &str = "Missing: ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_in_the_order_they_ran() {
        let result = json!({
            "file_|-b_|-/b_|-managed": {"__run_num__": 1, "__id__": "b", "name": "/b", "result": true,
                "changes": {"diff": "New file"}, "comment": "File /b updated", "duration": 8.9},
            "cmd_|-a_|-false; x_|-run": {"__run_num__": 0, "__id__": "a", "name": "false; x", "result": false,
                "changes": {}, "comment": ["exit", 1], "duration": "12.5 ms"},
        });
        let states = states(&result, "20_x.sls");
        assert_eq!(states[0].function, "cmd.run");
        assert_eq!((states[0].ok, states[0].changed, states[0].elapsed_ms), (false, false, 12));
        assert_eq!((states[1].id.as_str(), states[1].name.as_str()), ("b", "/b"));
        assert_eq!((states[1].ok, states[1].changed, states[1].elapsed_ms), (true, true, 8));
    }

    #[test]
    fn why_a_state_broke_is_said_before_where() {
        let broke =
            "An exception occurred in this state: Traceback (most recent call last):\n  File x, line 4\nE: no y\n";
        assert!(reason_first(broke.to_owned()).starts_with("E: no y\nAn exception"));
        for other in ["no trace", "", "Traceback (most recent call last):"] {
            assert_eq!(reason_first(other.to_owned()), other);
        }
    }

    #[test]
    fn what_does_not_render_is_a_failing_state() {
        let states = states(&json!(["Rendering SLS 'base:a' failed: line 4", "and more"]), "a.sls");
        assert_eq!(states.len(), 1);
        assert!(!states[0].ok && states[0].comment.starts_with("Rendering SLS 'base:a' failed: line 4\nand"));
        assert!(tells_failure(&states[0].comment));
    }

    #[test]
    fn digests_are_checked_before_they_are_paths() {
        let bundle = SaltBundle { path: "/x".into(), sha256: "../../etc".into() };
        assert!(packages(&Host::default(), &bundle).is_err());
    }
}
