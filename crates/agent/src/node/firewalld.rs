//! A host's own firewalld, which drops what it does not know: it is told what of the node is ours.
//!
//! What one table of nftables accepts another one may still drop, so ours alone opens nothing on a host
//! with firewalld. A zone of our own holds the bridge, one policy lets through to it whatever our own rules let
//! through, another one opens the ports of the proxy. The zones of the host stay as they are, and are asked before our
//! policies: what they reject stays rejected. The files are those of firewalld.zone(5) and firewalld.policy(5), lie there
//! wherever firewalld is installed, since it may be started at any time, and go with the node.
//!
//! Zones and policies are made by a reload only. It keeps connections, holds up new ones for half a second, and ends
//! what somebody added without `--permanent`. So there is none unless what runs is not as planned (see [`running`]).

mod running;

use std::path::PathBuf;

use corpus_domain::SSH_PORTS;
use corpus_protocol::{FAR_PORT, LINK_PORT, NodePlan};

use super::{Part, Rendered};
use crate::failure::Failure;
use crate::files;
use crate::host::Host;
use crate::runner::Argv;
use crate::task::Task;

const ZONE: &str = "corpus";
/// What may reach the bridge.
const TO_GUESTS: &str = "corpus-guests";
/// What may reach the node itself.
const TO_NODE: &str = "corpus-node";
/// After the rules of the host's own zones.
const PRIORITY: i64 = 1;
const FILES: [&str; 3] = ["zones/corpus.xml", "policies/corpus-guests.xml", "policies/corpus-node.xml"];
/// Where proxies reach each other; our own rules close it to all that are no nodes.
const LINK_PORTS: [u16; 2] = [LINK_PORT, FAR_PORT];
const GROUPS: [&str; 3] = ["systemd/system.slice", "system.slice", "unified/system.slice"];

/// Whether it may run one day.
pub fn is_installed(host: &Host) -> bool {
    host.path("/usr/sbin/firewalld").exists()
}

/// Whether it runs.
pub fn is_active(host: &Host) -> bool {
    GROUPS.iter().any(|group| {
        let path = host.path(format!("/sys/fs/cgroup/{group}/firewalld.service/cgroup.procs"));
        std::fs::read_to_string(path).is_ok_and(|procs| !procs.trim().is_empty())
    })
}

/// Whether anything of ours was written for it; it may have come later than the node's plan.
pub fn is_told(host: &Host) -> bool {
    FILES.iter().any(|file| path(host, file).exists())
}

fn path(host: &Host, file: &str) -> PathBuf {
    host.path("/etc/firewalld").join(file)
}

/// What it reads.
pub fn files(host: &Host, plan: &NodePlan) -> Vec<Rendered> {
    let [zone, guests, node] = FILES;
    let texts = [(zone, self::zone(&plan.bridge)), (guests, to_guests()), (node, to_node(plan))];
    texts.into_iter().map(|(file, text)| Rendered { part: Part::Firewalld, path: path(host, file), text }).collect()
}

/// It works by what is in its files.
pub fn reload(task: &Task<'_>) -> Result<(), Failure> {
    if !is_active(task.host) {
        return Ok(());
    }
    task.note("firewalld is reloaded; what was added to it without --permanent ends");
    Argv::new("firewall-cmd").arg("--reload").run(task).map(drop)
}

/// What of it is not as planned, though its files may be.
pub fn differences(task: &Task<'_>, plan: &NodePlan) -> Result<Vec<String>, Failure> {
    if is_installed(task.host) && !is_told(task.host) {
        let text = "firewalld is on the host and is not told of the guests: while it runs, it drops what is for them";
        return Ok(vec![text.to_owned()]);
    }
    if !is_active(task.host) {
        return Ok(Vec::new());
    }
    let asked = running::differences(task, plan).and_then(|mut all| {
        all.extend(running::in_front(task, plan)?);
        Ok(all)
    });
    match asked {
        Err(Failure::Cancelled) => Err(Failure::Cancelled),
        Err(failure) => Ok(vec![format!("firewalld runs and does not say by what: {failure}")]),
        differences => differences,
    }
}

