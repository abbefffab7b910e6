//! What is written for Salt, without Salt.

use super::*;
use crate::task::test::with_task;

fn plan(follows: Follows) -> ModePlan {
    ModePlan {
        id: "0199d3c0-0000-7000-8000-000000000001".parse().unwrap(),
        guest: "web.example.org".parse().unwrap(),
        salt: corpus_protocol::SaltBundle { path: "/salt.tar.gz".into(), sha256: "a".repeat(64) },
        project: "atlas".parse().unwrap(),
        environment: corpus_domain::Environment::Dev,
        node: "node1".into(),
        follows,
    }
}

fn master() -> MasterPlace {
    MasterPlace {
        address: "corpus.example.org".into(),
        publish_port: 14_505,
        request_port: 14_506,
        key: "key\n".into(),
    }
}

#[test]
fn a_unit_is_of_one_guest() {
    let text = unit("minion", "web.example.org", Path::new("/opt/corpus/salt/aa"), Path::new(FOLDER));
    assert!(text.contains("\nConditionHost=web.example.org\n"), "{text}");
    let starts =
        "ExecStart=/usr/bin/python3 -B -W ignore /etc/corpus/salt/run.py /opt/corpus/salt/aa /etc/corpus/salt minion\n";
    assert!(text.contains(starts), "{text}");
}

#[test]
fn a_minion_knows_its_master_and_no_other() {
    let host = Host::default();
    let place = Place::of(&host);
    let elsewhere = master();
    let values = minion(&place, &plan(Follows::Master(elsewhere.clone())), Some(&elsewhere));
    assert_eq!(values["master"], "corpus.example.org");
    assert_eq!((values["publish_port"].as_u64(), values["master_port"].as_u64()), (Some(14_505), Some(14_506)));
    assert_eq!(values["corpus_pillar_of"], "0199d3c0-0000-7000-8000-000000000001");
    assert_eq!(values["grains"]["corpus"]["project"], "atlas");
    assert!(values.get("file_roots").is_none());

    let values = minion(&place, &plan(Follows::Itself), Some(&elsewhere));
    assert!(values["corpus_pillar_of"].is_null(), "its own master has no pillar of Corpus");
    let values = minion(&place, &plan(Follows::Nobody), None);
    assert_eq!(values["file_client"], "local");
    assert!(values.get("master").is_none());
    let values = own_master(&place);
    assert_eq!((values["interface"].as_str(), values["auto_accept"].as_bool()), (Some("127.0.0.1"), Some(false)));
}

#[test]
fn keys_are_of_one_guest() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::below(folder.path());
    let [one, other] = [1, 2].map(|n| format!("0199d3c0-0000-7000-8000-00000000000{n}").parse().unwrap());
    let key = |guest| with_task(&host, |task| minion_key(guest, task)).unwrap();
    let first = key(one);
    assert!(first.starts_with("-----BEGIN PUBLIC KEY-----\n") && first.len() < MAX_SALT_KEY, "{first}");
    assert_eq!(key(one), first, "it is made once");
    let second = key(other);
    assert_ne!(second, first, "a copy of its files is another guest");
    assert_ne!(key(one), first, "and what was removed does not come back");
    let names: Vec<_> = fs::read_dir(host.path("/etc/corpus/salt/minion/pki")).unwrap().collect();
    assert_eq!(names.len(), 2, "{names:?}");
}
