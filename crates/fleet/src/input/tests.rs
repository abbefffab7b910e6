//! Lines that no honest agent sends.

use corpus_domain::{Bytes, is_harmful};
use corpus_protocol::{Answer, DeploymentEvent, Event, MAX_LINE};
use serde_json::{Value, json};

use super::*;

fn result(answer: &Value) -> Answer {
    let line = json!({ "type": "result", "id": 1, "result": { "Ok": answer } });
    let FromAgent::Result { result, .. } = read(line.to_string().as_bytes()).unwrap() else { panic!("a result") };
    result.unwrap()
}

fn event(event: &Value) -> Event {
    let line = json!({ "type": "event", "id": 1, "event": event });
    let FromAgent::Event { event, .. } = read(line.to_string().as_bytes()).unwrap() else { panic!("an event") };
    event
}

fn entry(told: &Value) -> DeploymentEvent {
    let Event::Deployment { entry, .. } =
        event(&json!({ "type": "deployment", "next": 1, "entry": { "at_ms": u64::MAX, "event": told } }))
    else {
        panic!("a line of a journal")
    };
    assert!(entry.at_ms < 8_000_000_000_000, "{}", entry.at_ms);
    entry.event
}

fn storage(total: u64, used: u64) -> Value {
    json!({ "total": total, "used": used })
}

#[test]
fn no_text_acts_wherever_it_stands() {
    let evil = "a\0b\u{1b}]52;c;eA==\u{7}c\u{202e}d";
    let Event::Log { text, .. } = event(&json!({ "type": "log", "stream": "out", "text": format!("{evil}\nforged") }))
    else {
        panic!("a line")
    };
    assert_eq!(text, "a\u{fffd}bc\u{fffd}d forged");
    let configuration = json!([{ "key": evil, "value": { evil: [evil] }, "origin": "set" }]);
    let told =
        json!({ "type": "project", "live": null, "deployments": [], "archives": [], "configuration": configuration });
    let shown = format!("{:?}", result(&told));
    assert!(!shown.contains(is_harmful) && !shown.contains("\\0") && shown.contains("Object"), "{shown}");
    let line = json!({ "type": "result", "id": 1, "result": { "Err": { "kind": "command", "message": evil } } });
    assert!(!format!("{:?}", read(line.to_string().as_bytes()).unwrap()).contains("\\0"));
}

#[test]
fn no_number_breaks_what_is_made_of_it() {
    let guests = json!([{ "name": "a.test", "state": "running", "uptime_s": u64::MAX, "memory_used": u64::MAX }]);
    let told = json!({
        "type": "reading", "load": 1e300, "uptime_s": u64::MAX, "memory_total": u64::MAX,
        "memory_used": u64::MAX, "storage": storage(1, u64::MAX), "guests": guests,
    });
    let Answer::Reading(reading) = result(&told) else { panic!("a reading") };
    let kept = serde_json::to_value(&reading).unwrap();
    let again: corpus_protocol::Reading = serde_json::from_value(kept).unwrap();
    assert_eq!(again, *reading);
    assert!(reading.memory_used <= reading.memory_total && reading.storage.used == Bytes(1), "{reading:?}");
    assert!(i64::try_from(reading.uptime_s).is_ok() && i64::try_from(reading.memory_total.0).is_ok());
    let backing = json!({ "backing": "lvm", "holds_size": true, "obstacle": "x".repeat(9_000), "room": u64::MAX });
    let driver = json!({ "driver": "lxc", "version": null, "obstacle": null, "backings": vec![backing; 100] });
    let facts = json!({
        "type": "facts", "hostname": "h", "os": "o", "kernel": "k", "architecture": "x86_64",
        "cpu": { "model": "m", "count": u32::MAX }, "memory": u64::MAX, "storage": storage(u64::MAX, 0),
        "addresses": [], "drivers": [driver], "listeners": [],
    });
    let Answer::Facts(facts) = result(&facts) else { panic!("facts") };
    let [driver] = facts.drivers.as_slice() else { panic!("{facts:?}") };
    let told = &driver.backings[0];
    assert!(driver.backings.len() < 20 && told.obstacle.as_ref().unwrap().chars().count() <= 1_001);
    for amount in [told.room.unwrap(), facts.memory, facts.storage.total] {
        assert!(i64::try_from(u128::from(amount.0) * 100).is_ok(), "promised a hundred times: {amount:?}");
    }
    for wrong in [json!(-1), json!(1e30), json!("5"), Value::Null] {
        let line = json!({ "type": "event", "id": 1, "event": { "type": "progress", "done": wrong, "total": 1 } });
        assert!(read(line.to_string().as_bytes()).is_err(), "{line}");
    }
    let Event::Progress { done, total } = event(&json!({ "type": "progress", "done": u64::MAX, "total": 7 })) else {
        panic!("progress")
    };
    assert_eq!((done, total), (7, 7));
}

