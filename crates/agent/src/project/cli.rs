//! `corpus-agent project …`: the procedures for people on a guest, without any controller, and
//! the entries for systemd and git. What happens goes to standard output as lines of text.

use std::fmt::Write as _;
use std::path::Path;

use corpus_domain::{CommitId, DeploymentId, DeploymentState, Environment, Phase, ProjectName, Trigger};
use corpus_protocol::{DeployOrder, Event, Mapping, ProjectPlan, RequestError, Role, Source, Stream};
use serde_json::Value;
use uuid::Uuid;

use crate::failure::Failure;
use crate::host::Host;
use crate::lock;
use crate::project::configuration::Configuration;
use crate::project::layout::{Layout, ROOT};
use crate::project::render::Render;
use crate::project::{
    absent, archive, editable, ensure, follow, git, installers, order, requests, run, salt, saved, tasks, yaml,
};
use crate::task::{Cancel, Task};

/// How the command is used.
pub const USAGE: &str = "corpus-agent project COMMAND NAME …
  init NAME [--environment dev|staging|prod] [--host NAME]… [--salt BUNDLE.tar.gz] [--origin REPOSITORY]
       [--installer generic|python|static] [KEY=VALUE]…
  deploy NAME [--only PHASE,…] [--commit COMMIT]
  archive | sync | release-sync | install | fixperms | prove | notify NAME
  rollback NAME [--to DEPLOYMENT]
  run-task NAME TASK
  get-configuration NAME
  set-configuration NAME [--replace true] KEY=VALUE…";

/// The words of a command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Words {
    plain: Vec<String>,
    options: Vec<(String, String)>,
    pairs: Vec<(String, String)>,
}

impl Words {
    fn parse(words: &[&str]) -> Result<Self, Failure> {
        let mut parsed = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if let Some(option) = word.strip_prefix("--") {
                let (name, value) = match option.split_once('=') {
                    Some((name, value)) => (name, value),
                    None => (option, *words.next().ok_or_else(|| Failure::Invalid(format!("{word} needs a value")))?),
                };
                parsed.options.push((name.to_owned(), value.to_owned()));
            } else if let Some((key, value)) = word.split_once('=') {
                parsed.pairs.push((key.to_owned(), value.to_owned()));
            } else {
                parsed.plain.push((*word).to_owned());
            }
        }
        Ok(parsed)
    }

    fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn knows(&self, names: &[&str]) -> Result<(), Failure> {
        match self.options.iter().find(|(name, _)| !names.contains(&name.as_str())) {
            Some((name, _)) => Err(Failure::Invalid(format!("there is no option --{name} here; usage: {USAGE}"))),
            None => Ok(()),
        }
    }

    fn only(&self) -> Result<Vec<Phase>, Failure> {
        let words = self
            .option("only")
            .or_else(|| self.pairs.iter().find(|(key, _)| key == "only").map(|(_, value)| value.as_str()));
        let Some(words) = words else { return Ok(Vec::new()) };
        let phases: Vec<Phase> = words.split(',').map(str::parse).collect::<Result<_, _>>()?;
        if phases.contains(&Phase::Rollback) {
            return Err(Failure::Invalid("rollback is a command of its own".into()));
        }
        Ok(phases)
    }
}

/// Does what the words after `project` say. Tells whether it went well.
pub fn main(words: &[&str]) -> bool {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let host = Host::default();
    let events = |event| {
        if let Event::Log { text, stream } = event {
            let mark = if stream == Stream::Note { "" } else { "    " };
            eprintln!("{mark}{text}");
        }
    };
    let task = Task { host: &host, cancel: &Cancel::default(), events: &events };
    match act(words, &task) {
        Ok(well) => well,
        Err(failure) => {
            eprintln!("corpus-agent: {}", RequestError::from(failure).message);
            false
        }
    }
}

