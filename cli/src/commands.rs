//! Which words name an operation: `request_guest` is `corpus guest request`.
//!
//! The name of an operation is a verb and what it is done to; a command says it the other way round, so
//! that all that can be done to a thing stands together. Where that reads badly, the words stand in a
//! table.

use corpus_api::stream::Stream;
use corpus_api::{Operation, Plain, Visitor, walk};
use corpus_api::{StreamVisitor, walk_streams};

/// Operations whose words are not made from their name.
const NAMED: &[(&str, &[&str])] = &[
    ("list_audit", &["audit"]),
    ("export_audit", &["audit-export"]),
    ("read_job_log", &["job", "log"]),
    ("get_overview", &["overview"]),
    ("get_counts", &["counts"]),
    ("get_me", &["me"]),
    ("list_my_keys", &["key", "list"]),
    ("mark_notices_read", &["notice", "mark-read"]),
    ("list_undoes", &["undo", "list"]),
    ("undo", &["undo", "change"]),
    ("search", &["search"]),
    ("attach_alias", &["name", "alias"]),
    ("get_certificate", &["name", "show"]),
    ("upload_certificate", &["name", "upload"]),
    ("remove_certificate", &["name", "remove-certificate"]),
    ("renew_certificate", &["name", "renew"]),
    ("set_name_https", &["name", "https"]),
    ("list_certificates", &["certificates"]),
    ("get_certificate_authority", &["certificate-authority"]),
    ("switch_guest_mode", &["guest", "switch-mode"]),
    ("apply_guest_states", &["guest", "apply-states"]),
    ("get_guest_states", &["guest", "states"]),
    ("apply_all_states", &["state", "apply-all"]),
    ("get_states_schedule", &["project", "states-schedule"]),
    ("set_states_schedule", &["project", "set-states-schedule"]),
    ("list_guest_users", &["project", "users"]),
    ("set_guest_user", &["project", "set-user"]),
    ("remove_guest_user", &["project", "remove-user"]),
    ("list_salt_masters", &["salt-master", "list"]),
    ("prove_backup", &["backup", "prove"]),
    ("check_backups", &["project", "check-backups"]),
    ("reveal_backup_key", &["project", "reveal-backup-key"]),
    ("preview_move", &["guest", "preview-move"]),
    ("propose_moves", &["node", "rebalance"]),
    ("keep_guests", &["node", "keep"]),
    ("list_leaving", &["node", "leaving"]),
    ("list_left_behind", &["node", "left-behind"]),
    ("remove_left_behind", &["node", "remove-left-behind"]),
    ("probe_host_key", &["node", "probe-host-key"]),
    ("probe_behind_gateway", &["node", "probe-behind-gateway"]),
    ("get_control_key", &["node", "control-key"]),
    ("set_up_environment", &["environment", "set-up"]),
    ("get_balance", &["environment", "balance"]),
    ("set_balance", &["environment", "set-balance"]),
    ("list_environment_backups", &["environment", "backups"]),
    ("attach_environment_name", &["environment", "attach-name"]),
    ("get_prod_entry", &["project", "get-prod-entry"]),
    ("set_prod_entry", &["project", "set-prod-entry"]),
    ("read_deployment_log", &["deployment", "log"]),
    ("get_badges", &["project", "get-badges"]),
    ("renew_badges", &["project", "renew-badges"]),
    ("remove_badges", &["project", "remove-badges"]),
    ("list_tests", &["deployment", "list-tests"]),
    ("upload_tests", &["deployment", "upload-tests"]),
    ("list_refused_logins", &["refused-logins"]),
    ("list_intrusion_signs", &["intrusion"]),
    ("list_blocked_addresses", &["blocks"]),
    ("block_address", &["block"]),
    ("lift_block", &["unblock"]),
    ("get_device_login", &["device-login", "get"]),
    ("approve_device_login", &["device-login", "approve"]),
    ("ask_for_project", &["request", "ask-for-project"]),
    ("ask_for_node", &["request", "ask-for-node"]),
    ("ask_to_initialize", &["request", "ask-to-initialize"]),
    ("ask_for_guest", &["request", "ask-for-guest"]),
    ("ask_for_name", &["request", "ask-for-name"]),
    ("refuse_device_login", &["device-login", "refuse"]),
    ("get_guest_firewall", &["firewall", "list"]),
    ("get_environment_firewall", &["firewall", "list-environment"]),
    ("get_node_firewall", &["firewall", "list-node"]),
    ("allow_to_guest", &["firewall", "allow"]),
    ("allow_to_environment", &["firewall", "allow-environment"]),
    ("allow_to_node", &["firewall", "allow-node"]),
    ("block_at_node", &["firewall", "block-node"]),
    ("block_everywhere", &["firewall", "block-everywhere"]),
    ("remove_firewall_rule", &["firewall", "remove"]),
    ("get_traffic", &["traffic"]),
    ("list_backup_files", &["backup", "files"]),
    ("fetch_backup_file", &["backup", "fetch"]),
    ("list_controller_backups", &["controller-backup", "list"]),
    ("take_controller_backup", &["controller-backup", "take"]),
    ("get_backings", &["backing", "get"]),
    ("set_backings", &["backing", "set"]),
    ("bring_images", &["image", "bring"]),
    ("list_project_images", &["project", "images"]),
    ("list_lxc_lines", &["lxc-line", "list"]),
    ("get_lxc_line", &["lxc-line", "get"]),
    ("create_lxc_line", &["lxc-line", "create"]),
    ("set_lxc_line", &["lxc-line", "set"]),
    ("remove_lxc_line", &["lxc-line", "remove"]),
];

