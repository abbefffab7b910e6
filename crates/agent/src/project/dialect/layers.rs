//! The layers of a configuration, where a project was made for makina-states.
//!
//! A layer has the project's values below `makina-projects.NAME` (or, as long ago, `makina-states.NAME`), as a mapping or key by
//! key (`makina-projects.NAME.data.port`); a sample has them below any name. They come together below `ms_project`, where they
//! are shown and can be set like all others. What `env_defaults` has for this environment, and `os_defaults` for this system,
//! counts more than the sample's values and less than what was set, or what the pillar says.

use std::collections::BTreeMap;
use std::path::Path;

use corpus_domain::{Origin, ProjectName};
use corpus_protocol::{Mapping, ProjectPlan};
use serde_json::{Map, Value};

use crate::failure::Failure;
use crate::files;
use crate::project::mapping::merge;

/// Where these values are in the configuration.
pub const SECTION: &str = "ms_project";
const PREFIXES: [&str; 2] = ["makina-projects", "makina-states"];
/// The name that a section of `os_defaults` can have on Debian's family, from the more general one on.
const SYSTEMS: [&str; 2] = [FAMILY, "Ubuntu"];
const FAMILY: &str = "Debian";

/// What this system is called in `os_defaults`: `Debian`, or `Ubuntu`.
pub fn system() -> Result<String, Failure> {
    let release = files::read(Path::new("/etc/os-release"))?.unwrap_or_default();
    let is_it = |name: &&str| release.lines().any(|line| line == format!("ID={}", name.to_ascii_lowercase()));
    Ok(SYSTEMS.into_iter().find(is_it).unwrap_or(FAMILY).to_owned())
}

/// The layers with these values where they belong, and one more that has what is for this environment.
pub fn arrange(layers: Vec<(Origin, Mapping)>, plan: &ProjectPlan, system: &str) -> Vec<(Origin, Mapping)> {
    let mut arranged: Vec<(Origin, Mapping)> = layers
        .into_iter()
        .map(|(origin, layer)| {
            // A sample is written before its project has a name.
            let name = (origin != Origin::Defaults).then_some(&plan.project);
            (origin, fold(layer, name))
        })
        .collect();
    let defaults = chosen(&arranged, plan, system);
    if !defaults.is_empty() {
        let after = arranged.iter().rposition(|(origin, _)| *origin == Origin::Defaults).map_or(0, |at| at + 1);
        arranged.insert(after, (Origin::Defaults, section(defaults)));
    }
    arranged
}

fn section(values: Map<String, Value>) -> Mapping {
    [(SECTION.to_owned(), Value::Object(values))].into()
}

/// A layer with the project's values in their section.
fn fold(layer: Mapping, name: Option<&ProjectName>) -> Mapping {
    let mut rest = Mapping::new();
    let mut found = Value::Object(Map::new());
    for (key, value) in layer {
        match path_of(&key, name) {
            Some(path) => lay(&mut found, nested(&path, value)),
            None if PREFIXES.contains(&key.as_str()) => {
                // As it is set key by key: `makina-projects.NAME.data.port` is a mapping of mappings then.
                let Value::Object(projects) = value else { continue };
                let own = projects.into_iter().filter(|(key, _)| name.is_none_or(|name| key == name.as_str()));
                own.for_each(|(_, value)| lay(&mut found, value));
            }
            None if key == SECTION => lay(&mut found, value),
            None => drop(rest.insert(key, value)),
        }
    }
    if let Value::Object(found) = found
        && !found.is_empty()
    {
        rest.extend(section(found));
    }
    rest
}

/// Where below the project's values a key leads; none for a key that is not of them.
fn path_of<'a>(key: &'a str, name: Option<&ProjectName>) -> Option<Vec<&'a str>> {
    let (prefix, below) =
        PREFIXES.iter().find_map(|prefix| Some((*prefix, key.strip_prefix(prefix)?.strip_prefix('.')?)))?;
    match name {
        Some(name) => {
            let path = below.strip_prefix(name.as_str())?;
            if path.is_empty() { Some(Vec::new()) } else { Some(path.strip_prefix('.')?.split('.').collect()) }
        }
        // Longer keys of makina-states are of its formulas.
        None if prefix == PREFIXES[1] && below.contains('.') => None,
        None => Some(below.split('.').skip(1).collect()),
    }
}

fn nested(path: &[&str], value: Value) -> Value {
    path.iter().rev().fold(value, |value, key| Value::Object([((*key).to_owned(), value)].into_iter().collect()))
}

/// Lays a mapping over another; anything else says nothing here.
fn lay(below: &mut Value, above: Value) {
    if above.is_object() {
        merge(below, above, "", Origin::Defaults, &mut BTreeMap::new());
    }
}

