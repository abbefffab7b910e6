//! A host that has firewalld, with its default zone: what Corpus lets in it lets in and nothing else, whichever of both
//! came first and whatever its operator does to it. When the node is given back it is as it was.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use corpus_domain::Transport;
use corpus_protocol::{Egress, Links, NodePlan, Request};

use crate::certificates::{Made, id, put};
use crate::firewall::published;
use crate::line::Line;
use crate::network::Two;
use crate::suite;
use crate::world::{World, node};

const PATIENCE: Duration = Duration::from_secs(2);
/// On the way to it is nothing of the lab's network.
const INTERNET: &str = "198.51.100.80";
/// A port of the host that nobody opened, and something listens there.
const CLOSED: u16 = 8099;
/// All that firewalld knows: what runs, what is written, and its files.
const KNOWN: &str = "for what in zones policies; do firewall-cmd --list-all-$what; firewall-cmd --permanent --list-all-$what; done; \
     find /etc/firewalld | sort";
/// It is there before its rules are.
const WORKS: &str =
    "timeout 20 sh -c 'until nft list chain inet firewalld filter_IN_public >/dev/null 2>&1; do sleep 0.1; done'";

/// The packages on the host, for as long as the test runs.
struct Firewalld<'a> {
    world: &'a World,
    other: &'a str,
}

impl<'a> Firewalld<'a> {
    /// All but itself: what comes with it names protocols in listings of nft.
    fn new(world: &'a World, other: &'a str) -> Self {
        let folder = std::env::var("CORPUS_TEST_FIREWALLD")
            .expect("scripts/test sets it to what scripts/node-packages firewalld netbase prints");
        world.must("rm -rf /root/packages; mkdir /root/packages");
        for file in std::fs::read_dir(folder).unwrap() {
            let file = file.unwrap();
            world.copy(&file.path(), &format!("/root/packages/{}", file.file_name().display()));
        }
        world.must("dpkg -i /root/packages/netbase_*.deb >/dev/null");
        Self { world, other }
    }

    fn is_installed(&self) {
        println!("--- firewalld comes to the host");
        self.operator("DEBIAN_FRONTEND=noninteractive dpkg -i /root/packages/*.deb >/dev/null 2>&1");
        self.operator("firewall-cmd -q --permanent --zone=public --add-port=8098/tcp && firewall-cmd -q --reload");
    }

    /// What an operator does, until firewalld is done with it.
    fn operator(&self, command: &str) {
        self.world.must(&format!("{command} && {WORKS}"));
    }

    fn known(&self) -> String {
        self.world.must(KNOWN)
    }

    /// Instead of the program by which the agent reloads it.
    fn stub(&self, command: &str) {
        self.world.must(&format!(
            "mv /usr/bin/firewall-cmd /usr/bin/firewall-cmd.away; printf '#!/bin/sh\\n{command}\\n' > /usr/bin/firewall-cmd; \
             chmod 755 /usr/bin/firewall-cmd"
        ));
    }

    fn restore(&self) {
        self.world.must("mv /usr/bin/firewall-cmd.away /usr/bin/firewall-cmd");
    }

    /// From outside; `peer` is another node.
    fn is_open(&self, port: u16) -> bool {
        let place: SocketAddr = format!("{}:{port}", self.world.address).parse().unwrap();
        TcpStream::connect_timeout(&place, PATIENCE).is_ok()
    }

    fn is_open_to_peer(&self, port: u16) -> bool {
        let connect = format!("timeout 2 bash -c '</dev/tcp/{}/{port}'", self.world.address);
        self.world.on(self.other, &connect).success
    }

    /// Each of the ways that lead to guests and out of them, and none to the host's own ports.
    fn let_in(&self, two: &Two<'_>, after: &str) {
        println!("{after}");
        let name = two.good.name.as_str();
        assert_eq!(self.world.http(name).text, format!("{name}\n 200"), "its site, {after}");
        assert!(self.is_open(443), "HTTPS, {after}");
        assert!(two.inside(&two.good, "true").success, "SSH of a guest, {after}");
        assert!(two.published_tcp(), "a published port, {after}");
        assert!(two.reaches(&format!("{INTERNET}/22")), "the internet for a guest, {after}");
        assert!(two.reaches("10.5.0.1/53"), "the resolver for a guest, {after}");
        assert!(self.is_open_to_peer(7443) && !self.is_open(7443), "what other nodes bring, {after}");
    }