#[test]
fn no_list_and_no_text_is_longer_than_there_is_use_for() {
    let difference = json!({ "kind": "unit", "text": "x".repeat(2_000) });
    let Answer::Drift { differences } = result(&json!({ "type": "drift", "differences": vec![difference; 1_500] }))
    else {
        panic!("differences")
    };
    assert_eq!((differences.len(), differences[0].text.chars().count()), (500, 1_000));
    let entry = json!({ "key": "k", "value": "v".repeat(10_000), "origin": "set" });
    let told = json!({ "type": "project", "live": null, "deployments": [], "archives": [], "configuration": vec![entry; 300] });
    let Answer::Project { configuration, .. } = result(&told) else { panic!("a project") };
    assert_eq!(configuration.len(), (256 << 10) / 10_003);
    let dumped = json!({ "bytes": u64::MAX, "failed": "x\u{1b}[2J".repeat(2_000) });
    let Answer::Dumps { dumped: Some(dumped) } = result(&json!({ "type": "dumps", "dumped": dumped })) else {
        panic!("dumps")
    };
    let failed = dumped.failed.unwrap();
    assert!(i64::try_from(dumped.bytes.0).is_ok() && failed.chars().count() <= 1_001 && !failed.contains('\u{1b}'));
    let state = json!({ "id": "i", "function": "f", "name": "n", "ok": true, "changed": true, "comment": "c".repeat(9_000), "elapsed_ms": 7 });
    let ran =
        json!({ "type": "states", "states": vec![state; 700], "ran": u64::MAX, "failed": u64::MAX, "changed": 3 });
    let Answer::States(run) = result(&ran) else { panic!("states") };
    assert_eq!((run.states.len(), run.ran, run.failed, run.changed), (200, 1_000_000, 1_000_000, 3));
    assert_eq!(run.states[0].comment.chars().count(), 1_001);
    let Answer::MinionKey { key } = result(&json!({ "type": "minion_key", "key": "k".repeat(9_000) })) else {
        panic!("a key")
    };
    assert_eq!(key.chars().count(), 4_097);
    let many = format!(r#"{{"type":"result","id":1,"result":[{}0]}}"#, "0,".repeat(MAX_LINE / 2 - 100));
    assert!(read(many.as_bytes()).unwrap_err().contains("values"));
    let deep = format!(r#"{{"type":"result","id":1,"result":{}"#, "[".repeat(50_000));
    assert!(read(deep.as_bytes()).is_err());
}

#[test]
fn a_journal_tells_in_measure() {
    let state = json!({ "id": "i", "function": "f", "name": "n", "ok": true, "changed": true, "comment": "c".repeat(9_000), "elapsed_ms": u64::MAX });
    let recipe = json!({
        "name": "n".repeat(5_000), "outcome": "done", "elapsed_ms": u64::MAX, "reason": null, "lines": null,
        "failing_line": null, "states": vec![state; 200],
    });
    let DeploymentEvent::RecipeEnded { recipe: told, .. } =
        entry(&json!({ "type": "recipe_ended", "phase": "install", "recipe": recipe }))
    else {
        panic!("a recipe")
    };
    assert_eq!((told.name.chars().count(), told.states[0].comment.chars().count()), (256, 1_001));
    assert!(told.elapsed_ms < 1 << 40);
    let DeploymentEvent::Line { text, .. } =
        entry(&json!({ "type": "line", "stream": "out", "text": "y".repeat(10_000) }))
    else {
        panic!("a line")
    };
    assert_eq!((text.chars().count(), text.ends_with('…')), (4_096, true));
    let phase = json!({ "phase": "install", "outcome": "done", "began_ms": 1, "elapsed_ms": 1, "recipes": [] });
    let report = json!({
        "id": uuid::Uuid::nil(), "project": "shop", "environment": "dev", "state": "live", "trigger": "push", "by": "",
        "commit": null, "pillar": null, "previous": null, "commits": [], "ordered_ms": 0, "began_ms": 0,
        "ended_ms": u64::MAX, "phases": vec![phase; 1_000], "fault": null, "proofs": [], "live": null,
        "failed_tree": null, "archives": [], "lines": 0,
    });
    let DeploymentEvent::Ended { report } = entry(&json!({ "type": "ended", "report": report })) else {
        panic!("an end")
    };
    assert_eq!(report.phases.len(), 1, "each phase once");
}

#[test]
fn requests_are_told_in_measure() {
    let wide = "x".repeat(900);
    let error = json!({ "at_ms": u64::MAX, "method": wide, "path": format!("/{wide}\u{1b}[2J"), "status": 65_535, "took_ms": u64::MAX, "cause": wide });
    let minute = json!({
        "name": { "name": "www.example.org" }, "at_ms": u64::MAX, "requests": u64::MAX, "statuses": vec![u64::MAX; 5],
        "bytes_in": u64::MAX, "bytes_out": u64::MAX, "latency": vec![u64::MAX; 31], "errors": vec![error; 9],
    });
    let told = json!({ "type": "traffic", "minutes": vec![minute.clone(); 100], "more": true, "lost_lines": u64::MAX });
    let Answer::Traffic(reading) = result(&told) else { panic!("a reading") };
    let one = &reading.minutes[0];
    assert_eq!((reading.lost_lines, one.requests, one.statuses[4], one.at_ms % 60_000), (1 << 32, 1 << 32, 1 << 32, 0));
    assert!(i64::try_from(one.bytes_out).is_ok() && i64::try_from(one.latency.requests()).is_ok());
    let error = &one.errors[0];
    assert_eq!((one.errors.len(), error.status, error.path.chars().count(), error.cause.len()), (5, 0, 200, 10));
    assert!(error.method.chars().count() == 16 && error.path.ends_with('…'));
    let many = json!({ "type": "traffic", "minutes": [minute.clone()], "more": false, "lost_lines": -1 });
    assert!(read(json!({ "type": "result", "id": 1, "result": { "Ok": many } }).to_string().as_bytes()).is_err());
    let line = json!({
        "at_ms": 1, "name": { "name": "www.example.org", "wildcard": true }, "method": "GET", "path": "/\u{202e}", "status": 200,
        "bytes_out": u64::MAX, "took_ms": 1, "from": "9".repeat(400), "cause": "--",
    });
    let Event::Access { lines, left_out } =
        event(&json!({ "type": "access", "lines": vec![line; 300], "left_out": u64::MAX }))
    else {
        panic!("lines")
    };
    assert_eq!((lines.len(), left_out, lines[0].from.as_ref().unwrap().chars().count()), (200, 1 << 32, 50));
    assert!(!lines[0].path.contains('\u{202e}'));
}
