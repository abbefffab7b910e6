//! What visitors ask for is counted for the name that they came by, told to who follows it, and served all the same when
//! nobody counts.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use corpus_protocol::{
    AccessLine, AddressDetail, Answer, Egress, ErrorKind, Event, Millis, Request, RoutedName, TrafficMinute,
    TrafficReading,
};

use crate::line::Line;
use crate::network::Two;
use crate::suite::drift;

/// What a hostile visitor sends on a connection of its own: each would be a line about `good.lab.test` if it could.
const FORGED: [&str; 6] = [
    "GET /a|good.lab.test||474554|2F|200 HTTP/1.1\r\nHost: evil.lab.test\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: evil.lab.test|good.lab.test\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: x.good.lab.test\r\n\r\n",
    "A|B /one HTTP/1.1\r\nHost: evil.lab.test\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: evil.lab.test\r\nHost: good.lab.test\r\n\r\n",
    "corpus1|1|1|good.lab.test||474554|2F|200|1|1|0|0|0|0|0|--|192.0.2.1\r\n\r\n",
];
const LONG: usize = 3000;

fn name(text: &str) -> RoutedName {
    RoutedName { name: text.parse().unwrap(), wildcard: false }
}

fn now() -> Millis {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis().try_into().unwrap()
}

fn read(line: &mut Line, after_ms: Option<Millis>) -> TrafficReading {
    match line.ask(Request::ReadTraffic { after_ms }).unwrap() {
        Answer::Traffic(reading) => *reading,
        other => panic!("{other:?}"),
    }
}

fn of<'a>(reading: &'a TrafficReading, wanted: &str) -> Vec<&'a TrafficMinute> {
    reading.minutes.iter().filter(|one| one.name == name(wanted)).collect()
}

fn requests(reading: &TrafficReading, wanted: &str) -> u64 {
    of(reading, wanted).iter().map(|one| one.requests).sum()
}

/// Waits until this many requests are told of; they are when their minute is over.
fn counted(line: &mut Line, after_ms: Option<Millis>, wanted: &str, count: u64) -> TrafficReading {
    let end = Instant::now() + Duration::from_secs(75);
    loop {
        let reading = read(line, after_ms);
        if requests(&reading, wanted) >= count {
            return reading;
        }
        assert!(Instant::now() < end, "{reading:?}");
        sleep(Duration::from_secs(1));
    }
}

