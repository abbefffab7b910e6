//! Sample values of every kind of view, some of them hostile.

#[path = "hook_samples.rs"]
mod hook_samples;
#[path = "job_samples.rs"]
mod job_samples;

pub use hook_samples::{hook, hooks};
pub use job_samples::{job_details, jobs, log};

use chrono::{DateTime, Duration, Utc};
use corpus_api::Principal;
use corpus_api::Version;
use corpus_api::audit::AuditEntry;
use corpus_api::backings::{Backings, EnvironmentBackings};
use corpus_api::certificates::{
    CertificateAuthority, CertificateLine, CertificatePage, HttpsSettings, NameCertificate, ServedByNode,
};
use corpus_api::first_steps::{FirstStep, FirstSteps, Step};
use corpus_api::guests::{
    Guest, GuestDifference, GuestEnvironment, GuestLine, GuestSafeguard, GuestSettings, MissingUpdates,
};
use corpus_api::keys::{KeyClaim, KeyPage, OwnKey};
use corpus_api::logins::RefusedLogin;
use corpus_api::lxc_lines::{AllowedLine, AllowedLines};
use corpus_api::moves::LastMove;
use corpus_api::names::{AliasTarget, NameLine, NamePage, NamePointer};
use corpus_api::nodes::{self, Drift, DriverFact, Node, NodeFacts, NodeLine, NodePage, NodeReading, NodeUse};
use corpus_api::notices::{News, Notice, NoticePage};
use corpus_api::overview::{Counts, FailedGuest, Overview};
use corpus_api::principal::CameBy;
use corpus_api::profiles::{Profile, ProfileDefaults, Profiles};
use corpus_api::quotas::{ProjectQuota, QuotaPolicy, QuotaUse};
use corpus_api::requests::asking::{AskForGuest, Wanted};
use corpus_api::requests::rules::{CreateRequestRule, RequestRule};
use corpus_api::requests::{Request, RequestLine};
use corpus_api::robots::keys::DeployKey;
use corpus_api::robots::{Robot, RobotLine};
use corpus_api::sizes::{ImageOffer, Making, SizeLine, SizeRoom, Sizes};
use corpus_api::tokens::{NewToken, Token, TokenPage, TokenText};
use corpus_api::undoes::{UndoLine, Undoable};
use corpus_api::views::View;
use corpus_api::zones::{Zone, ZoneAccess};
use corpus_app::asked::Listing;
use corpus_app::pages::name_switch::Ends;
use corpus_controller::store::drift::Finding;
use corpus_domain::{
    Backing, Bytes, CertificateId, CertificateSource, CertificateState, DeploymentState, DnsNameId, DriftKind, Driver,
    Environment, Grant, GuestId, GuestNetwork, GuestState, IdRange, JobId, JobKind, JobState, KeyClaimId, MacAddress,
    Mode, NameState, NodeId, NodeState, NoticeId, Overcommit, ProjectName, ProjectRole, QuotaOf, Reachability,
    RequestId, RequestOf, RequestRuleId, RequestState, Room, Safeguard, SizeProfile, SshKeyId, SshPort, TokenId,
    Trigger, UndoId, UserId, Verdict, ViewId, ViewedList, ZoneId,
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
        robot: None,
        came_by: CameBy::default(),
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
        requests: 1,
        unread: 3,
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

/// Each size, and where there is room for it.
/// A project that has a limit of everything but storage: guests by the policy, memory of its own.
pub fn quota() -> ProjectQuota {
    ProjectQuota::of(word("atlas-web"), |of| match of {
        QuotaOf::Guests => QuotaUse::of(3, Some(5), false),
        QuotaOf::Memory => QuotaUse::of(6 << 30, Some(8 << 30), true),
        QuotaOf::Cpu => QuotaUse::of(4000, Some(2000), false),
        QuotaOf::Storage => QuotaUse::of(12_000_000_000, None, true),
        QuotaOf::Names => QuotaUse::of(1, Some(10), false),
        QuotaOf::Ports => QuotaUse::of(0, Some(5), false),
        QuotaOf::Backups => QuotaUse::of(31_000_000_000, Some(200_000_000_000), true),
    })
}

/// What holds by default.
pub fn requests() -> Vec<RequestLine> {
    vec![request(true).line, request(false).line]
}

/// A guest that was asked for, open or refused.
pub fn request(open: bool) -> Request {
    let wanted = AskForGuest {
        name: word("load.example.net"),
        project: word("atlas-web"),
        environment: Environment::Dev,
        profile: None,
        size: Some(SizeProfile::Large),
        node: None,
        memory: None,
        cpu: None,
        processes: None,
        io_weight: None,
        backing: None,
        driver: None,
        image: None,
        mode: None,
        ip: None,
        mac: None,
        names: corpus_api::guests::WantedNames::default(),
        autostart: true,
        conf: vec![word("routes")].try_into().unwrap_or_default(),
        privileged: None,
        instead_of: None,
        comment: word("A load test next week, then it is destroyed"),
    };
    let now = Utc::now();
    let line = RequestLine {
        id: RequestId(id(if open { 1 } else { 2 })),
        operation: RequestOf::RequestGuest,
        title: "Guest load.example.net, large for atlas-web dev".to_owned(),
        asker: "dev.lead".to_owned(),
        project: Some(word("atlas-web")),
        state: if open { RequestState::Open } else { RequestState::Refused },
        created_at: now - Duration::minutes(9),
        expires_at: now + Duration::days(14),
        decided_at: (!open).then_some(now),
        decided_by: (!open).then(|| "ops".to_owned()),
        rule: None,
    };
    Request {
        line,
        wanted: Wanted::RequestGuest(Box::new(wanted)),
        changed: None,
        reason: (!open).then(|| "Use a medium one: there is room for that".to_owned()),
        path: None,
        job: None,
        may_decide: open,
        may_withdraw: false,
    }
}

/// Rules that decide the simple ones.
pub fn request_rules() -> Vec<RequestRule> {
    let rule = CreateRequestRule {
        operation: RequestOf::RequestGuest,
        environments: vec![Environment::Dev].try_into().unwrap_or_default(),
        size: Some(SizeProfile::Small),
        nodes: corpus_api::requests::rules::RuleNodes::default(),
        projects: corpus_api::zones::ZoneProjects::default(),
        zone: None,
        verdict: Verdict::Approve,
        reason: None,
    };
    let (id, said, created_at) = (RequestRuleId(id(3)), rule.said(), Utc::now());
    vec![RequestRule { id, rule, said, created_by: Some(word("ops")), created_at }]
}

pub fn quota_policy() -> QuotaPolicy {
    QuotaPolicy::of(|of| match of {
        QuotaOf::Guests | QuotaOf::Ports => Some(5),
        QuotaOf::Memory => Some(4 << 30),
        QuotaOf::Cpu => Some(2000),
        QuotaOf::Storage | QuotaOf::Backups => None,
        QuotaOf::Names => Some(10),
    })
}

pub fn backings() -> Backings {
    use Backing::{Btrfs, Dir, Loop, Lvm, Overlayfs, Zfs};
    let all = [Overlayfs, Btrfs, Zfs, Loop, Lvm, Dir];
    let of = |environment, allowed: &[Backing], usual| EnvironmentBackings::of(environment, allowed.to_vec(), usual);
    let (dev, staging) = (of(Environment::Dev, &all, None), of(Environment::Staging, &all, None));
    Backings { items: vec![dev, staging, of(Environment::Prod, &[Loop, Lvm, Dir], Some(Loop))] }
}

/// Two, one of them usual where nobody says anything.
pub fn profiles() -> Profiles {
    let website = ProfileDefaults {
        size: Some(SizeProfile::Xsmall),
        backing: Some(Backing::Btrfs),
        ..ProfileDefaults::default()
    };
    let database = ProfileDefaults {
        size: Some(SizeProfile::Large),
        backing: Some(Backing::Loop),
        memory: Some(word("4 GiB")),
        cpu: Some(word("2")),
        ..ProfileDefaults::default()
    };
    let of = |name, comment: &str, defaults, usual_in: &[Environment]| {
        Profile::of(word(name), Some(comment.to_owned()), defaults, usual_in.to_vec())
    };
    Profiles {
        items: vec![
            of("database", "Held to its disk, with memory to spare", database, &[]),
            of("small-website", "Static pages and small programs", website, &[Environment::Dev, Environment::Staging]),
        ],
    }
}

/// What operators allow: two that set a key, and one that says that one of these is not set.
pub fn lxc_lines() -> AllowedLines {
    let of = |name, key, value: Option<&str>, comment: &str, guests| AllowedLine {
        guests: Some(guests),
        ..AllowedLine::of(word(name), word(key), value.map(word), Some(comment.to_owned()))
    };
    AllowedLines {
        items: vec![
            of("many-files", "lxc.prlimit.nofile", Some("65536"), "For databases and proxies", 1),
            of("routes", "lxc.sysctl.net.ipv4.ip_forward", Some("1"), "For VPNs", 0),
            of("usual-files", "lxc.prlimit.nofile", None, "As LXC has it", 0),
        ],
    }
}

pub fn sizes() -> Sizes {
    let line = |(at, size): (usize, &SizeProfile)| {
        let limits = size.limits();
        let nodes = 3_u32.saturating_sub(u32::try_from(at / 3).unwrap_or_default());
        let room = [Environment::Dev, Environment::Staging].map(|environment| {
            let on = (1..=nodes).map(|number| format!("node-0{number}.paris.example.net")).collect();
            SizeRoom { environment, nodes, of: 3, on }
        });
        SizeLine { size: *size, storage: size.storage(), memory: limits.memory, cpu: limits.cpu, room: room.to_vec() }
    };
    let making = |(backing, holds_size, nodes)| {
        let not_in = if holds_size { Vec::new() } else { vec![Environment::Prod] };
        Making { driver: Driver::Lxc, backing, holds_size, nodes, of: 3, not_in }
    };
    let makings = [(Backing::Overlayfs, false, 3), (Backing::Loop, true, 3), (Backing::Btrfs, true, 1)];
    let image = |(name, days): (&str, i64)| ImageOffer { name: word(name), made_at: Some(before(days * 86_400)) };
    Sizes {
        items: SizeProfile::ALL.iter().enumerate().map(line).collect(),
        makings: makings.map(making).to_vec(),
        images: [("debian-12", 2), ("debian-13", 9)].map(image).to_vec(),
    }
}

/// A list with nothing asked of it, and two views that are kept of it.
pub fn listing() -> Listing {
    let view = |number, name: &str, query: &str| View {
        id: ViewId(id(number)),
        list: ViewedList::Guests,
        name: name.to_owned(),
        query: query.to_owned(),
    };
    let views = vec![view(0xa0, "My prod guests", "environment=prod"), view(0xa1, "<b>Failed</b>", "state=failed")];
    Listing { views, ..Listing::default() }
}

/// The same, asked something that is no view yet.
pub fn listing_asked() -> Listing {
    let query = [("q".to_owned(), "www".to_owned())].into();
    Listing { here: "q=www".to_owned(), views: listing().views, ..Listing::of(query) }
}

fn used(memory: u64, storage: u64) -> NodeUse {
    let hundredth = 640_000_000;
    NodeUse {
        memory_total: Bytes(hundredth * 100),
        memory_used: Bytes(hundredth * memory),
        storage_total: Bytes(20_000_000_000 * 100),
        storage_used: Bytes(20_000_000_000 * storage),
        storage_promised: Bytes(20_000_000_000),
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
        name: None,
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
        dns_name: None,
        ssh_port: 22,
        ssh_user: word("root"),
        fingerprint: FINGERPRINT.into(),
        gateway: line.busy.then(|| nodes::NodeGateway {
            address: word("bastion.example.org"),
            port: 22,
            user: word("hop"),
            fingerprint: FINGERPRINT.into(),
            shows_other_key: false,
        }),
        state_reason: (line.state == NodeState::Failed).then(|| "haproxy refused the configuration".into()),
        reachability_reason: None,
        network: GuestNetwork::DEFAULT,
        bridge: "lxcbr1".into(),
        capacity: Some(Room { memory: Bytes(64 << 30), cpu_millis: 32_000, storage: Bytes(2_000_000_000_000) }),
        promised: Room { memory: Bytes(40 << 30), cpu_millis: 31_500, storage: Bytes(300_000_000_000) },
        pools: vec![nodes::NodePool {
            backing: Backing::Lvm,
            room: Bytes(800_000_000_000),
            promised: Bytes(125_000_000_000),
        }],
        overcommit: Overcommit::DEFAULT,
        facts: Some(facts()),
        facts_at: Some(before(7_500)),
        reading: Some(NodeReading { load: 1.37, uptime_s: 3_542_400, clock_ahead_s: (!reachable).then_some(-86_400) }),
        images: vec![word("debian-12-1f0c9a3b7d52"), word("debian-12-77b02de0c4f1")],
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
        wildcard: false,
        zone: Some(ZoneId(id(71))),
        zone_name: Some(word("atlas.example.net")),
        alias_of: None,
        guest: GuestId(id(20)),
        guest_name: word("www.atlas.example.net"),
        environment: None,
        state,
        state_reason: (state == NameState::Failed).then(|| "The name server ns1.example.net does not answer.".into()),
        answered_at: (state == NameState::Attached).then(|| before(12)),
        unanswered_since: None,
        unanswered_reason: None,
        site: None,
        target: Some("203.0.113.11".into()),
        target_ipv6: None,
        addresses: vec!["203.0.113.11".into()],
        pointer: None,
        job: (state == NameState::Wanted).then(|| JobId(id(41))),
        https: state == NameState::Attached,
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
        node_name: None,
        node_address: word("node-01.paris.example.net"),
        node_reachability: if number == 2 { Reachability::Unreachable } else { Reachability::Reachable },
        size: SizeProfile::Medium,
        memory: SizeProfile::Medium.limits().memory,
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
        image: word("debian-12-77b02de0c4f1"),
        profile: Some(word("small-website")),
        image_made_at: Some(before(9 * 86_400)),
        image_is_old: true,
        updates: (number != 2).then(|| MissingUpdates {
            count: if number == 0 { 3 } else { 0 },
            packages: ["libssl3:amd64", "openssl", "tzdata"]
                .into_iter()
                .take(if number == 0 { 3 } else { 0 })
                .map(str::to_owned)
                .collect(),
            image: word("debian-12-9a01c4d2e7f3"),
            at: before(1_800),
        }),
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
        conf: vec![word("many-files")],
        settings_version: GuestSettings::of(true, vec![word("many-files")]).version,
        has_password: up,
        ssh_command: line.ssh_port.map(|port| format!("ssh -p {port} sysadmin@{}", line.node_address)),
        host_fingerprint: up.then(|| FINGERPRINT.into()),
        other_host_key: None,
        state_reason: (state == GuestState::Failed)
            .then(|| "the node restarted and the guest did not come back".into()),
        uptime_s: (state == GuestState::Running).then_some(3_542_400),
        storage: None,
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
        last_move: (number == 1).then(|| LastMove {
            at: before(600),
            from: Some(word("192.0.2.7")),
            bytes: Bytes(3_200_000),
            downtime_ms: 4_100,
        }),
        may_operate: true,
        may_change: true,
        may_move: true,
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
        provider: corpus_domain::ProviderName::first(),
        ttl_s: corpus_api::words::ZoneTtl::USUAL,
        created_at: before(900_000),
    };
    vec![zone(1, "atlas.example.net", 3), zone(2, "carto.example.net", 0)]
}

pub fn claim() -> corpus_api::claims::NameClaim {
    corpus_api::claims::NameClaim {
        id: corpus_domain::NameClaimId(id(95)),
        name: word("www.atlas.example"),
        guest: GuestId(id(20)),
        guest_name: word("www.atlas.example.net"),
        target: Some("203.0.113.11".into()),
        target_ipv6: Some("2001:db8::11".into()),
        proof_name: "_corpus-challenge.www.atlas.example".into(),
        proof: "5f2b8c1de0a94f37b6c2a1908d7e64f1c0b3a592".into(),
        leads: true,
        proven: false,
        answered: vec!["203.0.113.11".into()],
        problem: None,
        asked_at: Some(before(1)),
        expires_at: before(-8000),
    }
}

pub fn keys() -> KeyPage {
    let key = |number: u128, comment: &str, algorithm: &str, bits| OwnKey {
        id: SshKeyId(id(80 + number)),
        algorithm: algorithm.into(),
        bits,
        fingerprint: FINGERPRINT.into(),
        comment: comment.into(),
        created_at: before(700_000),
        last_used_at: None,
    };
    let items =
        vec![key(1, "dev.lead@laptop", "ssh-ed25519", 256), key(2, "<img src=x onerror=alert(1)>", "ssh-rsa", 4096)];
    KeyPage { items, next: None }
}

pub fn undoes() -> Vec<UndoLine> {
    let (created_at, expires_at) = (before(60), before(-540));
    let said = "The key dev.lead@old-laptop was removed.".to_owned();
    vec![UndoLine { id: UndoId(id(700)), of: Undoable::Key, said, ready: true, created_at, expires_at }]
}

pub fn notices() -> NoticePage {
    let news = [
        News::Deployment {
            project: word("atlas-web"),
            environment: Environment::Prod,
            number: 41,
            guest: None,
            state: DeploymentState::RolledBack,
            trigger: Trigger::Push,
            by: "dev.two".to_owned(),
            fault: Some("10_web: exit status 1".to_owned()),
            failed_before: None,
        },
        News::Job {
            job: JobId(id(701)),
            kind: Some(JobKind::GuestCreate),
            title: "Create guest shop.example.org on node-03.example.net".to_owned(),
            state: JobState::Undone,
            reason: Some("Copy the image: the disk of the node is full".to_owned()),
        },
        News::KeyClaim {
            claim: KeyClaimId(id(702)),
            fingerprint: "SHA256:bPeS4tJoqtnpEDbGEyx9wvj8Lr8yE6n8Wk5b4pQn3Sw".to_owned(),
        },
        News::Job {
            job: JobId(id(703)),
            kind: Some(JobKind::GuestEnlarge),
            title: "Enlarge guest www.example.org to medium, 10 GB".to_owned(),
            state: JobState::Done,
            reason: None,
        },
    ];
    let items = news.into_iter().zip(710..).map(|(news, number)| {
        let (title, detail, path) = (news.title(), news.detail(), news.path());
        let (created_at, unread) = (before(420), number < 712);
        Notice { id: NoticeId(id(number)), title, detail, path, news, created_at, unread }
    });
    NoticePage { items: items.collect(), next: None }
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

pub fn robot() -> Robot {
    let line = RobotLine {
        robot: word("ci"),
        role: ProjectRole::Developer,
        environments: vec![Environment::Dev, Environment::Staging],
        expires_at: None,
        created_by: Some(word("dev.lead")),
        created_at: before(700_000),
        tokens: 2,
        keys: 1,
        last_used_at: Some(before(130)),
    };
    let key = DeployKey {
        id: SshKeyId(id(90)),
        algorithm: "ssh-ed25519".into(),
        bits: 256,
        fingerprint: FINGERPRINT.into(),
        comment: "<img src=x onerror=alert(1)>".into(),
        scope: Grant::Deploy,
        created_at: before(700_000),
        expires_at: Some(before(-7_000_000)),
        last_used_at: Some(before(4_000)),
    };
    Robot { version: line.version(), line, login: word("carto-api/ci"), tokens: tokens().items, keys: vec![key] }
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
        id: corpus_domain::AuditId(id(95)),
        at: before(seconds),
        actor: "dev.lead".into(),
        robot: false,
        door: Some(corpus_domain::Door::Page),
        token: None,
        project: action.starts_with("guest").then(|| "atlas".to_owned()),
        action: action.into(),
        subject: subject.into(),
        detail,
    };
    let by_token = |row| AuditEntry { door: Some(corpus_domain::Door::Api), token: Some("Jenkins".into()), ..row };
    vec![
        by_token(row(30, "deployment.order", "atlas", serde_json::json!({ "environment": "dev" }))),
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

/// The first steps of an operator of a new installation, or of a new member.
pub fn first_steps(ops: bool) -> FirstSteps {
    let step = |step, done, may| FirstStep { step, done, may };
    let of_operators = [
        step(Step::LinkNode, true, true),
        step(Step::InitializeNode, false, true),
        step(Step::CreateZone, false, true),
    ];
    let of_all = [
        step(Step::AddKey, false, true),
        step(Step::Project, false, ops),
        step(Step::RequestGuest, false, false),
        step(Step::Push, false, false),
    ];
    let of_all = of_all.into_iter().filter(|one| !ops || one.step == Step::Project);
    let steps = of_operators.into_iter().filter(|_| ops).chain(of_all).collect();
    FirstSteps { dismissed: false, steps, project: None }
}

/// A name with its certificate, of the authority of Corpus; the last try for the next one failed, or not.
pub fn certificate(failed: bool) -> (NameLine, NameCertificate, CertificateAuthority) {
    let reverse = "no reverse zone of ours holds 12.0.5.10.in-addr.arpa; an operator can make one under DNS";
    let pointer = NamePointer {
        address: "10.5.0.12".into(),
        stands: !failed,
        problem: failed.then(|| reverse.into()),
        since: Some(before(4000)),
    };
    let line = NameLine { pointer: Some(pointer), ..name(1, "www.atlas.example.net", NameState::Attached) };
    let served = ServedByNode {
        source: CertificateSource::Internal,
        names: vec![word("www.atlas.example.net")],
        issuer: "corpus.example.org certificate authority".into(),
        serial: "5e:0c:71:aa:93:1f:44:02".into(),
        not_before: before(40 * 86_400),
        not_after: before(-50 * 86_400),
        renew_at: Some(before(-20 * 86_400)),
    };
    let state = if failed { CertificateState::Failed } else { CertificateState::Served };
    let problem = failed.then(|| "The directory does not reach http://www.atlas.example.net/: open port 80.".into());
    let next = failed.then(|| before(-3600));
    let https = HttpsSettings { redirect: true, hsts_s: Some(86_400) };
    let shown = NameCertificate::new(line.id, state, Some(served), problem, next, None, https);
    let authority = CertificateAuthority {
        certificate: "-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----\n".into(),
        fingerprint: ["3A"; 32].join(":"),
        not_after: before(-20 * 365 * 86_400),
    };
    (line, shown, authority)
}

/// Guests that a name can lead to.
pub fn ends() -> Ends {
    let guest = |number, text, environment| guest_line(number, text, GuestState::Running, environment);
    let guests = vec![
        guest(0, "www.atlas.example.net", Environment::Prod),
        guest(1, "search.atlas.example.net", Environment::Staging),
    ];
    Ends { guests, is_cut: false }
}

/// Those that are another name for it.
pub fn aliases(of: &NameLine) -> Vec<NameLine> {
    let alias_of = Some(AliasTarget { id: of.id, name: of.name.clone() });
    let alias = |number, text, state| NameLine { alias_of: alias_of.clone(), ..name(number, text, state) };
    vec![alias(5, "docs.atlas.example.net", NameState::Attached), alias(6, "maps.atlas.example.net", NameState::Wanted)]
}

/// One that is about to end, one that should have been renewed, and one that is well.
pub fn certificates() -> CertificatePage {
    let line = |number: u128, text: &str, left: i64, source| CertificateLine {
        id: CertificateId(id(130 + number)),
        name: DnsNameId(id(60 + number)),
        dns_name: word(text),
        wildcard: number == 2,
        project: word("atlas-web"),
        source,
        issuer: if source == CertificateSource::Uploaded {
            "Some issuer R3"
        } else {
            "corpus.example.org certificate authority"
        }
        .into(),
        not_before: before((365 - left) * 86_400),
        not_after: before(-left * 86_400),
        renew_at: None,
        problem: (number == 1).then(|| "The directory does not answer.".into()),
    };
    let items = vec![
        line(1, "www.atlas.example.net", 5, CertificateSource::Uploaded),
        line(2, "preview.atlas.example.net", 30, CertificateSource::Internal),
        line(3, "shop.atlas.example.net", 80, CertificateSource::Internal),
    ];
    CertificatePage { items, next: None }
}
