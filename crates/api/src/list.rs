//! The one list of all operations. What is not in it can't be an [`Operation`].

use crate::operation::Operation;
use crate::stream::Stream;

/// Calls a macro with every operation.
#[macro_export]
macro_rules! each_operation {
    ($then:ident) => {
        $then! {
            $crate::audit::ListAudit,
            $crate::audit::ExportAudit,
            $crate::deployments::ListDeployments,
            $crate::deployments::GetDeployment,
            $crate::deployments::GetDeploymentByNumber,
            $crate::deployments::Deploy,
            $crate::deployments::Drill,
            $crate::deployments::log::ReadDeploymentLog,
            $crate::deployments::log::SearchDeploymentLog,
            $crate::deployments::test_cases::ListTests,
            $crate::deployments::test_cases::UploadTests,
            $crate::environments::GetEnvironment,
            $crate::environments::SetUpEnvironment,
            $crate::environments::GetEnvironmentSettings,
            $crate::environments::SetEnvironmentSettings,
            $crate::environments::RemoveEnvironment,
            $crate::environments::RemoveEnvironmentGuest,
            $crate::nodes::ListNodes,
            $crate::nodes::GetNode,
            $crate::nodes::LinkNode,
            $crate::nodes::GetControlKey,
            $crate::nodes::ProbeHostKey,
            $crate::nodes::ProbeBehindGateway,
            $crate::nodes::ConfirmNodeHostKey,
            $crate::nodes::InitializeNode,
            $crate::nodes::RepairNode,
            $crate::node_service::DrainNode,
            $crate::node_service::ResumeNode,
            $crate::node_service::RebootNode,
            $crate::leaving::EmptyNode,
            $crate::leaving::KeepGuests,
            $crate::leaving::ListLeaving,
            $crate::leaving::ListLeftBehind,
            $crate::leaving::RemoveLeftBehind,
            $crate::images::ListImages,
            $crate::images::BringImages,
            $crate::images::made::ListProjectImages,
            $crate::images::made::MakeImage,
            $crate::images::upload::UploadImage,
            $crate::images::made::RemoveImage,
            $crate::nodes::GetOvercommit,
            $crate::nodes::SetOvercommit,
            $crate::nodes::GetNodeName,
            $crate::nodes::NameNode,
            $crate::nodes::UnlinkNode,
            $crate::jobs::ListJobs,
            $crate::jobs::GetJob,
            $crate::jobs::ReadJobLog,
            $crate::jobs::CancelJob,
            $crate::jobs::RetryJob,
            $crate::jobs::AbandonJob,
            $crate::not_created::ListNotCreated,
            $crate::not_created::DismissJob,
            $crate::projects::ListProjects,
            $crate::projects::GetProject,
            $crate::projects::CreateProject,
            $crate::projects::ending::PreviewProjectDestroy,
            $crate::previews::GetPreviewRules,
            $crate::previews::SetPreviewRules,
            $crate::previews::ListPreviews,
            $crate::previews::MakePreview,
            $crate::previews::KeepPreview,
            $crate::previews::RemovePreview,
            $crate::projects::DestroyProject,
            $crate::projects::GetProdEntry,
            $crate::projects::SetProdEntry,
            $crate::projects::GetDelivery,
            $crate::projects::badges::GetBadges,
            $crate::projects::badges::RenewBadges,
            $crate::projects::badges::RemoveBadges,
            $crate::projects::members::ListMembers,
            $crate::projects::members::SetMember,
            $crate::projects::members::RemoveMember,
            $crate::quotas::ListQuotas,
            $crate::quotas::GetQuota,
            $crate::quotas::SetQuota,
            $crate::quotas::GetQuotaPolicy,
            $crate::quotas::SetQuotaPolicy,
            $crate::requests::ListRequests,
            $crate::requests::GetRequest,
            $crate::requests::asking::AskForProject,
            $crate::requests::asking::AskForNode,
            $crate::requests::asking::AskToInitialize,
            $crate::requests::asking::AskForGuest,
            $crate::requests::asking::AskForName,
            $crate::requests::ApproveRequest,
            $crate::requests::RefuseRequest,
            $crate::requests::WithdrawRequest,
            $crate::requests::rules::ListRequestRules,
            $crate::requests::rules::CreateRequestRule,
            $crate::requests::rules::RemoveRequestRule,
            $crate::robots::ListRobots,
            $crate::robots::GetRobot,
            $crate::robots::CreateRobot,
            $crate::robots::ChangeRobot,
            $crate::robots::EndRobot,
            $crate::robots::keys::CreateRobotToken,
            $crate::robots::keys::RevokeRobotToken,
            $crate::robots::keys::AddRobotKey,
            $crate::robots::keys::RemoveRobotKey,
            $crate::guests::ListGuests,
            $crate::guests::GetGuest,
            $crate::guests::PreviewGuest,
            $crate::guests::RequestGuest,
            $crate::guests::StartGuest,
            $crate::guests::StopGuest,
            $crate::guests::RestartGuest,
            $crate::guests::EnlargeGuest,
            $crate::guests::ShrinkGuest,
            $crate::guests::GetGuestLimits,
            $crate::guests::SetGuestLimits,
            $crate::guests::GetGuestSettings,
            $crate::guests::SetGuestSettings,
            $crate::guests::GetGuestStates,
            $crate::guests::SwitchGuestMode,
            $crate::guests::ApplyGuestStates,
            $crate::states::ListStates,
            $crate::states::ApplyAllStates,
            $crate::states::GetStatesSchedule,
            $crate::states::SetStatesSchedule,
            $crate::states::ApplyProjectStates,
            $crate::guest_users::ListGuestUsers,
            $crate::guest_users::SetGuestUser,
            $crate::guest_users::RemoveGuestUser,
            $crate::salt_masters::ListSaltMasters,
            $crate::baseline::GetBaseline,
            $crate::baseline::SetBaseline,
            $crate::baseline::GetNodeBaseline,
            $crate::baseline::ApplyNodeBaseline,
            $crate::guests::ConfirmGuestHostKey,
            $crate::guests::RevealGuestPassword,
            $crate::moves::ProposeMoves,
            $crate::moves::PreviewMove,
            $crate::guests::MoveGuest,
            $crate::guests::DestroyGuest,
            $crate::names::ListNames,
            $crate::names::GetName,
            $crate::names::AttachName,
            $crate::names::DetachName,
            $crate::names::GetNodeDnsName,
            $crate::names::SetNodeDnsName,
            $crate::certificates::GetCertificate,
            $crate::certificates::UploadCertificate,
            $crate::certificates::RemoveCertificate,
            $crate::certificates::RenewCertificate,
            $crate::certificates::GetNameHttps,
            $crate::certificates::SetNameHttps,
            $crate::certificates::ListCertificates,
            $crate::certificates::GetCertificateAuthority,
            $crate::claims::ListNameClaims,
            $crate::claims::GetNameClaim,
            $crate::claims::ClaimName,
            $crate::claims::AskNameClaim,
            $crate::claims::WithdrawNameClaim,
            $crate::names::SwitchName,
            $crate::names::PointGuest,
            $crate::names::AttachAlias,
            $crate::environments::balance::GetBalance,
            $crate::environments::balance::SetBalance,
            $crate::environments::balance::AttachEnvironmentName,
            $crate::guest_mail::GetGuestMail,
            $crate::guest_mail::SetGuestMail,
            $crate::guest_mail::GetEnvironmentMail,
            $crate::guest_mail::SetEnvironmentMail,
            $crate::snapshots::ListSnapshots,
            $crate::snapshots::TakeSnapshot,
            $crate::snapshots::RestoreSnapshot,
            $crate::snapshots::RemoveSnapshot,
            $crate::snapshots::GetSnapshotSchedule,
            $crate::snapshots::SetSnapshotSchedule,
            $crate::backups::ListBackups,
            $crate::backups::TakeBackup,
            $crate::backups::RestoreBackup,
            $crate::backups::ProveBackup,
            $crate::backups::RemoveBackup,
            $crate::backups::ListProjectBackups,
            $crate::backups::RemoveProjectBackup,
            $crate::environments::backups::ListEnvironmentBackups,
            $crate::environments::backups::RestoreEnvironment,
            $crate::backups::CheckBackups,
            $crate::backups::RevealBackupKey,
            $crate::backup_files::ListBackupFiles,
            $crate::backup_files::FetchBackupFile,
            $crate::backups::GetBackupSchedule,
            $crate::backups::SetBackupSchedule,
            $crate::firewall::GetGuestFirewall,
            $crate::firewall::AllowToGuest,
            $crate::firewall::PublishPort,
            $crate::firewall::RemoveFirewallRule,
            $crate::firewall::UnpublishPort,
            $crate::firewall::GetEnvironmentFirewall,
            $crate::firewall::AllowToEnvironment,
            $crate::firewall::nodes::GetNodeFirewall,
            $crate::firewall::nodes::AllowToNode,
            $crate::firewall::nodes::BlockAtNode,
            $crate::firewall::nodes::BlockEverywhere,
            $crate::firewall::networks::ListNetworks,
            $crate::firewall::networks::GetNetwork,
            $crate::firewall::networks::CreateNetwork,
            $crate::firewall::networks::SetNetwork,
            $crate::firewall::networks::RemoveNetwork,
            $crate::traffic::GetTraffic,
            $crate::backings::ListBackings,
            $crate::backings::GetBackings,
            $crate::backings::SetBackings,
            $crate::profiles::ListProfiles,
            $crate::profiles::GetProfile,
            $crate::profiles::CreateProfile,
            $crate::profiles::SetProfile,
            $crate::profiles::RemoveProfile,
            $crate::lxc_lines::ListLxcLines,
            $crate::lxc_lines::GetLxcLine,
            $crate::lxc_lines::CreateLxcLine,
            $crate::lxc_lines::SetLxcLine,
            $crate::lxc_lines::RemoveLxcLine,
            $crate::controller_backups::ListControllerBackups,
            $crate::controller_backups::TakeControllerBackup,
            $crate::hooks::ListHooks,
            $crate::hooks::GetHook,
            $crate::zones::ListZones,
            $crate::zones::GetZone,
            $crate::zones::CreateZone,
            $crate::zones::GetZoneAccess,
            $crate::zones::SetZoneAccess,
            $crate::zones::SetZoneTtl,
            $crate::zones::ListDnsServers,
            $crate::zones::RemoveZone,
            $crate::keys::ListMyKeys,
            $crate::keys::AddKey,
            $crate::keys::RemoveKey,
            $crate::keys::GetKeyClaim,
            $crate::keys::ProveKey,
            $crate::logins::ListRefusedLogins,
            $crate::intrusion::ListIntrusionSigns,
            $crate::intrusion::ListBlockedAddresses,
            $crate::intrusion::BlockAddress,
            $crate::intrusion::LiftBlock,
            $crate::me::GetMe,
            $crate::mail::GetMail,
            $crate::mail::SetMail,
            $crate::mail::GetMailRelay,
            $crate::first_steps::GetFirstSteps,
            $crate::first_steps::DismissFirstSteps,
            $crate::notices::ListNotices,
            $crate::notices::ReadNotice,
            $crate::notices::MarkNoticesRead,
            $crate::overview::GetCounts,
            $crate::overview::GetOverview,
            $crate::search::Search,
            $crate::sizes::ListSizes,
            $crate::tokens::ListTokens,
            $crate::tokens::CreateToken,
            $crate::tokens::RevokeToken,
            $crate::views::ListViews,
            $crate::views::SaveView,
            $crate::views::RemoveView,
            $crate::webhooks::ListWebhooks,
            $crate::webhooks::GetWebhook,
            $crate::webhooks::CreateWebhook,
            $crate::webhooks::RemoveWebhook,
            $crate::webhooks::ResumeWebhook,
            $crate::webhooks::TestWebhook,
            $crate::webhooks::deliveries::ListWebhookDeliveries,
            $crate::webhooks::deliveries::ResendWebhookDelivery,
            $crate::undoes::ListUndoes,
            $crate::undoes::Undo,
            $crate::device_logins::GetDeviceLogin,
            $crate::device_logins::ApproveDeviceLogin,
            $crate::device_logins::RefuseDeviceLogin,
        }
    };
}

