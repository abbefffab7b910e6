//! What goes wrong, when, and where it can't.

use serde::{Deserialize, Serialize};

/// Everything that is tried at every step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Fault {
    /// SIGKILL to the server; another one finds the job.
    ServerKilled,
    /// The server stands still for longer than its lease; another one has the job when it goes on.
    LeaseLost,
    /// All packets between server and node are swallowed for a while.
    LineCut,
    /// All connections to the node are reset for a while.
    LineReset,
    /// The node reboots.
    NodeRebooted,
    /// What runs on the node for the step fails.
    CommandFails,
    /// What runs on the node for the step never ends.
    CommandHangs,
    /// What comes back from the node makes no sense.
    AnswerRubbish,
    /// What runs on the node for the step takes longer than it may, and then goes on.
    AnswerLate,
    /// PostgreSQL crashes and is started again at once.
    DatabaseRestarted,
    /// PostgreSQL refuses connections for longer than a lease.
    DatabaseRefuses,
    /// There is not a byte free on the node's disk.
    DiskFull,
    /// An operator's hook fails.
    HookFails,
    /// An operator's hook never ends.
    HookHangs,
    /// Somebody kills an operator's hook.
    HookKilled,
    /// SIGKILL to the server while an operator's hook runs.
    HookServerKilled,
}

/// When, as seen from the step's effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Moment {
    Before,
    During,
    After,
}

impl Moment {
    pub const ALL: [Self; 3] = [Self::Before, Self::During, Self::After];

    pub const fn word(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::During => "during",
            Self::After => "after",
        }
    }
}

impl Fault {
    pub const ALL: [Self; 12] = [
        Self::ServerKilled,
        Self::LeaseLost,
        Self::LineCut,
        Self::LineReset,
        Self::NodeRebooted,
        Self::CommandFails,
        Self::CommandHangs,
        Self::AnswerRubbish,
        Self::AnswerLate,
        Self::DatabaseRestarted,
        Self::DatabaseRefuses,
        Self::DiskFull,
    ];

    /// What happens to hooks, which are tried at a few steps only: they are the same around each.
    pub const OF_HOOKS: [Self; 4] = [Self::HookFails, Self::HookHangs, Self::HookKilled, Self::HookServerKilled];

    /// For the head of a column.
    pub const fn title(self) -> &'static str {
        match self {
            Self::ServerKilled => "server killed",
            Self::LeaseLost => "lease lost",
            Self::LineCut => "line cut",
            Self::LineReset => "line reset",
            Self::NodeRebooted => "node rebooted",
            Self::CommandFails => "command fails",
            Self::CommandHangs => "command hangs",
            Self::AnswerRubbish => "answer is rubbish",
            Self::AnswerLate => "answer too late",
            Self::DatabaseRestarted => "database crashes",
            Self::DatabaseRefuses => "database refuses",
            Self::DiskFull => "disk full",
            Self::HookFails => "hook fails",
            Self::HookHangs => "hook hangs",
            Self::HookKilled => "hook killed",
            Self::HookServerKilled => "server killed in a hook",
        }
    }

    /// Whether it happens to what runs on the node for the step.
    pub const fn is_remote(self) -> bool {
        matches!(self, Self::CommandFails | Self::CommandHangs | Self::AnswerRubbish | Self::AnswerLate)
    }

    /// Whether it happens to the node or the way there.
    pub const fn is_of_node(self) -> bool {
        self.is_remote() || matches!(self, Self::LineCut | Self::LineReset | Self::NodeRebooted | Self::DiskFull)
    }
}

/// What a step works on, which decides what can happen to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touches {
    /// Rows of the database.
    Rows,
    /// The DNS server.
    Dns,
    /// The directory of certificates.
    Directory,
    /// A login at the node, without running anything.
    Login,
    /// A login at the guest, through the node's port.
    Guest,
    /// A command line on the node that contains this.
    Shell(&'static str),
    /// A request to the agent of this type.
    Agent(&'static str),
}

impl Touches {
    /// Whether it is a request that only reads, which others make too: it is broken for a
    /// while, whoever asks.
    pub fn is_read(self) -> bool {
        matches!(self, Self::Agent("facts" | "read" | "check_node"))
    }

    /// Why this fault can't happen to such a step.
    pub const fn obstacle(self, fault: Fault) -> Option<&'static str> {
        match self {
            Self::Rows if fault.is_of_node() => Some("the step works on the database only"),
            Self::Dns if fault.is_of_node() => Some("the step asks the DNS server, not the node"),
            Self::Directory if fault.is_of_node() => Some("the step asks the directory of certificates, not the node"),
            Self::Login if fault.is_remote() => Some("the step only logs in; nothing runs on the node for it"),
            Self::Guest if fault.is_remote() => Some("the step logs in at the guest; nothing runs on the node for it"),
            _ => None,
        }
    }
}

