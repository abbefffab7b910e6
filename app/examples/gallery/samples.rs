//! Sample values of every kind of view, some of them hostile.

#[path = "job_samples.rs"]
mod job_samples;

pub use job_samples::{job_details, jobs, log};

use chrono::{Duration, Utc};
use corpus_controller::authz::Principal;
use corpus_controller::views::{
    AuditView, Counts, DriftView, GuestView, KeyClaimView, KeyView, NameView, NodeView, ProjectView, RefusedLoginsView,
    Time, ZoneAccess, ZoneView,
};
use corpus_domain::{
    Backing, Bytes, DnsNameId, DriftKind, Driver, Environment, GuestId, GuestNetwork, GuestState, IdRange, JobId,
    MacAddress, Mode, NameState, NodeId, NodeState, Overcommit, ProjectId, Reachability, Room, Safeguard, SizeProfile,
    SshKeyId, SshPort, UserId, ZoneId,
};
use corpus_protocol::{Cpu, DriverFact, Facts, Reading, SafeguardFact, Storage};
use uuid::Uuid;

pub const FINGERPRINT: &str = "SHA256:u4GJ0v1n8mKxkH0xJ3o2m1Lq7Yc9W5rT2eVbZpQdA1s";
pub const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ4mVQb3kV4t1pW8mQ1dJc0m2b5x0fC7uQ0n3bq8l2aR corpus";

fn id(number: u128) -> Uuid {
    Uuid::from_u128(0x0199_d3c0_0000_7000_8000_0000_0000_0000 + number)
}

fn before(seconds: i64) -> Time {
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
    }
}

pub fn counts() -> Counts {
    Counts {
        guests: 212,
        guests_running: 208,
        guests_failed: 1,
        guests_stopped: 3,
        nodes: 5,
        slots: 300,
        slots_free: 88,
        names: 6,
        names_attached: 5,
        projects: 2,
        deployments_running: 1,
        jobs: 2,
        jobs_stuck: 1,
    }
}

pub fn projects() -> Vec<ProjectView> {
    vec![
        ProjectView { id: ProjectId(id(5)), name: word("atlas-web"), role: None },
        ProjectView { id: ProjectId(id(6)), name: word("carto-api"), role: None },
    ]
}

fn reading(memory: u64, storage: u64) -> Reading {
    let hundredth = 640_000_000;
    Reading {
        load: 1.37,
        uptime_s: 3_542_400,
        memory_total: Bytes(hundredth * 100),
        memory_used: Bytes(hundredth * memory),
        storage: Storage { total: Bytes(20_000_000_000 * 100), used: Bytes(20_000_000_000 * storage) },
        guests: vec![],
    }
}

