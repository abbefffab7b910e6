//! A name that is switched between an environment on two nodes and one on the second only, and back.

use std::time::Duration;

use corpus_api::environments::balance::AttachEnvironmentName;
use corpus_api::guests::{DestroyGuest, RequestGuest};
use corpus_api::names::{DetachName, GetName, SwitchName};
use corpus_api::undoes::{ListUndoes, Undo};
use corpus_api::zones::{ListZones, RemoveZone};
use corpus_domain::{DnsName, DnsNameId, Environment, GuestId, JobId, JobState, NodeId};
use sqlx::PgPool;

use super::share::faults;
use super::world::{Ended, World, fact};
use crate::dns::authority::addresses;
use crate::jobs::testing::Fault;

const STEPS: [&str; 5] = ["proven", "ways", "switch", "record", "answered"];
const NAME: &str = "shop.trial.corpus.test";
/// How often all guests that a name leads to are looked for, a second apart.
const ALL_SERVE_TRIES: usize = 10;
/// Of dev on the first node and on the second one, and of prod on the second one. Each answers with its own name.
const GUESTS: [(&str, Environment, usize); 3] = [
    ("a.trial.corpus.test", Environment::Dev, 0),
    ("b.trial.corpus.test", Environment::Dev, 1),
    ("c.trial.corpus.test", Environment::Prod, 1),
];

struct Shop {
    world: World,
    nodes: [NodeId; 2],
    addresses: [String; 2],
    guests: Vec<GuestId>,
    name: DnsNameId,
}

impl Shop {
    async fn open(db: PgPool) -> Self {
        let mut world = World::new(db).await;
        let addresses = [fact("CORPUS_LAB_NODE1"), fact("CORPUS_LAB_NODE2")];
        let first = world.ready_node().await;
        world.node_address.clone_from(&addresses[1]);
        world.scrub().await;
        let nodes = [first, world.ready_node().await];
        world.zone().await;
        let mut guests = Vec::new();
        for (name, environment, at) in GUESTS {
            let plain = World::plain_request(name);
            let wanted = RequestGuest { environment, node: Some(nodes[at]), ..plain };
            let (guest, job) = world.request(wanted).await.unwrap();
            world.done(job).await;
            guests.push(guest);
            world.node_address.clone_from(&addresses[at]);
            let serve = format!(
                "lxc-attach -n {name} -- sh -c 'mkdir /srv/site && echo {name} >/srv/site/index.html && \
                 systemd-run -q --unit site python3 -m http.server 80 --directory /srv/site'"
            );
            world.on_node(&serve).await;
        }
        // Nothing is deployed: the rows are all that a switch needs.
        for statement in [
            "insert into environments (project_id, environment) select distinct project_id, environment from guests",
            "insert into environment_guests (guest_id, project_id, environment, role, state)
             select id, project_id, environment, case when name like 'b.%' then 'follower' else 'leader' end, 'ready'
             from guests",
        ] {
            sqlx::query(statement).execute(world.controller.services.db.pool()).await.unwrap();
        }
        let (project, name) = ("atlas".parse().unwrap(), NAME.parse().unwrap());
        let asked = AttachEnvironmentName { project, environment: Environment::Dev, name };
        let attached = world.controller.call(&world.member, asked, None).await.unwrap();
        world.done(attached.job).await;
        Self { world, nodes, addresses, guests, name: attached.name }
    }

    async fn ask(&self, environment: Environment) -> JobId {
        let asked = SwitchName { name: self.name, guest: None, environment: Some(environment) };
        self.world.controller.call(&self.world.member, asked, None).await.unwrap().job
    }