    fn keeps_out(&self, after: &str) {
        assert!(!self.is_open(CLOSED) && !self.is_open_to_peer(CLOSED), "a port of the host, {after}");
        assert!(self.is_open(22), "the host's own SSH, {after}");
    }
}

impl Drop for Firewalld<'_> {
    /// Others use this node too.
    fn drop(&mut self) {
        let said = self.world.on_node(
            "systemctl stop closed; cd /root/packages && \
             dpkg --purge $(for file in *.deb; do dpkg-deb -f $file Package; done) >/dev/null 2>&1; \
             rm -rf /root/packages /etc/firewalld /usr/bin/firewall-cmd*; ! nft list table inet firewalld",
        );
        println!("firewalld is gone: {}", said.success);
    }
}

/// All of it, on a node that is empty before and after.
pub fn beside(world: &World, other: &str) {
    let host = Firewalld::new(world, other);
    let mut line = world.line();
    suite::node_is_set_up(world, &mut line);
    let two = Two::new(world, &mut line);
    let mut plan = two.plan(Egress::default());
    plan.published = vec![published(3, Transport::Tcp, 80)];
    line.change(&apply(&plan));

    host.is_installed();
    let before = host.known();
    assert!(!host.is_open(80), "firewalld keeps nobody out");
    let told = "firewalld is on the host and is not told of the guests: while it runs, it drops what is for them";
    assert_eq!(drift(&mut line, &plan), [told]);
    line.twice(&apply(&plan));
    assert_eq!(drift(&mut line, &plan), Vec::<String>::new());
    println!("--- what holds without it holds beside it");
    two.goes_where_it_may(&mut line, other);
    two.lets_in(&mut line);
    two.resolves(&mut line, other);

    let (plan, identity) = cut_short(&host, &two, line);
    let mut line = world.line();
    line.twice(&apply(&plan));
    world.on(other, &format!("ip addr replace {INTERNET}/32 dev lo")).expect_success();
    world.must(&format!(
        "ip route replace {INTERNET} via {other}; systemd-run -q --unit closed python3 -m http.server {CLOSED}"
    ));
    operated(&host, &two, &mut line, &plan, &identity);
    repaired(&host, &two, &mut line, &plan);
    world.on(other, &format!("ip addr del {INTERNET}/32 dev lo")).expect_success();
    world.must(&format!("ip route del {INTERNET}"));

    two.end(&mut line);
    given_back(&host, &mut line, &before);
    println!("--- a node is set up where firewalld runs");
    suite::node_is_set_up(world, &mut line);
    given_back(&host, &mut line, &before);
}

/// The agent ends between writing the files and the reload; gives the plan that was to be, and what brings the certificate
/// in it.
fn cut_short(host: &Firewalld<'_>, two: &Two<'_>, mut line: Line) -> (NodePlan, Request) {
    println!("--- an apply that is cut short");
    let mut plan = two.plan(Egress::default());
    plan.published = vec![published(3, Transport::Tcp, 80)];
    line.change(&apply(&plan));
    let (made, id) = (Made::good("link.node.internal"), id());
    let identity = put(vec![made.file(id)]);
    line.change(&identity);
    let certificate = made.served(two.world, id, &["link.node.internal"]);
    let mut plan = anew(&plan);
    plan.links = Some(Links {
        certificate,
        peers: vec![host.other.parse().unwrap()],
        lent: vec![],
        ways: vec![],
        let_out: vec![],
        open: vec![],
    });
    host.stub("kill -9 $PPID");
    assert!(line.ends_without_an_answer(apply(&plan)));
    host.restore();
    let written = host.world.must("cat /etc/firewalld/policies/corpus-node.xml");
    assert!(written.contains("7443"), "it was cut short too early: {written}");
    let runs = host.world.must("firewall-cmd --info-policy=corpus-node");
    assert!(!runs.contains("7443"), "it was cut short too late");
    (plan, identity)
}

