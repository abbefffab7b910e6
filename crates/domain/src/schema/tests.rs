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
const WITHOUT: [&str; 4] = ["Invalid", "LxcLine", "Plain", "Release"];

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
    texts by text::exact: ActorName, CheckPath, CommitId, EgressRule, FilePath, GuestName, GuestProfileName, HookName, HookStage, ImageName, Ipv4Network, LxcKey, LxcLineName, LxcValue, MacAddress,
        NetworkName, NodeName, PoolId, PortRange, PreviewName, ProjectName, ProviderName, Reason, RobotName, RuleSource, SourceAddress, TestReportName,
        UnixUser, UserName, WebhookUrl;
    stricter_texts by text::stricter:
        CertifiedName except ("a.123456789012345678901a", LONG_LAST_LABEL),
        DnsName except ("a.123456789012345678901a", LONG_LAST_LABEL),
        GuestNetwork except ("10.5.1.0/16", r"\.(0|255)/|/2[5-7]$"),
        HostName except ("123456789012345678901a", LONG_LAST_LABEL),
        NodeAddress except ("123456789012345678901a", LONG_LAST_LABEL);
    words by value::words: Backing, BalancePolicy, CertificateSource, CertificateState, ControllerBackupState, DeliveryState, DeploymentState, Door, DriftKind, Driver, Environment, EnvironmentMailSwitch, EnvironmentState, ExportFormat, FileKind,
        GitService, Grant, GuestMailSwitch, GuestRole, GuestState, HookFailure, HookHost, HookSide, HookState, HookUndo, IntrusionKind, Repository,
        JobKind, JobState, Leaving, MailDelivery, MailKind, MailPreference, Mode, NameState, NodeState, Origin, Outcome, Phase,
        ProjectCreators, ProjectRole, QuotaOf, Reachability, RequestOf, RequestState, RuleAction, RuleState, Safeguard, SizeProfile, SnapshotEvery, SnapshotState, BackupEvery, BackupState, StatesEvery, StatesOutcome, StepState, Stickiness, TestResult, TrafficSpan, Transport, Trigger, Verdict, ViewedList,
        WebhookEvent;
    ids by value::id: AuditId, BlockId, CertificateId, ControllerBackupId, DeploymentId, DnsNameId, FirewallRuleId, GuestId, JobId, KeyClaimId, NameClaimId, NamedNetworkId, NodeId, NoticeId, ProjectId,
        RequestId, RequestRuleId, SnapshotId, BackupId, SshKeyId, TokenId, UndoId, UserId, ViewId, WebhookDeliveryId, WebhookId, ZoneId;
    numbers by value::number: Bytes, CpuLimit, CpuQuota, Factor, GuestQuota, IdRange, IoWeight, MemoryLimit, MemoryQuota,
        NameQuota, PortQuota, ProcessLimit, SshPort, StorageQuota;
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