fn facts() -> Facts {
    Facts {
        hostname: "node-01".into(),
        os: "Debian GNU/Linux 12 (bookworm)".into(),
        kernel: "6.1.0-28-amd64".into(),
        architecture: "x86_64".into(),
        cpu: Cpu { model: "AMD EPYC 7313P 16-Core Processor".into(), count: 32 },
        memory: Bytes(64 << 30),
        storage: Storage { total: Bytes(2_000_000_000_000), used: Bytes(700_000_000_000) },
        addresses: vec![word("203.0.113.11"), word("2001:db8::11")],
        drivers: vec![
            DriverFact { driver: Driver::Lxc, version: Some("5.0.2".into()), obstacle: None },
            DriverFact { driver: Driver::Libvirt, version: None, obstacle: Some("no /dev/kvm".into()) },
        ],
        listeners: vec![],
        confinement: safeguards(),
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

fn drift() -> Vec<DriftView> {
    let one = |kind, guest: Option<&str>, text: &str, seconds| DriftView {
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

fn node(
    number: u128,
    address: &str,
    ip: &str,
    state: NodeState,
    reachability: Reachability,
    used: (u64, u64),
) -> NodeView {
    let reachable = reachability == Reachability::Reachable;
    NodeView {
        id: NodeId(id(10 + number)),
        address: word(address),
        ssh_port: 22,
        ssh_user: word("root"),
        host_key: KEY.into(),
        fingerprint: FINGERPRINT.into(),
        public_ip: Some(ip.into()),
        environments: vec![Environment::Prod, Environment::Staging],
        state,
        state_reason: (state == NodeState::Failed).then(|| "haproxy refused the configuration".into()),
        reachability,
        reachability_since: before(240),
        reachability_reason: None,
        network: GuestNetwork::DEFAULT,
        bridge: "lxcbr1".into(),
        slots: 40,
        guests: 28,
        capacity: Some(Room { memory: Bytes(64 << 30), cpu_millis: 32_000, storage: Bytes(2_000_000_000_000) }),
        promised: Room { memory: Bytes(40 << 30), cpu_millis: 31_500, storage: Bytes(300_000_000_000) },
        overcommit: Overcommit::DEFAULT,
        facts: Some(facts()),
        facts_at: Some(before(7_500)),
        reading: Some(reading(used.0, used.1)),
        reading_at: Some(before(if reachable { 4 } else { 244 })),
        drift: if number == 1 { drift() } else { vec![] },
        checked_at: (state == NodeState::Ready).then(|| before(if reachable { 12 } else { 260 })),
        job: (state == NodeState::Initializing).then(|| JobId(id(40))),
        busy: number == 3,
    }
}

pub fn nodes() -> Vec<NodeView> {
    vec![
        node(1, "node-01.paris.example.net", "203.0.113.11", NodeState::Ready, Reachability::Reachable, (61, 88)),
        node(
            2,
            "node-02.paris.example.net",
            "203.0.113.12",
            NodeState::Initializing,
            Reachability::Reachable,
            (48, 41),
        ),
        node(3, "node-03.paris.example.net", "203.0.113.13", NodeState::Linked, Reachability::Reachable, (3, 2)),
        node(7, "node-07.lyon.example.net", "198.51.100.7", NodeState::Ready, Reachability::Unreachable, (57, 52)),
        node(9, "node-09.lyon.example.net", "198.51.100.9", NodeState::Ready, Reachability::HostKeyChanged, (40, 29)),
    ]
}

fn name(number: u128, text: &str, state: NameState) -> NameView {
    NameView {
        id: DnsNameId(id(60 + number)),
        name: word(text),
        zone: word("atlas.example.net"),
        guest_id: GuestId(id(20)),
        guest: word("www.atlas.example.net"),
        state,
        state_reason: (state == NameState::Failed).then(|| "The name server ns1.example.net does not answer.".into()),
        answered_at: (state == NameState::Attached).then(|| before(12)),
        target: Some("203.0.113.11".into()),
        job: (state == NameState::Wanted).then(|| JobId(id(41))),
    }
}

fn guest(number: u128, text: &str, state: GuestState, environment: Environment) -> GuestView {
    let ip = std::net::Ipv4Addr::new(10, 5, 0, 12 + u8::try_from(number).unwrap_or(0));
    let up = state != GuestState::Creating;
    GuestView {
        id: GuestId(id(20 + number)),
        name: word(text),
        node_id: NodeId(id(11)),
        node_address: word("node-01.paris.example.net"),
        node_reachability: if number == 2 { Reachability::Unreachable } else { Reachability::Reachable },
        project_id: ProjectId(id(5)),
        project: word("atlas-web"),
        environment,
        driver: Driver::Lxc,
        image: word("debian-12"),
        backing: Backing::Overlayfs,
        size: SizeProfile::Medium,
        limits: SizeProfile::Medium.limits(),
        mode: Mode::Masterless,
        ip: up.then_some(ip),
        mac: up.then(|| MacAddress::for_ip(ip)),
        ids: IdRange::all().next().filter(|_| up && number != 2),
        privileged: (number == 2).then(|| word("serves NFS to the others")),
        confinement: safeguards(),
        ssh_port: up.then(|| SshPort::try_from(40_012).unwrap_or_else(|_| std::process::abort())),
        network: GuestNetwork::DEFAULT,
        bridge: "lxcbr1".into(),
        autostart: true,
        has_password: up,
        host_fingerprint: up.then(|| FINGERPRINT.into()),
        other_host_key: None,
        state,
        state_reason: (state == GuestState::Failed)
            .then(|| "the node restarted and the guest did not come back".into()),
        state_since: before(95),
        uptime_s: (state == GuestState::Running).then_some(3_542_400),
        memory_used: Some(Bytes(310 << 20)),
        cpu_used: (state == GuestState::Running).then_some(420),
        processes_used: (state == GuestState::Running).then_some(37),
        not_held: vec!["I/O weight: no disk has a scheduler that looks at it (bfq)".into()],
        observed_at: Some(before(4)),
        created_at: before(3_600_000),
        job: (!up).then(|| JobId(id(40))),
        drift: if number == 1 { drift().into_iter().filter(|one| one.guest.is_some()).collect() } else { vec![] },
        names: if number == 0 {
            vec![
                name(1, "www.atlas.example.net", NameState::Attached),
                name(2, "beta.atlas.example.net", NameState::Wanted),
                name(3, "old.atlas.example.net", NameState::Failed),
            ]
        } else {
            vec![]
        },
    }
}

pub fn guests() -> Vec<GuestView> {
    vec![
        guest(0, "www.atlas.example.net", GuestState::Running, Environment::Prod),
        guest(1, "search.atlas.example.net", GuestState::Stopped, Environment::Staging),
        guest(2, "tiles.carto.example.net", GuestState::Failed, Environment::Dev),
        guest(3, "new.carto.example.net", GuestState::Creating, Environment::Dev),
    ]
}

pub fn zones() -> Vec<ZoneView> {
    let zone = |number: u128, text, names| ZoneView {
        id: ZoneId(id(70 + number)),
        name: word(text),
        names,
        access: if number == 1 {
            ZoneAccess::Only(vec![word("atlas-web"), word("carto-api")])
        } else {
            ZoneAccess::All
        },
        created_at: before(900_000),
    };
    vec![zone(1, "atlas.example.net", 3), zone(2, "carto.example.net", 0)]
}

pub fn keys() -> Vec<KeyView> {
    let key = |number: u128, comment: &str, algorithm: &str, bits| KeyView {
        id: SshKeyId(id(80 + number)),
        algorithm: algorithm.into(),
        bits,
        fingerprint: FINGERPRINT.into(),
        comment: comment.into(),
        created_at: before(700_000),
    };
    vec![key(1, "dev.lead@laptop", "ssh-ed25519", 256), key(2, "<img src=x onerror=alert(1)>", "ssh-rsa", 4096)]
}

pub fn key_claim() -> KeyClaimView {
    let text = format!(
        "I move my SSH key {FINGERPRINT} to the account dev.lead of Corpus at corpus.example.net: 9sZpQ2xTn7LbVw4rKc8YdHf3MgJt6AeU"
    );
    KeyClaimView {
        id: corpus_domain::KeyClaimId(id(90)),
        fingerprint: FINGERPRINT.into(),
        text,
        expires_at: before(-540),
    }
}

pub fn audit() -> Vec<AuditView> {
    let row = |seconds, action: &str, subject: &str, detail| AuditView {
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

pub fn refused_logins() -> Vec<RefusedLoginsView> {
    let row = |login: &str, network: &str, reason: &str, count| RefusedLoginsView {
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