impl Two<'_> {
    fn visit(&self, host: &str, path: &str) -> u16 {
        let said = Command::new("curl")
            .args(["-s", "-o", "/dev/null", "-m", "5", "-w", "%{http_code}", "--path-as-is", "-H"])
            .args([format!("Host: {host}"), format!("http://{}{path}", self.world.address)])
            .output()
            .unwrap();
        String::from_utf8_lossy(&said.stdout).trim().parse().unwrap()
    }

    fn send(&self, bytes: &str) {
        let mut stream = TcpStream::connect((self.world.address.as_str(), 80)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        stream.write_all(bytes.as_bytes()).unwrap();
        let _ = stream.read(&mut [0; 512]);
    }

    /// Counted and told, whatever visitors try; and it outlives its collector.
    pub fn counts_visitors(&self, line: &mut Line) {
        println!("--- who asked for what");
        line.change(&Request::ApplyNode { plan: Box::new(self.plan(Egress::default())) });
        // Who came before came in an earlier minute.
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let minute = (now.as_secs() / 60 + 1) * 60;
        sleep(Duration::from_secs(minute).saturating_sub(now));
        let after = Some((minute - 60) * 1000);
        println!("             {} datagrams may wait", self.world.must("cat /proc/sys/net/unix/max_dgram_qlen").trim());

        self.is_followed(line);
        let before = Instant::now();
        for path in ["/", "/?token=secret", "/none", "/%0a%1b"] {
            self.visit("good.lab.test", path);
        }
        for bytes in FORGED {
            self.send(bytes);
        }
        self.send(&format!("GET /{} HTTP/1.1\r\nHost: evil.lab.test\r\n\r\n", "|".repeat(LONG)));
        assert_eq!(self.visit("nobody.lab.test", "/"), 404);
        println!("{:8.1} ms  visits", before.elapsed().as_secs_f64() * 1e3);

        // `is_followed` has made three visits of each.
        let reading = counted(line, after, "good.lab.test", 7);
        assert_eq!((requests(&reading, "good.lab.test"), reading.lost_lines), (7, 0), "{reading:?}");
        let good = of(&reading, "good.lab.test");
        let statuses = good.iter().fold([0; 5], |mut sum, one| {
            sum.iter_mut().zip(one.statuses).for_each(|(sum, more)| *sum += more);
            sum
        });
        assert_eq!(statuses, [0, 5, 0, 2, 0], "{good:?}");
        assert!(
            good.iter()
                .all(|one| one.bytes_out > 0 && one.latency.requests() == one.requests && one.at_ms % 60_000 == 0)
        );
        let names: BTreeSet<_> = reading.minutes.iter().map(|one| one.name.name.as_str()).collect();
        assert_eq!(names, ["evil.lab.test", "good.lab.test"].into(), "a visitor makes up a name");
        let text = serde_json::to_string(&reading).unwrap();
        assert!(!text.contains("secret"), "a query leaves the node: {text}");

        self.outlives_its_collector(line);
    }

    /// Who follows a name is told of its requests, of no other's, and of no more of an address than was asked for.
    fn is_followed(&self, line: &mut Line) {
        let mut follower = self.world.line();
        let names = vec![name("good.lab.test")];
        let id = follower.send(Request::FollowAccess { names, addresses: AddressDetail::Cut, limit_s: 60 });
        sleep(Duration::from_millis(500));
        for _ in 0..3 {
            assert_eq!(self.visit("evil.lab.test", "/"), 200);
            assert_eq!(self.visit("good.lab.test", "/?q=secret"), 200);
        }
        let mut told: Vec<AccessLine> = Vec::new();
        while told.len() < 3 {
            match follower.event() {
                Event::Access { lines, left_out: 0 } => told.extend(lines),
                other => panic!("{other:?}"),
            }
        }
        assert!(
            told.iter().all(|one| one.name == name("good.lab.test") && one.path == "/" && one.status == 200),
            "{told:?}"
        );
        assert!(told.iter().all(|one| one.from.as_deref().is_some_and(|from| from.ends_with(".0/24"))), "{told:?}");
        follower.cancel(id);
        assert_eq!(follower.result(id).unwrap_err().kind, ErrorKind::Cancelled);
        // A line that is cut takes its request along: the agent ends at once.
        let names = vec![name("good.lab.test")];
        follower.send(Request::FollowAccess { names, addresses: AddressDetail::None, limit_s: 600 });
        let before = Instant::now();
        follower.close();
        assert!(before.elapsed() < Duration::from_secs(10), "it follows for nobody");
        // Nobody on the node but root may follow, or write what haproxy does.
        let others = "setpriv --reuid=nobody --regid=nogroup --clear-groups";
        for place in ["/run/corpus-traffic/follow", "/var/lib/corpus-traffic/now", "/var/lib/haproxy/corpus/access"] {
            assert!(
                !self.world.on_node(&format!("{others} sh -c '[ -r {place} ] || [ -w {place} ]'")).success,
                "{place}"
            );
        }
        assert!(
            self.world
                .on_node("[ $(stat -c %U /proc/$(systemctl show -P MainPID corpus-traffic.service)) != root ]")
                .success
        );
        line.ask(Request::ReadTraffic { after_ms: Some(now()) }).unwrap();
    }

    fn outlives_its_collector(&self, line: &mut Line) {
        // What waits in the socket while one ends and the next one begins is counted too.
        let after = Some(now() - now() % 60_000 - 60_000);
        self.visit("good.lab.test", "/");
        self.world.must("sleep 6; systemctl kill -s KILL corpus-traffic.service");
        self.visit("good.lab.test", "/");
        let reading = counted(line, after, "good.lab.test", 2);
        println!("             {} lost while it was killed", reading.lost_lines);

        // Without it sites are served; a check tells, and the next plan starts it and nothing else.
        let plan = Box::new(self.plan(Egress::default()));
        line.change(&Request::ApplyNode { plan: plan.clone() });
        let proxy = || self.world.must("systemctl show -P MainPID corpus-proxy.service; cat /run/corpus-proxy/pid");
        let before = proxy();
        self.world.must("systemctl stop corpus-traffic.socket corpus-traffic.service");
        assert_eq!(self.visit("good.lab.test", "/"), 200);
        let found = drift(line, Request::CheckNode { plan: plan.clone() });
        assert_eq!(found, ["corpus-traffic.socket is not active", "corpus-traffic.service is not active"]);
        let gone =
            Request::FollowAccess { names: vec![name("good.lab.test")], addresses: AddressDetail::Cut, limit_s: 5 };
        assert_eq!(line.ask(gone).unwrap_err().kind, ErrorKind::Missing);
        line.twice(&Request::ApplyNode { plan: plan.clone() });
        assert_eq!(drift(line, Request::CheckNode { plan: plan.clone() }), Vec::<String>::new());
        assert_eq!(proxy(), before, "the proxy began anew");
        let after = Some(now() - now() % 60_000 - 1);
        self.visit("good.lab.test", "/");
        counted(line, after, "good.lab.test", 1);

        // Another agent is taken over by itself: its file is another one, of the same words.
        let pid = || self.world.must("systemctl show -P MainPID corpus-traffic.service");
        let old = pid();
        self.world.must("cd /var/lib/corpus/lxc && cp agent agent.new && mv agent.new agent");
        let end = Instant::now() + Duration::from_secs(75);
        while pid() == old {
            assert!(Instant::now() < end, "the old agent goes on counting");
            // A line that is silent for a minute counts as cut.
            read(line, after);
            sleep(Duration::from_secs(1));
        }
    }
}
