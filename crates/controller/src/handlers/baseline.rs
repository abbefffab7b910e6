//! What operators want of every node: set in one place, and applied or tried on one.

use std::str::FromStr;

use corpus_api::Denied;
use corpus_api::baseline::{ApplyNodeBaseline, Baseline, GetBaseline, GetNodeBaseline, NodeBaseline, SetBaseline};
use corpus_api::jobs::JobAccepted;
use corpus_api::words::Text;
use corpus_domain::{HostName, NodeId, NodeState, StatesEvery, UnixUser};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::{Value, json};

use crate::job_errors::jobs_error;
use crate::sagas::node_baseline;
use crate::ssh_keys::{KeyRefused, MemberKey};
use crate::store::baselines::{self, Wanted};
use crate::store::nodes;
use crate::{Controller, changed};

/// As many lines of one kind.
const MOST: usize = 200;
/// A node asks no more time servers.
const MOST_TIME_SERVERS: usize = 8;

impl Handle<GetBaseline> for Controller {
    async fn handle(&self, permit: Permit<GetBaseline>) -> Result<Baseline> {
        let (wanted, _) = baselines::get(&mut *permit.connection().await?).await?;
        Ok(wanted.shown())
    }
}

impl Handle<SetBaseline> for Controller {
    async fn handle(&self, mut change: Change<SetBaseline>) -> Result<Committed<SetBaseline>> {
        let asked = change.operation();
        if asked.every != StatesEvery::Never {
            self.has_salt()?;
        }
        let wanted = Wanted {
            packages: listed("packages", asked.packages.as_ref(), MOST, package)?,
            operators: listed("operators", asked.operators.as_ref(), MOST, operator)?,
            password_login: asked.password_login,
            time_servers: listed("time_servers", asked.time_servers.as_ref(), MOST_TIME_SERVERS, time_server)?,
            root_mail: listed("root_mail", asked.root_mail.as_ref(), 1, address)?.pop(),
            every: asked.every,
            test: asked.test,
        };
        let tx = change.transaction().await?;
        baselines::hold(tx).await?;
        let (was, _) = baselines::get(tx).await?;
        let (was, now) = (was.shown(), wanted.clone().shown());
        if was.version != asked.version {
            return Err(changed::by_others(tx, "baseline.set", uuid::Uuid::nil(), told).await);
        }
        if was.version == now.version {
            return change.unchanged(now).await;
        }
        baselines::set(tx, &wanted).await?;
        baselines::soon(tx).await?;
        let detail = json!({ "from": what(&was), "to": what(&now) });
        let entry = Entry::new("baseline.set", "all nodes").id(uuid::Uuid::nil()).detail(detail);
        change.commit(entry, now).await
    }
}

fn what(one: &Baseline) -> Value {
    json!({
        "packages": one.packages, "operators": one.operators, "password_login": one.password_login,
        "time_servers": one.time_servers, "root_mail": one.root_mail, "every": one.every, "test": one.test,
    })
}

/// What a change was, from what the audit tells of it.
fn told(detail: &Value) -> Option<String> {
    let (from, to) = (changed::read::<Value>(detail, "from")?, changed::read::<Value>(detail, "to")?);
    let text = |one: &Value, field| one.get(field).map(|value| value.to_string().replace("\\n", ", "));
    let part = |field| Some((field, text(&from, field)?, text(&to, field)?));
    let fields = ["packages", "operators", "password_login", "time_servers", "root_mail", "every", "test"];
    changed::parts(fields.into_iter().filter_map(part))
}

impl Handle<GetNodeBaseline> for Controller {
    async fn handle(&self, permit: Permit<GetNodeBaseline>) -> Result<NodeBaseline> {
        let id = permit.node;
        let mut conn = permit.connection().await?;
        let node = nodes::get(&mut conn, id).await?.ok_or(Denied::NotFound)?;
        let (_, set_at) = baselines::get(&mut conn).await?;
        let last = baselines::last(&mut conn, id).await?;
        let is_old = last.as_ref().zip(set_at).is_some_and(|(last, set_at)| last.at < set_at);
        let title = node.address.to_string();
        Ok(NodeBaseline { node: id, title, last, is_old, set_at })
    }
}

impl Handle<ApplyNodeBaseline> for Controller {
    async fn handle(&self, mut change: Change<ApplyNodeBaseline>) -> Result<Committed<ApplyNodeBaseline>> {
        self.has_salt()?;
        let (id, test) = (change.node, change.test);
        let tx = change.transaction().await?;
        let node = nodes::get(tx, id).await?.ok_or(Denied::NotFound)?;
        if matches!(node.state, NodeState::Linking | NodeState::Unlinking) {
            return Err(Error::Conflict(format!(
                "{} is {} now: nothing can be applied there.",
                node.address, node.state
            )));
        }
        let job = self.queue(&mut change, node_baseline::job(&node, test)).await?;
        let subject = node.address.to_string();
        let entry = Entry::new("node.baseline", &subject).id(id.0).detail(json!({ "test": test }));
        change.commit(entry, JobAccepted { job }).await
    }
}

