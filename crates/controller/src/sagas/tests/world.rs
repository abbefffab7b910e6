//! The world of a trial: a controller on a database of its own, a node of the lab, its DNS
//! server; and what is looked at afterwards from outside, by plain `ssh`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use corpus_api::Problem;
use corpus_api::guests::{GuestLine, ListGuests, RequestGuest};
use corpus_api::jobs::CancelJob;
use corpus_api::keys::{AddKey, KeyAdded};
use corpus_api::nodes::{
    GetNode, InitializeNode, LinkNode, ListNodes, Node, NodeLine, ProbeHostKey, RepairNode, UnlinkNode,
};
use corpus_api::overview::GetCounts;
use corpus_api::zones::{CreateZone, ZoneAccess, ZoneProjects};
use corpus_domain::{
    DnsName, Environment, GuestId, JobId, JobState, NodeId, ProjectName, ProjectRole, ProviderName, Reachability,
    SizeProfile, SshKeyId,
};
use secrecy::SecretString;
use sqlx::PgPool;

use crate::dns::{PowerDns, PowerDnsSettings, Providers};
use crate::jobs::JobDetail;
use crate::jobs::testing::{Fault, Faults, Trial};
use crate::seal::SealKeys;
use crate::store::nodes;
use crate::{Ask, Controller, Handle, ImageNames, Parts, Rules, Settings, SignIn};
use corpus_api::Principal;

/// The zone and domain of the tests.
pub const ZONE: &str = "trial.corpus.test";
/// The zone of the reverse names of guests.
pub const REVERSE_ZONE: &str = "5.10.in-addr.arpa";

/// A fact of the lab, by its variable.
pub fn fact(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run this by scripts/test, which starts the lab"))
}

/// A controller with ops and a project's maintainer signed in.
pub struct World {
    pub controller: Controller,
    pub ops: Principal,
    pub member: Principal,
    pub node_address: String,
    pub files: tempfile::TempDir,
}

/// How a job ended.
pub struct Ended {
    pub detail: JobDetail,
    pub events: usize,
}

impl Ended {
    pub fn state(&self) -> JobState {
        self.detail.job.state
    }

    /// The state, and why, for a message of a failed assertion.
    pub fn story(&self) -> String {
        let steps = self.detail.steps.iter();
        let steps: Vec<_> =
            steps.map(|step| format!("{} {} {:?} {:?}", step.name, step.state, step.error, step.undo_error)).collect();
        let job = &self.detail.job;
        let waits = job.waiting_for.as_deref().unwrap_or("nothing");
        format!("{} {:?}, waits for {waits}\n{}", job.state, job.error, steps.join("\n"))
    }
}

impl World {
    /// On the lab's first node.
    pub async fn new(db: PgPool) -> Self {
        Self::issuing(db, crate::CertificateSettings::default()).await
    }

    /// The same, with certificates from elsewhere.
    pub async fn issuing(db: PgPool, certificates: crate::CertificateSettings) -> Self {
        Self::with(db, certificates, None).await
    }

    /// The same, with Salt for guests.
    pub async fn salted(db: PgPool) -> Self {
        Self::with(db, crate::CertificateSettings::default(), Some(fact("CORPUS_SALT_BUNDLE").into())).await
    }

