//! A lane: a node, a database and a DNS zone of its own, on which one cell after the other is tried.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use corpus_api::Principal;
use corpus_api::guests::{ListGuests, RequestGuest};
use corpus_api::jobs::{GetJob, Job, ReadJobLog};
use corpus_api::nodes::{LinkNode, ListNodes, ProbeHostKey};
use corpus_api::zones::{CreateZone, ListZones, ZoneAccess, ZoneProjects};
use corpus_controller::{Ask, Controller, Handle, SignIn};
use corpus_domain::{
    Backing, Environment, GuestId, GuestState, JobId, JobKind, JobState, NodeId, ProjectRole, SizeProfile,
};
use corpus_jobs::testing::Faults;
use sqlx::PgPool;
use tokio::time::sleep;

use crate::directory::Directory;
use crate::node::Node;
use crate::postgres::Postgres;
use crate::setting::{Setting, engine_config};

/// The password of the lab's nodes, and so a secret that must be in no log.
pub const NODE_PASSWORD: &str = "corpus-lab";

/// The environment that the lane's guest is of.
pub const ENVIRONMENT: Environment = Environment::Dev;

/// Where cells are tried.
pub struct Lane {
    pub number: usize,
    pub node: Node,
    pub postgres: Postgres,
    pub setting: Setting,
    pub controller: Controller,
    pub directory: Directory,
    pub db: PgPool,
    pub ops: Principal,
    pub member: Principal,
    pub zone: String,
    pub folder: PathBuf,
}

impl Lane {
    /// On a fresh database and a node that is scrubbed.
    pub async fn open(
        number: usize,
        node: Node,
        postgres: Postgres,
        setting: Setting,
        folder: PathBuf,
    ) -> Result<Self> {
        let db = PgPool::connect(&setting.database_url).await?;
        sqlx::migrate!("../../migrations").run(&db).await?;
        let controller = setting.open().await?;
        let directory = Directory::open(&setting).await?;
        let ops = sign_in(&controller, "olga", true).await?;
        let member = sign_in(&controller, "mia", false).await?;
        let zone = format!("lane{number}.chaos.test");
        let lane = Self { number, node, postgres, setting, controller, directory, db, ops, member, zone, folder };
        lane.node.prepare().await?;
        lane.reset().await?;
        if !lane.has_zone().await? {
            let (access, projects) = (ZoneAccess::All, ZoneProjects::default());
            let zone = CreateZone { name: lane.zone.parse()?, access, projects, provider: None, ttl_s: None };
            lane.controller.call(&lane.ops, zone, None).await?;
        }
        Ok(lane)
    }

    async fn has_zone(&self) -> Result<bool> {
        let zones = self.controller.call(&self.ops, ListZones::default(), None).await?.items;
        Ok(zones.iter().any(|zone| zone.name.as_str() == self.zone))
    }

    /// The guest's name in all cells.
    pub fn guest_name(&self) -> String {
        format!("web.{}", self.zone)
    }

    /// The DNS name in all cells.
    pub fn dns_name(&self) -> String {
        format!("www.{}", self.zone)
    }

    /// The node's id, once it is linked.
    pub async fn node_id(&self) -> Result<NodeId> {
        let nodes = self.ask(ListNodes::default()).await?.items;
        nodes.first().map(|node| node.id).context("the node is not linked")
    }

    /// The guest, if there is one.
    pub async fn guest(&self) -> Result<Option<(GuestId, GuestState)>> {
        let guests = self.controller.call(&self.ops, ListGuests::default(), None).await?.items;
        Ok(guests.first().map(|guest| (guest.id, guest.state)))
    }

    /// Bare host, empty tables: whatever a cell that failed has left.
    pub async fn reset(&self) -> Result<()> {
        self.scrub(true).await?;
        let statements = [
            "update jobs set state = 'abandoned', ended_at = now(), comment = 'reset' where ended_at is null",
            "delete from job_locks",
            "delete from deployments",
            "delete from environment_guests",
            "delete from environments",
            "delete from dns_names",
            "delete from guest_backups where state <> 'ready'",
            "delete from guests",
            "delete from nodes",
        ];
        for statement in statements {
            sqlx::query(statement).execute(&self.db).await?;
        }
        if self.has_zone().await? {
            crate::dns::remove_records(&self.setting, &self.zone).await?;
        }
        Ok(())
    }

    /// Takes everything of Corpus from the node; `all` with agent and key.
    pub(crate) async fn scrub(&self, all: bool) -> Result<()> {
        let mut script = String::from(
            "for guest in $(ls -A /var/lib/lxc); do lxc-stop -k -n $guest; rm -rf /var/lib/lxc/$guest; done 2>/dev/null
             systemctl disable --now corpus-proxy corpus-firewall corpus-resolver corpus-lxcfs corpus-network corpus-traffic.service corpus-traffic.socket 2>/dev/null
             ip link del lxcbr1 2>/dev/null; nft delete table inet corpus 2>/dev/null; nft delete table bridge corpus 2>/dev/null
             rm -rf /etc/corpus /etc/unbound/corpus.conf /etc/sysctl.d/60-corpus-ports.conf /etc/systemd/system/corpus-* /var/lib/corpus/images /var/lib/corpus/lxc /var/lib/corpus/upload /var/lib/corpus/jobs /var/lib/corpus/locks /var/lib/corpus/hooks /opt/corpus /var/lib/corpus-traffic /var/lib/private/corpus-traffic /var/lib/haproxy/corpus
             echo > /proc/sys/net/ipv4/ip_local_reserved_ports
             systemctl daemon-reload\n",
        );
        if all {
            script += "rm -rf /var/lib/corpus/agent; sed -i '/ corpus@/d' /root/.ssh/authorized_keys 2>/dev/null\n";
        }
        self.node.attach(&(script + "true")).await.map(drop)
    }

