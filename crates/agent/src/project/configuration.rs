//! A project's configuration: one mapping, made of layers that each override those before.
//!
//! Built in, the project's own defaults (`.salt/PILLAR.sample`, `.corpus/defaults.yaml`), what
//! was set at the controller or on the guest, the pillar (`init.sls`). Mappings are merged key
//! by key, anything else is replaced whole. Where a project is on its guest is a fact that no
//! layer can change. A value is a secret when a key on its path says so ([`is_secret`]). In a tree
//! that was made for makina-states sample and pillar are templates, and lie elsewhere
//! ([`dialect`]).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use corpus_domain::{Environment, Origin, Phase};
use corpus_protocol::{ConfigurationEntry, Mapping, ProjectPlan};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::project::dialect::{self, layers};
use crate::project::layout::Layout;
use crate::project::mapping::{is_secret, mark, merge, texts, walk};
use crate::project::{account, identity, rendered, saved, yaml};

/// A project's own defaults, as in the tree.
pub const SAMPLE: &str = ".salt/PILLAR.sample";
const DEFAULTS: &str = ".corpus/defaults.yaml";
/// What the pillar's file is called.
pub const PILLAR: &str = "the pillar's init.sls";

/// The shape of the configuration and of what recipes can rely on.
pub const API_VERSION: u64 = 2;
const VERSION: &str = "api_version";
/// The word of `limits` for what is dumped before a backup, which is no phase.
const DUMPS: &str = "backup";
const INSTALL_LIMIT: u64 = 1800;
const PHASE_LIMIT: u64 = 300;
/// Several guests may deploy one after the other.
const FOLLOWERS_LIMIT: u64 = 7200;
const FACTS: [&str; 8] =
    [VERSION, "name", "environment", "root", "project_root", "pillar_root", "data", "ssh_identity"];

/// The merged configuration, and where each value comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configuration {
    values: Mapping,
    origins: BTreeMap<String, Origin>,
}

/// A configured check.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// A page that must be served.
    pub http: Option<Http>,
    /// A port that must accept connections.
    pub tcp: Option<u16>,
    /// A command that must succeed.
    pub command: Option<Vec<String>>,
    /// For how many seconds it is tried.
    pub within: Option<u64>,
}

/// Which accounts of the guest have access to the tree, beside the one that it belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Access {
    /// Who may read.
    pub read: Vec<String>,
    /// Who may write too.
    pub write: Vec<String>,
}

/// A page that must be served.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http {
    /// Its path.
    pub path: String,
    /// The status it must have; 200 unless said.
    pub status: Option<u16>,
    /// What its body must contain.
    pub contains: Option<String>,
    /// Under which name; the main one unless said.
    pub host: Option<String>,
}

impl Configuration {
    /// The configuration as the trees and the plan make it now.
    pub fn load(layout: &Layout, plan: &ProjectPlan) -> Result<Self, Failure> {
        let (tree, pillar) = (layout.tree(), layout.pillar().join("init.sls"));
        let is_spoken = dialect::is_spoken(&tree);
        let values = |path: &Path, name: &str| {
            if is_spoken { rendered::read(layout, path, name) } else { yaml::read(path, name) }
        };
        let mut all = vec![
            (Origin::Defaults, values(&tree.join(SAMPLE), SAMPLE)?),
            (Origin::Defaults, yaml::read(&tree.join(DEFAULTS), DEFAULTS)?),
            (Origin::Set, plan.settings.clone()),
            (Origin::Set, saved::read(&layout.settings())?.unwrap_or_default()),
            (Origin::Pillar, values(&pillar, PILLAR)?),
        ];
        all.iter().try_for_each(|(_, layer)| of_this_api(layer.get(VERSION)))?;
        if is_spoken {
            all = layers::arrange(all, plan, &layers::system()?);
        }
        let mut made = Self::default();
        made.lay(built_in(layout, plan), Origin::BuiltIn);
        for (origin, layer) in all {
            made.lay(without_facts(layer), origin);
        }
        made.checks()?;
        made.limits()?;
        made.branches()?;
        made.archives()?;
        made.salt_roots()?;
        made.access()?;
        of_this_api(made.values.get(layers::SECTION).and_then(|section| section.get(VERSION)))?;
        Ok(made)
    }