/// What each step of each job works on. A step that is missing here fails the run, so that no
/// new step stays untried.
pub fn touches(kind: &str, step: &str) -> Option<Touches> {
    use Touches::{Agent, Directory, Dns, Guest, Login, Rows, Shell};
    Some(match (kind, step) {
        ("node_link", "connect") => Login,
        ("node_link", "privilege") => Shell("id -u"),
        ("node_link", "agent") => Shell("install -m"),
        ("node_unlink", "agent") => Shell("rm -f"),
        ("node_unlink", "key") => Shell("mv -f"),
        ("node_link" | "node_initialize", "facts") => Agent("facts"),
        ("node_initialize", "driver") => Agent("ensure_driver"),
        ("node_initialize", "image") => Agent("ensure_image"),
        ("node_initialize", "slots") | ("node_repair", "guests") | ("node_images", "read") => Agent("read"),
        ("node_reboot", "boot" | "back") => Agent("read_boot"),
        ("node_reboot", "reboot") => Agent("reboot"),
        ("node_images", "prune") => Agent("ensure_no_image"),
        ("node_repair", "look" | "verify") => Agent("check_node"),
        ("node_repair", "image") => Agent("list_images"),
        ("node_baseline", "states") => Agent("apply_baseline"),
        ("node_unlink", "clear") => Agent("remove_node"),
        ("node_initialize", "network")
        | ("guest_create" | "guest_destroy" | "name_attach" | "name_configure" | "name_detach" | "project_destroy", "routes")
        | ("name_switch", "switch")
        | ("certificate_issue", "challenge" | "served")
        | ("environment_set_up", "firewall")
        | ("backup_prove", "isolate")
        | ("firewall_apply" | "node_repair" | "node_reboot", "apply") => Agent("apply_node"),
        ("name_switch", "proven") => Agent("probe_sites"),
        ("guest_create" | "backup_prove", "spawn") => Agent("ensure_guest"),
        ("guest_create", "hostsfile" | "initial_setup") => Agent("set_up_guest"),
        ("guest_create" | "guest_start" | "guest_restart" | "guest_users" | "snapshot_restore" | "backup_restore" | "backup_prove", "sshkeys")
        | ("keys_sync", "sync")
        | ("node_repair", "keys") => Agent("ensure_keys"),
        ("guest_create" | "guest_start" | "guest_restart" | "snapshot_restore" | "backup_restore" | "backup_prove" | "node_reboot", "start") => Agent("ensure_running"),
        ("guest_create" | "guest_start" | "guest_restart" | "snapshot_restore" | "backup_restore" | "backup_prove" | "node_reboot", "ping")
        // Their agent is the guest's, behind a port of the node.
        | ("environment_set_up", "salt" | "project" | "ready")
        | ("guest_mode", "salt" | "mode")
        | ("guest_states", "salt" | "states")
        | ("guest_users", "users")
        | ("environment_configure", "plan")
        | ("environment_remove", "project")
        | ("deploy", "order" | "follow" | "record") => Guest,
        ("guest_stop" | "guest_restart" | "snapshot_restore" | "backup_restore" | "node_reboot", "stop") => Agent("ensure_stopped"),
        ("snapshot_take" | "backup_take" | "image_make", "snapshot") => Agent("ensure_snapshot"),
        ("snapshot_restore", "restore") => Agent("ensure_restored"),
        ("snapshot_restore" | "backup_restore", "settle") => Agent("ensure_settled"),
        ("backup_restore", "restore") | ("backup_prove", "put") => Agent("ensure_replaced"),
        ("snapshot_remove", "remove") | ("backup_take" | "image_make", "clear") => Agent("ensure_no_snapshot"),
        ("guest_limit", "limit") => Agent("ensure_limits"),
        ("guest_configure", "configure") => Agent("ensure_settings"),
        ("guest_enlarge", "enlarge") | ("guest_shrink", "shrink") => Agent("ensure_size"),
        ("guest_destroy", "absent") | ("project_destroy", "guests") | ("backup_prove", "clear") => Agent("ensure_absent"),
        ("guest_destroy" | "project_destroy", "names") | ("name_attach", "record" | "answered") | ("name_detach", "record") => Dns,
        ("certificate_issue", "ordered" | "validated" | "issued") => Directory,
        ("node_link", "ids" | "linked")
        | ("node_initialize" | "node_reboot", "mark" | "ready")
        | ("node_unlink" | "guest_destroy" | "name_detach" | "environment_remove", "mark" | "forget")
        // Of an environment on one node.
        | ("environment_remove", "unspread")
        // It is there, as it is in most cases.
        | ("guest_create", "ids" | "allocate" | "image" | "files" | "users" | "mode" | "states" | "ready")
        | ("guest_mode", "master" | "keep")
        | ("node_images" | "backup_restore", "bring")
        | ("node_baseline", "salt")
        | ("guest_start" | "guest_restart", "ready")
        | ("guest_stop", "stopped")
        // Of a guest that no environment is on.
        | ("snapshot_restore" | "backup_restore", "project" | "ready")
        // Their line is a program's of its own.
        | ("guest_shrink", "note")
        | ("backup_take", "note" | "dump" | "save" | "done")
        | ("image_make", "note" | "pack" | "keep")
        | ("backup_remove", "remove")
        | ("backup_check", "check")
        // Of a guest that no environment is on.
        | ("backup_prove", "place" | "image" | "files" | "compare" | "checks" | "done")
        | ("name_attach", "wanted" | "attached")
        | ("firewall_apply", "rules" | "in_force")
        // To a guest on the same node.
        | ("name_switch", "ways" | "record" | "answered" | "settled")
        // No reverse zone is ours here.
        | ("guest_point", "wanted" | "pointer" | "answered")
        | ("environment_set_up" | "deploy", "row")
        | ("project_destroy", "mark" | "begin" | "deployments" | "forget")
        // Of an environment on one guest.
        | ("deploy", "others" | "live") => Rows,
        _ => return None,
    })
}
