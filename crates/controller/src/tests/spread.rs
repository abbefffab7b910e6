//! Guests of one environment on two nodes: what each node is told, who is lent to whom, and where their name leads.

use std::net::Ipv4Addr;

use corpus_api::Principal;
use corpus_api::environments::SetUpEnvironment;
use corpus_api::zones::{CreateZone, ZoneAccess, ZoneProjects};
use corpus_domain::{CertificateId, DnsNameId, Environment, GuestId, NodeId};
use corpus_protocol::{NodePlan, link_name};
use sqlx::PgPool;
use uuid::Uuid;

use super::world::World;
use crate::certificates::certified;
use crate::dns::powerdns_server::PowerDnsServer;
use crate::sagas::name_attach::leads_to;
use crate::store::{balance, certificate_orders as orders, links};

/// A project with a guest of dev on each of two nodes, who share `shop.example.org`; a third node has nothing to do with it.
pub struct Shop {
    pub world: World,
    pub server: PowerDnsServer,
    pub mia: Principal,
    pub guests: [GuestId; 2],
    pub nodes: [NodeId; 3],
    pub name: DnsNameId,
}

pub async fn shop(db: PgPool) -> Shop {
    let server = PowerDnsServer::start();
    let world = World::asking(db, &server, World::rules()).await;
    let zone = CreateZone {
        name: "example.org".parse().unwrap(),
        access: ZoneAccess::All,
        projects: ZoneProjects::default(),
        provider: None,
        ttl_s: None,
    };
    world.ask(&world.ops().await, zone).await.unwrap();
    let mut mia = world.member("mia", &[]).await;
    let project = world.project(&mut mia, "shop").await;
    let leader = world.environment(&mia, project, Environment::Dev).await;
    let follower = world.guest(project, Environment::Dev).await;
    let joins = SetUpEnvironment { project: "shop".parse().unwrap(), environment: None, guest: follower };
    world.ask(&mia, joins).await.unwrap();
    world.run("update environment_guests set state = 'ready'").await;
    world.run("update guests set routed = true").await;
    world.run("delete from jobs").await;
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
    let moved = sqlx::query("update guests set node_id = $1, ip = '10.5.0.10' where id = $2");
    moved.bind(others[0].0).bind(follower.0).execute(&world.db).await.unwrap();
    let name = world.named("shop.example.org", leader, Some("dev")).await;
    Shop { nodes: [world.node_id(), others[0], others[1]], world, server, mia, guests: [leader, follower], name }
}

impl Shop {
    pub async fn plan(&self, at: usize) -> NodePlan {
        let mut tx = self.world.db.begin().await.unwrap();
        let plan = self.world.controller.services.next_plan(&mut tx, self.nodes[at]).await.unwrap();
        tx.commit().await.unwrap();
        plan
    }

