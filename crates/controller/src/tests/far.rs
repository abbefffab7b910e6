//! Guests of two nodes that rules let in to each other: what each node is told, who is open to whom, and by which address.

use std::net::Ipv4Addr;

use corpus_api::Principal;
use corpus_api::firewall::{AllowToEnvironment, AllowToGuest, GetGuestFirewall, RemoveFirewallRule};
use corpus_domain::{Environment, FirewallRuleId, GuestId, NodeId, Transport};
use corpus_protocol::{NodePlan, link_name};
use sqlx::PgPool;
use uuid::Uuid;

use super::world::World;
use crate::store::{far, firewall};

/// A project with a web server on one node and a database on another one, whose guests have the same addresses; each node
/// has a guest of another project too, and a third node has none.
struct Shop {
    world: World,
    mia: Principal,
    web: GuestId,
    db: GuestId,
    nodes: [NodeId; 3],
}

async fn shop(pool: PgPool) -> Shop {
    let world = World::new(pool).await;
    let (mut mia, mut bob) = (world.member("mia", &[]).await, world.member("bob", &[]).await);
    let (atlas, borealis) = (world.project(&mut mia, "atlas").await, world.project(&mut bob, "borealis").await);
    let web = world.guest(atlas, Environment::Dev).await;
    world.guest(borealis, Environment::Dev).await;
    let db = world.guest(atlas, Environment::Dev).await;
    let far_of_bob = world.guest(borealis, Environment::Dev).await;
    let others = [NodeId(Uuid::now_v7()), NodeId(Uuid::now_v7())];
    for (other, address) in others.iter().zip(["192.0.2.2", "192.0.2.3"]) {
        sqlx::query(
            "insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, network, bridge)
             select $1, $2, 22, 'root', host_key, '{dev}', 'ready', '10.5.0.1/16', 'lxcbr1' from nodes where id = $3",
        )
        .bind(other.0)
        .bind(address)
        .bind(world.node_id().0)
        .execute(&world.db)
        .await
        .unwrap();
    }
    world.run("update nodes set public_ip = address, reachability = 'reachable'").await;
    for (guest, ip) in [(db, "10.5.0.10"), (far_of_bob, "10.5.0.11")] {
        let moved = sqlx::query("update guests set node_id = $1, ip = $3 where id = $2");
        moved.bind(others[0].0).bind(guest.0).bind(ip).execute(&world.db).await.unwrap();
    }
    world.run("update guests set routed = true").await;
    Shop { nodes: [world.node_id(), others[0], others[1]], world, mia, web, db }
}

impl Shop {
    async fn plan(&self, at: usize) -> NodePlan {
        let mut tx = self.world.db.begin().await.unwrap();
        let plan = self.world.controller.services.next_plan(&mut tx, self.nodes[at]).await.unwrap();
        tx.commit().await.unwrap();
        plan
    }