    /// The configuration of a project none of whose own values was read yet.
    pub fn before_values(layout: &Layout, plan: &ProjectPlan) -> Self {
        let mut made = Self::default();
        made.lay(built_in(layout, plan), Origin::BuiltIn);
        made.lay(without_facts(plan.settings.clone()), Origin::Set);
        made
    }

    /// The configuration with which the project went live.
    pub fn live(layout: &Layout) -> Result<Option<Self>, Failure> {
        Ok(saved::read(&layout.configuration())?.map(|values| Self { values, origins: BTreeMap::new() }))
    }

    fn lay(&mut self, layer: Mapping, origin: Origin) {
        for (key, value) in layer {
            let at = &mut self.origins;
            if let Some(below) = self.values.get_mut(&key) {
                merge(below, value, &key, origin, at);
            } else {
                mark(&value, &key, origin, at);
                self.values.insert(key, value);
            }
        }
    }

    /// The whole mapping, secrets and all: for recipes only.
    pub fn values(&self) -> &Mapping {
        &self.values
    }

    /// Each value with its origin; secrets are left out.
    pub fn entries(&self) -> Vec<ConfigurationEntry> {
        let mut entries = Vec::new();
        self.leaves(&mut |path, value| {
            let key = path.join(".");
            let origin = self.origins.get(&key).copied().unwrap_or(Origin::BuiltIn);
            let value = (!path.iter().any(|key| is_secret(key))).then(|| value.clone());
            entries.push(ConfigurationEntry { key, value, origin });
        });
        entries
    }

    /// The values that no log may show, the longest first.
    pub fn secrets(&self) -> Vec<String> {
        let mut secrets = Vec::new();
        self.leaves(&mut |path, value| {
            if path.iter().any(|key| is_secret(key)) {
                texts(value, &mut secrets);
            }
        });
        secrets.sort_unstable_by(|one, other| other.len().cmp(&one.len()).then(one.cmp(other)));
        secrets.dedup();
        secrets
    }

    /// Its values as environment variables: `CORPUS_CFG_DATABASE_HOST`.
    pub fn environment(&self) -> Vec<(String, String)> {
        let mut variables = Vec::new();
        self.leaves(&mut |path, value| {
            let name: String =
                path.join("_").chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            if !value.contains('\0') {
                variables.push((format!("CORPUS_CFG_{}", name.to_ascii_uppercase()), value));
            }
        });
        variables
    }

    fn leaves(&self, tell: &mut dyn FnMut(&[&str], &Value)) {
        for (key, value) in &self.values {
            walk(&mut vec![key.as_str()], value, tell);
        }
    }

    fn typed<T: DeserializeOwned>(&self, key: &str) -> Result<T, Failure> {
        let value = self.values.get(key).cloned().unwrap_or_default();
        serde_json::from_value(value)
            .map_err(|error| Failure::Invalid(format!("the configuration's {key:?} makes no sense: {error}")))
    }

    /// The branches that are deployed, the first that exists before the others.
    pub fn branches(&self) -> Result<Vec<String>, Failure> {
        self.typed("branches")
    }

    /// How many archives are kept.
    pub fn archives(&self) -> Result<usize, Failure> {
        self.typed("archives")
    }

    /// Folders besides `.salt` in which Salt looks for states, templates and modules: of the guest, or of the tree.
    pub fn salt_roots(&self) -> Result<Vec<PathBuf>, Failure> {
        // What went live by an older agent does not say.
        if self.values.contains_key("salt_roots") { self.typed("salt_roots") } else { Ok(Vec::new()) }
    }

    /// Who has access to the tree besides.
    pub fn access(&self) -> Result<Access, Failure> {
        // What went live by an older agent does not say.
        if self.values.contains_key("access") { self.typed("access") } else { Ok(Access::default()) }
    }

    /// The user that the project's tree belongs to.
    pub fn user(&self) -> Result<String, Failure> {
        self.typed("user")
    }

    /// How long a phase may take.
    pub fn limit(&self, phase: Phase) -> Duration {
        let built_in = match phase {
            Phase::Install => INSTALL_LIMIT,
            Phase::Followers => FOLLOWERS_LIMIT,
            _ => PHASE_LIMIT,
        };
        let set = self.limits().ok().and_then(|limits| limits.get(&phase).copied());
        Duration::from_secs(set.unwrap_or(built_in))
    }