fn act(words: &[&str], task: &Task<'_>) -> Result<bool, Failure> {
    if let ["serve-git", rest @ ..] = words {
        let served = git::Served::parse(rest)?;
        let layout = Layout::of(task.host, served.project());
        return Err(git::serve(&layout, &served));
    }
    if let [which @ ("send-git" | "take-git"), rest @ ..] = words {
        return Err(git::transfer(which, rest, task));
    }
    let [command, words @ ..] = words else { return Err(Failure::Invalid(format!("usage: {USAGE}"))) };
    let words = Words::parse(words)?;
    if *command == "resume" {
        return resume(words.option("root").unwrap_or(ROOT), task).map(|()| true);
    }
    let name = words.plain.first().ok_or_else(|| Failure::Invalid(format!("which project? usage: {USAGE}")))?;
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::Invalid("this is for root: try sudo".into()));
    }
    if *command == "run" {
        let (name, id) = name.split_once(':').unwrap_or((name, words.plain.get(1).map_or("", String::as_str)));
        let layout = Layout::new(words.option("root").unwrap_or(ROOT), &name.parse()?);
        return run::run(&layout, deployment(id)?, task.host).map(|()| true);
    }
    let project: ProjectName = name.parse()?;
    let layout = Layout::of(task.host, &project);
    match *command {
        "receive" => {
            let repository = words.plain.get(1).map_or("", String::as_str).parse()?;
            let exposed = words.option("exposed").map(Path::new);
            git::receive(&layout, repository, exposed, task).map(|()| true)
        }
        "init" => init(&layout, &words, task).map(|()| true),
        "get-configuration" => get(&layout),
        "set-configuration" => set(&layout, &words, task).map(|()| true),
        "run-task" => {
            words.knows(&[])?;
            let which = || Failure::Invalid(format!("which task? usage: {USAGE}"));
            tasks::run(&layout, words.plain.get(1).ok_or_else(which)?, task)
        }
        "deploy" => {
            words.knows(&["only", "commit"])?;
            let commit = words.option("commit").map(str::parse::<CommitId>).transpose()?;
            let source = commit.map_or(Source::Head, |commit| Source::Commit { commit });
            deploy(&layout, source, Trigger::Hand, words.only()?, task)
        }
        "rollback" => {
            words.knows(&["to"])?;
            let none = || Failure::Missing("there is no archive of another release than the one that is live".into());
            let archive = match words.option("to").map(deployment).transpose()? {
                Some(id) => id,
                None => archive::previous(&layout)?.ok_or_else(none)?.id,
            };
            deploy(&layout, Source::Archive { archive }, Trigger::Restore, vec![], task)
        }
        phase => {
            words.knows(&[])?;
            let phase: Phase = phase.parse().map_err(|_| Failure::Invalid(format!("usage: {USAGE}")))?;
            deploy(&layout, Source::Head, Trigger::Hand, vec![phase], task)
        }
    }
}

fn deployment(id: &str) -> Result<DeploymentId, Failure> {
    id.parse().map_err(|_| Failure::Invalid(format!("{id:?} is no id of a deployment")))
}

fn init(layout: &Layout, words: &Words, task: &Task<'_>) -> Result<(), Failure> {
    words.knows(&["environment", "host", "salt", "origin", "installer"])?;
    let _locks = lock::take(&[lock::project(layout.project())], task)?;
    let before: Option<ProjectPlan> = saved::read(&layout.plan())?;
    let mut plan = before.unwrap_or_else(|| ProjectPlan {
        project: layout.project().clone(),
        environment: Environment::Dev,
        hosts: Vec::new(),
        proxy: None,
        settings: Mapping::new(),
        salt: None,
        role: Role::default(),
        storage_grows: false,
        balanced: false,
    });
    plan.salt = match words.option("salt") {
        Some(path) => Some(salt::packed(Path::new(path), task)?),
        None => plan.salt.or_else(|| salt::unpacked(task.host)),
    };
    if let Some(environment) = words.option("environment") {
        plan.environment = environment.parse()?;
    }
    let hosts: Vec<_> = words
        .options
        .iter()
        .filter(|(name, _)| name == "host")
        .map(|(_, host)| host.parse())
        .collect::<Result<_, _>>()?;
    if !hosts.is_empty() {
        plan.hosts = hosts;
    }
    ensure::ensure(layout, &plan, task)?;
    if let Some(origin) = words.option("origin")
        && editable::ensure(layout, plan.environment, origin, task)?
    {
        println!("the tree is a clone of {origin}: edit {} in place", layout.tree().display());
    }
    let mut pairs = words.pairs.clone();
    if let Some(set) = words.option("installer") {
        for path in installers::write_missing(layout, set)? {
            println!("  written  {path}");
        }
        pairs.push(("installer".to_owned(), set.to_owned()));
    }
    if !pairs.is_empty() {
        change_settings(layout, &plan, &pairs, false)?;
    }
    println!("project {} is ready as {}; push to", layout.project(), plan.environment);
    println!("  code    root@this-guest:{}", layout.repository().display());
    println!("  pillar  root@this-guest:{}", layout.pillar_repository().display());
    Ok(())
}