    async fn with(db: PgPool, certificates: crate::CertificateSettings, salt_bundle: Option<PathBuf>) -> Self {
        let files = tempfile::tempdir().unwrap();
        let dns = PowerDns::new(PowerDnsSettings {
            api_url: fact("CORPUS_LAB_DNS_API").parse().unwrap(),
            api_key: SecretString::from(fact("CORPUS_LAB_DNS_API_KEY")),
            server_id: "localhost".to_owned(),
            nameservers: vec!["ns1.corpus.test".parse().unwrap()],
        });
        let settings = Settings {
            name: "test".to_owned(),
            network: "10.5.0.1/16".parse().unwrap(),
            bridge: "lxcbr1".to_owned(),
            agent_binary: PathBuf::from(fact("CORPUS_AGENT_BINARY")),
            image_folder: PathBuf::from(fact("CORPUS_IMAGE_FOLDER")),
            images: ImageNames::default(),
            made_images: files.path().join("made-images"),
            salt_bundle,
            hooks_folder: files.path().join("hooks"),
            git_url: Some("ssh://git@corpus.test:2222".to_owned()),
            public_url: "https://corpus.test".to_owned(),
            surroundings: crate::Surroundings::default(),
            rules: Rules::default(),
            audit_days: None,
            certificates,
            access_addresses: crate::AddressDetail::default(),
            intrusion: crate::IntrusionSettings::default(),
            own_backups: None,
            guest_backups: Some(files.path().join("backups").into()),
        };
        let seal = SealKeys::load_or_create(&files.path().join("seal.key")).unwrap();
        let (authority, of_nodes) = (fact("CORPUS_LAB_DNS").parse().unwrap(), fact("CORPUS_LAB_DNS_OF_NODES"));
        let dns = Providers::one(Arc::new(dns.unwrap()), authority, Some(of_nodes.parse().unwrap()));
        // The lab's name server is the world too.
        let world = crate::dns::world::World::new(vec![authority]);
        let parts = Parts { db: db.into(), settings, dns, world, groups: None, seal };
        let controller = Controller::open(parts).await.unwrap();
        let ops = sign_in(&controller, "olga", true, &[]).await;
        let atlas: ProjectName = "atlas".parse().unwrap();
        let member = sign_in(&controller, "mia", false, &[(atlas, ProjectRole::Maintainer)]).await;
        let world = Self { controller, ops, member, node_address: fact("CORPUS_LAB_NODE1"), files };
        world.scrub().await;
        world
    }

    /// Takes from the node and the DNS server what an earlier test that failed has left.
    pub async fn scrub(&self) {
        self.on_node(
            "for guest in $(lxc-ls -1); do lxc-stop -k -n $guest; rm -rf /var/lib/lxc/$guest; done; \
             systemctl disable --now corpus-resolver corpus-proxy corpus-firewall corpus-network; ip link del lxcbr1; \
             systemctl disable --now corpus-traffic.service corpus-traffic.socket; rm -rf /var/lib/haproxy/corpus; \
             rm -rf /var/lib/private/corpus-traffic /var/lib/corpus-traffic; \
             nft delete table inet corpus; nft delete table bridge corpus; \
             rm -rf /etc/corpus /etc/unbound/corpus.conf /etc/sysctl.d/60-corpus-ports.conf /etc/systemd/system/corpus-* /var/lib/corpus/*; \
             echo > /proc/sys/net/ipv4/ip_local_reserved_ports; systemctl daemon-reload; \
             sed -i '/ corpus@/d' /root/.ssh/authorized_keys",
        )
        .await;
        let provider = &self.controller.services.dns.get(&ProviderName::first()).unwrap().dns;
        let zone: DnsName = ZONE.parse().unwrap();
        for name in ["www", "shop", "docs", "a", "b", "c", "pages"] {
            let _ =
                provider.remove_record(&zone, &(&format!("{name}.{ZONE}").parse::<DnsName>().unwrap()).into()).await;
        }
        let _ = provider.remove_zone(&zone).await;
        let _ = provider.remove_zone(&REVERSE_ZONE.parse().unwrap()).await;
    }