    /// How long all that is dumped for a backup may take.
    pub fn dump_limit(&self) -> Duration {
        let limits = self.typed::<BTreeMap<String, u64>>("limits").unwrap_or_default();
        Duration::from_secs(limits.get(DUMPS).copied().unwrap_or(INSTALL_LIMIT))
    }

    fn limits(&self) -> Result<BTreeMap<Phase, u64>, Failure> {
        let mut limits = BTreeMap::new();
        for (word, seconds) in self.typed::<BTreeMap<String, u64>>("limits")? {
            if word == DUMPS {
                continue;
            }
            let phase: Phase =
                word.parse().map_err(|error| Failure::Invalid(format!("the configuration's \"limits\": {error}")))?;
            // A phase's word of now counts more than one of before.
            if word == phase.as_str() || !limits.contains_key(&phase) {
                limits.insert(phase, seconds);
            }
        }
        Ok(limits)
    }

    /// What must hold when the project is live.
    pub fn checks(&self) -> Result<Vec<Check>, Failure> {
        let checks: Vec<Check> = self.typed("checks")?;
        for check in &checks {
            let kinds = [check.http.is_some(), check.tcp.is_some(), check.command.is_some()];
            let empty = check.command.as_ref().is_some_and(Vec::is_empty);
            if kinds.iter().filter(|kind| **kind).count() != 1 || empty {
                return Err(Failure::Invalid(
                    "each of the configuration's \"checks\" has one of http, tcp, command".into(),
                ));
            }
        }
        Ok(checks)
    }
}

/// A project says for which version of all this it was made, if it says so; one for another is not deployed in a way that it
/// does not know.
fn of_this_api(said: Option<&Value>) -> Result<(), Failure> {
    let Some(said) = said else { return Ok(()) };
    let number = said.as_u64().or_else(|| said.as_str()?.parse().ok());
    if number == Some(API_VERSION) {
        return Ok(());
    }
    Err(Failure::Invalid(format!("it is made for {VERSION} {said}, and here is {API_VERSION}")))
}