    /// The name leads to the environment, at each node that anybody may be sent to, and its record says where.
    async fn leads_to(&self, environment: Environment, nodes: &[usize], after: &str) {
        let line = self.world.controller.call(&self.world.member, GetName { name: self.name }, None).await.unwrap();
        assert_eq!(line.environment, Some(environment), "{after}");
        let mut wanted: Vec<String> = match environment {
            Environment::Dev => self.addresses.to_vec(),
            _ => vec![self.addresses[1].clone()],
        };
        wanted.sort_unstable();
        assert_eq!(line.addresses, wanted, "{after}");
        let name: DnsName = NAME.parse().unwrap();
        let seen = addresses(fact("CORPUS_LAB_DNS").parse().unwrap(), &name, false).await.unwrap();
        let mut seen: Vec<String> = seen.iter().map(ToString::to_string).collect();
        seen.sort_unstable();
        assert_eq!(seen, wanted, "{after}: the record");
        let own = GUESTS.iter().filter(|(_, of, _)| *of == environment).map(|(guest, ..)| *guest);
        let mut own: Vec<&str> = own.collect();
        own.sort_unstable();
        for at in nodes {
            let address = &self.addresses[*at];
            let ask =
                format!("for i in 1 2 3 4 5 6; do curl -s --max-time 5 -H 'Host: {NAME}' http://{address}/; done");
            // A proxy that was told of a guest just now may not have found it answering yet; never is another one asked.
            for attempt in 1..=ALL_SERVE_TRIES {
                let told = self.world.on_node(&format!("{{ {ask}; }} | sort -u")).await;
                let served: Vec<_> = told.lines().collect();
                assert!(served.iter().all(|guest| own.contains(guest)), "{after}: at node {}: {served:?}", at + 1);
                if served == own {
                    break;
                }
                assert!(attempt < ALL_SERVE_TRIES, "{after}: at node {}: {served:?} only", at + 1);
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }

    /// The former nodes take visitors until resolvers have forgotten them, and no longer.
    async fn settles(&self, environment: Environment) {
        let db = self.world.controller.services.db.pool();
        let over = "update dns_names set former_until = now() where former_until is not null";
        assert_eq!(sqlx::query(over).execute(db).await.unwrap().rows_affected(), 1);
        self.world.controller.end_switches().await.unwrap();
        let left: i64 = sqlx::query_scalar("select count(*) from dns_names where former_guest_id is not null")
            .fetch_one(db)
            .await
            .unwrap();
        assert_eq!(left, 0, "{environment}");
    }
}

fn is_done(ended: &Ended, fault: &Fault) {
    assert_eq!(ended.state(), JobState::Done, "{fault:?}: {}", ended.story());
}

#[sqlx::test(migrations = "../../migrations")]
#[ignore = "needs the lab"]
async fn a_switch_to_other_nodes_fails_and_repeats_at_every_step(db: PgPool) {
    let shop = Shop::open(db).await;
    let (dev, prod) = (Environment::Dev, Environment::Prod);
    let both: &[usize] = &[0, 1];
    shop.leads_to(dev, both, "at first").await;

    for fault in faults(&STEPS) {
        let after = format!("{fault:?}");
        let job = shop.ask(prod).await;
        let ended = shop.world.run(job, fault.clone()).await;
        if matches!(fault, Fault::Repeat(_)) {
            is_done(&ended, &fault);
            // Who comes to the node that it leads to no more is brought to where it leads.
            shop.leads_to(prod, both, &after).await;
            let job = shop.ask(dev).await;
            is_done(&shop.world.run(job, fault.clone()).await, &fault);
        } else {
            assert_eq!(ended.state(), JobState::Undone, "{fault:?}: {}", ended.story());
        }
        shop.leads_to(dev, both, &after).await;
    }

    // From the second node to both, undone in the middle: who was sent to the first one meanwhile is served.
    let job = shop.ask(prod).await;
    shop.world.done(job).await;
    shop.settles(prod).await;
    shop.world.run_open_jobs().await;
    let job = shop.ask(dev).await;
    let ended = shop.world.run(job, Fault::FailAfter("record".to_owned())).await;
    assert_eq!(ended.state(), JobState::Undone, "{}", ended.story());
    shop.leads_to(prod, both, "undone in the middle").await;
    let job = shop.ask(dev).await;
    let ended = shop.world.run(job, Fault::KillDuring("switch".to_owned(), std::time::Duration::from_millis(50))).await;
    assert_eq!(ended.state(), JobState::Done, "{}", ended.story());
    shop.leads_to(dev, both, "a server is lost").await;

    // One press leads it back, without waiting for resolvers.
    let undoes = shop.world.controller.call(&shop.world.member, ListUndoes::default(), None).await.unwrap().items;
    let undo = undoes.iter().find(|one| one.said.contains("was switched from prod of atlas to dev")).unwrap().id;
    shop.world.controller.call(&shop.world.member, Undo { undo }, None).await.unwrap();
    shop.world.run_open_jobs().await;
    shop.leads_to(prod, both, "undone by a press").await;
    shop.settles(prod).await;

    shop.leave().await;
}

impl Shop {
    async fn leave(mut self) {
        let member = self.world.member.clone();
        let job = self.world.controller.call(&member, DetachName { name: self.name }, None).await.unwrap().job;
        self.world.done(job).await;
        for rows in ["delete from environment_guests", "delete from environments"] {
            sqlx::query(rows).execute(self.world.controller.services.db.pool()).await.unwrap();
        }
        for guest in &self.guests {
            let job = self.world.controller.call(&member, DestroyGuest { guest: *guest }, None).await.unwrap().job;
            self.world.done(job).await;
        }
        let zones = self.world.controller.call(&self.world.ops, ListZones::default(), None).await.unwrap().items;
        self.world.controller.call(&self.world.ops, RemoveZone { zone: zones[0].id }, None).await.unwrap();
        for (node, address) in self.nodes.into_iter().zip(self.addresses.clone()) {
            self.world.node_address = address;
            self.world.leave(node).await;
        }
    }
}