/// The words of an operation.
pub fn words(id: &str) -> Vec<String> {
    if let Some((_, words)) = NAMED.iter().find(|(named, _)| *named == id) {
        return words.iter().map(|word| (*word).to_owned()).collect();
    }
    let (verb, things) = id.split_once('_').unwrap_or((id, ""));
    let mut things: Vec<&str> = things.split('_').filter(|thing| !thing.is_empty()).collect();
    let Some(first) = (!things.is_empty()).then(|| things.remove(0)) else { return vec![verb.to_owned()] };
    // A list of guests is under `guest` too; `address` and `status` are no plurals.
    let thing = match first.strip_suffix('s') {
        Some(one) if verb == "list" && !one.ends_with('s') => one,
        _ => first,
    };
    let verb = std::iter::once(verb).chain(things).collect::<Vec<_>>().join("-");
    vec![thing.to_owned(), verb]
}

/// What can be asked, without its type.
#[derive(Debug, Clone)]
pub struct Described {
    /// Where it lives.
    pub meta: Plain,
    /// Its fields, each with whether it is needed, whether it is a secret and what is said of it.
    pub fields: Vec<Field>,
    /// What is said of it.
    pub about: String,
    /// Whether it is followed.
    pub is_stream: bool,
}

/// A field of an operation.
#[derive(Debug, Clone)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Whether it can't be left out.
    pub needed: bool,
    /// Whether it is a secret.
    pub secret: bool,
    /// Whether several may be given.
    pub several: bool,
    /// What is said of it.
    pub about: String,
}

#[derive(Default)]
struct All(Vec<Described>);

impl All {
    fn add<T: serde::de::DeserializeOwned + utoipa::ToSchema>(&mut self, meta: Plain, is_stream: bool) {
        let object = corpus_api::input::object::<T>();
        let names = corpus_api::input::fields::<T>().unwrap_or_default();
        let field = |name: &&'static str| {
            let schema = object.properties.get(*name).and_then(|schema| serde_json::to_value(schema).ok());
            let text = |key: &str| schema.as_ref()?.get(key)?.as_str().map(str::to_owned);
            Field {
                name,
                needed: object.required.iter().any(|needed| needed == name),
                secret: corpus_api::input::is_secret::<T>(name),
                several: corpus_api::input::is_list::<T>(name),
                about: text("description").unwrap_or_default(),
            }
        };
        let fields = names.iter().map(field).collect();
        self.0.push(Described { meta, fields, about: object.description.unwrap_or_default(), is_stream });
    }
}

impl Visitor for All {
    fn visit<O: Operation>(&mut self) {
        self.add::<O>(O::META.plain(), false);
    }
}

impl StreamVisitor for All {
    fn visit_stream<S: Stream>(&mut self) {
        self.add::<S>(S::META.plain(), true);
    }
}

/// Everything that can be asked.
pub fn all() -> Vec<Described> {
    let mut all = All::default();
    walk(&mut all);
    walk_streams(&mut all);
    all.0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_words_of_operations() {
        assert_eq!(words("request_guest"), ["guest", "request"]);
        assert_eq!(words("list_guests"), ["guest", "list"]);
        assert_eq!(words("confirm_guest_host_key"), ["guest", "confirm-host-key"]);
        assert_eq!(words("set_up_environment"), ["environment", "set-up"]);
        assert_eq!(words("list_audit"), ["audit"]);
    }

    #[test]
    fn every_operation_has_a_command_of_its_own() {
        let mut seen = BTreeSet::new();
        for one in all() {
            assert!(seen.insert(words(one.meta.id)), "{} shares its words", one.meta.id);
        }
        for words in &seen {
            assert!(words.len() < 2 || !seen.contains(&words[..1]), "{words:?} is below a command");
        }
    }
}
