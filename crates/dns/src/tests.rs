//! Against a real `PowerDNS`.

use std::net::IpAddr;
use std::time::Duration;

use corpus_domain::DnsName;
use reqwest::Method;
use serde_json::json;

use super::authority::{self, AuthorityError};
use super::powerdns_server::PowerDnsServer;
use super::{Challenge, Content, DnsError, DnsProvider, Owner, Record, Removal, Zone};

/// While it writes, PowerDNS may refuse to answer for a moment.
const WAIT_LIMIT: Duration = Duration::from_secs(20);

fn name(text: &str) -> DnsName {
    text.parse().unwrap()
}

fn record(of: &str, address: &str) -> Record {
    records(of, &[address])
}

fn records(of: &str, addresses: &[&str]) -> Record {
    let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
    let owner = match of.strip_prefix("*.") {
        Some(below) => Owner::wildcard(name(below)),
        None => Owner::from(&name(of)),
    };
    Record { zone: name("example.org"), owner, content: Content::Addresses(addresses), ttl_s: 60 }
}

fn owner(of: &str) -> Owner {
    Owner::from(&name(of))
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[tokio::test]
async fn a_zone_comes_and_goes() {
    let server = PowerDnsServer::start();
    let dns = server.provider();
    dns.check().await.unwrap();
    let zone = name("example.org");
    assert_eq!(dns.remove_zone(&zone).await.unwrap(), Removal::Absent);
    dns.ensure_zone(&zone).await.unwrap();
    dns.ensure_zone(&zone).await.unwrap();
    assert_eq!(dns.zones().await.unwrap(), [Zone { name: zone.clone(), ours: true }]);
    assert_eq!(dns.remove_zone(&zone).await.unwrap(), Removal::Removed);
    assert_eq!(dns.remove_zone(&zone).await.unwrap(), Removal::Absent);
    assert!(dns.zones().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_record_is_answered_replaced_and_gone() {
    let server = PowerDnsServer::start();
    let dns = server.provider();
    let (zone, www) = (name("example.org"), name("www.example.org"));
    dns.ensure_zone(&zone).await.unwrap();
    authority::wait_until_gone(server.dns, &www, ip("10.0.0.1"), WAIT_LIMIT).await.unwrap();

    for address in ["10.0.0.1", "10.0.0.1", "10.0.0.2", "fd00::1", "10.0.0.3"] {
        dns.ensure_record(&record("www.example.org", address)).await.unwrap();
        authority::wait_until_answered(server.dns, &www, ip(address), WAIT_LIMIT).await.unwrap();
    }
    authority::wait_until_gone(server.dns, &www, ip("fd00::1"), WAIT_LIMIT).await.unwrap();
    assert_eq!(authority::addresses(server.dns, &www, false).await.unwrap(), [ip("10.0.0.3")]);

    dns.ensure_record(&record("example.org", "10.0.0.9")).await.unwrap();
    authority::wait_until_answered(server.dns, &zone, ip("10.0.0.9"), WAIT_LIMIT).await.unwrap();
    assert_eq!(dns.remove_record(&zone, &(&zone).into()).await.unwrap(), Removal::Removed);

    assert_eq!(dns.remove_record(&zone, &(&www).into()).await.unwrap(), Removal::Removed);
    assert_eq!(dns.remove_record(&zone, &(&www).into()).await.unwrap(), Removal::Absent);
    authority::wait_until_gone(server.dns, &www, ip("10.0.0.3"), WAIT_LIMIT).await.unwrap();
    assert_eq!(dns.remove_zone(&zone).await.unwrap(), Removal::Removed);
    assert_eq!(dns.remove_record(&zone, &(&www).into()).await.unwrap(), Removal::Absent);
}

#[tokio::test]
async fn both_families_wildcards_aliases_and_pointers() {
    let server = PowerDnsServer::start();
    let dns = server.provider();
    dns.ensure_zone(&name("example.org")).await.unwrap();
    both_families_and_more(&dns, server.dns).await;
}

/// The same of every kind of server.
pub(crate) async fn both_families_and_more(dns: &dyn DnsProvider, server: std::net::SocketAddr) {
    let (zone, both) = (name("example.org"), ["10.0.0.1", "fd00::1"]);
    let wanted = both.map(ip);
    dns.ensure_record(&records("both.example.org", &both)).await.unwrap();
    authority::wait_until_all_answered(server, &name("both.example.org"), &wanted, WAIT_LIMIT).await.unwrap();
    dns.ensure_record(&record("both.example.org", "fd00::2")).await.unwrap();
    authority::wait_until_all_answered(server, &name("both.example.org"), &[ip("fd00::2")], WAIT_LIMIT).await.unwrap();

    dns.ensure_record(&record("*.app.example.org", "10.0.0.7")).await.unwrap();
    authority::wait_until_answered(server, &name("any.app.example.org"), ip("10.0.0.7"), WAIT_LIMIT).await.unwrap();
    let wildcard = Owner::wildcard(name("app.example.org"));
    authority::wait_until_answered(server, &wildcard, ip("10.0.0.7"), WAIT_LIMIT).await.unwrap();
    assert_eq!(dns.made_by_others(&zone, &owner("x.app.example.org")).await.unwrap(), None, "the wildcard is ours");
    dns.ensure_record(&record("x.app.example.org", "10.0.0.8")).await.unwrap();
    authority::wait_until_answered(server, &name("x.app.example.org"), ip("10.0.0.8"), WAIT_LIMIT).await.unwrap();
    assert_eq!(dns.remove_record(&zone, &wildcard).await.unwrap(), Removal::Removed);
    authority::wait_until_gone(server, &name("any.app.example.org"), ip("10.0.0.7"), WAIT_LIMIT).await.unwrap();
    authority::wait_until_answered(server, &name("x.app.example.org"), ip("10.0.0.8"), WAIT_LIMIT).await.unwrap();

    let alias =
        Record { content: Content::Alias(name("x.app.example.org")), ..record("alias.example.org", "10.0.0.9") };
    dns.ensure_record(&alias).await.unwrap();
    dns.ensure_record(&alias).await.unwrap();
    authority::wait_until_answered(server, &name("alias.example.org"), ip("10.0.0.8"), WAIT_LIMIT).await.unwrap();
    // What it leads to may be held elsewhere: it is asked for by itself.
    let (known, elsewhere) = (name("x.app.example.org"), name("www.example.net"));
    authority::wait_until_alias(server, &name("alias.example.org"), &known, WAIT_LIMIT).await.unwrap();
    dns.ensure_record(&Record { content: Content::Alias(elsewhere.clone()), ..alias }).await.unwrap();
    authority::wait_until_alias(server, &name("alias.example.org"), &elsewhere, WAIT_LIMIT).await.unwrap();
    let limit = Duration::from_millis(150);
    let other = authority::wait_until_alias(server, &name("alias.example.org"), &known, limit).await.unwrap_err();
    assert!(matches!(&other, AuthorityError::NotYet { seen, .. } if seen == "www.example.net"), "{other}");
    assert_eq!(authority::aliases(server, &name("x.app.example.org")).await.unwrap(), [""; 0]);
    dns.ensure_record(&record("alias.example.org", "10.0.0.9")).await.unwrap();
    authority::wait_until_answered(server, &name("alias.example.org"), ip("10.0.0.9"), WAIT_LIMIT).await.unwrap();

    let pointer =
        Record { content: Content::Pointer(name("x.app.example.org")), ..record("9.example.org", "10.0.0.9") };
    dns.ensure_record(&pointer).await.unwrap();
    authority::wait_until_pointed(server, &name("9.example.org"), &known, WAIT_LIMIT).await.unwrap();
    assert_eq!(authority::pointers(server, &name("9.example.org")).await.unwrap(), ["x.app.example.org"]);
    let other = authority::wait_until_pointed(server, &name("9.example.org"), &elsewhere, limit).await.unwrap_err();
    assert!(matches!(&other, AuthorityError::NotYet { seen, .. } if seen == "x.app.example.org"), "{other}");
    assert_eq!(dns.remove_record(&zone, &owner("9.example.org")).await.unwrap(), Removal::Removed);
    assert!(authority::pointers(server, &name("9.example.org")).await.unwrap().is_empty());
}

/// The same of every kind of server: challenges come and go, two of one name and those of others are left.
pub(crate) async fn challenges_come_and_go(dns: &dyn DnsProvider, server: std::net::SocketAddr) {
    let of =
        |value: &str| Challenge { zone: name("example.org"), name: name("www.example.org"), value: value.to_owned() };
    let (one, other) = (of("evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ-PCt92wr-oA"), of("_x"));
    assert_eq!(one.owner(), "_acme-challenge.www.example.org");
    for challenge in [&one, &one, &other] {
        dns.ensure_challenge(challenge).await.unwrap();
        authority::wait_until_said(server, challenge, WAIT_LIMIT).await.unwrap();
    }
    dns.remove_challenge(&one).await.unwrap();
    let begin = std::time::Instant::now();
    while authority::says(server, &one).await.unwrap() {
        assert!(begin.elapsed() < WAIT_LIMIT, "it is still there");
    }
    assert!(authority::says(server, &other).await.unwrap(), "the other one is left");
    dns.remove_challenge(&other).await.unwrap();
    dns.remove_challenge(&other).await.unwrap();
    let outside = Challenge { name: name("www.example.net"), ..of("_x") };
    assert!(matches!(dns.ensure_challenge(&outside).await.unwrap_err(), DnsError::OutsideZone { .. }));
}

#[tokio::test]
async fn challenges() {
    let server = PowerDnsServer::start();
    let (dns, zone) = (server.provider(), name("example.org"));
    dns.ensure_zone(&zone).await.unwrap();
    challenges_come_and_go(&dns, server.dns).await;
    assert_eq!(dns.remove_zone(&zone).await.unwrap(), Removal::Removed, "nothing is left that others made");

    // Beside what somebody else proves to a directory.
    dns.ensure_zone(&zone).await.unwrap();
    let theirs = json!({"rrsets": [{"name": "_acme-challenge.www.example.org.", "type": "TXT", "ttl": 60,
        "changetype": "REPLACE", "records": [{"content": "\"theirs\"", "disabled": false}]}]});
    assert_eq!(server.by_hand(Method::PATCH, "zones/example.org.", theirs).await, 204);
    challenges_come_and_go(&dns, server.dns).await;
    let theirs = Challenge { zone, name: name("www.example.org"), value: "theirs".to_owned() };
    authority::wait_until_said(server.dns, &theirs, WAIT_LIMIT).await.unwrap();
}

#[tokio::test]
async fn what_others_made_is_neither_overwritten_nor_removed() {
    let server = PowerDnsServer::start();
    let dns = server.provider();
    let (zone, old, other) = (name("example.org"), name("old.example.org"), name("other.example.net"));
    dns.ensure_zone(&zone).await.unwrap();
    let by_hand = json!({"rrsets": [
        {"name": "old.example.org.", "type": "A", "ttl": 60, "changetype": "REPLACE",
         "records": [{"content": "10.9.9.9", "disabled": false}]},
        {"name": "alias.example.org.", "type": "CNAME", "ttl": 60, "changetype": "REPLACE",
         "records": [{"content": "old.example.org.", "disabled": false}]},
    ]});
    assert_eq!(server.by_hand(Method::PATCH, "zones/example.org.", by_hand).await, 204);

    for (taken, address) in
        [("old.example.org", "10.0.0.1"), ("old.example.org", "fd00::1"), ("alias.example.org", "10.0.0.1")]
    {
        let error = dns.ensure_record(&record(taken, address)).await.unwrap_err();
        assert!(matches!(error, DnsError::Foreign { .. }), "{error}");
    }
    dns.ensure_record(&record("old.example.org", "10.9.9.9")).await.unwrap();
    assert_eq!(dns.remove_record(&zone, &(&old).into()).await.unwrap(), Removal::NotOurs);
    assert!(authority::answers(server.dns, &old, ip("10.9.9.9")).await.unwrap());
    let error = dns.remove_zone(&zone).await.unwrap_err();
    assert!(matches!(&error, DnsError::NotEmpty { records, .. } if records.contains("old.example.org A")), "{error}");

    let zone_by_hand = json!({"name": "other.example.net.", "kind": "Native", "nameservers": ["ns1.example.net."]});
    assert_eq!(server.by_hand(Method::POST, "zones", zone_by_hand).await, 201);
    dns.ensure_zone(&other).await.unwrap();
    assert_eq!(dns.remove_zone(&other).await.unwrap(), Removal::NotOurs);
    assert!(dns.zones().await.unwrap().contains(&Zone { name: other, ours: false }));
}

#[tokio::test]
async fn refusals_say_why() {
    let server = PowerDnsServer::start();
    let dns = server.provider();
    let missing = dns.ensure_record(&record("www.example.org", "10.0.0.1")).await.unwrap_err();
    assert!(matches!(missing, DnsError::ZoneMissing(_)), "{missing}");
    let outside = record("www.example.net", "10.0.0.1");
    let outside = dns.ensure_record(&outside).await.unwrap_err();
    assert!(matches!(outside, DnsError::OutsideZone { .. }), "{outside}");

    let key = server.provider_with_key("wrong").check().await.unwrap_err();
    assert!(matches!(key, DnsError::KeyRefused), "{key}");
    assert!(!key.is_transient());
}

#[tokio::test]
async fn a_stopped_server_is_a_transient_failure() {
    let mut server = PowerDnsServer::start();
    let dns = server.provider();
    server.stop();
    for error in [
        dns.check().await.unwrap_err(),
        dns.ensure_record(&record("www.example.org", "10.0.0.1")).await.unwrap_err(),
        dns.remove_zone(&name("example.org")).await.unwrap_err(),
    ] {
        assert!(error.is_transient(), "{error}");
        assert!(!format!("{error:?}{dns:?}").contains("testkey"));
    }
    let (www, limit) = (name("www.example.org"), Duration::from_millis(200));
    let error = authority::wait_until_answered(server.dns, &www, ip("10.0.0.1"), limit).await.unwrap_err();
    assert!(matches!(error, AuthorityError::Unreachable(..) | AuthorityError::Silent(_)), "{error}");
}

#[tokio::test]
async fn a_wait_that_ends_tells_what_it_saw() {
    let server = PowerDnsServer::start();
    let dns = server.provider();
    let www = name("www.example.org");
    let foreign = authority::addresses(server.dns, &www, false).await.unwrap_err();
    assert!(matches!(foreign, AuthorityError::NotAuthoritative { .. }), "{foreign}");

    dns.ensure_zone(&name("example.org")).await.unwrap();
    dns.ensure_record(&record("www.example.org", "10.0.0.1")).await.unwrap();
    let limit = Duration::from_millis(150);
    let error = authority::wait_until_answered(server.dns, &www, ip("10.0.0.2"), limit).await.unwrap_err();
    assert!(error.to_string().contains("10.0.0.1"), "{error}");
    let error = authority::wait_until_gone(server.dns, &www, ip("10.0.0.1"), limit).await.unwrap_err();
    assert!(matches!(error, AuthorityError::NotYet { .. }), "{error}");
}

#[tokio::test]
async fn what_others_made_around_a_name_is_told() {
    let server = PowerDnsServer::start();
    let dns = server.provider();
    let zone = name("example.org");
    dns.ensure_zone(&zone).await.unwrap();
    dns.ensure_record(&record("ours.example.org", "10.0.0.1")).await.unwrap();
    let set = |name: &str, kind: &str, content: &str| {
        json!({ "name": format!("{name}."), "type": kind, "ttl": 60, "changetype": "REPLACE",
                "records": [{ "content": content, "disabled": false }] })
    };
    let sets = json!({ "rrsets": [
        set("known.example.org", "TXT", "\"v=spf1 -all\""),
        set("*.wild.example.org", "A", "192.0.2.1"),
        set("away.example.org", "NS", "ns1.example.net."),
    ] });
    assert_eq!(server.by_hand(Method::PATCH, "zones/example.org.", sets).await, 204);
    let told = async |of: &str| dns.made_by_others(&zone, &owner(of)).await.unwrap();
    assert_eq!(told("known.example.org").await.as_deref(), Some("known.example.org TXT"));
    assert_eq!(told("shop.wild.example.org").await.as_deref(), Some("*.wild.example.org A"));
    assert_eq!(told("a.shop.wild.example.org").await.as_deref(), Some("*.wild.example.org A"));
    assert_eq!(told("www.away.example.org").await.as_deref(), Some("away.example.org NS"));
    for free in ["ours.example.org", "new.example.org", "a.b.example.org"] {
        assert_eq!(told(free).await, None, "{free}");
    }
    assert!(matches!(dns.made_by_others(&name("x.org"), &owner("a.x.org")).await, Err(DnsError::ZoneMissing(_))));
}