/// What all layers together have for this environment, and for this system.
fn chosen(layers: &[(Origin, Mapping)], plan: &ProjectPlan, system: &str) -> Map<String, Value> {
    let mut all = Value::Object(Map::new());
    let sections = layers.iter().filter_map(|(_, layer)| layer.get(SECTION));
    sections.for_each(|section| lay(&mut all, section.clone()));
    let environment = all.get("default_env").and_then(Value::as_str).unwrap_or(plan.environment.as_str());
    let of = |kind: &str, name: &str| all.get(kind).and_then(|kind| kind.get(name)).cloned().unwrap_or_default();
    let mut data = of("env_defaults", environment);
    if !data.is_object() {
        data = Value::Object(Map::new());
    }
    // Recipes find what is for a system among their own values, and beside them.
    let mut chosen = Value::Object(Map::new());
    for name in SYSTEMS.into_iter().filter(|name| *name == FAMILY || *name == system) {
        let values = of("os_defaults", name);
        lay(&mut chosen, values.clone());
        lay(&mut data, values);
    }
    // An empty mapping would take the place of what is there.
    if data.as_object().is_some_and(|data| !data.is_empty()) {
        lay(&mut chosen, nested(&["data"], data));
    }
    match chosen {
        Value::Object(chosen) => chosen,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use corpus_domain::Environment;
    use corpus_protocol::Role;
    use serde_json::json;

    use super::*;

    fn plan() -> ProjectPlan {
        ProjectPlan {
            project: "shop".parse().unwrap(),
            environment: Environment::Staging,
            hosts: vec![],
            proxy: None,
            settings: Mapping::new(),
            salt: None,
            role: Role::default(),
            storage_grows: false,
            balanced: false,
        }
    }

    fn mapping(value: Value) -> Mapping {
        serde_json::from_value(value).unwrap()
    }

    /// All layers over each other, as the configuration lays them.
    fn made(layers: Vec<(Origin, Value)>, system: &str) -> Value {
        let layers = layers.into_iter().map(|(origin, layer)| (origin, mapping(layer))).collect();
        let mut all = Value::Object(Map::new());
        for (_, layer) in arrange(layers, &plan(), system) {
            lay(&mut all, serde_json::to_value(layer).unwrap());
        }
        all
    }

    #[test]
    fn values_come_together_from_wherever_they_are_said() {
        let made = made(
            vec![
                (
                    Origin::Defaults,
                    json!({"makina-projects.projectname": {"data": {"a": 1, "b": 1, "c": 1, "d": 1, "l": [1]}},
                    "makina-states.services.http.nginx.size": "7M", "checks": []}),
                ),
                (
                    Origin::Set,
                    json!({"ms_project": {"data": {"b": 2}}, "makina-projects": {"shop": {"data": {"c": 2}}, "other": {"x": 1}}}),
                ),
                (
                    Origin::Pillar,
                    json!({"makina-projects.shop.data.d": 3, "makina-projects.shop": {"data": {"l": [3]}},
                    "makina-projects.other": {"data": {"a": 9}}, "makina-projects.shopping": {"data": {"a": 9}}}),
                ),
            ],
            "Debian",
        );
        assert_eq!(made["ms_project"]["data"], json!({"a": 1, "b": 2, "c": 2, "d": 3, "l": [3]}));
        assert_eq!((&made["checks"], &made["makina-states.services.http.nginx.size"]), (&json!([]), &json!("7M")));
        assert_eq!(made["makina-projects.other"], json!({"data": {"a": 9}}));
    }

    #[test]
    fn what_is_for_the_environment_counts_between_sample_and_pillar() {
        let sample = json!({"makina-states.x": {
            "data": {"mode": "sample", "port": 1, "deep": {"one": 1, "two": 2}},
            "env_defaults": {"staging": {"mode": "staging", "port": 2, "deep": {"two": 3}}, "prod": {"mode": "prod"}},
            "os_defaults": {"Debian": {"family": "deb"}, "Ubuntu": {"family": "ubuntu"}},
        }});
        let pillar = json!({"makina-projects.shop": {"data": {"port": 3}, "env_defaults": {"prod": {"port": 4}}}});
        let data = |layers| made(layers, "Debian")["ms_project"]["data"].clone();
        let both = vec![(Origin::Defaults, sample.clone()), (Origin::Pillar, pillar)];
        assert_eq!(data(both), json!({"mode": "staging", "port": 3, "deep": {"one": 1, "two": 3}, "family": "deb"}));
        let prod = json!({"makina-projects.shop.default_env": "prod"});
        let both = vec![(Origin::Defaults, sample.clone()), (Origin::Pillar, prod)];
        assert_eq!(data(both)["mode"], "prod");
        assert_eq!(made(vec![(Origin::Defaults, sample)], "Ubuntu")["ms_project"]["family"], "ubuntu");
    }
}
