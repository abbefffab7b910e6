//! Sample values of every kind of view, some of them hostile.

#[path = "job_samples.rs"]
mod job_samples;

pub use job_samples::{job_details, jobs, log};

use chrono::{DateTime, Duration, Utc};
use corpus_api::Principal;
use corpus_api::Version;
use corpus_api::audit::AuditEntry;
use corpus_api::guests::{Guest, GuestDifference, GuestEnvironment, GuestLine, GuestSafeguard};
use corpus_api::keys::{KeyClaim, KeyPage, OwnKey};
use corpus_api::logins::RefusedLogin;
use corpus_api::names::{NameLine, NamePage};
use corpus_api::nodes::{self, Drift, DriverFact, Node, NodeFacts, NodeLine, NodePage, NodeReading, NodeUse};
use corpus_api::overview::{Counts, FailedGuest, Overview};
use corpus_api::tokens::{NewToken, Token, TokenPage, TokenText};
use corpus_api::zones::{Zone, ZoneAccess};
use corpus_controller::store::drift::Finding;
use corpus_domain::{
    Backing, Bytes, DnsNameId, DriftKind, Driver, Environment, Grant, GuestId, GuestNetwork, GuestState, IdRange,
    JobId, MacAddress, Mode, NameState, NodeId, NodeState, Overcommit, ProjectName, Reachability, Room, Safeguard,
    SizeProfile, SshKeyId, SshPort, TokenId, UserId, ZoneId,
};
use corpus_protocol::SafeguardFact;
use uuid::Uuid;

pub const FINGERPRINT: &str = "SHA256:u4GJ0v1n8mKxkH0xJ3o2m1Lq7Yc9W5rT2eVbZpQdA1s";
pub const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4mVQb3kV4t1pW8mQ1dJc0m2b5x0fC7uQ0n3bq8l2aR corpus";

fn id(number: u128) -> Uuid {
    Uuid::from_u128(0x0199_d3c0_0000_7000_8000_0000_0000_0000 + number)
}

fn before(seconds: i64) -> DateTime<Utc> {
    Utc::now() - Duration::seconds(seconds)
}

fn word<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| std::process::abort())
}

pub fn operator() -> Principal {
    Principal {
        id: UserId(id(1)),
        login: word("dev.lead"),
        display_name: "Dev Lead".into(),
        ops: true,
        roles: std::collections::BTreeMap::default(),
        token: None,
    }
}

pub fn counts() -> Counts {
    Counts {
        guests: 212,
        guests_running: 208,
        guests_failed: 1,
        guests_stopped: 3,
        nodes: 5,
        names: 6,
        names_attached: 5,
        projects: 2,
        deployments_running: 1,
        jobs: 2,
        jobs_stuck: 1,
    }
}

pub fn overview() -> Overview {
    let failed = guests().into_iter().map(|guest| guest.line).filter(|guest| guest.state == GuestState::Failed);
    let failed = failed.map(|guest| FailedGuest { id: guest.id, name: guest.name.to_string() }).collect();
    let latest_jobs: Vec<_> = jobs().into_iter().take(8).collect();
    let open_jobs = latest_jobs.iter().take(3).cloned().collect();
    Overview { counts: counts(), slots: 300, slots_free: 88, failed, open_jobs, latest_jobs }
}

pub fn projects() -> Vec<ProjectName> {
    vec![word("atlas-web"), word("carto-api")]
}

fn used(memory: u64, storage: u64) -> NodeUse {
    let hundredth = 640_000_000;
    NodeUse {
        memory_total: Bytes(hundredth * 100),
        memory_used: Bytes(hundredth * memory),
        storage_total: Bytes(20_000_000_000 * 100),
        storage_used: Bytes(20_000_000_000 * storage),
    }
}

fn facts() -> NodeFacts {
    let in_force = |fact: SafeguardFact| nodes::SafeguardFact {
        safeguard: fact.safeguard,
        in_force: fact.in_force,
        detail: fact.detail,
    };
    NodeFacts {
        hostname: "node-01".into(),
        os: "Debian GNU/Linux 12 (bookworm)".into(),
        kernel: "6.1.0-28-amd64".into(),
        architecture: "x86_64".into(),
        processor: "AMD EPYC 7313P 16-Core Processor".into(),
        processors: 32,
        memory: Bytes(64 << 30),
        storage: Bytes(2_000_000_000_000),
        addresses: vec!["203.0.113.11".into(), "2001:db8::11".into()],
        drivers: vec![
            DriverFact { driver: Driver::Lxc, version: Some("5.0.2".into()), obstacle: None },
            DriverFact { driver: Driver::Libvirt, version: None, obstacle: Some("no /dev/kvm".into()) },
        ],
        confinement: safeguards().into_iter().map(in_force).collect(),
        not_held: vec![],
    }
}

