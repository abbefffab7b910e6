//! A guest resolves names by its node: those of our zones as they are now, and nobody else is answered.

use std::process::Command;
use std::time::{Duration, Instant};

use corpus_protocol::{Egress, GuestFile, GuestSetup, NodePlan, Request, ZoneServers};

use crate::line::Line;
use crate::network::Two;
use crate::world::World;

const ZONE: &str = "resolve.corpus.test";
/// Asks a server for an address as often as it can, for three seconds.
const FLOOD: &str = "import socket,time,os\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM);e=time.monotonic()+3\nwhile time.monotonic()<e:\n n=os.urandom(4).hex().encode()\n s.sendto(os.urandom(2)+b'\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\x08'+n+b'\\7resolve\\6corpus\\4test\\0\\0\\1\\0\\1',('10.5.0.1',53))";

impl Two<'_> {
    /// Its own zone's names, as soon as they are there, and gone when they are gone.
    pub fn resolves(&self, line: &mut Line, other: &str) {
        println!("--- names");
        let Some(server) = std::env::var("CORPUS_LAB_DNS_OF_NODES").ok() else { panic!("the lab has a DNS server") };
        zone("POST", "", &format!("{{\"name\":\"{ZONE}.\",\"kind\":\"Native\",\"nameservers\":[\"ns1.{ZONE}.\"]}}"));
        let zones = vec![ZoneServers { zone: ZONE.parse().unwrap(), servers: vec![server.parse().unwrap()] }];
        let plan = Box::new(NodePlan { zones, ..self.plan(Egress::default()) });
        line.change(&Request::ApplyNode { plan });
        let file =
            |path: &str, text: &str, yields| GuestFile { path: path.into(), text: text.into(), mode: 0o644, yields };
        for guest in [&self.evil, &self.good] {
            let files = vec![file(
                "/etc/resolv.conf",
                "# Kept by Corpus\nnameserver 10.5.0.1\noptions timeout:2 attempts:3\n",
                true,
            )];
            let setup = Box::new(GuestSetup { files, ..GuestSetup::default() });
            line.twice(&Request::SetUpGuest { name: guest.name.clone(), id: None, setup });
        }
        let found = || self.inside(&self.good, &format!("getent ahostsv4 www.{ZONE} | head -n1 | cut -d' ' -f1")).text;
        assert_eq!(found(), "");
        for ip in ["10.9.9.9", "192.0.2.77"] {
            record(ip);
            assert_eq!(found().trim(), ip);
        }
        self.answers_its_guests_alone(other);
        self.answers_all_of_them();
        zone("DELETE", &format!("/{ZONE}."), "");
    }

    fn answers_its_guests_alone(&self, other: &str) {
        let ask = |from: &str| {
            format!(
                "python3 -c \"import socket\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM);s.settimeout(1);s.sendto(b'ab\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\3www\\7resolve\\6corpus\\4test\\0\\0\\1\\0\\1',('{from}',53))\nprint(len(s.recv(999)))\""
            )
        };
        assert!(self.inside(&self.evil, &ask("10.5.0.1")).success, "the question is right");
        self.world.on(other, &format!("ip route replace 10.5.0.1 via {}", self.world.address)).expect_success();
        for place in ["10.5.0.1", &self.world.address] {
            assert!(!self.world.on(other, &ask(place)).success, "the resolver answers others at {place}");
        }
        self.world.on(other, "ip route del 10.5.0.1").expect_success();
        assert!(!self.inside(&self.evil, &ask(&self.world.address)).success);
    }

    /// One that asks without end delays nobody.
    fn answers_all_of_them(&self) {
        let slowest = std::thread::scope(|scope| {
            let flood = scope.spawn(|| self.inside(&self.evil, &format!("python3 -c \"{FLOOD}\"")));
            std::thread::sleep(Duration::from_millis(500));
            let asked = format!(
                "python3 -c \"import socket,time\nt=[]\nfor i in range(20):\n a=time.monotonic();socket.gethostbyname('www.{ZONE}');t.append(time.monotonic()-a)\nprint(max(t))\""
            );
            let said = self.inside(&self.good, &asked);
            flood.join().unwrap();
            said.text.trim().parse::<f64>().unwrap_or_else(|_| panic!("{}", said.text))
        });
        println!("{:8.1} ms  the slowest of twenty names while a neighbour floods the resolver", slowest * 1e3);
        assert!(slowest < 0.5, "{slowest}");
    }
}

/// The name is there with this address, and no other.
fn record(ip: &str) {
    let records = format!(
        "{{\"rrsets\":[{{\"name\":\"www.{ZONE}.\",\"type\":\"A\",\"ttl\":3600,\"changetype\":\"REPLACE\",\"records\":[{{\"content\":\"{ip}\",\"disabled\":false}}]}}]}}"
    );
    zone("PATCH", &format!("/{ZONE}."), &records);
}

fn zone(method: &str, path: &str, body: &str) {
    let fact = |name: &str| std::env::var(name).unwrap();
    let url = format!("{}/api/v1/servers/localhost/zones{path}", fact("CORPUS_LAB_DNS_API"));
    let key = format!("X-API-Key: {}", fact("CORPUS_LAB_DNS_API_KEY"));
    let mut curl = Command::new("curl");
    let done =
        curl.args(["-sS", "-m", "5", "--noproxy", "*", "-X", method, "-H", &key, "-d", body, &url]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// How long a node's resolver takes to be there again: what its unit promises.
pub fn comes_back(world: &World) {
    world.must("systemctl kill -s KILL corpus-resolver");
    let end = Instant::now() + Duration::from_secs(5);
    while world.must("systemctl is-active corpus-resolver || true").trim() != "active" {
        assert!(Instant::now() < end, "the resolver does not come back");
    }
}