impl Controller {
    /// Sees to the baseline of a node on which that is due by schedule.
    pub(crate) async fn see_to_baseline(&self, id: NodeId) -> Result<()> {
        let mut tx = self.services.begin().await?;
        let Some(node) = nodes::get(&mut tx, id).await? else { return Ok(()) };
        let (wanted, _) = baselines::get(&mut tx).await?;
        self.jobs.submit(&mut tx, node_baseline::job(&node, wanted.test)).await.map_err(jobs_error)?;
        Ok(tx.commit().await?)
    }
}

/// What stands on the lines of a text, each as it is kept.
fn listed(
    field: &'static str,
    text: Option<&Text>,
    most: usize,
    read: impl Fn(&str) -> std::result::Result<String, String>,
) -> Result<Vec<String>> {
    let mut kept = Vec::new();
    for line in text.map_or("", Text::as_str).lines().map(str::trim).filter(|line| !line.is_empty()) {
        let line = read(line).map_err(|why| Error::field(field, format!("{}: {why}.", shown(line))))?;
        if !kept.contains(&line) {
            kept.push(line);
        }
    }
    if kept.len() > most {
        return Err(Error::field(field, format!("There are {}, and {most} at most are taken.", kept.len())));
    }
    Ok(kept)
}

/// The beginning of a line, for who wrote it.
fn shown(line: &str) -> String {
    line.chars().take(40).collect()
}

fn package(line: &str) -> std::result::Result<String, String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '+' | '-' | '.');
    let fits = (2..=100).contains(&line.len())
        && line.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && line.chars().all(plain);
    fits.then(|| line.to_owned()).ok_or_else(|| "no name of a package of Debian".to_owned())
}

fn operator(line: &str) -> std::result::Result<String, String> {
    let (name, key) = line.split_once(char::is_whitespace).ok_or("a name and a public key are wanted")?;
    let name: UnixUser = name.parse().map_err(|_| "it begins with no name of an account".to_owned())?;
    if name.as_str() == "root" || name.as_str() == "corpus" {
        return Err(format!("{name} is an account of nodes already"));
    }
    let key: MemberKey = key.parse().map_err(|error: KeyRefused| error.to_string())?;
    Ok(format!("{name} {}", key.line()))
}

fn time_server(line: &str) -> std::result::Result<String, String> {
    let address = std::net::IpAddr::from_str(line).map(|address| address.to_string());
    let name = || HostName::from_str(line).map(|name| name.to_string());
    address.or_else(|_| name()).map_err(|_| "no host name and no address".to_owned())
}

/// What stands in aliases(5), and is no command.
fn address(line: &str) -> std::result::Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
    let (local, host) = line.split_once('@').unwrap_or((line, "localhost"));
    let fits = line.len() <= 254
        && !local.is_empty()
        && local.starts_with(|c: char| c.is_ascii_alphanumeric())
        && local.chars().all(plain)
        && HostName::from_str(host).is_ok();
    fits.then(|| line.to_owned()).ok_or_else(|| "no mail address".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_what_it_is_for() {
        for good in ["htop", "g++", "libc6", "linux-image-amd64"] {
            assert!(package(good).is_ok(), "{good}");
        }
        for bad in ["-y", "a b", "x;rm", "X", "../x", "{{ x }}"] {
            assert!(package(bad).is_err(), "{bad}");
        }
        assert_eq!(time_server("192.0.2.1").unwrap(), "192.0.2.1");
        assert_eq!(time_server("ntp.example.org").unwrap(), "ntp.example.org");
        assert!(time_server("a b").is_err() && time_server("x\u{0}").is_err());
        assert!(address("ops@example.org").is_ok() && address("ann").is_ok());
        for bad in ["|/bin/sh", "/etc/passwd", "a@b, c@d", "\"|x\"@y", ":include:/x", "-x@y"] {
            assert!(address(bad).is_err(), "{bad}");
        }
        assert!(operator("root ssh-ed25519 AAAA").is_err() && operator("ann").is_err() && operator("ann xyz").is_err());
    }

    #[test]
    fn a_line_that_is_wrong_is_told_by_its_beginning() {
        let listed =
            |field, text: &str, most, read: fn(&str) -> _| listed(field, Some(&text.parse().unwrap()), most, read);
        let wrong = listed("packages", "htop\n\nBAD NAME\n", MOST, package).unwrap_err();
        assert!(format!("{wrong:?}").contains("BAD NAME"), "{wrong:?}");
        assert_eq!(listed("packages", " htop \nhtop\n", MOST, package).unwrap(), ["htop"]);
        assert!(listed("packages", "aa\nbb\ncc", 2, package).is_err());
    }
}
