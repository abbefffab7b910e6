//! Root in a guest can be nobody else on the network, and goes only where guests may go.

use std::time::{Duration, Instant};

use corpus_domain::{Backing, EgressRule};
use corpus_protocol::{Egress, ErrorKind, GuestPlan, NodePlan, Request};

use crate::line::Line;
use crate::suite::{keys, setup};
use crate::world::{Said, World, guest, node, port};

const FRAMES: &str = include_str!("frames.py");
/// Routed to the other node: a part of the internet, and where cloud providers keep their metadata.
const FAR: [&str; 2] = ["198.51.100.80", "169.254.169.254"];

fn script(what: &str) -> String {
    format!("python3 - {what} <<'END'\n{FRAMES}\nEND")
}

/// Two guests on the node, the first of them hostile.
pub struct Two<'a> {
    pub world: &'a World,
    pub evil: GuestPlan,
    pub good: GuestPlan,
    key: std::path::PathBuf,
}

impl<'a> Two<'a> {
    /// Makes and starts them; each serves its name on port 80.
    pub fn new(world: &'a World, line: &mut Line) -> Self {
        println!("--- identity and egress");
        let evil = guest("evil.lab.test", 10, Backing::Overlayfs);
        let good = guest("good.lab.test", 11, Backing::Overlayfs);
        let (key, public) = world.key_pair("two");
        for plan in [&evil, &good] {
            let name = plan.name.clone();
            line.change(&Request::EnsureGuest { plan: Box::new(plan.clone()) });
            let setup = setup(world, &name.as_str().replace('.', "-"));
            line.change(&Request::SetUpGuest { name: name.clone(), id: None, setup: Box::new(setup) });
            line.change(&Request::EnsureKeys { name: name.clone(), id: None, keys: keys(&["root"], &public) });
            line.change(&Request::EnsureRunning { name });
        }
        let two = Self { world, evil, good, key };
        two.apply(line, Egress::default());
        for plan in [&two.evil, &two.good] {
            let web = format!(
                "mkdir -p /www && cd /www && echo {} > index.html && systemd-run -q python3 -m http.server -d /www 80",
                plan.name
            );
            let said = two.world.enter_soon("root", port(plan), &two.key, &web);
            assert!(said.success, "{}", said.text);
        }
        two
    }

    pub fn plan(&self, egress: Egress) -> NodePlan {
        NodePlan { egress, ..node(&[&self.evil, &self.good]) }
    }

    fn apply(&self, line: &mut Line, egress: Egress) {
        line.change(&Request::ApplyNode { plan: Box::new(self.plan(egress)) });
    }

    pub fn inside(&self, plan: &GuestPlan, command: &str) -> Said {
        self.world.enter("root", port(plan), &self.key, command)
    }

    /// Frames that arrive at the node's bridge and at the neighbour, while the hostile guest sends all of them.
    fn arrived(&self) -> (String, String) {
        let (node, neighbour, sent) = std::thread::scope(|scope| {
            let node = scope.spawn(|| self.world.must(&script("hear lxcbr1")));
            let neighbour = scope.spawn(|| self.inside(&self.good, &script("hear eth0")));
            std::thread::sleep(Duration::from_millis(1200));
            let sent = self.inside(&self.evil, &script("send eth0"));
            (node.join().unwrap(), neighbour.join().unwrap(), sent)
        });
        assert!(sent.success && neighbour.success, "{} {}", sent.text, neighbour.text);
        let heard = |text: &str| text.trim_start_matches("ready").trim().to_owned();
        (heard(&node), heard(&neighbour.text))
    }

    /// A guest is its port, its MAC and its address.
    pub fn nobody_else(&self) {
        let (node, neighbour) = self.arrived();
        assert_eq!((node.as_str(), neighbour.as_str()), ("honest honest-arp", ""));
        // It takes the neighbour's address, and tells everybody.
        let take = format!("ip addr add 10.5.0.11/16 dev eth0; {}", script("send eth0"));
        assert!(self.inside(&self.evil, &take).success);
        let learned = self.world.must("bridge fdb show br lxcbr1");
        let at_neighbour = |line: &&str| line.contains("00:16:3e:05:00:0b") && !line.contains("cg0a05000b");
        assert_eq!(learned.lines().find(at_neighbour), None, "the bridge takes the neighbour for somebody else");
        let visit = || self.world.http(self.good.name.as_str()).text;
        assert_eq!([visit(), visit(), visit(), visit()].map(|text| text == "good.lab.test\n 200"), [true; 4]);
        let entries = self.world.must("ip -4 neigh show dev lxcbr1");
        assert_eq!(entries.lines().filter(|line| line.trim_end().ends_with("PERMANENT")).count(), 2, "{entries}");
        self.inside(&self.evil, "ip addr del 10.5.0.11/16 dev eth0");
    }

