//! All certificates of a full node are replaced, as after a directory has revoked them, while visitors of all its names come
//! and stay: none of them fails.

use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use corpus_protocol::{Egress, HttpRoute, NodePlan, Request, ServedCertificate};

use crate::certificates::{AT_ONCE, MANY, Made, id, put};
use crate::crowd::measured;
use crate::line::Line;
use crate::network::Two;
use crate::suite::drift;

const VISITORS: &str = include_str!("rotation.py");
/// How many are replaced by one plan. A controller replaces 20 in a minute, each by a plan of its own.
const TOGETHER: usize = 200;
/// Tells the visitors that it is over.
const ENDS: &str = "/run/corpus-rotation-ends";

impl Two<'_> {
    /// On a node whose names have no certificates, and have none after it.
    pub fn rotates_many(&self, line: &mut Line, other: &str) {
        println!("--- {MANY} certificates rotate");
        let world = self.world;
        let [before, after] = ["*.many.lab.test"; 2].map(Made::good);
        let [old, new] = [&before, &after].map(|made| made.served(world, id(), &[]));
        let mut served: Vec<ServedCertificate> = (0..MANY).map(|number| named(&old, number)).collect();
        bring(line, &before, &served);
        line.change(&apply(self.many(served.clone())));

        let script =
            format!("rm -f {ENDS}; ulimit -n 4096; python3 - {} {MANY} {ENDS} <<'END'\n{VISITORS}\nEND", world.address);
        let mut visitors = world.begin_on(other, &script);
        let mut said = BufReader::new(visitors.stdout.take().unwrap()).lines();
        assert_eq!(said.next().unwrap().unwrap(), "ready");
        let (serving, began, mut longest) = (world.serving(), Instant::now(), Duration::ZERO);
        for first in (0..MANY).step_by(TOGETHER) {
            let part: Vec<ServedCertificate> = (first..first + TOGETHER).map(|number| named(&new, number)).collect();
            bring(line, &after, &part);
            drop(served.splice(first..first + TOGETHER, part));
            let began = Instant::now();
            line.change(&apply(self.many(served.clone())));
            longest = longest.max(began.elapsed());
        }
        let took = began.elapsed();
        assert!(world.begin_on(other, &format!("touch {ENDS}")).wait().unwrap().success());
        let told = said.next().unwrap().unwrap();
        visitors.wait().unwrap();
        let told = format!(
            "{MANY} certificates replaced on one node in {:.1} s, {TOGETHER} by a plan of {:.1} s at most; visitors: {told}",
            took.as_secs_f64(),
            longest.as_secs_f64()
        );
        println!("{told}");
        measured(&told);
        assert!(
            told.contains("visitors: failed 0, certificates 2, "),
            "the old one or the new one, and no other: {told}"
        );
        assert_eq!(world.serving(), serving, "the proxy was reloaded");
        for number in [0, MANY / 2, MANY - 1] {
            assert_eq!(world.shown(&format!("n{number}.many.lab.test")), after.certificate);
        }
        // Of what was replaced nothing is left: neither a file with a key, nor in the running proxy.
        let check = Request::CheckNode { plan: Box::new(self.many(served)) };
        assert_eq!(drift(line, check), Vec::<String>::new());
        assert_eq!(world.must("ls /etc/corpus/certificates | wc -l").trim(), MANY.to_string());
        line.change(&apply(self.plan(Egress::default())));
        assert_eq!(world.must("ls -A /etc/corpus/certificates"), "");
        assert!(world.begin_on(other, &format!("rm -f {ENDS}")).wait().unwrap().success());
    }

    /// All names below one lead to a guest; each has a certificate of its own.
    fn many(&self, certificates: Vec<ServedCertificate>) -> NodePlan {
        let mut plan = self.plan(Egress::default());
        let good = plan.http_routes.iter().find(|route| route.guest == self.good.name).unwrap().clone();
        plan.http_routes.push(HttpRoute { name: "many.lab.test".parse().unwrap(), wildcard: true, ..good });
        NodePlan { certificates, ..plan }
    }
}

/// The certificate for another of the names, with an id of its own.
fn named(one: &ServedCertificate, number: usize) -> ServedCertificate {
    let names = vec![format!("n{number}.many.lab.test").parse().unwrap()];
    ServedCertificate { id: id(), names, ..one.clone() }
}

fn bring(line: &mut Line, made: &Made, served: &[ServedCertificate]) {
    for part in served.chunks(AT_ONCE) {
        line.change(&put(part.iter().map(|one| made.file(one.id)).collect()));
    }
}

fn apply(plan: NodePlan) -> Request {
    Request::ApplyNode { plan: Box::new(plan) }
}
