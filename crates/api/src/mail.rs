//! Which mail a member wants, of what and when; and for operators how mail goes.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use corpus_domain::{MailDelivery, MailKind, MailPreference};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Version;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, get, put};

/// Shows which mail one wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetMail {}
impl Operation for GetMail {
    type Kind = Read;
    type Output = MailChoice;
    const META: Meta<Read> = get("get_mail", "/me/mail").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// What is asked and answered has a field for each kind of letter, so that a form, a body and a command all say it
/// flat. A kind that is missing here does not compile.
macro_rules! choices {
    ($($(#[$doc:meta])* $field:ident: $kind:ident),+ $(,)?) => {
        /// Sets which mail one wants. What is left out stays as it is.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        pub struct SetMail {
            /// Whose: none, what is one's own, or deployments of all of one's projects too.
            pub wants: MailPreference,
            $($(#[$doc])* pub $field: Option<MailDelivery>,)+
            /// The version that was read.
            pub version: Version,
        }

        impl SetMail {
            /// Sets whose mail one wants, and leaves the kinds as they are.
            pub fn wanting(wants: MailPreference, version: Version) -> Self {
                Self { wants, $($field: None,)+ version }
            }

            /// The kinds that are set.
            pub fn chosen(&self) -> BTreeMap<MailKind, MailDelivery> {
                let all = [$((MailKind::$kind, self.$field)),+];
                all.into_iter().filter_map(|(kind, chosen)| Some((kind, chosen?))).collect()
            }
        }

        /// Which mail a member wants.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        pub struct MailChoice {
            /// Whose: none, what is their own, or deployments of all of their projects too.
            pub wants: MailPreference,
            $($(#[$doc])* pub $field: MailDelivery,)+
            /// Its version, to set it.
            pub version: Version,
        }

        impl MailChoice {
            /// What a member chose; the rest is by default.
            pub fn new(wants: MailPreference, chosen: &BTreeMap<MailKind, MailDelivery>) -> Self {
                let of = |kind: MailKind| chosen.get(&kind).copied().unwrap_or_else(|| kind.default_delivery());
                let all: BTreeMap<MailKind, MailDelivery> = MailKind::ALL.iter().map(|kind| (*kind, of(*kind))).collect();
                Self { wants, $($field: of(MailKind::$kind),)+ version: Version::of(&(wants, all)) }
            }

            /// When they are told of something of this kind.
            pub const fn delivery(&self, kind: MailKind) -> MailDelivery {
                match kind { $(MailKind::$kind => self.$field),+ }
            }
        }
    };
}

choices! {
    /// When one is told of a deployment that failed, and of the first that went live after one.
    deployment: Deployment,
    /// When one is told of an environment that can be pushed to.
    environment_ready: EnvironmentReady,
    /// When one is told of a guest that can be entered.
    guest_ready: GuestReady,
    /// When one is told of a job of one's own that failed.
    job_failed: JobFailed,
    /// When one is told of a job that goes on no more; operators of all of them.
    job_stuck: JobStuck,
    /// When one is told what was decided about a request of one's own; an operator, that one was made.
    request: Request,
    /// When one is told of what is near its end: a token of one's own.
    expiry: Expiry,
    /// When an operator is told of a node that takes guests.
    node_ready: NodeReady,
    /// When an operator is told of a node that does not answer, or does again.
    node_unreachable: NodeUnreachable,
}

impl Operation for SetMail {
    type Kind = Write;
    type Output = MailChoice;
    const META: Meta<Write> = put("set_mail", "/me/mail").needs(Role::Member).if_match("version");
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

impl MailChoice {
    /// What is wanted, with each kind by default.
    pub fn of(wants: MailPreference) -> Self {
        Self::new(wants, &BTreeMap::new())
    }
}
impl Reply for MailChoice {
    const HAS_VERSION: bool = true;
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}

/// Shows how mail goes: what waits, what the relay refuses and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetMailRelay {}
impl Operation for GetMailRelay {
    type Kind = Read;
    type Output = MailRelay;
    const META: Meta<Read> = get("get_mail_relay", "/mail-relay").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// How mail goes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MailRelay {
    /// Letters that wait to be sent.
    pub waiting: i64,
    /// Those of them that the relay did not take yet.
    pub failing: i64,
    /// Why the last of those was not taken.
    pub error: Option<String>,
    /// Letters that were given up in the last seven days.
    pub given_up: i64,
    /// When the relay last took a letter, of the last thirty days.
    pub sent_at: Option<DateTime<Utc>>,
}
impl Reply for MailRelay {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_chosen_for_itself_and_each_choice_has_a_version_of_its_own() {
        let plain = MailChoice::of(MailPreference::Own);
        let mut versions = vec![plain.version.clone()];
        for kind in MailKind::ALL {
            let never = MailChoice::new(MailPreference::Own, &[(*kind, MailDelivery::Never)].into());
            let others = MailKind::ALL.iter().filter(|one| *one != kind);
            assert!(others.into_iter().all(|one| never.delivery(*one) == plain.delivery(*one)));
            assert_eq!(never.delivery(*kind), MailDelivery::Never);
            assert!(!versions.contains(&never.version), "{kind}");
            versions.push(never.version);
        }
        let body = serde_json::json!({ "wants": "all", "node_ready": "digest", "version": "00000000000000ff" });
        let set: SetMail = serde_json::from_value(body).unwrap();
        assert_eq!(set.chosen(), [(MailKind::NodeReady, MailDelivery::Digest)].into());
    }

    /// The word of a kind is its field in bodies and forms.
    #[test]
    fn a_field_is_called_as_its_kind() {
        let body = serde_json::to_value(MailChoice::of(MailPreference::Own)).unwrap();
        for kind in MailKind::ALL {
            assert_eq!(body[kind.as_str()], kind.default_delivery().as_str(), "{kind}");
        }
    }
}
