//! What a schema allows its type takes, and what a type shows its schema allows.
//!
//! Every public type is listed here by its shape, or as one without a schema.

mod text;
mod value;

use std::collections::BTreeSet;
use std::marker::PhantomData;

use serde_json::Value;
use utoipa::ToSchema;

use crate::*;

/// What is exported and is no value of a request or an answer.
const WITHOUT: [&str; 3] = ["Invalid", "Plain", "Transport"];

/// With 21 digits or more, or a digit and more than 43 characters after it.
const LONG_LAST_LABEL: &str = r"[0-9]{21}|(^|\.)[0-9][^.]{44,}$";

macro_rules! each_type {
    ($($test:ident by $check:path: $($type:ident $(except $gaps:expr)?),+;)+) => {
        $(
            #[test]
            fn $test() {
                $($check(&checked::<$type>() $(, $gaps)?);)+
            }
        )+

        fn listed() -> BTreeSet<String> {
            BTreeSet::from([$($(<$type as ToSchema>::name().into_owned()),+),+])
        }
    };
}

each_type! {
    texts by text::exact: CommitId, EgressRule, GuestName, ImageName, Ipv4Network, MacAddress, ProjectName, Reason,
        UnixUser, UserName;
    stricter_texts by text::stricter:
        DnsName except ("a.123456789012345678901a", LONG_LAST_LABEL),
        GuestNetwork except ("10.5.1.0/16", r"\.(0|255)/|/2[5-7]$"),
        HostName except ("123456789012345678901a", LONG_LAST_LABEL),
        NodeAddress except ("123456789012345678901a", LONG_LAST_LABEL);
    words by value::words: Backing, DeploymentState, DriftKind, Driver, Environment, EnvironmentState, GitService, Grant,
        GuestRole, GuestState, Repository,
        JobKind, JobState, MailPreference, Mode, NameState, NodeState, Origin, Outcome, Phase, ProjectCreators,
        ProjectRole, Reachability, Safeguard, SizeProfile, StepState, Trigger;
    ids by value::id: AuditId, DeploymentId, DnsNameId, GuestId, JobId, KeyClaimId, NodeId, ProjectId, SshKeyId,
        TokenId, UserId, ZoneId;
    numbers by value::number: Bytes, CpuLimit, Factor, IdRange, IoWeight, MemoryLimit, ProcessLimit, SshPort;
    asked_objects by value::closed_object: ChosenLimits, Overcommit;
    answered_objects by value::object: Limits, Room;
}

/// A type and its schema, as an API shows it.
struct Checked<T> {
    name: String,
    schema: Value,
    kind: PhantomData<T>,
}

fn checked<T: ToSchema>() -> Checked<T> {
    let (name, schema) = (T::name().into_owned(), serde_json::to_value(T::schema()).unwrap());
    let described = schema["description"].as_str().unwrap_or_default();
    assert!(!described.is_empty() && described.trim() == described, "{name}: {described:?}");
    Checked { name, schema, kind: PhantomData }
}

#[test]
fn no_type_is_forgotten() {
    let exports = include_str!("../lib.rs").split("pub use").skip(1).filter_map(|rest| rest.split(';').next());
    let words = exports.flat_map(|export| export.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    let types = words.filter(|word| {
        word.starts_with(|c: char| c.is_ascii_uppercase()) && word.contains(|c: char| c.is_ascii_lowercase())
    });
    let types: BTreeSet<String> = types.filter(|word| !WITHOUT.contains(word)).map(str::to_owned).collect();
    assert_eq!(listed(), types);
}