/// What runs is as planned; tells whether it was not. What firewalld does not take is no reason to leave the rest of the
/// plan undone: it is told as drift.
pub fn settle(task: &Task<'_>, plan: &NodePlan) -> Result<bool, Failure> {
    if !is_active(task.host) {
        return Ok(false);
    }
    let settled = running::differences(task, plan).and_then(|differences| {
        let differs = !differences.is_empty();
        if differs {
            reload(task)?;
        }
        Ok(differs)
    });
    match settled {
        Err(Failure::Cancelled) => Err(Failure::Cancelled),
        Err(failure) => {
            task.note(format!("firewalld is not as planned: {failure}"));
            Ok(false)
        }
        settled => settled,
    }
}

/// Nothing of ours is in it. What runs is asked too: a removal that was cut short has no files any more.
pub fn remove(task: &Task<'_>) -> Result<bool, Failure> {
    let mut removed = false;
    for file in FILES.map(|file| path(task.host, file)) {
        removed |= files::remove(&file)?;
        // Its own copy, from before somebody changed ours by firewall-cmd.
        removed |= files::remove(&file.with_extension("xml.old"))?;
    }
    if removed || (is_active(task.host) && running::has_ours(task)?) {
        reload(task)?;
        removed = true;
    }
    Ok(removed)
}

/// The ports of the node itself that are open to all zones.
fn ports(plan: &NodePlan) -> Vec<String> {
    let links = if plan.links.is_some() { LINK_PORTS.as_slice() } else { &[] };
    let mut ports = vec!["80".to_owned(), "443".to_owned()];
    ports.extend(links.iter().map(u16::to_string));
    ports.push(format!("{}-{}", SSH_PORTS.start(), SSH_PORTS.end()));
    ports
}

const HEAD: &str =
    "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<!-- Written by corpus-agent; changes are overwritten. -->\n";

fn zone(bridge: &str) -> String {
    format!(
        "\
{HEAD}<zone target=\"ACCEPT\">
  <short>Corpus</short>
  <description>The guests of this node. What they may is decided by the tables of Corpus.</description>
  <interface name=\"{bridge}\"/>
</zone>
"
    )
}

fn to_guests() -> String {
    format!(
        "\
{HEAD}<policy priority=\"{PRIORITY}\" target=\"ACCEPT\">
  <short>Corpus: to guests</short>
  <description>What may reach guests is decided by the tables of Corpus.</description>
  <ingress-zone name=\"ANY\"/>
  <egress-zone name=\"{ZONE}\"/>
</policy>
"
    )
}

fn to_node(plan: &NodePlan) -> String {
    let lines = |text: String, port| text + &format!("  <port port=\"{port}\" protocol=\"tcp\"/>\n");
    let ports = ports(plan).into_iter().fold(String::new(), lines);
    format!(
        "\
{HEAD}<policy priority=\"{PRIORITY}\" target=\"CONTINUE\">
  <short>Corpus: to the node</short>
  <description>Sites and SSH of guests, which the proxy of Corpus takes, and what other nodes bring.</description>
  <ingress-zone name=\"ANY\"/>
  <egress-zone name=\"HOST\"/>
{ports}</policy>
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::plan::tests::{linked, plan};

    #[test]
    fn it_is_told_where_it_runs() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        assert!(!is_active(&host));
        let procs = host.path("/sys/fs/cgroup/system.slice/firewalld.service/cgroup.procs");
        files::write(&procs, "\n", 0o644).unwrap();
        assert!(!is_active(&host));
        files::write(&procs, "712\n", 0o644).unwrap();
        assert!(is_active(&host));
        let text = files(&host, &plan())
            .iter()
            .fold(String::new(), |text, file| text + &format!("==> {}\n{}\n", file.path.display(), file.text));
        insta::assert_snapshot!(text.replace(&folder.path().display().to_string(), ""));
    }

    #[test]
    fn what_other_nodes_bring_is_let_in_where_they_do() {
        let port = "<port port=\"7443\" protocol=\"tcp\"/>";
        assert!(!to_node(&plan()).contains(port) && to_node(&linked()).contains(port));
    }
}