fn safeguards() -> Vec<SafeguardFact> {
    let fact = |safeguard, in_force, detail: &str| SafeguardFact { safeguard, in_force, detail: detail.into() };
    vec![
        fact(Safeguard::Ids, true, "65536 ids a guest, by a user namespace and mounts that map them"),
        fact(Safeguard::SystemCalls, true, "a list of system calls that guests don't have"),
        fact(Safeguard::AppArmor, false, "the kernel has none, or it is switched off"),
        fact(Safeguard::ControlGroups, true, "version 2"),
    ]
}

fn findings() -> Vec<Finding> {
    let one = |kind, guest: Option<&str>, text: &str, seconds| Finding {
        kind,
        guest: guest.map(word),
        text: text.into(),
        since: before(seconds),
    };
    vec![
        one(DriftKind::Rule, None, "the firewall's rules in the kernel were changed by someone else", 75),
        one(
            DriftKind::Route,
            None,
            "the running proxy does not route as /etc/corpus/ports.map says: it lacks 40012 10.5.0.12",
            75,
        ),
        one(DriftKind::Power, Some("search.atlas.example.net"), "it should run and is stopped", 4_000),
        one(DriftKind::Foreign, None, "the container <b>pet</b> was not made by Corpus", 900_000),
    ]
}

fn drift() -> Vec<Drift> {
    let shown = |one: Finding| Drift {
        kind: one.kind,
        guest: one.guest.as_ref().map(|_| GuestId(id(21))),
        guest_name: one.guest,
        text: one.text,
        since: one.since,
    };
    findings().into_iter().map(shown).collect()
}

fn line(
    number: u128,
    address: &str,
    ip: &str,
    state: NodeState,
    reachability: Reachability,
    (memory, storage): (u64, u64),
) -> NodeLine {
    NodeLine {
        id: NodeId(id(10 + number)),
        address: word(address),
        state,
        reachability,
        reachability_since: before(240),
        public_ip: Some(ip.into()),
        environments: vec![Environment::Prod, Environment::Staging],
        drivers: vec![Driver::Lxc],
        guests: 28,
        slots: 40,
        used: Some(used(memory, storage)),
        reading_at: Some(before(if reachability == Reachability::Reachable { 4 } else { 244 })),
        drift: if number == 1 { 4 } else { 0 },
        drift_since: (number == 1).then(|| before(75)),
        job: (state == NodeState::Initializing).then(|| JobId(id(40))),
        busy: number == 3,
    }
}

fn node(line: NodeLine) -> Node {
    let reachable = line.reachability == Reachability::Reachable;
    Node {
        ssh_port: 22,
        ssh_user: word("root"),
        fingerprint: FINGERPRINT.into(),
        state_reason: (line.state == NodeState::Failed).then(|| "haproxy refused the configuration".into()),
        reachability_reason: None,
        network: GuestNetwork::DEFAULT,
        bridge: "lxcbr1".into(),
        capacity: Some(Room { memory: Bytes(64 << 30), cpu_millis: 32_000, storage: Bytes(2_000_000_000_000) }),
        promised: Room { memory: Bytes(40 << 30), cpu_millis: 31_500, storage: Bytes(300_000_000_000) },
        overcommit: Overcommit::DEFAULT,
        facts: Some(facts()),
        facts_at: Some(before(7_500)),
        reading: Some(NodeReading { load: 1.37, uptime_s: 3_542_400 }),
        drift: if line.drift > 0 { drift() } else { vec![] },
        checked_at: (line.state == NodeState::Ready).then(|| before(if reachable { 12 } else { 260 })),
        line,
    }
}

pub fn node_lines() -> Vec<NodeLine> {
    vec![
        line(1, "node-01.paris.example.net", "203.0.113.11", NodeState::Ready, Reachability::Reachable, (61, 88)),
        line(
            2,
            "node-02.paris.example.net",
            "203.0.113.12",
            NodeState::Initializing,
            Reachability::Reachable,
            (48, 41),
        ),
        line(3, "node-03.paris.example.net", "203.0.113.13", NodeState::Linked, Reachability::Reachable, (3, 2)),
        line(7, "node-07.lyon.example.net", "198.51.100.7", NodeState::Ready, Reachability::Unreachable, (57, 52)),
        line(9, "node-09.lyon.example.net", "198.51.100.9", NodeState::Ready, Reachability::HostKeyChanged, (40, 29)),
    ]
}

