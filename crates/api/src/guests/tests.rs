//! How guests are asked for: by a form as a person types it, by JSON as a program sends it.

use serde_json::{Map, Value, json};

use super::*;
use crate::{Input, Operation, Wrong};

const ID: &str = "01890000-0000-7000-8000-000000000001";

fn typed<O: Operation>(pairs: &[(&str, &str)]) -> Result<O, Vec<Wrong>> {
    Input::form(pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))).read()
}

fn sent<O: Operation>(path: &[(&str, &str)], body: &Value) -> Result<O, Vec<Wrong>> {
    let mut input = Input::default();
    for (name, text) in path {
        input.text(*name, *text);
    }
    input.json(body.as_object().cloned().unwrap_or_else(Map::new));
    input.read()
}

#[test]
fn amounts_are_typed_with_their_unit_and_sent_as_numbers() {
    let version = ("version", "0123456789abcdef");
    let by_hand: SetGuestLimits =
        typed(&[("guest", ID), version, ("memory", " 1.5 GiB "), ("cpu", "0.5"), ("processes", "128")]).unwrap();
    let body = json!({ "memory": 1_610_612_736_u64, "cpu": 500, "processes": 128 });
    let by_program: SetGuestLimits = sent(&[("guest", ID), version], &body).unwrap();
    assert_eq!(by_hand, by_program);
    let text = json!({ "memory": "1.5 GiB" });
    assert_eq!(sent::<SetGuestLimits>(&[("guest", ID), version], &text).unwrap_err()[0].field, "memory");
    let number = typed::<SetGuestLimits>(&[("guest", ID), version, ("memory", "1610612736")]);
    assert_eq!(number.unwrap_err()[0].field, "memory", "a number without unit may mean anything");
    let answer = serde_json::to_value(GuestLimits::from(SizeProfile::Small.limits())).unwrap();
    assert_eq!((&answer["memory"], &answer["cpu"]), (&json!(1_073_741_824_u64), &json!(1000)));
}

#[test]
fn all_that_is_wrong_with_a_request_is_said_at_once() {
    let wrong = typed::<RequestGuest>(&[
        ("name", "www"),
        ("project", "shop"),
        ("environment", "qa"),
        ("memory", "lots"),
        ("password", "short"),
        ("names", "a.example.org, b;c"),
        ("privileged", ""),
        ("owner", "me"),
    ]);
    let wrong = wrong.unwrap_err();
    assert!(!format!("{wrong:?}").contains("short"), "a password is not repeated: {wrong:?}");
    let mut fields: Vec<_> = wrong.into_iter().map(|wrong| wrong.field).collect();
    fields.sort_unstable();
    assert_eq!(fields, ["environment", "memory", "name", "names", "owner", "password"]);
    let plain = [("name", "www.example.org"), ("project", "shop"), ("environment", "dev"), ("size", "small")];
    let request = typed::<RequestGuest>(&plain).unwrap();
    assert_eq!((request.needs(), request.autostart), (Role::Maintainer, false));
    let privileged =
        typed::<RequestGuest>(&[&plain[..], &[("privileged", "needs NFS"), ("autostart", "true")]].concat());
    let privileged = privileged.unwrap();
    assert_eq!((privileged.needs(), privileged.autostart), (Role::Ops, true));
}

#[test]
fn a_preview_asks_what_the_request_has() {
    let (asked, requested) = (crate::input::fields::<PreviewGuest>(), crate::input::fields::<RequestGuest>());
    assert_eq!(asked, Some(&PreviewGuest::FIELDS[..]));
    assert!(PreviewGuest::FIELDS.iter().all(|field| requested.unwrap().contains(field)));
}