fn built_in(layout: &Layout, plan: &ProjectPlan) -> Mapping {
    let text = |path: std::path::PathBuf| json!(path.to_string_lossy());
    let pairs = [
        (VERSION, json!(API_VERSION)),
        ("name", json!(plan.project)),
        ("environment", json!(plan.environment)),
        ("root", text(layout.home())),
        ("project_root", text(layout.tree())),
        ("pillar_root", text(layout.pillar())),
        ("data", text(layout.data())),
        ("user", json!(account::name(layout.project()))),
        ("ssh_identity", json!(identity::public(layout))),
        ("hosts", json!(plan.hosts)),
        ("branches", json!(["main", "master"])),
        ("archives", json!(if plan.environment == Environment::Dev { 0 } else { 5 })),
        ("limits", json!({})),
        ("salt_roots", json!([])),
        ("access", json!({})),
        ("checks", json!([])),
    ];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn without_facts(mut layer: Mapping) -> Mapping {
    layer.retain(|key, _| !FACTS.contains(&key.as_str()));
    layer
}

#[cfg(test)]
mod tests {
    use corpus_protocol::Role;

    use super::*;

    fn plan(settings: Value) -> ProjectPlan {
        let settings = serde_json::from_value(settings).unwrap();
        ProjectPlan {
            project: "shop".parse().unwrap(),
            environment: Environment::Prod,
            hosts: vec![],
            proxy: None,
            settings,
            salt: None,
            role: Role::default(),
            storage_grows: false,
            balanced: false,
        }
    }

    fn load(defaults: &str, settings: Value, pillar: &str) -> Result<Configuration, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path(), &"shop".parse().unwrap());
        for folder in [layout.tree().join(".corpus"), layout.pillar()] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::fs::write(layout.tree().join(".corpus/defaults.yaml"), defaults).unwrap();
        std::fs::write(layout.pillar().join("init.sls"), pillar).unwrap();
        Configuration::load(&layout, &plan(settings))
    }

    fn origin(made: &Configuration, key: &str) -> (Option<Value>, Origin) {
        let entry = made.entries().into_iter().find(|entry| entry.key == key).unwrap();
        (entry.value, entry.origin)
    }

    #[test]
    fn each_layer_overrides_those_before() {
        let made = load(
            "db: {host: a, port: 1}\nlist: [1, 2]\narchives: 7\nname: evil\n",
            json!({"db": {"port": 2}, "list": [3]}),
            "db:\n  name: x\n  password: hunter22\nroot: /\n",
        )
        .unwrap();
        assert_eq!(origin(&made, "db.host"), (Some(json!("a")), Origin::Defaults));
        assert_eq!(origin(&made, "db.port"), (Some(json!(2)), Origin::Set));
        assert_eq!(origin(&made, "db.name"), (Some(json!("x")), Origin::Pillar));
        assert_eq!(origin(&made, "db.password"), (None, Origin::Pillar));
        assert_eq!(origin(&made, "list"), (Some(json!([3])), Origin::Set));
        assert_eq!(origin(&made, "name"), (Some(json!("shop")), Origin::BuiltIn));
        assert_eq!((made.archives().unwrap(), made.secrets()), (7, vec!["hunter22".to_owned()]));
        assert!(made.environment().contains(&("CORPUS_CFG_DB_HOST".into(), "a".into())));
    }

    #[test]
    fn a_mapping_replaced_by_a_value_and_back() {
        let made = load("a: {b: 1}\nc: 1\n", json!({"a": 5, "c": {"d": 1}}), "").unwrap();
        let keys: Vec<String> = made.entries().into_iter().map(|entry| entry.key).collect();
        assert!(
            keys.contains(&"a".into()) && keys.contains(&"c.d".into()) && !keys.contains(&"a.b".into()),
            "{keys:?}"
        );
        assert_eq!(origin(&made, "a").1, Origin::Set);
    }

    #[test]
    fn errors_tell_where_and_no_secret() {
        let told = |pillar: &str| load("", json!({}), pillar).unwrap_err().to_string();
        assert!(told("a: {{ grains.id }}\n").contains("without jinja"));
        let error = told("password: 'hunter22\n");
        assert!(
            error.starts_with("the pillar's init.sls is no YAML in line") && !error.contains("hunter22"),
            "{error}"
        );
        assert!(told("- a\n").contains("must be a mapping"));
        assert!(told("checks: [{tcp: 1, command: [x]}]\n").contains("one of http, tcp, command"));
        assert!(told("limits: {instal: 5}\n").contains("limits"));
        assert!(told("archives: many\n").contains("archives"));
        assert!(told("api_version: 3\n").contains("it is made for api_version 3, and here is 2"));
        assert!(load("api_version: 2\n", json!({}), "api_version: '2'\n").is_ok());
    }

    /// Projects have the word of before in their repositories.
    #[test]
    fn the_limit_of_a_phase_is_found_by_its_former_word() {
        let limit = |text: &str| load("", json!({}), text).unwrap().limit(Phase::Followers).as_secs();
        assert_eq!(limit("limits: {others: 9}\n"), 9);
        assert_eq!(limit("limits: {followers: 8, others: 9}\n"), 8);
        assert_eq!(limit("limits: {install: 9}\n"), FOLLOWERS_LIMIT);
    }

    #[test]
    fn what_went_live_by_an_older_agent_has_no_folders_for_salt() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path(), &"shop".parse().unwrap());
        std::fs::create_dir_all(layout.home()).unwrap();
        saved::write(&layout.configuration(), &json!({"user": "shop"})).unwrap();
        assert!(Configuration::live(&layout).unwrap().unwrap().salt_roots().unwrap().is_empty());
    }

    #[test]
    fn yaml_of_all_kinds() {
        let made = load("", json!({}), "on: yes\nbig: 0x1f\nref: &a {x: 1}\nmore: *a\nempty:\n5: five\n").unwrap();
        assert_eq!(origin(&made, "on").0, Some(json!("yes")));
        assert_eq!(origin(&made, "more.x").0, Some(json!(1)));
        assert_eq!(origin(&made, "empty").0, Some(Value::Null));
        assert_eq!(origin(&made, "5").0, Some(json!("five")));
        assert_eq!(load("", json!({}), "# nothing\n").unwrap().secrets(), Vec::<String>::new());
    }

    #[test]
    fn secrets_of_several_lines_and_kinds() {
        let made = load("", json!({}), "api_keys: [abcd, abc, 123456]\nTOKEN: |\n  first line\n  second\n").unwrap();
        assert_eq!(made.secrets(), ["first line", "123456", "second", "abcd"]);
    }
}