pub fn nodes() -> Vec<Node> {
    node_lines().into_iter().map(node).collect()
}

pub fn node_page(lines: usize) -> NodePage {
    NodePage { items: node_lines().into_iter().take(lines).collect(), next: None }
}

fn name(number: u128, text: &str, state: NameState) -> NameLine {
    NameLine {
        id: DnsNameId(id(60 + number)),
        name: word(text),
        zone: ZoneId(id(71)),
        zone_name: word("atlas.example.net"),
        guest: GuestId(id(20)),
        guest_name: word("www.atlas.example.net"),
        state,
        state_reason: (state == NameState::Failed).then(|| "The name server ns1.example.net does not answer.".into()),
        answered_at: (state == NameState::Attached).then(|| before(12)),
        target: Some("203.0.113.11".into()),
        job: (state == NameState::Wanted).then(|| JobId(id(41))),
    }
}

fn guest_line(number: u128, text: &str, state: GuestState, environment: Environment) -> GuestLine {
    let ip = std::net::Ipv4Addr::new(10, 5, 0, 12 + u8::try_from(number).unwrap_or(0));
    let up = state != GuestState::Creating;
    GuestLine {
        id: GuestId(id(20 + number)),
        name: word(text),
        state,
        state_since: before(95),
        project: word("atlas-web"),
        environment,
        node: NodeId(id(11)),
        node_address: word("node-01.paris.example.net"),
        node_reachability: if number == 2 { Reachability::Unreachable } else { Reachability::Reachable },
        size: SizeProfile::Medium,
        ip: up.then_some(ip),
        ssh_port: up.then(|| SshPort::try_from(40_012).unwrap_or_else(|_| std::process::abort())),
        privileged: (number == 2).then(|| word("serves NFS to the others")),
        memory_used: Some(Bytes(310 << 20)),
        cpu_used: (state == GuestState::Running).then_some(420),
        observed_at: Some(before(4)),
        names: if number == 0 { 3 } else { 0 },
        job: (!up).then(|| JobId(id(40))),
    }
}

fn guest(number: u128, text: &str, state: GuestState, environment: Environment) -> Guest {
    let line = guest_line(number, text, state, environment);
    let up = state != GuestState::Creating;
    let limits = SizeProfile::Medium.limits();
    let difference = |one: Finding| GuestDifference { kind: one.kind, text: one.text, since: one.since };
    let safeguard = |one: SafeguardFact| {
        let SafeguardFact { safeguard, in_force, detail } = one;
        GuestSafeguard { safeguard, in_force, detail }
    };
    Guest {
        driver: Driver::Lxc,
        image: word("debian-12"),
        backing: Backing::Overlayfs,
        limits,
        limits_version: Version::of(&limits),
        mode: Mode::Masterless,
        mac: line.ip.map(MacAddress::for_ip),
        ids: IdRange::all().next().filter(|_| up && number != 2),
        confinement: safeguards().into_iter().map(safeguard).collect(),
        network: GuestNetwork::DEFAULT,
        bridge: "lxcbr1".into(),
        autostart: true,
        has_password: up,
        ssh_command: line.ssh_port.map(|port| format!("ssh -p {port} sysadmin@{}", line.node_address)),
        host_fingerprint: up.then(|| FINGERPRINT.into()),
        other_host_key: None,
        state_reason: (state == GuestState::Failed)
            .then(|| "the node restarted and the guest did not come back".into()),
        uptime_s: (state == GuestState::Running).then_some(3_542_400),
        processes_used: (state == GuestState::Running).then_some(37),
        not_held: vec!["I/O weight: no disk has a scheduler that looks at it (bfq)".into()],
        created_at: before(3_600_000),
        deployed_to: (number == 0)
            .then_some(GuestEnvironment { state: corpus_domain::EnvironmentState::Ready, is_leader: true }),
        drift: if number == 1 {
            findings().into_iter().filter(|one| one.guest.is_some()).map(difference).collect()
        } else {
            vec![]
        },
        names: if number == 0 { names().items } else { vec![] },
        may_operate: true,
        may_change: true,
        line,
    }
}

