//! Updates by RFC 2136, against a real BIND 9.

use std::net::IpAddr;
use std::time::Duration;

use corpus_domain::DnsName;

use super::authority;
use super::bind_server::BindServer;
use super::tests::{both_families_and_more, challenges_come_and_go};
use super::{Challenge, Content, DnsError, DnsProvider, Owner, Record, Removal, Zone};

const WAIT_LIMIT: Duration = Duration::from_secs(20);

fn name(text: &str) -> DnsName {
    text.parse().unwrap()
}

fn owner(text: &str) -> Owner {
    Owner::from(&name(text))
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn record(of: &str, address: &str) -> Record {
    Record { zone: name("example.org"), owner: owner(of), content: Content::Addresses(vec![ip(address)]), ttl_s: 60 }
}

#[tokio::test]
async fn a_record_is_answered_replaced_and_gone() {
    let server = BindServer::start(&["example.org"]);
    let dns = server.provider();
    dns.check().await.unwrap();
    let (zone, www) = (name("example.org"), name("www.example.org"));
    assert_eq!(dns.zones().await.unwrap(), [Zone { name: zone.clone(), ours: false }]);
    for address in ["10.0.0.1", "10.0.0.1", "10.0.0.2", "fd00::1", "10.0.0.3"] {
        dns.ensure_record(&record("www.example.org", address)).await.unwrap();
        authority::wait_until_all_answered(server.dns, &www, &[ip(address)], WAIT_LIMIT).await.unwrap();
    }
    assert_eq!(dns.remove_record(&zone, &owner("www.example.org")).await.unwrap(), Removal::Removed);
    assert_eq!(dns.remove_record(&zone, &owner("www.example.org")).await.unwrap(), Removal::Absent);
    assert!(authority::all_addresses(server.dns, &www).await.unwrap().is_empty());
    assert_eq!(dns.made_by_others(&zone, &owner("www.example.org")).await.unwrap(), None, "nothing is left");
    assert_eq!(dns.remove_zone(&zone).await.unwrap(), Removal::NotOurs);
}

#[tokio::test]
async fn both_families_wildcards_aliases_and_pointers() {
    let server = BindServer::start(&["example.org"]);
    both_families_and_more(&server.provider(), server.dns).await;
}

#[tokio::test]
async fn challenges() {
    let server = BindServer::start(&["example.org"]);
    server.by_hand("example.org", "update add _acme-challenge.www.example.org. 60 TXT theirs");
    challenges_come_and_go(&server.provider(), server.dns).await;
    let (zone, name) = (name("example.org"), name("www.example.org"));
    let theirs = Challenge { zone, name, value: "theirs".to_owned() };
    assert!(authority::says(server.dns, &theirs).await.unwrap());
}

#[tokio::test]
async fn what_others_made_is_neither_overwritten_nor_removed() {
    let server = BindServer::start(&["example.org"]);
    let dns = server.provider();
    let zone = name("example.org");
    server.by_hand(
        "example.org",
        "update add old.example.org. 60 A 10.9.9.9\nupdate add alias.example.org. 60 CNAME old.example.org.",
    );
    for (taken, address) in
        [("old.example.org", "10.0.0.1"), ("old.example.org", "fd00::1"), ("alias.example.org", "10.0.0.1")]
    {
        let error = dns.ensure_record(&record(taken, address)).await.unwrap_err();
        assert!(matches!(error, DnsError::Foreign { .. }), "{error}");
    }
    dns.ensure_record(&record("old.example.org", "10.9.9.9")).await.unwrap();
    assert_eq!(dns.remove_record(&zone, &owner("old.example.org")).await.unwrap(), Removal::NotOurs);
    assert!(authority::answers(server.dns, &name("old.example.org"), ip("10.9.9.9")).await.unwrap());

    // Somebody changes a record of ours by hand: it is theirs from then on.
    dns.ensure_record(&record("www.example.org", "10.0.0.1")).await.unwrap();
    server.by_hand("example.org", "update delete www.example.org. A\nupdate add www.example.org. 60 A 10.8.8.8");
    let error = dns.ensure_record(&record("www.example.org", "10.0.0.2")).await.unwrap_err();
    assert!(matches!(&error, DnsError::Foreign { content, .. } if content == "10.8.8.8"), "{error}");
    dns.remove_record(&zone, &owner("www.example.org")).await.unwrap();
    assert!(authority::answers(server.dns, &name("www.example.org"), ip("10.8.8.8")).await.unwrap());

    // One that was only removed is written anew.
    dns.ensure_record(&record("shop.example.org", "10.0.0.1")).await.unwrap();
    server.by_hand("example.org", "update delete shop.example.org. A");
    dns.ensure_record(&record("shop.example.org", "10.0.0.2")).await.unwrap();
    assert!(authority::answers(server.dns, &name("shop.example.org"), ip("10.0.0.2")).await.unwrap());
}

#[tokio::test]
async fn what_others_made_around_a_name_is_told() {
    let server = BindServer::start(&["example.org"]);
    let dns = server.provider();
    let zone = name("example.org");
    server.by_hand(
        "example.org",
        "update add known.example.org. 60 TXT \"v=spf1 -all\"\nupdate add *.wild.example.org. 60 A 192.0.2.1\n\
         update add away.example.org. 60 NS ns1.example.net.",
    );
    let told = async |of: &str| dns.made_by_others(&zone, &owner(of)).await.unwrap();
    assert_eq!(told("known.example.org").await.as_deref(), Some("known.example.org TXT"));
    assert_eq!(told("shop.wild.example.org").await.as_deref(), Some("*.wild.example.org A"));
    assert_eq!(told("www.away.example.org").await.as_deref(), Some("away.example.org NS"));
    assert_eq!(told("new.example.org").await, None);
    // The wildcard of others does not keep an operator's name from being written.
    dns.ensure_record(&record("shop.wild.example.org", "10.0.0.1")).await.unwrap();
    assert_eq!(dns.remove_record(&zone, &owner("shop.wild.example.org")).await.unwrap(), Removal::Removed);
}

#[tokio::test]
async fn refusals_say_why() {
    let mut server = BindServer::start(&["example.org"]);
    let zones = vec![name("example.org"), name("refuses.test"), name("missing.test")];
    let dns = server.provider_with("AAAAcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTMyYnl0ZXM=", zones.clone());
    let key = dns.ensure_record(&record("www.example.org", "10.0.0.1")).await.unwrap_err();
    assert!(matches!(key, DnsError::TsigRefused { .. }), "{key}");
    assert!(!key.is_transient() && !format!("{dns:?}").contains("AAAAc"));

    let dns = server.provider();
    let other = dns.ensure_zone(&name("other.test")).await.unwrap_err();
    assert!(matches!(other, DnsError::ZoneNotConfigured { .. }), "{other}");
    let whole = super::Rfc2136Settings {
        server: server.dns,
        key_name: "corpus".parse().unwrap(),
        key: "no base64!".to_owned().into(),
        zones: Vec::new(),
    };
    assert!(matches!(super::Rfc2136::new(whole), Err(DnsError::TsigKeyInvalid)));

    let dns = server.provider_with("c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTMyYnl0ZXM=", zones);
    let missing = dns.ensure_zone(&name("missing.test")).await.unwrap_err();
    assert!(matches!(missing, DnsError::ZoneMissing(_)), "{missing}");
    let refused = Record { zone: name("refuses.test"), owner: owner("www.refuses.test"), ..record("a.b", "10.0.0.1") };
    let refused = dns.ensure_record(&refused).await.unwrap_err();
    assert!(matches!(refused, DnsError::UpdateRefused { .. }), "{refused}");
    let outside = dns.ensure_record(&record("www.example.net", "10.0.0.1")).await.unwrap_err();
    assert!(matches!(outside, DnsError::OutsideZone { .. }), "{outside}");

    server.stop();
    let silent = dns.ensure_record(&record("www.example.org", "10.0.0.1")).await.unwrap_err();
    assert!(silent.is_transient(), "{silent}");
}
