//! Against a real `PowerDNS`.

use std::net::IpAddr;
use std::time::Duration;

use corpus_domain::DnsName;
use reqwest::Method;
use serde_json::json;

use super::authority::{self, AuthorityError};
use super::powerdns_server::PowerDnsServer;
use super::{AddressRecord, DnsError, DnsProvider, Removal, Zone};

/// While it writes, PowerDNS may refuse to answer for a moment.
const WAIT_LIMIT: Duration = Duration::from_secs(20);

fn name(text: &str) -> DnsName {
    text.parse().unwrap()
}

fn record(of: &str, address: &str) -> AddressRecord {
    AddressRecord { zone: name("example.org"), name: name(of), address: address.parse().unwrap(), ttl_s: 60 }
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
    assert_eq!(dns.remove_record(&zone, &zone).await.unwrap(), Removal::Removed);

    assert_eq!(dns.remove_record(&zone, &www).await.unwrap(), Removal::Removed);
    assert_eq!(dns.remove_record(&zone, &www).await.unwrap(), Removal::Absent);
    authority::wait_until_gone(server.dns, &www, ip("10.0.0.3"), WAIT_LIMIT).await.unwrap();
    assert_eq!(dns.remove_zone(&zone).await.unwrap(), Removal::Removed);
    assert_eq!(dns.remove_record(&zone, &www).await.unwrap(), Removal::Absent);
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
    assert_eq!(dns.remove_record(&zone, &old).await.unwrap(), Removal::NotOurs);
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
    let outside = AddressRecord { zone: name("example.org"), ..record("www.example.net", "10.0.0.1") };
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
    let told = async |of: &str| dns.made_by_others(&zone, &name(of)).await.unwrap();
    assert_eq!(told("known.example.org").await.as_deref(), Some("known.example.org TXT"));
    assert_eq!(told("shop.wild.example.org").await.as_deref(), Some("*.wild.example.org A"));
    assert_eq!(told("a.shop.wild.example.org").await.as_deref(), Some("*.wild.example.org A"));
    assert_eq!(told("www.away.example.org").await.as_deref(), Some("away.example.org NS"));
    for free in ["ours.example.org", "new.example.org", "a.b.example.org"] {
        assert_eq!(told(free).await, None, "{free}");
    }
    assert!(matches!(dns.made_by_others(&name("x.org"), &name("a.x.org")).await, Err(DnsError::ZoneMissing(_))));
}
