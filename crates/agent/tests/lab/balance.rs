//! A name that two guests share: while one of them is out of the balance its visitors go to the other, and none is lost.

use corpus_domain::{BalancePolicy, DnsName, PoolId, Stickiness};
use corpus_protocol::{Answer, Egress, GuestPlan, HealthCheck, HttpRoute, Https, NodePlan, Pool, PoolMember, Request};

use crate::line::Line;
use crate::network::Two;

const NAME: &str = "shared.lab.test";
const LOAD: &str = include_str!("load.py");
/// Answers with the name that it is given, each request after a moment, so that there are always some under way.
const SERVES: &str = "import http.server,os,time\nclass H(http.server.BaseHTTPRequestHandler):\n protocol_version='HTTP/1.1'\n def do_GET(s):\n  time.sleep(0.02 if s.path=='/' else 0)\n  b=os.environ['WHO'].encode()\n  s.send_response(200);s.send_header('Content-Length',str(len(b)));s.end_headers();s.wfile.write(b)\n def log_message(s,*a): pass\nclass S(http.server.ThreadingHTTPServer):\n request_queue_size=1024\nS(('',80),H).serve_forever()";
/// Somebody else has the proxy read its files anew. That takes a moment, in which what it is told is told to the old process.
const RELOAD: &str = r#"
told() { echo show info | socat - /run/corpus-proxy/admin.sock | sed -n 's/^Pid: //p'; }
before=$(told)
systemctl reload corpus-proxy.service
for try in $(seq 200); do now=$(told); [ -z "$now" ] || [ "$now" = "$before" ] || exit 0; sleep 0.1; done
echo "process $before serves still"; exit 1"#;

impl Two<'_> {
    /// The plan with a name of both, of whom these take part.
    fn shared(&self, active: [bool; 2]) -> NodePlan {
        let mut plan = self.plan(Egress::default());
        let id: PoolId = "0199d3c0-0000-7000-8000-000000000001-prod".parse().unwrap();
        let host: DnsName = NAME.parse().unwrap();
        let guests = [&self.evil, &self.good];
        plan.http_routes.push(HttpRoute {
            name: host.clone(),
            wildcard: false,
            guest: guests[0].name.clone(),
            ip: guests[0].net.ip,
            https: Https::default(),
            pool: Some(id.clone()),
        });
        let member = |(guest, active): (&&GuestPlan, bool)| PoolMember {
            guest: guest.name.clone(),
            ip: guest.net.ip,
            active,
            via: None,
        };
        plan.pools.push(Pool {
            id,
            members: guests.iter().zip(active).map(member).collect(),
            policy: BalancePolicy::RoundRobin,
            stickiness: Stickiness::None,
            check: Some(HealthCheck { host, path: "/health".parse().unwrap(), status: 200 }),
        });
        plan
    }

    fn balance(&self, line: &mut Line, active: [bool; 2]) {
        line.twice(&Request::ApplyNode { plan: Box::new(self.shared(active)) });
        for (guest, active) in [&self.evil, &self.good].into_iter().zip(active) {
            if !active {
                let answer = line.ask(Request::AwaitIdle { guest: guest.name.clone(), limit_s: 10 });
                assert!(matches!(answer, Ok(Answer::Done { .. })), "{answer:?}");
            }
        }
    }

    /// Under load each of the two leaves and comes back, and stops serving while it is out: no request fails.
    pub fn share_a_name(&self, line: &mut Line, other: &str) {
        println!("--- a name of two");
        let serve =
            |guest: &GuestPlan| format!("systemd-run -q --unit shared -E WHO={} python3 -c \"{SERVES}\"", guest.name);
        for guest in [&self.evil, &self.good] {
            let stop =
                "systemctl list-units --plain --no-legend 'run-*.service' | cut -d' ' -f1 | xargs -r systemctl stop";
            assert!(self.inside(guest, &format!("{stop}; {}", serve(guest))).success);
        }
        self.balance(line, [true, true]);
        let load = format!("python3 - {} {NAME} <<'END'\n{LOAD}\nEND", self.world.address);
        let mut client = self.world.begin_on(other, &load);
        std::thread::sleep(std::time::Duration::from_secs(1));
        for (out, guest) in [([false, true], &self.evil), ([true, false], &self.good)] {
            self.balance(line, out);
            assert!(self.inside(guest, "systemctl stop shared").success);
            std::thread::sleep(std::time::Duration::from_secs(1));
            // Nobody else sees it until it is proven: it is answered by itself.
            assert!(self.inside(guest, &serve(guest)).success);
            let own = format!(
                "python3 -c \"import http.client as h;c=h.HTTPConnection('10.5.0.1');c.request('GET','/health',headers={{'Host':'{NAME}'}});print(c.getresponse().read().decode())\""
            );
            let answered = || self.inside(guest, &own).text.trim().to_owned();
            let mut tries = 0..100;
            while !guest.name.as_str().starts_with(&answered()) || answered().is_empty() {
                assert!(tries.next().is_some(), "{} is not answered by itself: {}", guest.name, answered());
            }
            self.balance(line, [true, true]);
            std::thread::sleep(std::time::Duration::from_secs(1));
        }
        // The same again by a process that starts while one is out.
        self.balance(line, [false, true]);
        self.world.must(RELOAD);
        assert_eq!(
            line.ask(Request::CheckNode { plan: Box::new(self.shared([false, true])) }),
            Ok(Answer::Drift { differences: vec![] })
        );
        self.balance(line, [true, true]);
        let text = std::io::read_to_string(client.stdout.take().unwrap()).unwrap();
        client.wait().unwrap();
        // As it was.
        for guest in [&self.evil, &self.good] {
            let web = "systemctl stop shared; systemd-run -q python3 -m http.server -d /www 80";
            assert!(self.inside(guest, web).success);
        }
        line.change(&Request::ApplyNode { plan: Box::new(self.plan(Egress::default())) });
        println!("a name of two guests, each out and back: {text}");
        assert!(text.contains(" failed 0 "), "{text}");
        for guest in ["evil", "good"] {
            assert!(text.contains(guest), "{guest} served nothing: {text}");
        }
    }
}