fn get(layout: &Layout) -> Result<bool, Failure> {
    for entry in Configuration::load(layout, &saved::plan(layout)?)?.entries() {
        let value = entry.value.map_or_else(|| "(secret)".to_owned(), |value| value.to_string());
        println!("{:<24} {value:<32} {}", entry.key, entry.origin);
    }
    Ok(true)
}

fn set(layout: &Layout, words: &Words, task: &Task<'_>) -> Result<(), Failure> {
    words.knows(&["replace"])?;
    let plan = saved::plan(layout)?;
    let _locks = lock::take(&[lock::project(layout.project())], task)?;
    change_settings(layout, &plan, &words.pairs, words.option("replace") == Some("true"))
}

/// Sets these, beside what was set here before or, where the whole is replaced, in its place.
fn change_settings(
    layout: &Layout,
    plan: &ProjectPlan,
    pairs: &[(String, String)],
    replace: bool,
) -> Result<(), Failure> {
    let before: Mapping = saved::read(&layout.settings())?.unwrap_or_default();
    let kept = if replace { Mapping::new() } else { before.clone() };
    let mut settings = Value::Object(kept.into_iter().collect());
    for (key, value) in pairs {
        let error = |_| Failure::Invalid(format!("the value of {key} is no YAML"));
        put(&mut settings, key, yaml::parse_value(value).map_err(error)?)?;
    }
    saved::write(&layout.settings(), &settings)?;
    match Configuration::load(layout, plan) {
        Ok(made) => saved::write(&layout.configuration(), made.values()),
        Err(failure) => saved::write(&layout.settings(), &before).and(Err(failure)),
    }
}

/// Sets the value of a path such as `database.host`.
fn put(settings: &mut Value, path: &str, value: Value) -> Result<(), Failure> {
    let wrong = || Failure::Invalid(format!("{path:?} is no key, or leads into a value that is no mapping"));
    let mut at = settings;
    for key in path.split('.') {
        if key.is_empty() {
            return Err(wrong());
        }
        let mapping = at.as_object_mut().ok_or_else(wrong)?;
        at = mapping.entry(key).or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
    *at = value;
    Ok(())
}

fn deploy(
    layout: &Layout,
    source: Source,
    trigger: Trigger,
    only: Vec<Phase>,
    task: &Task<'_>,
) -> Result<bool, Failure> {
    let by = std::env::var("SUDO_USER").unwrap_or_else(|_| "root".into());
    let id = DeploymentId::from(Uuid::now_v7());
    let project = layout.project().clone();
    let wanted = DeployOrder { project, id, source, trigger, only, plain_archive: false, by, follower: false };
    order::order(layout, &wanted, task)?;
    println!("deployment {id}; interrupting this command does not end it");
    let mut render = Render::default();
    let report = follow::follow(layout, id, 0, task, &mut |_, entry| {
        let mut text = String::new();
        for line in render.lines(&entry) {
            let _ = writeln!(text, "{line}");
        }
        // Nobody may be left to read it; the deployment goes on.
        let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
    })?;
    Ok(report.state == DeploymentState::Live)
}

/// At the guest's start: deployments that were interrupted come to an end.
fn resume(root: &str, task: &Task<'_>) -> Result<(), Failure> {
    for layout in absent::all(Path::new(root))? {
        for id in requests::deployments(&layout)? {
            if !order::is_over(&layout, id) {
                println!("deployment {id} of {} was interrupted", layout.project());
                order::start(&layout, id, task)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_of_all_kinds() {
        let words = Words::parse(&["shop", "--only", "install,fixperms", "a.b=c=d", "--commit=x"]).unwrap();
        assert_eq!(words.plain, ["shop"]);
        assert_eq!(words.only().unwrap(), [Phase::Install, Phase::Fixperms]);
        assert_eq!((words.option("commit"), words.pairs[0].1.as_str()), (Some("x"), "c=d"));
        assert!(Words::parse(&["shop", "--only"]).is_err());
        assert!(Words::parse(&["x", "only=rollback"]).unwrap().only().is_err());
    }

    #[test]
    fn settings_by_path() {
        let mut settings = json!({"a": {"b": 1}, "c": 2});
        put(&mut settings, "a.d.e", json!([1])).unwrap();
        assert_eq!(settings, json!({"a": {"b": 1, "d": {"e": [1]}}, "c": 2}));
        assert!(put(&mut settings, "c.x", json!(1)).is_err() && put(&mut settings, "a..b", json!(1)).is_err());
    }
}
