//! Kinds and states of jobs and their steps.

use crate::text::word_enum;

word_enum!(
    /// What a job does. The words are stored, so they stay the same across releases.
    JobKind, "job kind", {
        /// Link a host as a compute node.
        NodeLink = "node_link",
        /// Set up driver, network, firewall, proxy and image on a node.
        NodeInitialize = "node_initialize",
        /// Bring a node back to what it should be.
        NodeRepair = "node_repair",
        /// Bring new versions of images to a node, and remove old ones.
        NodeImages = "node_images",
        /// Reboot a node with its guests.
        NodeReboot = "node_reboot",
        /// Have a node be as operators want every one, or try what that would change.
        NodeBaseline = "node_baseline",
        /// Take everything of ours from a node and forget it.
        NodeUnlink = "node_unlink",
        /// Make a guest.
        GuestCreate = "guest_create",
        /// Start a guest.
        GuestStart = "guest_start",
        /// Stop a guest.
        GuestStop = "guest_stop",
        /// Stop and start a guest.
        GuestRestart = "guest_restart",
        /// Enlarge a guest's storage.
        GuestEnlarge = "guest_enlarge",
        /// Shrink a guest's storage.
        GuestShrink = "guest_shrink",
        /// Change a guest's limits.
        GuestLimit = "guest_limit",
        /// Change a guest's settings.
        GuestConfigure = "guest_configure",
        /// Switch how a guest's configuration is managed.
        GuestMode = "guest_mode",
        /// Apply the states of a guest, or try them.
        GuestStates = "guest_states",
        /// Have a guest have the users that its project wants.
        GuestUsers = "guest_users",
        /// Take a snapshot of a guest.
        SnapshotTake = "snapshot_take",
        /// Bring the files of a snapshot back to its guest.
        SnapshotRestore = "snapshot_restore",
        /// Delete a snapshot.
        SnapshotRemove = "snapshot_remove",
        /// Take a backup of a guest.
        BackupTake = "backup_take",
        /// Bring a guest back to a backup.
        BackupRestore = "backup_restore",
        /// Delete backups of guests.
        BackupRemove = "backup_remove",
        /// Look whether the backups of a project are what was written.
        BackupCheck = "backup_check",
        /// Try whether a guest can be had back from a backup.
        BackupProve = "backup_prove",
        /// Make an image of a guest.
        ImageMake = "image_make",
        /// Move a guest to another node.
        GuestMove = "guest_move",
        /// Bring a guest of a lost node to another one, from its latest backup.
        GuestEvacuate = "guest_evacuate",
        /// Destroy a guest and all that belongs to it.
        GuestDestroy = "guest_destroy",
        /// Attach a DNS name to a guest.
        NameAttach = "name_attach",
        /// Detach a DNS name from a guest.
        NameDetach = "name_detach",
        /// Bring the certificate and the HTTPS of a DNS name to its node.
        NameConfigure = "name_configure",
        /// Issue the certificate of a DNS name.
        CertificateIssue = "certificate_issue",
        /// Have a DNS name lead to another guest or environment.
        NameSwitch = "name_switch",
        /// Have the address of a guest point back to a DNS name.
        GuestPoint = "guest_point",
        /// Bring the members' SSH keys to the guests of a node.
        KeysSync = "keys_sync",
        /// Make a guest one that a project is pushed to.
        EnvironmentSetUp = "environment_set_up",
        /// Bring to the guest what its project should know now.
        EnvironmentConfigure = "environment_configure",
        /// Take a project from its guest.
        EnvironmentRemove = "environment_remove",
        /// See a deployment to its end.
        Deploy = "deploy",
        /// Bring a change of rules to the firewalls of nodes.
        FirewallApply = "firewall_apply",
        /// Destroy a project and all that belongs to it.
        ProjectDestroy = "project_destroy",
    }
);

word_enum!(
    /// The state of a job.
    JobState, "job state", {
        /// Waits for a lock or a free server.
        Waiting = "waiting",
        /// Its steps run.
        Running = "running",
        /// A step failed or it was cancelled: its undos run.
        Undoing = "undoing",
        /// All steps succeeded.
        Done = "done",
        /// Everything it did was undone.
        Undone = "undone",
        /// An undo failed: an operator decides.
        Stuck = "stuck",
        /// An operator gave it up with a comment.
        Abandoned = "abandoned",
    }
);

impl JobState {
    /// Whether nothing more will happen by itself.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Undone | Self::Stuck | Self::Abandoned)
    }
}

word_enum!(
    /// The state of a step of a job.
    StepState, "step state", {
        /// Not begun.
        Pending = "pending",
        /// Runs.
        Running = "running",
        /// Succeeded.
        Done = "done",
        /// Failed.
        Failed = "failed",
        /// Its undo runs.
        Undoing = "undoing",
        /// Its undo succeeded.
        Undone = "undone",
        /// Its undo failed.
        UndoFailed = "undo_failed",
    }
);
