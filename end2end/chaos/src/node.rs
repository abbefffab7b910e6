//! A node of the lab, seen and broken from outside: through its namespaces, never by the
//! network that is being tried.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::fs::statvfs;
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount_remount};
use serde_json::json;
use tokio::time::sleep;

use crate::fault::{Fault, Moment, Touches};
use crate::process::{command, run};

/// How long "too late" is: longer than any request may take here, with its retries' first pause.
const LATE: Duration = Duration::from_secs(11);

/// How often a disk is made full that grows meanwhile.
const FULL_TRIES: usize = 20;

/// A node, and the lab that it is of.
#[derive(Debug, Clone)]
pub struct Node {
    pub lab: String,
    pub lab_index: u8,
    pub lab_program: PathBuf,
    /// Where the lab keeps its nodes.
    pub folder: PathBuf,
    pub name: String,
    pub address: String,
}

impl Node {
    /// Runs a script of ours in the node.
    pub async fn attach(&self, script: &str) -> Result<String> {
        let mut attach = command("lxc-attach");
        attach.arg("-P").arg(&self.folder).args(["-n", &self.name, "--clear-env", "--", "sh", "-c", script]);
        run(attach, Duration::from_secs(30)).await
    }

    async fn lab(&self, order: &str) -> Result<()> {
        let mut lab = command(&self.lab_program);
        lab.args([order, &self.name]);
        lab.env("CORPUS_LAB_NAME", &self.lab).env("CORPUS_LAB_INDEX", self.lab_index.to_string());
        run(lab, Duration::from_secs(90)).await.map(drop)
    }

    /// Makes the node breakable: the shell that breaks command lines is every account's.
    pub async fn prepare(&self) -> Result<()> {
        let script = format!(
            "cat >/usr/local/bin/chaos-shell <<'SHELL'\n{}SHELL\nchmod 755 /usr/local/bin/chaos-shell; \
             usermod -s /usr/local/bin/chaos-shell root",
            include_str!("shell.sh")
        );
        self.attach(&script).await.map(drop)
    }

    /// Orders what runs for the next step to be broken.
    pub async fn order(&self, fault: Fault, moment: Moment, touches: Touches, during: Duration) -> Result<()> {
        let what = match fault {
            Fault::CommandFails => "fail",
            Fault::CommandHangs => "hang",
            Fault::AnswerRubbish => "rubbish",
            _ => "late",
        };
        let (file, text) = match touches {
            Touches::Shell(pattern) => ("shell", format!("{what} {} {} {pattern}", moment.word(), LATE.as_secs())),
            Touches::Agent(request) => {
                let rule = json!({ "request": request, "what": what, "moment": moment.word(), "each": touches.is_read(),
                    "during_ms": during.as_millis(), "late_ms": LATE.as_millis() });
                ("agent", rule.to_string())
            }
            _ => bail!("nothing runs on the node for this step"),
        };
        let script = format!(
            "mkdir -p /run/chaos && rm -f /run/chaos/fired && printf '%s\\n' '{text}' >/run/chaos/new && mv /run/chaos/new /run/chaos/{file}"
        );
        self.attach(&script).await.map(drop)
    }

    /// Nothing more is broken by an order.
    pub async fn take_order_back(&self) -> Result<()> {
        self.attach("rm -f /run/chaos/agent /run/chaos/shell").await.map(drop)
    }

    /// Whether the order was carried out; it is taken back otherwise.
    pub async fn ordered_happened(&self) -> Result<bool> {
        let fired = self.attach("test -e /run/chaos/fired && echo yes; rm -rf /run/chaos").await;
        Ok(fired.is_ok_and(|text| text == "yes"))
    }

    /// Swallows all packets between here and the node.
    pub async fn cut(&self) -> Result<()> {
        self.lab("cut").await
    }

    /// Lets packets pass again, whatever was in force.
    pub async fn heal(&self) -> Result<()> {
        let mut nft = command("nft");
        // An older nft has no `destroy`: make sure that there is something to delete.
        nft.arg(format!("add table inet {0}; delete table inet {0}", self.table()));
        run(nft, Duration::from_secs(10)).await?;
        self.lab("heal").await
    }

    /// Resets every connection between here and the node.
    pub async fn reset(&self) -> Result<()> {
        let (table, address) = (self.table(), &self.address);
        let rules = format!(
            "table inet {table} {{
                chain out {{ type filter hook output priority 0; ip daddr {address} meta l4proto tcp reject with tcp reset; }}
                chain in {{ type filter hook input priority 0; ip saddr {address} meta l4proto tcp reject with tcp reset; }}
            }}"
        );
        let mut nft = command("nft");
        nft.arg(rules);
        run(nft, Duration::from_secs(10)).await.map(drop)
    }

    fn table(&self) -> String {
        format!("chaos_{}_{}", self.lab, self.name)
    }

    /// Reboots it and waits until it is back.
    pub async fn reboot(&self) -> Result<()> {
        // By its own init: the lab's way is through its SSH, whose shell is ours to break.
        let before = self.attach("cut -d' ' -f22 /proc/1/stat").await?;
        self.attach("systemctl --no-block reboot").await.ok();
        for _ in 0..1800 {
            sleep(Duration::from_millis(50)).await;
            let up = "cut -d' ' -f22 /proc/1/stat; systemctl is-active ssh.socket ssh.service | grep -qx active";
            if self.attach(up).await.is_ok_and(|started| !started.is_empty() && started != before) {
                return Ok(());
            }
        }
        bail!("{} does not come back", self.name)
    }

    /// Leaves not a free byte on the node's disk, which is in memory: it becomes as large as what is on it. Written full
    /// it would take as much memory as it is large.
    pub fn fill_disk(&self) -> Result<()> {
        let before = statvfs(self.disk())?;
        fs::write(self.former_size(), (before.f_blocks * before.f_frsize).to_string())?;
        // The node may write between the look and the change.
        for _ in 0..FULL_TRIES {
            let now = statvfs(self.disk())?;
            match self.resize_disk((now.f_blocks - now.f_bfree) * now.f_frsize) {
                Err(Errno::INVAL) => {}
                other => return other.context("the disk can't be made full"),
            }
        }
        bail!("the disk of {} does not stand still", self.name)
    }

    /// Gives it back.
    pub fn free_disk(&self) -> Result<()> {
        let Ok(former) = fs::read_to_string(self.former_size()) else { return Ok(()) };
        self.resize_disk(former.parse()?).context("the disk stays full")?;
        Ok(fs::remove_file(self.former_size())?)
    }

    fn resize_disk(&self, bytes: u64) -> rustix::io::Result<()> {
        mount_remount(self.disk(), MountFlags::empty(), format!("size={bytes}"))
    }

    fn disk(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// Beside the disk, so that who comes after a matrix that was ended can give it back.
    fn former_size(&self) -> PathBuf {
        self.folder.join(format!("{}.size", self.name))
    }
}
