//! Zones at one of several DNS servers, names that stand for many, and names of nodes. Against a real PowerDNS.

use std::net::IpAddr;

use corpus_api::Principal;
use corpus_api::names::{AttachName, GetNodeDnsName, SetNodeDnsName};
use corpus_api::nodes::ListNodes;
use corpus_api::zones::{CreateZone, GetZone, ListDnsServers, ListZones, SetZoneTtl, ZoneAccess, ZoneProjects};
use corpus_domain::{DnsName, Environment, GuestId, NodeId, ProviderName};
use sqlx::PgPool;

use super::world::{World, at_field, forbidden, refusal};
use crate::dns::authority;
use crate::dns::powerdns_server::PowerDnsServer;

fn name(text: &str) -> DnsName {
    text.parse().unwrap()
}

fn zone(text: &str, provider: Option<&str>) -> CreateZone {
    CreateZone {
        name: name(text),
        access: ZoneAccess::All,
        projects: ZoneProjects::default(),
        provider: provider.map(|name| name.parse().unwrap()),
        ttl_s: Some(300.try_into().unwrap()),
    }
}

struct Zones {
    world: World,
    server: PowerDnsServer,
    ops: Principal,
    mia: Principal,
    bob: Principal,
    of_mia: GuestId,
    of_bob: GuestId,
    node: NodeId,
}

async fn zones(db: PgPool) -> Zones {
    let server = PowerDnsServer::start();
    let world = World::asking(db, &server, World::rules()).await;
    let ops = world.ops().await;
    world.ask(&ops, zone("example.org", None)).await.unwrap();
    let (mut mia, mut bob) = (world.member("mia", &[]).await, world.member("bob", &[]).await);
    let (atlas, borealis) = (world.project(&mut mia, "atlas").await, world.project(&mut bob, "borealis").await);
    let of_mia = world.guest(atlas, Environment::Dev).await;
    let of_bob = world.guest(borealis, Environment::Dev).await;
    world.run("update nodes set public_ip = '192.0.2.7', public_ipv6 = '2001:db8::7'").await;
    let node = world.ask(&ops, ListNodes::default()).await.unwrap().items[0].id;
    Zones { world, server, ops, mia, bob, of_mia, of_bob, node }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_zone_says_which_server_holds_it(db: PgPool) {
    let zones = zones(db).await;
    let (world, ops) = (&zones.world, &zones.ops);
    assert_eq!(world.ask(ops, ListDnsServers {}).await.unwrap().items, [ProviderName::first()]);
    forbidden(world.ask(&zones.mia, ListDnsServers {}).await);
    at_field(world.ask(ops, zone("example.net", Some("bind"))).await, "provider", "There is no DNS server bind");
    let made = world.ask(ops, zone("example.net", Some("powerdns"))).await.unwrap().zone;
    let shown = world.ask(ops, GetZone { zone: made }).await.unwrap();
    assert_eq!((shown.provider, shown.ttl_s.get()), (ProviderName::first(), 300));
    forbidden(world.ask(&zones.mia, SetZoneTtl { zone: made, ttl_s: 60.try_into().unwrap() }).await);
    world.ask(ops, SetZoneTtl { zone: made, ttl_s: 3600.try_into().unwrap() }).await.unwrap();
    assert_eq!(world.ask(ops, GetZone { zone: made }).await.unwrap().ttl_s.get(), 3600);

    // One that was taken out of the configuration.
    world.run("update zones set provider = 'gone'").await;
    let attach = AttachName { guest: zones.of_mia, name: name("shop.example.org"), wildcard: false };
    let missing = refusal(world.ask(&zones.mia, attach).await);
    assert!(missing.status == 409 && missing.to_string().contains("The DNS server gone is not in"), "{missing}");
    assert_eq!(world.ask(ops, ListZones::default()).await.unwrap().items.len(), 2, "what is there is shown");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_wildcard_is_of_one_project_with_all_below_it(db: PgPool) {
    let zones = zones(db).await;
    let attach = |guest, of: &str, wildcard| AttachName { guest, name: name(of), wildcard };
    let (world, mia, bob) = (&zones.world, &zones.mia, &zones.bob);
    at_field(world.ask(mia, attach(zones.of_mia, "example.org", true)).await, "name", "an operator can attach it");
    world.ask(mia, attach(zones.of_mia, "app.example.org", true)).await.unwrap();
    at_field(
        world.ask(mia, attach(zones.of_mia, "app.example.org", true)).await,
        "name",
        "attached to a guest already",
    );
    world.ask(mia, attach(zones.of_mia, "app.example.org", false)).await.unwrap();
    for taken in ["x.app.example.org", "app.example.org"] {
        at_field(world.ask(bob, attach(zones.of_bob, taken, false)).await, "name", "is not free");
    }
    let titled = "select count(*) from jobs where title like 'Attach *.app.example.org to %'";
    assert_eq!(world.count(titled).await, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_node_has_a_name_of_its_own(db: PgPool) {
    let zones = zones(db).await;
    let (world, ops, node) = (&zones.world, &zones.ops, zones.node);
    world.ask(ops, zone("2.0.192.in-addr.arpa", None)).await.unwrap();
    let set = |of: Option<&str>| SetNodeDnsName { node, name: of.map(name) };
    forbidden(world.ask(&zones.mia, set(Some("one.example.org"))).await);
    at_field(world.ask(ops, set(Some("one.elsewhere.test"))).await, "name", "in no zone of ours");
    world.ask(ops, set(Some("one.example.org"))).await.unwrap();
    let both = ["192.0.2.7", "2001:db8::7"].map(|ip| ip.parse::<IpAddr>().unwrap());
    let limit = std::time::Duration::from_secs(20);
    let answers = zones.server.dns;
    authority::wait_until_all_answered(answers, &name("one.example.org"), &both, limit).await.unwrap();
    let back = name("7.2.0.192.in-addr.arpa");
    assert_eq!(authority::pointers(answers, &back).await.unwrap(), ["one.example.org"]);
    let attach = AttachName { guest: zones.of_bob, name: name("one.example.org"), wildcard: false };
    at_field(world.ask(&zones.bob, attach).await, "name", "is not free");

    world.ask(ops, set(Some("two.example.org"))).await.unwrap();
    authority::wait_until_gone(answers, &name("one.example.org"), both[0], limit).await.unwrap();
    assert_eq!(authority::pointers(answers, &back).await.unwrap(), ["two.example.org"]);
    world.ask(ops, set(None)).await.unwrap();
    assert_eq!(world.ask(ops, GetNodeDnsName { node }).await.unwrap().name, None);
    authority::wait_until_gone(answers, &name("two.example.org"), both[0], limit).await.unwrap();
    assert!(authority::pointers(answers, &back).await.unwrap().is_empty());
}