/// Calls a macro with everything that can be followed.
#[macro_export]
macro_rules! each_stream {
    ($then:ident) => {
        $then! {
            $crate::jobs::FollowJob,
            $crate::traffic::FollowAccess,
        }
    };
}

/// In the list; only the list implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not in the list of operations",
    note = "add it to `each_operation!` (or `each_stream!`) in crates/api/src/list.rs"
)]
pub trait Listed {}

/// Something to do with each operation.
pub trait Visitor {
    /// Does it.
    fn visit<O: Operation>(&mut self);
}

/// Something to do with everything that can be followed.
pub trait StreamVisitor {
    /// Does it.
    fn visit_stream<S: Stream>(&mut self);
}

macro_rules! listed {
    ($($operation:ty),* $(,)?) => {
        $(impl Listed for $operation {})*
        /// Visits every operation.
        pub fn walk(visitor: &mut impl Visitor) {
            $(visitor.visit::<$operation>();)*
        }
    };
}
each_operation!(listed);

macro_rules! listed_streams {
    ($($stream:ty),* $(,)?) => {
        $(impl Listed for $stream {})*
        /// Visits everything that can be followed.
        pub fn walk_streams(visitor: &mut impl StreamVisitor) {
            $(visitor.visit_stream::<$stream>();)*
        }
    };
}
each_stream!(listed_streams);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::input;
    use crate::operation::{Method, Place, Reply};

    #[derive(Default)]
    struct Sound(BTreeSet<String>);

    impl Visitor for Sound {
        fn visit<O: Operation>(&mut self) {
            let meta = O::META.plain();
            assert!(self.0.insert(meta.id.to_owned()), "{} is there twice", meta.id);
            assert!(self.0.insert(format!("{:?} {}", meta.method, meta.path)), "{} shares its place", meta.id);
            let form = meta.form_path();
            assert!(meta.method == Method::Get || self.0.insert(form), "{} shares the place of its form", meta.id);
            assert!(meta.path.starts_with('/'), "{}: a path begins with /", meta.id);
            let fields = input::fields::<O>().unwrap_or_else(|| panic!("{}: a plain struct, without flatten", meta.id));
            for param in meta.params().chain(meta.if_match) {
                assert!(fields.contains(&param), "{}: {param} is no field", meta.id);
            }
            let object = input::object::<O>();
            let mut described: Vec<_> = object.properties.keys().map(String::as_str).collect();
            let mut read = fields.to_vec();
            described.sort_unstable();
            read.sort_unstable();
            assert_eq!(described, read, "{}: what is described is not what is read", meta.id);
            assert!(object.description.is_some(), "{} says nothing of itself", meta.id);
            for (field, schema) in &object.properties {
                // serde does not hold `#[schema(max_length = ..)]` on a field; a word holds its bounds itself.
                let schema = serde_json::to_string(schema).unwrap();
                let bound =
                    ["\"maxL", "\"minL", "\"maximum", "\"minimum", "\"pattern", "\"exclusive", "\"unique"].iter();
                let bound = bound.clone().find(|bound| schema.contains(**bound));
                assert_eq!(bound, None, "{}: bounds of {field} belong to a word: {schema}", meta.id);
            }
            for field in fields.iter().filter(|field| meta.place(field) == Place::Path) {
                assert!(object.required.iter().any(|name| name == field), "{}: {field} can't be optional", meta.id);
            }
        }
    }

    /// Where a version can be read, and where one is asked for.
    #[derive(Default)]
    struct Versions(BTreeSet<&'static str>, BTreeSet<&'static str>);

    impl Visitor for Versions {
        fn visit<O: Operation>(&mut self) {
            let meta = O::META.plain();
            if meta.method == Method::Get && O::Output::HAS_VERSION {
                self.0.insert(meta.path);
            }
            if meta.if_match.is_some() {
                self.1.insert(meta.path);
            }
        }
    }

    #[test]
    fn what_is_set_by_its_version_is_read_at_the_same_place() {
        let mut versions = Versions::default();
        walk(&mut versions);
        let unread: Vec<_> = versions.1.difference(&versions.0).collect();
        assert!(unread.is_empty(), "who sets it by a program can't know which version: {unread:?}");
    }

    #[test]
    fn the_list_is_sound() {
        walk(&mut Sound::default());
    }
}