    /// No neighbour entry and no port outlives its change by somebody else, a repair, and a reboot.
    pub fn drift_is_told(&self, line: &mut Line, drift: impl Fn(&mut Line, Request) -> Vec<String>) {
        let plan = Box::new(self.plan(Egress::default()));
        line.change(&Request::ApplyNode { plan: plan.clone() });
        self.world.must(
            "nft delete element bridge corpus ports '{ \"cg0a05000b\" . 00:16:3e:05:00:0b . 10.5.0.11 }'; \
             ip neigh del 10.5.0.10 dev lxcbr1; ip neigh replace 10.5.0.99 lladdr 00:16:3e:05:00:63 dev lxcbr1 nud permanent",
        );
        let found = drift(line, Request::CheckNode { plan: plan.clone() });
        assert_eq!(found.len(), 3, "{found:?}");
        line.twice(&Request::ApplyNode { plan: plan.clone() });
        assert_eq!(drift(line, Request::CheckNode { plan: plan.clone() }), Vec::<String>::new());

        // As an older release wrote it: guests that run keep their network.
        self.world.must("sed -i '/neighbours/d' /etc/systemd/system/corpus-network.service; systemctl daemon-reload");
        line.twice(&Request::ApplyNode { plan });
        assert!(self.inside(&self.good, "true").success);
    }

    /// A plan that comes while the node boots: the proxy has read the files that were there, and is not ready yet.
    pub fn is_brought_to_a_proxy_that_starts(&self, line: &mut Line) {
        let unit = "/run/systemd/system/corpus-proxy.service.d/slow.conf";
        self.world.must(&format!(
            "mkdir -p $(dirname {unit}); printf '[Service]\\nExecStartPost=sleep 4\\n' >{unit}; systemctl daemon-reload; \
             systemctl stop corpus-proxy; systemctl start --no-block corpus-proxy; \
             timeout 30 sh -c 'until echo | socat - UNIX-CONNECT:/run/corpus-proxy/admin.sock; do sleep 0.05; done' 2>/dev/null"
        ));
        let plan = NodePlan { http_routes: Vec::new(), ..self.plan(Egress::default()) };
        line.change(&Request::ApplyNode { plan: Box::new(plan) });
        let said = self.world.http(self.good.name.as_str());
        assert!(said.text.starts_with("No site of this name here."), "the route is there still: {}", said.text);
        self.world.must(&format!("rm -r $(dirname {unit}); systemctl daemon-reload"));
        line.change(&Request::ApplyNode { plan: Box::new(self.plan(Egress::default())) });
    }

    /// A connection of the host has a port at which guests are reached, while the proxy is down: that is said, and nothing is
    /// changed. By itself the kernel gives such a port to no connection.
    pub fn names_a_port_in_use(&self, line: &mut Line, other: &str) {
        let kept = self.world.must("cat /proc/sys/net/ipv4/ip_local_reserved_ports /etc/sysctl.d/60-corpus-ports.conf");
        assert!(
            kept.starts_with("40000-50000\n") && kept.ends_with("ip_local_reserved_ports = 40000-50000\n"),
            "{kept}"
        );
        let holds = format!(
            "import socket,struct,time;s=socket.socket();s.bind((\"\",40050));\
             s.setsockopt(socket.SOL_SOCKET,socket.SO_LINGER,struct.pack(\"ii\",1,0));s.connect((\"{other}\",22));time.sleep(300)"
        );
        self.world.must(&format!(
            "systemctl stop corpus-proxy; systemd-run -q --unit holds python3 -c '{holds}'; \
             timeout 20 sh -c 'until ss -Htn sport = 40050 | grep -q ESTAB; do sleep 0.1; done'"
        ));
        let plan = Request::ApplyNode { plan: Box::new(self.plan(Egress::default())) };
        let refused = line.ask(plan.clone()).unwrap_err();
        assert!(refused.message.contains("in use: 40050;"), "{refused}");
        assert!(self.world.must("systemctl stop holds; systemctl is-active corpus-proxy || true").contains("inactive"));
        assert!(line.change(&plan));
        assert!(self.world.http(self.good.name.as_str()).success);
    }

    pub fn reaches(&self, place: &str) -> bool {
        self.inside(&self.evil, &format!("timeout 2 bash -c '</dev/tcp/{place}'")).success
    }