    async fn allow(&self, from: &str, ports: &str) -> FirewallRuleId {
        let (from, ports) = (from.parse().unwrap(), ports.parse().unwrap());
        let asked = AllowToGuest { guest: self.db, from, protocol: Transport::Tcp, ports, comment: None };
        self.world.ask(&self.mia, asked).await.unwrap().rule
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_database_is_open_to_the_node_of_its_web_server(pool: PgPool) {
    let shop = shop(pool).await;
    assert!(shop.plan(0).await.links.is_none());
    let rule = shop.allow("guest:guest0.example.org", "5432").await;
    let [near, there] = [shop.plan(0).await, shop.plan(1).await];
    assert!(near.firewall.is_empty() && there.firewall.is_empty(), "their addresses are other guests' elsewhere");
    let links = near.links.unwrap();
    let [way] = links.ways.as_slice() else { panic!("{:?}", links.ways) };
    assert_eq!((way.guest.as_str(), way.node), ("guest2.example.org", shop.nodes[1]));
    assert_eq!((way.stand_in, way.node_ip), (Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(192, 0, 2, 2)));
    let [out] = links.let_out.as_slice() else { panic!("{:?}", links.let_out) };
    assert_eq!((out.id, out.ports.to_string(), out.to.as_slice()), (rule, "5432".to_owned(), &[way.stand_in][..]));
    assert_eq!(out.from, ["10.5.0.10".parse().unwrap()]);
    assert!(links.open.is_empty() && links.lent.is_empty() && links.peers.is_empty(), "nobody comes to it");
    assert_eq!(links.certificate.names[0].as_str(), link_name(shop.nodes[0]));

    let links = there.links.unwrap();
    let [open] = links.open.as_slice() else { panic!("{:?}", links.open) };
    assert_eq!((open.guest.as_str(), open.ip), ("guest2.example.org", Ipv4Addr::new(10, 5, 0, 10)));
    assert_eq!((open.to.len(), open.to[0].node, open.to[0].ports.as_slice()), (1, shop.nodes[0], &[5432][..]));
    assert_eq!(links.peers, [Ipv4Addr::new(192, 0, 2, 1)]);
    assert!(links.ways.is_empty() && links.let_out.is_empty());
    assert!(shop.plan(2).await.links.is_none(), "who has nothing to do with it is told nothing");

    // Its page says how it is reached; and both nodes are told.
    let shown = shop.world.ask(&shop.mia, GetGuestFirewall { guest: shop.db }).await.unwrap();
    assert_eq!(shown.rules[0].far.len(), 1);
    assert_eq!((shown.rules[0].far[0].address, shown.rules[0].elsewhere), (way.stand_in, 0));
    let mut conn = shop.world.db.acquire().await.unwrap();
    let at = firewall::nodes_of(&mut conn, &[rule]).await.unwrap();
    assert_eq!((at.nodes, at.coming), (vec![shop.nodes[1]], vec![shop.nodes[0]]));
    assert_eq!(far::counting(&mut conn, shop.db).await.unwrap(), [shop.nodes[0]]);
    for (guest, other) in [(shop.web, 1), (shop.db, 0)] {
        assert_eq!(far::beside(&mut conn, guest).await.unwrap(), [shop.nodes[other]].into());
    }
    drop(conn);
    // What goes is closed at once, at both ends.
    shop.world.run("update firewall_rules set state = 'in_force'").await;
    shop.world.ask(&shop.mia, RemoveFirewallRule { rule }).await.unwrap();
    for at in 0..2 {
        assert!(shop.plan(at).await.links.is_none());
    }
    let mut conn = shop.world.db.acquire().await.unwrap();
    assert_eq!(
        firewall::nodes_of(&mut conn, &[rule]).await.unwrap().coming,
        [shop.nodes[0]],
        "both are told that it goes"
    );
}

#[sqlx::test(migrations = "../../migrations")]
async fn an_address_stays_with_its_guest(pool: PgPool) {
    let shop = shop(pool).await;
    shop.allow("guest:guest0.example.org", "5432").await;
    let address = async || shop.plan(0).await.links.map(|links| links.ways[0].stand_in);
    let first = address().await.unwrap();
    assert_eq!(address().await, Some(first));
    // One without a route is not reached, and keeps its address.
    let route = "update guests set routed = $1 where name = 'guest2.example.org'";
    sqlx::query(route).bind(false).execute(&shop.world.db).await.unwrap();
    assert_eq!(address().await, None);
    sqlx::query(route).bind(true).execute(&shop.world.db).await.unwrap();
    assert_eq!(address().await, Some(first));
    // The lowest that is free is the next one.
    for (given, next) in [("{1,2,4}", 3), ("{2,3}", 1), ("{1}", 2)] {
        shop.world.run("delete from guest_stand_ins").await;
        sqlx::query(
            "insert into guest_stand_ins (guest_id, number)
             select id, number from (select id, row_number() over (order by name) as at from guests
                                     where name <> 'guest2.example.org') g
             join unnest($1::text::int[]) with ordinality n (number, at) using (at)",
        )
        .bind(given)
        .execute(&shop.world.db)
        .await
        .unwrap();
        assert_eq!(address().await, Some(Ipv4Addr::new(198, 18, 0, next)), "{given}");
    }
    // After the last one there is none.
    shop.world.run("update guest_stand_ins set number = 65534 where number = 1").await;
    shop.world.run("delete from guest_stand_ins where number = 2").await;
    assert_eq!(address().await, Some(Ipv4Addr::new(198, 18, 0, 1)));
    let refused = "insert into guest_stand_ins select id, 65535 from guests where name = 'guest1.example.org'";
    sqlx::query(refused).execute(&shop.world.db).await.unwrap_err();
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_rule_of_environments_is_as_far_as_each_guest(pool: PgPool) {
    let shop = shop(pool).await;
    let asked = AllowToEnvironment {
        project: "atlas".parse().unwrap(),
        environment: Environment::Dev,
        from: "environment:dev".parse().unwrap(),
        protocol: Transport::Tcp,
        ports: "5000-5002".parse().unwrap(),
        comment: None,
    };
    let rule = shop.world.ask(&shop.mia, asked.clone()).await.unwrap().rule;
    for (at, (own, other)) in [("guest0", "guest2"), ("guest2", "guest0")].into_iter().enumerate() {
        let plan = shop.plan(at).await;
        let links = plan.links.unwrap();
        let reached: Vec<_> = links.ways.iter().map(|way| way.guest.to_string()).collect();
        assert_eq!(reached, [format!("{other}.example.org")], "a guest of another project is nobody");
        assert_eq!((links.let_out.len(), links.let_out[0].id, links.let_out[0].from.len()), (1, rule, 1));
        assert_eq!((links.open.len(), links.open[0].guest.to_string()), (1, format!("{own}.example.org")));
        assert_eq!(links.open[0].to[0].ports, [5000, 5001, 5002]);
        assert_eq!(plan.firewall.len(), 1, "those of the node come as before");
    }
    // By UDP, and to many ports, only those of one node.
    let udp = AllowToEnvironment { protocol: Transport::Udp, ..asked.clone() };
    shop.world.ask(&shop.mia, udp).await.unwrap();
    shop.world.ask(&shop.mia, AllowToEnvironment { ports: "1-65535".parse().unwrap(), ..asked }).await.unwrap();
    let plan = shop.plan(0).await;
    assert_eq!((plan.firewall.len(), plan.links.unwrap().let_out.len()), (3, 1));
}
