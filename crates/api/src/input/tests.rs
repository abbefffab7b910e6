//! What is read, and what is said of what is not.

use corpus_domain::{GuestName, JobId, JobState, MemoryLimit, SizeProfile};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::*;
use crate::jobs::{AbandonJob, ListJobs};
use crate::words::{Comment, Password};

crate::several!(
    /// Names of guests.
    Names, GuestName, 3
);

/// What a guest is requested with, for the tests.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
struct Wanted {
    job: JobId,
    name: GuestName,
    size: SizeProfile,
    #[serde(default)]
    names: Names,
    #[serde(default = "yes")]
    autostart: bool,
    memory: Option<MemoryLimit>,
    password: Option<Password>,
    comment: Option<Comment>,
}

fn yes() -> bool {
    true
}

const ID: &str = "0199d3c0-0000-7000-8000-000000000001";

fn body(value: Value) -> Input {
    let mut input = Input::default();
    if let Value::Object(map) = value {
        input.json(map);
    }
    input
}

fn form(pairs: &[(&str, &str)]) -> Input {
    Input::form(pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())))
}

fn told(wrong: &[Wrong]) -> Vec<String> {
    wrong.iter().map(|wrong| format!("{}{}: {}", wrong.field, wrong.pointer, wrong.detail)).collect()
}

#[test]
fn every_wrong_field_is_named() {
    let wrong = body(json!({
        "job": "x", "size": "huge", "names": ["a.org", "E;"], "autostart": "yes", "memory": 1, "colour": 1, "shape": 2,
    }));
    let told = told(&wrong.read::<Wanted>().unwrap_err());
    let fields: Vec<&str> = told.iter().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(fields, ["job", "name", "size", "names/1", "autostart", "memory", "colour", "shape"], "{told:#?}");
    assert!(told[1].ends_with("This field is needed."), "{}", told[1]);
    assert!(told[6].ends_with("There is no such field here."), "{}", told[6]);
}

#[test]
fn so_it_is_with_a_form() {
    let wrong = form(&[
        ("job", ""),
        ("name", "www.example.org"),
        ("size", "huge"),
        ("memory", "two"),
        ("autostart", "false"),
        ("autostart", "on"),
        ("names", "a.org, b.org\r\nC;"),
    ]);
    let told = told(&wrong.read::<Wanted>().unwrap_err());
    let fields: Vec<&str> = told.iter().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(fields, ["job", "size", "names/2", "memory"], "{told:#?}");
}

#[test]
fn an_amount_is_a_number_in_json_and_typed_with_its_unit_in_a_form() {
    let given = [
        ("job", ID),
        ("name", " www.example.org "),
        ("size", "small"),
        ("memory", "512 MiB"),
        ("names", "a.org, b.org"),
    ];
    let read: Wanted = form(&given).read().unwrap();
    assert_eq!(read.memory.map(MemoryLimit::get), Some(512 << 20));
    assert_eq!((read.names.len(), read.name.as_str(), read.autostart), (2, "www.example.org", true));
    let json = json!({ "job": ID, "name": "www.example.org", "size": "small", "memory": 536_870_912 });
    let read: Wanted = body(json).read().unwrap();
    assert_eq!(read.memory.map(MemoryLimit::get), Some(512 << 20));
    let typed = json!({ "job": ID, "name": "www.example.org", "size": "small", "memory": "512 MiB" });
    assert_eq!(told(&body(typed).read::<Wanted>().unwrap_err()).len(), 1, "JSON stays strict");
}

#[test]
fn a_secret_is_known_and_kept_as_typed() {
    assert!(is_secret::<Wanted>("password") && !is_secret::<Wanted>("name"));
    assert!(is_list::<Wanted>("names") && !is_list::<Wanted>("name"));
    let given = [("job", ID), ("name", "www.example.org"), ("size", "small"), ("password", " two words ")];
    let read: Wanted = form(&given).read().unwrap();
    assert_eq!(read.password.unwrap().secret().expose_secret(), " two words ");
}

#[test]
fn text_becomes_values_and_comes_once() {
    let mut query = Input::default();
    for (name, text) in [("state", "running"), ("state", "stuck"), ("limit", "7")] {
        query.text(name, text);
    }
    let read: ListJobs = query.read().unwrap();
    assert_eq!(read.state[..], [JobState::Running, JobState::Stuck]);
    assert_eq!(read.limit.map(u64::from), Some(7));
    let mut twice = Input::default();
    for text in ["7", "8"] {
        twice.text("limit", text);
    }
    assert_eq!(told(&twice.read::<ListJobs>().unwrap_err()), ["limit: This is given more than once."]);
}

#[test]
fn the_path_is_not_said_again_in_the_body() {
    let mut both = Input::default();
    both.text("job", ID);
    let Value::Object(fields) = json!({ "job": ID, "comment": "x" }) else { unreachable!() };
    both.json(fields);
    assert_eq!(told(&both.read::<AbandonJob>().unwrap_err()), ["job: This is given in the path already."]);
}

#[test]
fn whole_numbers_may_be_written_with_a_point() {
    assert!(body(json!({ "limit": 4.0 })).read::<ListJobs>().is_ok());
    assert!(body(json!({ "limit": 4.5 })).read::<ListJobs>().is_err());
}