    /// The internet, and not what is near, unless ops list it.
    pub fn goes_where_it_may(&self, line: &mut Line, other: &str) {
        let here = self.world.address.clone();
        for place in FAR {
            self.world.on(other, &format!("ip addr replace {place}/32 dev lo")).expect_success();
            self.world.must(&format!("ip route replace {place} via {other}"));
        }
        let [internet, metadata] = FAR;
        assert!(self.reaches(&format!("{internet}/22")), "the internet is closed");
        let closed = [
            format!("{metadata}/22"),
            format!("{other}/22"),
            format!("{here}/22"),
            "10.5.0.1/22".to_owned(),
            format!("{here}/{}", port(&self.good)),
            "10.5.0.11/80".to_owned(),
        ];
        for place in &closed {
            assert!(!self.reaches(place), "a guest reaches {place}");
        }
        assert!(self.reaches(&format!("{here}/80")), "a guest can't ask for its own site");
        // A route of its own leads to no neighbour either.
        let around = self
            .inside(&self.evil, "ip route add 10.5.0.11/32 via 10.5.0.1; timeout 2 bash -c '</dev/tcp/10.5.0.11/80'");
        assert!(!around.success, "a guest reaches its neighbour by way of the node");
        self.inside(&self.evil, "ip route del 10.5.0.11/32");

        let address = |text: &str| text.parse().unwrap();
        let rule = |text: String| text.parse::<EgressRule>().unwrap();
        self.apply(
            line,
            Egress { denied: vec![address(internet), address(other)], sites: vec![address(other)], allowed: vec![] },
        );
        assert!(!self.reaches(&format!("{internet}/22")), "a part of Corpus is reached wherever it is");
        let refused =
            |port: u16| self.inside(&self.evil, &format!("timeout 2 bash -c '</dev/tcp/{other}/{port}' 2>&1")).text;
        // Nothing listens there: the other node itself says so.
        assert!(refused(80).contains("Connection refused"), "{}", refused(80));
        assert!(refused(22).contains("No route to host"), "{}", refused(22));
        self.apply(line, Egress { allowed: vec![rule(format!("{other}:22"))], ..Egress::default() });
        assert!(self.reaches(&format!("{other}/22")), "what ops list is closed");
        self.apply(
            line,
            Egress { allowed: vec![rule(format!("{other}:23")), rule("10.0.0.0/8".into())], ..Egress::default() },
        );
        assert!(
            !self.reaches("10.5.0.11/80") && !self.reaches("10.5.0.1/22"),
            "a wide rule opens the node and its guests"
        );
        self.is_cut_off(line, other);
        for place in FAR {
            self.world.on(other, &format!("ip addr del {place}/32 dev lo")).expect_success();
            self.world.must(&format!("ip route del {place}"));
        }
    }

    /// A connection that is there ends when its way is closed.
    fn is_cut_off(&self, line: &mut Line, other: &str) {
        let talk = format!(
            "python3 -c \"import socket,time\ns=socket.create_connection(('{other}',22));s.recv(99)\ntime.sleep(2.5)\n\
             s.sendall(b'SSH-2.0-x\\r\\n');s.settimeout(2)\ntry: print(len(s.recv(99)) > 0)\nexcept OSError as e: print(e)\""
        );
        let said = std::thread::scope(|scope| {
            let said = scope.spawn(|| self.inside(&self.evil, &talk));
            std::thread::sleep(Duration::from_millis(1500));
            self.apply(line, Egress::default());
            said.join().unwrap()
        });
        assert!(said.success && said.text != "True\n", "{}", said.text);
    }

    /// Nothing of them is left; a guest is not started on a bridge that lets anybody be anybody.
    pub fn end(self, line: &mut Line) {
        let name = self.good.name.clone();
        line.change(&Request::EnsureStopped { name: name.clone(), grace_s: 0 });
        self.world.must("nft delete table bridge corpus");
        let error = line.ask(Request::EnsureRunning { name: name.clone() }).unwrap_err();
        assert_eq!((error.kind, error.message.contains("repair the node")), (ErrorKind::Missing, true), "{error}");
        line.change(&Request::ApplyNode { plan: Box::new(node(&[])) });
        line.change(&Request::EnsureRunning { name: name.clone() });
        assert!(self.world.must("ip neigh show dev lxcbr1").contains("10.5.0.11"));
        for name in [name, self.evil.name.clone()] {
            line.twice(&Request::EnsureAbsent { name, id: None });
        }
        let left =
            self.world.must("ip -4 neigh show nud permanent; nft list set bridge corpus ports | grep cg || true");
        assert_eq!(left, "");
    }

    /// What it holds when its node was switched off and on.
    pub fn outlives_a_reboot(&self) {
        self.world.must("sed -i 's/^lxc.start.auto = 0/lxc.start.auto = 1/' /var/lib/lxc/*/config");
        self.world.reboot();
        let end = Instant::now() + Duration::from_secs(20);
        while !self.world.enter("root", port(&self.good), &self.key, "true").success {
            assert!(Instant::now() < end, "the guests don't come back");
        }
        self.world.enter_soon("root", port(&self.evil), &self.key, "true");
        let (node, neighbour) = self.arrived();
        assert_eq!((node.as_str(), neighbour.as_str()), ("honest honest-arp", ""));
        assert!(!self.reaches(&format!("{}/22", self.world.address)));
    }
}