    /// What a server is made of that runs a job of this kind.
    pub fn setting_of(&self, kind: JobKind) -> &Setting {
        if kind == JobKind::CertificateIssue { &self.directory.setting } else { &self.setting }
    }

    /// Runs jobs here, without any fault, until this one is over.
    pub async fn finish(&self, job: JobId) -> Result<JobState> {
        let kind = self.read(job).await?.line.kind;
        let controller = if kind == JobKind::CertificateIssue { &self.directory.controller } else { &self.controller };
        let engine = controller.engine(&engine_config(Faults::default()));
        let ended = self.over(job, Duration::from_mins(3)).await;
        engine.shutdown(Duration::from_secs(2)).await;
        ended
    }

    pub(crate) async fn done(&self, job: JobId) -> Result<()> {
        match self.finish(job).await? {
            JobState::Done => Ok(()),
            state => bail!("bringing the lane to where the cell begins: {state}\n{}", self.story(job).await),
        }
    }

    /// A job with its steps.
    pub async fn read(&self, job: JobId) -> Result<Job> {
        Ok(self.controller.call(&self.ops, GetJob { job, wait: None }, None).await?)
    }

    /// Waits until the job is over.
    pub async fn over(&self, job: JobId, limit: Duration) -> Result<JobState> {
        let waited = async {
            loop {
                // The database may be away, on order.
                if let Ok(detail) = self.read(job).await
                    && detail.line.state.is_over()
                {
                    return detail.line.state;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        match tokio::time::timeout(limit, waited).await {
            Ok(state) => Ok(state),
            Err(_) => bail!("the job hangs:\n{}", self.story(job).await),
        }
    }

    /// What became of a job, for people.
    pub async fn story(&self, job: JobId) -> String {
        let Ok(detail) = self.read(job).await else { return "the job can't be read".to_owned() };
        let mut story = format!(
            "{} {}: {:?}, waits for {:?}\n",
            detail.line.title, detail.line.state, detail.line.error, detail.line.waiting_for
        );
        for step in &detail.steps {
            let _ = writeln!(
                story,
                "  {} {} ({}): {:?} {:?}",
                step.name, step.state, step.attempts, step.error, step.undo_error
            );
        }
        let asked = ReadJobLog { job, after: None, before: None, limit: "200".parse().ok() };
        for line in self.controller.call(&self.ops, asked, None).await.unwrap_or_default().lines {
            let _ = writeln!(story, "    {} {:?} {}", line.at.format("%T%.3f"), line.step, line.text);
        }
        if detail.line.kind == JobKind::CertificateIssue {
            story += &self.directory.said();
        }
        story
    }

    /// Asks to link the node.
    pub async fn link(&self) -> Result<JobId> {
        let address = self.node.address.parse()?;
        let seen = self.ask(ProbeHostKey { address, port: None }).await?;
        let environments = vec![Environment::Dev].try_into().unwrap_or_default();
        let wanted = LinkNode {
            password: Some(NODE_PASSWORD.parse()?),
            ..LinkNode::new(self.node.address.parse()?, seen.host_key.parse()?, environments)
        };
        Ok(self.ask(wanted).await?.job)
    }

    /// Asks for an operation in the name of the operator.
    pub async fn ask<O: Ask>(&self, operation: O) -> Result<O::Output>
    where
        Controller: Handle<O>,
    {
        Ok(self.controller.call(&self.ops, operation, None).await?)
    }

    /// Asks for the guest.
    pub async fn request(&self, (backing, size): (Backing, SizeProfile)) -> Result<JobId> {
        let project = self.project().await?;
        // A name is kept for the project that had it, which a cell may have destroyed.
        sqlx::query("delete from freed_names").execute(&self.db).await?;
        let wanted = RequestGuest {
            node: Some(self.node_id().await?),
            backing: Some(backing),
            autostart: true,
            ..RequestGuest::new(project, Environment::Dev, self.guest_name().parse()?, size)
        };
        Ok(self.controller.call(&self.member, wanted, None).await?.job)
    }
}

async fn sign_in(controller: &Controller, login: &str, ops: bool) -> Result<Principal> {
    let roles = if ops { Vec::new() } else { vec![("atlas".parse()?, ProjectRole::Maintainer)] };
    let who = SignIn { realm: "ldap", login: login.parse()?, display_name: login.to_owned(), mail: None, ops, roles };
    let id = controller.sign_in(who, "127.0.0.1").await?;
    controller.principal(id).await?.context("nobody signed in")
}

/// A folder of this name below another, made if need be.
pub fn folder(below: &std::path::Path, name: &str) -> Result<PathBuf> {
    let folder = below.join(name);
    fs::create_dir_all(&folder)?;
    Ok(folder)
}
