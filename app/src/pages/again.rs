//! A request that could not be met, to be asked again: its form as it was filled in, and the same for people.

use corpus_api::environments::SetUpEnvironment;
use corpus_api::guests::{GetGuest, RequestGuest};
use corpus_api::jobs::GetJob;
use corpus_api::names::AttachName;
use corpus_api::nodes::LinkNode;
use corpus_domain::{JobId, JobKind};
use leptos::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use crate::asked::Query;
use crate::caller::Caller;
use crate::components::Fact;
use crate::form::FormState;

/// A value as people type it: the field, what the page calls it, the text.
type Typed = (&'static str, &'static str, String);

/// The form of the job that the query names, if who asks may ask for such a thing again.
pub async fn form(caller: &Caller, query: &Query, kind: JobKind) -> Option<FormState> {
    let job: JobId = query.get("again")?.parse().ok()?;
    let whole = caller.ask(GetJob { job, wait: None }).await.ok().filter(|whole| whole.line.kind == kind)?;
    let asked = whole.asked?;
    let guest = if kind == JobKind::NameAttach { name_of_guest(caller, &asked).await } else { None };
    let typed = typed(kind, &asked).into_iter().map(|(name, _, text)| (name.to_owned(), text));
    let values = typed.chain(guest).chain([("instead_of".to_owned(), job.to_string())]).collect();
    Some(FormState::new("", values).status(200))
}

/// The guest that a name was to lead to, by its name as it is typed.
async fn name_of_guest(caller: &Caller, asked: &Value) -> Option<(String, String)> {
    let guest = AttachName::deserialize(asked).ok()?.guest;
    let found = caller.ask(GetGuest { guest }).await.ok()?;
    Some(("guest".to_owned(), found.line.name.to_string()))
}

/// What was asked for, for people.
pub fn told(kind: JobKind, asked: &Value) -> Vec<Fact> {
    // The guest of an environment is linked to beside it.
    let said = typed(kind, asked).into_iter().filter(|(name, _, _)| *name != "guest");
    said.map(|(_, label, text)| (label, text.into_any())).collect()
}

/// What a release that asks otherwise kept is read as nothing.
fn typed(kind: JobKind, asked: &Value) -> Vec<Typed> {
    match kind {
        JobKind::GuestCreate => RequestGuest::deserialize(asked).map(|asked| guest(&asked)).unwrap_or_default(),
        JobKind::NodeLink => LinkNode::deserialize(asked).map(|asked| node(&asked)).unwrap_or_default(),
        JobKind::EnvironmentSetUp => {
            SetUpEnvironment::deserialize(asked).map(|asked| environment(&asked)).unwrap_or_default()
        }
        JobKind::NameAttach => AttachName::deserialize(asked)
            .map(|asked| vec![("name", "DNS name", asked.name.to_string())])
            .unwrap_or_default(),
        _ => Vec::new(),
    }
}

fn text(value: Option<&impl ToString>) -> String {
    value.map(ToString::to_string).unwrap_or_default()
}

fn lines<T: ToString>(values: &[T]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn guest(asked: &RequestGuest) -> Vec<Typed> {
    let autostart = if asked.autostart { "true" } else { "" };
    let all = [
        ("name", "Name", asked.name.to_string()),
        ("project", "Project", asked.project.to_string()),
        ("environment", "Environment", asked.environment.to_string()),
        ("profile", "Profile", text(asked.profile.as_ref())),
        ("size", "Size", text(asked.size.as_ref())),
        ("node", "Compute node", text(asked.node.as_ref())),
        ("memory", "Memory", text(asked.memory.as_ref())),
        ("cpu", "CPU", text(asked.cpu.as_ref())),
        ("processes", "Processes", text(asked.processes.as_ref())),
        ("io_weight", "I/O weight", text(asked.io_weight.as_ref())),
        ("image", "Image", text(asked.image.as_ref())),
        ("driver", "Driver", text(asked.driver.as_ref())),
        ("backing", "Backing", text(asked.backing.as_ref())),
        ("mode", "Mode", text(asked.mode.as_ref())),
        ("ip", "Address", text(asked.ip.as_ref())),
        ("mac", "MAC", text(asked.mac.as_ref())),
        ("names", "DNS names", lines(&asked.names)),
        ("autostart", "Autostart", autostart.to_owned()),
        ("privileged", "Privileged, because", text(asked.privileged.as_ref())),
    ];
    let conf = asked.conf.iter().map(|name| ("conf", "Line of its configuration", name.to_string()));
    all.into_iter().filter(|(_, _, text)| !text.is_empty()).chain(conf).collect()
}

fn environment(asked: &SetUpEnvironment) -> Vec<Typed> {
    vec![
        ("project", "Project", asked.project.to_string()),
        ("environment", "Environment", text(asked.environment.as_ref())),
        ("guest", "Guest", asked.guest.to_string()),
    ]
}

/// Without the host key: it is read and compared anew.
fn node(asked: &LinkNode) -> Vec<Typed> {
    let environments = asked.environments.iter().map(|one| ("environments", "Environment", one.to_string()));
    let all = [
        ("address", "Host name or address", asked.address.to_string()),
        ("port", "SSH port", text(asked.port.as_ref())),
        ("user", "User", text(asked.user.as_ref())),
        ("network", "Guests' network", text(asked.network.as_ref())),
        ("gateway_address", "Gateway", text(asked.gateway_address.as_ref())),
        ("gateway_port", "SSH port of the gateway", text(asked.gateway_port.as_ref())),
        ("gateway_user", "User on the gateway", text(asked.gateway_user.as_ref())),
    ];
    all.into_iter().filter(|(_, _, text)| !text.is_empty()).chain(environments).collect()
}

#[cfg(test)]
mod tests {
    use corpus_api::Input;

    use super::*;

    #[test]
    fn what_was_asked_comes_back_as_it_is_typed() {
        let typed_first = [
            ("name", "www.example.org"),
            ("project", "atlas"),
            ("environment", "prod"),
            ("size", "xxxtrem"),
            ("memory", "1.5 GiB"),
            ("cpu", "0.5"),
            ("names", "a.example.org"),
            ("autostart", "true"),
            ("conf", "many-files"),
            ("conf", "routes"),
        ];
        let read = |pairs: Vec<(String, String)>| Input::form(pairs).read::<RequestGuest>().expect("a request");
        let asked = read(typed_first.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect());
        let kept = serde_json::to_value(&asked).expect("JSON");
        let again = typed(JobKind::GuestCreate, &kept);
        let again = read(again.into_iter().map(|(name, _, text)| (name.to_owned(), text)).collect());
        assert_eq!(serde_json::to_value(again).expect("JSON"), kept);
        assert!(typed(JobKind::GuestCreate, &Value::Null).is_empty() && typed(JobKind::NodeUnlink, &kept).is_empty());
    }
}
