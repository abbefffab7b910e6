//! What rules let in, what is published, and that it ends with the rule.

use std::net::{TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use corpus_domain::Transport;
use corpus_protocol::{Answer, Block, Egress, FirewallReading, FirewallRule, NodePlan, PublishedPort, Request};

use crate::line::Line;
use crate::network::Two;

const PATIENCE: Duration = Duration::from_secs(2);
/// Answers each datagram with itself.
const ECHO: &str = "systemd-run -q python3 -c \"import socket
s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM);s.bind(('',5353))
while True: s.sendto(*s.recvfrom(99))\"";
/// Keeps a connection, and tells whether it still carries anything after a while.
const KEEPS: &str = "python3 -c \"import socket,time
s=socket.create_connection(('10.5.0.11',80));time.sleep(2.5)
s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n');s.settimeout(2)
try: print(len(s.recv(99)) > 0)
except OSError as e: print(e)\"";

fn id(number: u8) -> corpus_domain::FirewallRuleId {
    format!("0199d3c0-0000-7000-8000-0000000000{number:02}").parse().unwrap()
}

fn rule(number: u8, protocol: Transport, ports: &str) -> FirewallRule {
    FirewallRule {
        id: id(number),
        from: vec!["10.5.0.10".parse().unwrap()],
        to: vec!["10.5.0.11".parse().unwrap()],
        protocol,
        ports: ports.parse().unwrap(),
    }
}

pub fn published(number: u8, protocol: Transport, to_port: u16) -> PublishedPort {
    let to = "10.5.0.11".parse().unwrap();
    PublishedPort { id: id(number), protocol, port: 30_001, to, to_port, from: vec!["0.0.0.0/0".parse().unwrap()] }
}

impl Two<'_> {
    fn bring(&self, line: &mut Line, with: impl FnOnce(&mut NodePlan)) {
        let mut plan = self.plan(Egress::default());
        with(&mut plan);
        line.change(&Request::ApplyNode { plan: Box::new(plan) });
    }

    fn tcp(&self, from_good: bool, place: &str) -> bool {
        let plan = if from_good { &self.good } else { &self.evil };
        self.inside(plan, &format!("timeout 2 bash -c '</dev/tcp/{place}'")).success
    }

    fn udp(&self, place: (&str, u16), from_port: u16) -> bool {
        let (host, port) = place;
        let ask = format!(
            "python3 -c \"import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM);s.bind(('',{from_port}))\n\
             s.settimeout(2);s.sendto(b'x',('{host}',{port}));s.recv(9)\" 2>/dev/null"
        );
        self.inside(&self.evil, &ask).success
    }

    pub fn published_tcp(&self) -> bool {
        let place = format!("{}:30001", self.world.address).parse().unwrap();
        TcpStream::connect_timeout(&place, PATIENCE).is_ok()
    }

    fn published_udp(&self) -> bool {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.send_to(b"x", format!("{}:30001", self.world.address)).unwrap();
        socket.recv(&mut [0; 9]).is_ok()
    }

    fn read(line: &mut Line) -> FirewallReading {
        match line.ask(Request::ReadFirewall).unwrap() {
            Answer::Firewall(reading) => *reading,
            other => panic!("{other:?}"),
        }
    }

    /// The allowed ports and no others, of TCP and UDP, from a neighbour and from outside; closed with the rule.
    pub fn lets_in(&self, line: &mut Line) {
        println!("--- rules and published ports");
        assert!(self.inside(&self.good, ECHO).success);
        self.bring(line, |_| {});
        assert!(!self.tcp(false, "10.5.0.11/80") && !self.published_tcp() && !self.published_udp());

        self.bring(line, |plan| {
            plan.firewall = vec![rule(1, Transport::Tcp, "80"), rule(2, Transport::Udp, "5350-5360")];
        });
        assert!(self.tcp(false, "10.5.0.11/80"), "what is allowed is closed");
        assert!(!self.tcp(false, "10.5.0.11/22"), "a rule opens another port");
        // Guests between which there is no rule at all do not even find each other, so nothing is dropped of them.
        let dropped = Self::read(line).drops;
        assert!(dropped.iter().any(|one| one.port == 22 && one.to.octets()[3] == 11), "{dropped:?}");
        assert!(!self.tcp(true, "10.5.0.10/80"), "a rule opens the way back");
        let end = Instant::now() + Duration::from_secs(10);
        while !self.udp(("10.5.0.11", 5353), 0) {
            assert!(Instant::now() < end, "UDP that is allowed is closed");
        }
        let counts = Self::read(line).counts;
        assert!(counts.iter().filter(|one| one.packets > 0).count() == 2, "{counts:?}");

        self.bring(line, |plan| {
            plan.published = vec![published(3, Transport::Tcp, 80), published(4, Transport::Udp, 5353)];
            plan.firewall = vec![rule(1, Transport::Tcp, "80")];
        });
        assert!(self.published_tcp() && self.published_udp(), "what is published is closed");
        assert!(!self.udp(("10.5.0.11", 5353), 0), "what is published opens the way of neighbours");
        let kept = Self::read(line).counts;
        let of =
            |counts: &[corpus_protocol::RuleCount]| counts.iter().find(|one| one.id == id(1)).map(|one| one.packets);
        assert!(of(&kept) >= of(&counts), "another rule begins this one at nothing: {counts:?} {kept:?}");

        // A plan that would cut the line that it came by changes nothing.
        let mut plan = self.plan(Egress::default());
        plan.blocks = vec![Block { id: id(5), from: vec!["0.0.0.0/1".parse().unwrap()], only: None }];
        let refused = line.ask(Request::ApplyNode { plan: Box::new(plan) }).unwrap_err();
        assert!(refused.message.contains("would cut itself off"), "{refused}");
        // Nor does one that takes a port of the host's own.
        let mut plan = self.plan(Egress::default());
        self.world.takes_port(30_002);
        plan.published = vec![PublishedPort { port: 30_002, ..published(6, Transport::Tcp, 80) }];
        let refused = line.ask(Request::ApplyNode { plan: Box::new(plan) }).unwrap_err();
        assert!(refused.message.contains("30002/tcp of the node is taken"), "{refused}");
        self.world.must("systemctl stop taken");
        assert!(self.published_tcp(), "what was refused changed something");

        let said = std::thread::scope(|scope| {
            self.bring(line, |plan| plan.firewall = vec![rule(1, Transport::Tcp, "80")]);
            let said = scope.spawn(|| self.inside(&self.evil, KEEPS));
            std::thread::sleep(Duration::from_millis(1500));
            self.bring(line, |_| {});
            said.join().unwrap()
        });
        assert!(said.success && said.text != "True\n", "a connection outlives its rule: {}", said.text);
        assert!(!self.published_tcp() && !self.published_udp());
    }
}