    pub async fn leads(&self) -> Vec<String> {
        sqlx::query_scalar("select name_addresses($1)").bind(self.name.0).fetch_one(&self.world.db).await.unwrap()
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn each_node_serves_the_name_and_lends_its_guest_to_the_other(db: PgPool) {
    let shop = shop(db).await;
    let plans = [shop.plan(0).await, shop.plan(1).await];
    for (at, plan) in plans.iter().enumerate() {
        let other = 1 - at;
        let [pool] = plan.pools.as_slice() else { panic!("{:?}", plan.pools) };
        let (here, there): (Vec<_>, Vec<_>) = pool.members.iter().partition(|member| member.via.is_none());
        assert_eq!((here.len(), there.len()), (1, 1));
        assert_eq!(here[0].ip, Ipv4Addr::new(10, 5, 0, 10), "both have the same address, each on its own node");
        assert_eq!(
            (there[0].via, there[0].ip),
            (Some(shop.nodes[other]), Ipv4Addr::new(192, 0, 2, 1 + u8::try_from(other).unwrap()))
        );
        let route = plan.http_routes.iter().find(|route| route.name.as_str() == "shop.example.org").unwrap();
        assert_eq!((&route.guest, route.pool.as_ref()), (&here[0].guest, Some(&pool.id)));
        let links = plan.links.as_ref().unwrap();
        assert_eq!(links.peers, [there[0].ip]);
        assert_eq!((links.lent[0].ip, links.lent[0].to.as_slice()), (here[0].ip, &[shop.nodes[other]][..]));
        assert_eq!(links.certificate.names[0].as_str(), link_name(shop.nodes[at]));
    }
    let third = shop.plan(2).await;
    assert!(third.pools.is_empty() && third.links.is_none() && third.http_routes.is_empty());
    // What a node is known by stays, and its file can be brought to it.
    assert_eq!(shop.plan(0).await.links, plans[0].links);
    let ids: Vec<CertificateId> = plans.iter().map(|plan| plan.links.as_ref().unwrap().certificate.id).collect();
    let mut conn = shop.world.db.acquire().await.unwrap();
    let files = shop.world.controller.services.certificate_files(&mut conn, &ids).await.unwrap();
    assert_eq!(files.len(), 2);
    assert_eq!(files[0].pem.0.matches("BEGIN CERTIFICATE").count(), 2, "its own, and the authority's");
    drop(conn);
    shop.world.run("update node_links set renew_at = now()").await;
    assert_ne!(shop.plan(0).await.links, plans[0].links, "it is made anew in time");
    // Alone again, it has no ways.
    shop.world.run("delete from environment_guests where role = 'follower'").await;
    let plan = shop.plan(0).await;
    assert!(plan.links.is_none() && plan.pools.is_empty());
    assert!(shop.plan(1).await.http_routes.is_empty());
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_is_due_while_the_leaders_node_is_lost_comes_by_the_other(db: PgPool) {
    let shop = shop(db).await;
    let world = &shop.world;
    let [leader, other, _] = shop.nodes;
    let due = async || {
        let mut conn = world.db.acquire().await.unwrap();
        let due = orders::without(&mut conn, 9).await.unwrap();
        due.into_iter().map(|due| (due.node, due.is_own)).collect::<Vec<_>>()
    };
    assert_eq!(due().await, [(leader, true)]);
    let reach = async |node: NodeId, how: &str| {
        let told = sqlx::query("update nodes set reachability = $2 where id = $1");
        told.bind(node.0).bind(how).execute(&world.db).await.unwrap();
    };
    reach(leader, "unreachable").await;
    assert_eq!(due().await, [(other, false)]);
    world.controller.issue_due().await.unwrap();
    let held: NodeId = NodeId(
        sqlx::query_scalar("select node_id from jobs where kind = 'certificate_issue'")
            .fetch_one(&world.db)
            .await
            .unwrap(),
    );
    assert_eq!(held, other, "the job waits for no node that is lost");
    world.run("delete from certificate_orders").await;
    reach(other, "unreachable").await;
    assert_eq!(due().await, [], "nobody serves it");
}

#[sqlx::test(migrations = "../../migrations")]
async fn certificates_and_challenges_are_at_all_nodes_of_a_name(db: PgPool) {
    let shop = shop(db).await;
    let mut tx = shop.world.db.begin().await.unwrap();
    let certified = certified(&"shop.example.org".parse().unwrap(), false).unwrap();
    let id = shop.world.controller.services.sign_certificate(&mut tx, shop.name, certified).await.unwrap();
    crate::store::http_challenges::put(&mut tx, shop.name, "token", "token.answer").await.unwrap();
    tx.commit().await.unwrap();
    for at in [0, 1] {
        let plan = shop.plan(at).await;
        assert_eq!(plan.certificates.iter().map(|one| one.id).collect::<Vec<_>>(), [id]);
        assert_eq!(plan.challenges.len(), 1);
    }
    let plan = shop.plan(2).await;
    assert!(plan.certificates.is_empty() && plan.challenges.is_empty());
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_name_leads_to_the_nodes_that_answer_and_are_open(db: PgPool) {
    let shop = shop(db).await;
    let (both, first) = (["192.0.2.1", "192.0.2.2"], ["192.0.2.1"]);
    assert_eq!(shop.leads().await, both);
    shop.world.run("update nodes set reachability = 'unreachable', reachability_since = now() - interval '10 s' where address = '192.0.2.2'").await;
    assert_eq!(shop.leads().await, both, "it may be back at once");
    shop.world.run("update nodes set reachability_since = now() - interval '31 s' where address = '192.0.2.2'").await;
    assert_eq!(shop.leads().await, first);
    shop.world
        .run("update nodes set reachability = 'unreachable', reachability_since = now() - interval '1 hour'")
        .await;
    assert_eq!(shop.leads().await, both, "none is better than another");
    shop.world.run("update nodes set reachability = 'reachable'").await;
    // Who leaves takes those who come, and nobody is told of it any more.
    shop.world.run("update environment_guests set state = 'leaving' where role = 'follower'").await;
    assert_eq!(shop.leads().await, first);
    assert_eq!(shop.plan(1).await.pools.len(), 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn the_record_follows_and_nothing_is_written_twice(db: PgPool) {
    let shop = shop(db).await;
    let controller = &shop.world.controller;
    let answered = || async {
        let seen = controller.services.world.addresses(&"shop.example.org".parse().unwrap()).await;
        seen.unwrap_or_default()
    };
    let both = ["192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap()];
    let spread = "select count(*) from dns_names where spread_to is not null";
    controller.spread_all().await.unwrap();
    assert_eq!(answered().await.len(), 2);
    assert!(leads_to(&answered().await, &both));
    assert_eq!(shop.world.count(spread).await, 1);
    let due = async || {
        let noted = crate::store::spread::noted(&mut shop.world.db.acquire().await.unwrap(), 10).await.unwrap();
        noted.iter().filter(|one| one.is_due).count()
    };
    assert_eq!(due().await, 0);
    controller.spread_all().await.unwrap();
    assert_eq!(shop.world.count("select count(*) from names_to_spread").await, 0);
    // A name that is being detached is left alone.
    shop.world.run("update nodes set reachability = 'unreachable', reachability_since = now() - interval '1 hour' where address = '192.0.2.2'").await;
    shop.world.run("update dns_names set state = 'detaching'").await;
    controller.spread_all().await.unwrap();
    controller.services.spread(shop.name).await.unwrap();
    assert_eq!(answered().await.len(), 2);
    shop.world.run("update dns_names set state = 'attached'").await;
    controller.spread_all().await.unwrap();
    assert_eq!(answered().await, both[..1]);
    assert_eq!(shop.world.count(spread).await, 0, "as any name of one node");
    drop(shop.server);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_node_that_was_away_is_told_later(db: PgPool) {
    let shop = shop(db).await;
    let mut conn = shop.world.db.acquire().await.unwrap();
    let beside = links::beside(&mut conn, &shop.guests[..1]).await.unwrap();
    assert_eq!((beside.own.len(), beside.others.len()), (1, 1));
    assert!(beside.others.contains(&shop.nodes[1]));
    let of_name = links::of_name(&mut conn, shop.name).await.unwrap();
    assert_eq!((&of_name.own, &of_name.others), (&beside.own, &beside.others));
    links::missed(&mut conn, shop.nodes[1], 7).await.unwrap();
    links::missed(&mut conn, shop.nodes[1], 5).await.unwrap();
    assert!(links::behind(&mut conn).await.unwrap().contains(&shop.nodes[1]));
    links::told(&mut conn, shop.nodes[1], 6).await.unwrap();
    assert!(!links::behind(&mut conn).await.unwrap().is_empty(), "that was an older plan");
    links::told(&mut conn, shop.nodes[1], 7).await.unwrap();
    assert!(links::behind(&mut conn).await.unwrap().is_empty());
    // Each guest is asked at its own node when a name is to lead to them.
    let proof = balance::proof(&mut conn, shop.guests[0], Some(Environment::Dev)).await.unwrap();
    let nodes: Vec<NodeId> = proof.guests.iter().map(|(node, ..)| *node).collect();
    assert_eq!(nodes, shop.nodes[..2]);
}
