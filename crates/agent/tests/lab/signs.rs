//! Who knocks is counted at the node's edge, whatever a guest says; who is blocked reaches nothing; our line stays.

use std::thread::sleep;
use std::time::Duration;

use corpus_protocol::{Answer, Egress, NodePlan, Request, SignsReading};

use crate::line::Line;
use crate::network::Two;
use crate::suite::drift;
use crate::world::port;

fn read(line: &mut Line, after: Option<i64>) -> SignsReading {
    // A second that is not over is told next time.
    sleep(Duration::from_millis(2_100));
    match line.ask(Request::ReadSigns { after }).unwrap() {
        Answer::Signs(reading) => *reading,
        other => panic!("{other:?}"),
    }
}

impl Two<'_> {
    fn blocks(&self, line: &mut Line, blocked: &[&str]) -> Box<NodePlan> {
        let blocked = blocked.iter().map(|one| one.parse().unwrap()).collect();
        let plan = Box::new(NodePlan { blocked, ..self.plan(Egress::default()) });
        line.change(&Request::ApplyNode { plan: plan.clone() });
        plan
    }

    fn reached_by(&self, other: &str, port: u16) -> bool {
        let connect = format!("timeout 2 bash -c '</dev/tcp/{}/{port}'", self.world.address);
        self.world.on(other, &connect).success
    }

    /// What comes from the other node to the guests' ports is counted, and only what looks like a refused login.
    pub fn sees_who_knocks(&self, line: &mut Line, other: &str) {
        println!("--- signs of intrusion");
        let here = self.world.address.clone();
        self.blocks(line, &[]);
        let before = read(line, None);
        let (good, evil) = (port(&self.good), port(&self.evil));
        let knock = format!(
            "for i in $(seq 20); do ssh -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
             -o ConnectTimeout=5 -p {good} nobody@{here} true; done; true"
        );
        self.world.on(other, &knock).expect_success();
        // A guest answers like a server of SSH, and a page leads a browser to it: it knocks at no door.
        let lure = format!(
            "for i in $(seq 25); do timeout 2 bash -c 'exec 3<>/dev/tcp/{here}/{evil}; \
             printf \"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n\" >&3; cat <&3' > /dev/null; done; true"
        );
        self.world.on(other, &lure).expect_success();
        let garbage = format!("timeout 2 bash -c 'exec 3<>/dev/tcp/{here}/443; echo nonsense >&3; cat <&3'; true");
        self.world.on(other, &garbage).expect_success();

        let reading = read(line, Some(before.until));
        let from_other: Vec<_> = reading.ssh.iter().filter(|one| one.from.to_string() == other).collect();
        assert_eq!(from_other.len(), 1, "{reading:?}");
        assert_eq!((from_other[0].port.get(), from_other[0].refused, from_other[0].accepted), (good, 20, 0));
        assert!(reading.tls_errors > before.tls_errors, "a handshake that failed is not counted");
        // What was told is not told again, and what a guest keeps in its own log changes nothing.
        let forge =
            "for i in $(seq 50); do logger -t sshd 'Failed password for root from 198.51.100.99 port 1 ssh2'; done";
        self.inside(&self.evil, forge);
        let again = read(line, Some(reading.until));
        assert!(again.ssh.iter().all(|one| one.refused == 0 || one.from.to_string() != other), "{again:?}");
        assert!(!format!("{again:?}").contains("198.51.100.99"), "a guest's log is believed");
    }

    /// Whoever is blocked reaches nothing; what is ours can't be blocked by anybody.
    pub fn keeps_out_who_knocked(&self, line: &mut Line, other: &str) {
        let ours = self.world.must("echo ${SSH_CONNECTION%% *}");
        let (ours, good) = (ours.trim(), port(&self.good));
        assert!(self.reached_by(other, 80) && self.reached_by(other, good));
        let plan =
            self.blocks(line, &[other, ours, "10.5.0.10", "10.5.0.1", "127.0.0.1", &self.world.address, "fe80::1"]);
        for port in [22, 80, 443, good] {
            assert!(!self.reached_by(other, port), "a blocked address reaches {port}");
        }
        // Our line, others, and guests with each other and the node go on.
        assert!(self.world.on_node("true").success && self.world.http(self.good.name.as_str()).success);
        assert!(self.inside(&self.evil, "timeout 2 bash -c '</dev/tcp/10.5.0.1/80'").success);
        // What the node asks of the blocked address is answered all the same.
        assert!(self.world.on_node(&format!("timeout 2 bash -c '</dev/tcp/{other}/22'")).success);

        assert_eq!(drift(line, Request::CheckNode { plan: plan.clone() }), Vec::<String>::new());
        self.world.must(&format!("nft delete element inet corpus blocked4 '{{ {other} }}'"));
        let found = drift(line, Request::CheckNode { plan: plan.clone() });
        assert!(found.len() == 1 && found[0].contains(other), "{found:?}");
        line.twice(&Request::ApplyNode { plan });
        assert!(!self.reached_by(other, 80), "a repair does not keep it out");

        self.blocks(line, &[]);
        assert!(self.reached_by(other, 80), "a block that was lifted holds");
    }
}