fn operated(host: &Firewalld<'_>, two: &Two<'_>, line: &mut Line, plan: &NodePlan, identity: &Request) {
    println!("--- what operators do to it");
    for command in ["true", "firewall-cmd -q --reload", "systemctl restart firewalld"] {
        host.operator(command);
        host.let_in(two, &format!("after {command}"));
        host.keeps_out(&format!("after {command}"));
        assert_eq!(drift(line, plan), Vec::<String>::new());
    }
    host.world.must("systemctl stop firewalld");
    host.let_in(two, "after systemctl stop firewalld");
    assert!(host.is_open(CLOSED), "nothing listens at the port that is to be closed");
    assert_eq!(drift(line, plan), Vec::<String>::new());
    // What is changed meanwhile holds when it starts.
    line.change(&apply(&NodePlan { links: None, ..anew(plan) }));
    line.change(identity);
    let plan = &anew(plan);
    line.change(&apply(plan));
    host.operator("systemctl start firewalld");
    host.let_in(two, "after systemctl start firewalld");
    host.keeps_out("after systemctl start firewalld");
    // What the host's own zones reject stays rejected.
    let reject = format!("rule family=ipv4 source address={} port port=80 protocol=tcp reject", host.other);
    host.operator(&format!("firewall-cmd -q --zone=public --add-rich-rule='{reject}'"));
    assert!(!host.is_open_to_peer(80) && host.is_open(80));
    assert_eq!(drift(line, plan), Vec::<String>::new());
    assert!(!line.change(&apply(plan)), "a reload took an operator's own rule");
    assert!(!host.is_open_to_peer(80));
}

fn repaired(host: &Firewalld<'_>, two: &Two<'_>, line: &mut Line, plan: &NodePlan) {
    println!("--- drift of what runs");
    let plan = &anew(plan);
    line.change(&apply(plan));
    for (command, told) in [
        (
            "firewall-cmd -q --policy=corpus-node --remove-port=443/tcp",
            "the policy corpus-node, by which firewalld works, was changed by someone else",
        ),
        (
            "firewall-cmd -q --zone=public --change-interface=lxcbr1",
            "the zone corpus, by which firewalld works, was changed by someone else",
        ),
        (
            "cp /etc/firewalld/policies/corpus-guests.xml /root; rm /etc/firewalld/policies/corpus-guests.xml; \
             firewall-cmd -q --reload; cp /root/corpus-guests.xml /etc/firewalld/policies",
            "firewalld works without the policy corpus-guests",
        ),
    ] {
        host.operator(command);
        assert_eq!(drift(line, plan), [told]);
        line.twice(&apply(plan));
        host.let_in(two, &format!("repaired after {command}"));
        host.keeps_out(command);
        assert_eq!(drift(line, plan), Vec::<String>::new());
    }
    host.operator("firewall-cmd -q --zone=internal --add-source=10.0.0.0/8");
    let told = drift(line, plan);
    assert!(told.len() == 1 && told[0].contains("zone internal by its source 10.0.0.0/8"), "{told:?}");
    host.operator("firewall-cmd -q --zone=internal --remove-source=10.0.0.0/8");
}

/// Nothing of ours is in it, though the reload fails at first.
fn given_back(host: &Firewalld<'_>, line: &mut Line, before: &str) {
    println!("--- node given back");
    host.stub("exit 1");
    line.ask(Request::RemoveNode).unwrap_err();
    host.restore();
    assert_ne!(host.known(), before, "a reload that failed did what it should");
    line.twice(&Request::RemoveNode);
    assert_eq!(host.known(), before);
}

/// The same, and later than all that was brought so far.
fn anew(plan: &NodePlan) -> NodePlan {
    NodePlan { revision: node(&[]).revision, ..plan.clone() }
}

fn apply(plan: &NodePlan) -> Request {
    Request::ApplyNode { plan: Box::new(plan.clone()) }
}

fn drift(line: &mut Line, plan: &NodePlan) -> Vec<String> {
    suite::drift(line, Request::CheckNode { plan: Box::new(plan.clone()) })
}