    /// Runs jobs with one fault until this one is over; a server that dies is followed by another.
    pub async fn run(&self, job: JobId, fault: Fault) -> Ended {
        let faults = Arc::new(Faults::new(fault));
        let engine = self.controller.engine(&Trial::<crate::services::Services>::config(Arc::clone(&faults)));
        let over = async {
            loop {
                let detail = self.controller.jobs.get(job).await.unwrap();
                if detail.job.state.is_over() {
                    return Ended { detail, events: faults.events() };
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let ended = tokio::time::timeout(Duration::from_mins(2), over).await;
        faults.clear();
        engine.shutdown(Duration::from_secs(5)).await;
        let Ok(ended) = ended else {
            let detail = self.controller.jobs.get(job).await.unwrap();
            let log = self.controller.jobs.log(job, 0, 1000).await.unwrap();
            let log: Vec<_> = log.iter().map(|line| format!("{} {}", line.at.format("%T%.3f"), line.text)).collect();
            panic!("the job hangs: {}\n{}", Ended { detail, events: 0 }.story(), log.join("\n"));
        };
        ended
    }

    /// Runs a job that must succeed.
    pub async fn done(&self, job: JobId) {
        let ended = self.run(job, Fault::None).await;
        assert_eq!(ended.state(), JobState::Done, "{}", ended.story());
    }

    /// Puts a hook into the controller's folder.
    pub fn hook(&self, file: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        let folder = self.files.path().join("hooks");
        let path = folder.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, script).unwrap();
        for one in path.ancestors().take_while(|one| one.starts_with(&folder)) {
            std::fs::set_permissions(one, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    /// Asks a job to stop.
    pub async fn cancel(&self, job: JobId) {
        self.controller.call(&self.member, CancelJob { job }, None).await.unwrap();
    }

    /// Adds a key of the member.
    pub async fn add_key(&self, line: &str) -> SshKeyId {
        let added = self.controller.call(&self.member, AddKey { line: line.parse().unwrap() }, None).await;
        let KeyAdded::Added { key } = added.unwrap() else { panic!("another account holds it") };
        key
    }

    /// Runs until no job is open.
    pub async fn run_open_jobs(&self) {
        let engine = self.controller.engine(&Trial::<crate::services::Services>::config(Arc::default()));
        for _ in 0..6000 {
            if self.controller.call(&self.ops, GetCounts {}, None).await.unwrap().jobs == 0 {
                return engine.shutdown(Duration::from_secs(5)).await;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("jobs are still open after a minute");
    }

    /// Gives the node another number of slots than it counted.
    pub async fn set_slots(&self, node: NodeId, slots: u32) {
        let mut conn = self.controller.services.db.acquire().await.unwrap();
        nodes::set_slots(&mut conn, node, slots).await.unwrap();
    }

    /// Asks to link the node, by the one-time password.
    pub async fn ask_link(&self) -> (NodeId, JobId) {
        let environments = vec![Environment::Dev, Environment::Prod].try_into().unwrap();
        let wanted = LinkNode {
            password: Some(fact("CORPUS_LAB_NODE_PASSWORD").parse().unwrap()),
            ..LinkNode::new(self.node_address.parse().unwrap(), self.host_key().await, environments)
        };
        let linking = self.ask(wanted).await.unwrap();
        (linking.node, linking.job)
    }

    /// Asks for an operation in the name of the operator.
    pub async fn ask<O: Ask>(&self, operation: O) -> Result<O::Output, Problem>
    where
        Controller: Handle<O>,
    {
        self.controller.call(&self.ops, operation, None).await
    }

    /// The host key that the node shows.
    pub async fn host_key(&self) -> corpus_api::words::KeyText {
        let address = self.node_address.parse().unwrap();
        self.ask(ProbeHostKey { address, port: None }).await.unwrap().host_key.parse().unwrap()
    }

    /// All nodes.
    pub async fn nodes(&self) -> Vec<NodeLine> {
        self.ask(ListNodes::default()).await.unwrap().items
    }

    /// A node.
    pub async fn node(&self, node: NodeId) -> Node {
        self.ask(GetNode { node }).await.unwrap()
    }

    /// Asks to initialize a node.
    pub async fn ask_initialize(&self, node: NodeId) -> JobId {
        self.ask(InitializeNode { node }).await.unwrap().job
    }

    /// Asks to repair a node.
    pub async fn ask_repair(&self, node: NodeId) -> JobId {
        self.ask(RepairNode { node }).await.unwrap().job
    }

    /// A node that takes guests.
    pub async fn ready_node(&self) -> NodeId {
        let (node, job) = self.ask_link().await;
        self.done(job).await;
        let job = self.ask_initialize(node).await;
        self.done(job).await;
        let mut conn = self.controller.services.db.acquire().await.unwrap();
        nodes::set_reachability(&mut conn, node, Reachability::Reachable, None).await.unwrap();
        node
    }

    /// What a member asks for, with nothing special about it.
    pub fn plain_request(name: &str) -> RequestGuest {
        let (atlas, name) = ("atlas".parse().unwrap(), name.parse().unwrap());
        RequestGuest { autostart: true, ..RequestGuest::new(atlas, Environment::Dev, name, SizeProfile::Small) }
    }

    /// Asks for a guest.
    pub async fn ask_guest(&self, name: &str) -> (GuestId, JobId) {
        self.request(Self::plain_request(name)).await.unwrap()
    }

    /// Asks for this guest.
    pub async fn request(&self, wanted: RequestGuest) -> Result<(GuestId, JobId), Problem> {
        let asked = self.controller.call(&self.member, wanted, None).await?;
        Ok((asked.guest, asked.job))
    }

    /// All guests.
    pub async fn guests(&self) -> Vec<GuestLine> {
        self.controller.call(&self.ops, ListGuests::default(), None).await.unwrap().items
    }

    /// A zone for the names of a test.
    pub async fn zone(&self) -> DnsName {
        let name: DnsName = ZONE.parse().unwrap();
        let (access, projects) = (ZoneAccess::All, ZoneProjects::default());
        let zone = CreateZone { name: name.clone(), access, projects, provider: None, ttl_s: None };
        self.controller.call(&self.ops, zone, None).await.unwrap();
        name
    }

    /// Takes the node out again, so that the next test begins with a bare host.
    pub async fn leave(&self, node: NodeId) {
        let job = self.ask(UnlinkNode { node, force: false }).await.unwrap().job;
        self.done(job).await;
        self.assert_host_bare().await;
    }

    /// A command on the node, from outside Corpus.
    pub async fn on_node(&self, command: &str) -> String {
        Self::on(&self.node_address, command).await
    }

    /// The same on any host of the lab.
    #[expect(clippy::disallowed_methods, reason = "the test looks at the node from outside, by the plain ssh command")]
    pub async fn on(address: &str, command: &str) -> String {
        let output = tokio::process::Command::new("ssh")
            .args([
                "-i",
                &fact("CORPUS_LAB_NODE_KEY"),
                "-o",
                "StrictHostKeyChecking=no",
                "-o",
                "UserKnownHostsFile=/dev/null",
            ])
            .args(["-o", "LogLevel=ERROR", "-o", "KexAlgorithms=curve25519-sha256", "-o", "ConnectTimeout=5"])
            .arg(format!("root@{address}"))
            .arg(command)
            .output()
            .await
            .unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Nothing of ours is on the node: no agent, key, unit, bridge, rule, proxy, image.
    pub async fn assert_host_bare(&self) {
        let left = self
            .on_node(
                "ls -d /etc/corpus /etc/modules-load.d/corpus* /etc/sysctl.d/60-corpus* /var/lib/corpus/* /etc/systemd/system/corpus-* /sys/class/net/lxcbr1 2>/dev/null; \
                 grep -h corpus@ /root/.ssh/authorized_keys 2>/dev/null; nft list tables | grep corpus; pgrep -a haproxy",
            )
            .await;
        assert_eq!(left, "", "left on the node");
    }

    /// Nothing of a guest is on the node.
    pub async fn assert_no_guest(&self, name: &str) {
        let left = self
            .on_node(&format!(
                "ls -d /var/lib/lxc/{name} 2>/dev/null; grep -l {name} /etc/corpus/* 2>/dev/null; lxc-ls -1 | grep -x {name}; \
                 find /sys/fs/cgroup -maxdepth 3 -name '*{name}*'; grep /var/lib/lxc/ /proc/mounts; ls /sys/class/net | grep -v -e lo -e eth0 -e lxcbr1"
            ))
            .await;
        assert_eq!(left, "", "left of {name}");
    }
}

async fn sign_in(controller: &Controller, login: &str, ops: bool, roles: &[(ProjectName, ProjectRole)]) -> Principal {
    let who = SignIn {
        realm: "ldap",
        login: login.parse().unwrap(),
        display_name: login.to_owned(),
        mail: None,
        ops,
        roles: roles.to_vec(),
    };
    let id = controller.sign_in(who, "127.0.0.1").await.unwrap();
    controller.principal(id).await.unwrap().unwrap()
}
