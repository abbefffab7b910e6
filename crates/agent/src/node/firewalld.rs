//! A host's own firewalld, which drops what it does not know: it is told what of the node is ours.
//!
//! What one table of nftables accepts another one may still drop, so ours alone opens nothing on a host
//! with firewalld. A zone of our own holds the bridge, one policy lets through to it whatever our own rules let
//! through, another one opens the proxy's ports. The zones of the host stay as they are. The
//! files are those of firewalld.zone(5) and firewalld.policy(5), and go with the node.

use std::path::PathBuf;

use corpus_domain::SSH_PORTS;
use corpus_protocol::NodePlan;

use super::{Part, Rendered};
use crate::failure::Failure;
use crate::files;
use crate::host::Host;
use crate::runner::Argv;
use crate::task::Task;

const FILES: [&str; 3] = ["zones/corpus.xml", "policies/corpus-guests.xml", "policies/corpus-node.xml"];
const GROUPS: [&str; 3] = ["systemd/system.slice", "system.slice", "unified/system.slice"];

/// Whether it runs.
pub fn is_active(host: &Host) -> bool {
    GROUPS.iter().any(|group| {
        let path = host.path(format!("/sys/fs/cgroup/{group}/firewalld.service/cgroup.procs"));
        std::fs::read_to_string(path).is_ok_and(|procs| !procs.trim().is_empty())
    })
}

fn path(host: &Host, file: &str) -> PathBuf {
    host.path("/etc/firewalld").join(file)
}

/// What it reads.
pub fn files(host: &Host, plan: &NodePlan) -> Vec<Rendered> {
    let [zone, guests, node] = FILES;
    let texts = [(zone, self::zone(&plan.bridge)), (guests, to_guests()), (node, to_node())];
    texts.into_iter().map(|(file, text)| Rendered { part: Part::Firewalld, path: path(host, file), text }).collect()
}

/// It works by what is in its files.
pub fn reload(task: &Task<'_>) -> Result<(), Failure> {
    if is_active(task.host) { Argv::new("firewall-cmd").arg("--reload").run(task).map(drop) } else { Ok(()) }
}

/// Nothing of ours is in it.
pub fn remove(task: &Task<'_>) -> Result<bool, Failure> {
    let mut removed = false;
    for file in FILES {
        removed |= files::remove(&path(task.host, file))?;
    }
    if removed {
        reload(task)?;
    }
    Ok(removed)
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
{HEAD}<policy target=\"ACCEPT\">
  <short>Corpus: to guests</short>
  <description>What may reach guests is decided by the tables of Corpus.</description>
  <ingress-zone name=\"ANY\"/>
  <egress-zone name=\"corpus\"/>
</policy>
"
    )
}

fn to_node() -> String {
    let (first, last) = (SSH_PORTS.start(), SSH_PORTS.end());
    format!(
        "\
{HEAD}<policy target=\"CONTINUE\">
  <short>Corpus: to the node</short>
  <description>Sites and SSH of guests, which the proxy of Corpus takes.</description>
  <ingress-zone name=\"ANY\"/>
  <egress-zone name=\"HOST\"/>
  <port port=\"80\" protocol=\"tcp\"/>
  <port port=\"443\" protocol=\"tcp\"/>
  <port port=\"{first}-{last}\" protocol=\"tcp\"/>
</policy>
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let text = files(&host, &super::super::plan::tests::plan())
            .iter()
            .fold(String::new(), |text, file| text + &format!("==> {}\n{}\n", file.path.display(), file.text));
        insta::assert_snapshot!(text.replace(&folder.path().display().to_string(), ""));
    }
}