pub fn names() -> NamePage {
    let items = vec![
        name(1, "www.atlas.example.net", NameState::Attached),
        name(2, "beta.atlas.example.net", NameState::Wanted),
        name(3, "old.atlas.example.net", NameState::Failed),
    ];
    NamePage { items, next: None }
}

pub fn guests() -> Vec<Guest> {
    vec![
        guest(0, "www.atlas.example.net", GuestState::Running, Environment::Prod),
        guest(1, "search.atlas.example.net", GuestState::Stopped, Environment::Staging),
        guest(2, "tiles.carto.example.net", GuestState::Failed, Environment::Dev),
        guest(3, "new.carto.example.net", GuestState::Creating, Environment::Dev),
    ]
}

/// The same as a list shows them.
pub fn lines() -> Vec<GuestLine> {
    guests().into_iter().map(|guest| guest.line).collect()
}

pub fn zones() -> Vec<Zone> {
    let zone = |number: u128, text, names| Zone {
        id: ZoneId(id(70 + number)),
        name: word(text),
        names,
        access: if number == 1 { ZoneAccess::Only } else { ZoneAccess::All },
        projects: if number == 1 { vec![word("atlas-web"), word("carto-api")] } else { vec![] },
        created_at: before(900_000),
    };
    vec![zone(1, "atlas.example.net", 3), zone(2, "carto.example.net", 0)]
}

pub fn keys() -> KeyPage {
    let key = |number: u128, comment: &str, algorithm: &str, bits| OwnKey {
        id: SshKeyId(id(80 + number)),
        algorithm: algorithm.into(),
        bits,
        fingerprint: FINGERPRINT.into(),
        comment: comment.into(),
        created_at: before(700_000),
    };
    let items =
        vec![key(1, "dev.lead@laptop", "ssh-ed25519", 256), key(2, "<img src=x onerror=alert(1)>", "ssh-rsa", 4096)];
    KeyPage { items, next: None }
}

pub fn tokens() -> TokenPage {
    let token = |number: u128, name: &str, scope, expires, used: Option<i64>| Token {
        id: TokenId(id(100 + number)),
        name: name.into(),
        scope,
        created_at: before(700_000),
        expires_at: before(expires),
        last_used_at: used.map(before),
    };
    let items = vec![
        token(1, "Jenkins", Grant::Deploy, -7_000_000, Some(130)),
        token(2, "<img src=x onerror=alert(1)>", Grant::Read, -100_000, None),
        token(3, "an experiment", Grant::All, 100, Some(90_000)),
    ];
    TokenPage { items, next: None }
}

pub fn new_token() -> NewToken {
    let (id, name) = (TokenId(id(101)), "Jenkins".to_owned());
    NewToken { id, name, scope: Grant::Deploy, expires_at: before(-7_000_000), token: TokenText::of(&[0x5A; 32]) }
}

pub fn key_claim() -> KeyClaim {
    let text = format!(
        "I move my SSH key {FINGERPRINT} to the account dev.lead of Corpus at corpus.example.net: 9sZpQ2xTn7LbVw4rKc8YdHf3MgJt6AeU"
    );
    KeyClaim {
        id: corpus_domain::KeyClaimId(id(90)),
        fingerprint: FINGERPRINT.into(),
        text,
        namespace: "corpus".into(),
        expires_at: before(-540),
    }
}

pub fn audit() -> Vec<AuditEntry> {
    let row = |seconds, action: &str, subject: &str, detail| AuditEntry {
        at: before(seconds),
        actor: "dev.lead".into(),
        action: action.into(),
        subject: subject.into(),
        detail,
    };
    vec![
        row(60, "guest.request", "new.carto.example.net", serde_json::json!({ "node": "node-01.paris.example.net" })),
        row(4_000, "guest.reveal", "www.atlas.example.net", serde_json::json!({})),
        row(
            90_000,
            "node.link",
            "node-09.lyon.example.net",
            serde_json::json!({ "fingerprint": FINGERPRINT, "user": "root" }),
        ),
    ]
}

pub fn refused_logins() -> Vec<RefusedLogin> {
    let row = |login: &str, network: &str, reason: &str, count| RefusedLogin {
        login: login.into(),
        network: network.into(),
        reason: reason.into(),
        first_at: before(3_000),
        last_at: before(120),
        count,
    };
    vec![
        row("dev.lead", "192.0.2.44", "wrong login or password", 3),
        row("", "2001:db8:0:1::", "too many attempts", 9_871),
    ]
}
