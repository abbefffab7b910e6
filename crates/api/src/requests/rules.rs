//! Rules that decide about requests at once: what the simple ones are, and what becomes of them.

use chrono::{DateTime, Utc};
use corpus_domain::{
    DnsName, Environment, NodeId, ProjectName, RequestOf, RequestRuleId, SizeProfile, UserName, Verdict,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Wanted;
use super::asking::AskForGuest;
use crate::nodes::Environments;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, delete, get, post};
use crate::problem::Wrong;
use crate::words::Comment;
use crate::zones::ZoneProjects;

/// Lists the rules, in the order in which they are asked: the first that fits decides.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListRequestRules {}
impl Operation for ListRequestRules {
    type Kind = Read;
    type Output = RequestRulePage;
    const META: Meta<Read> = get("list_request_rules", "/request-rules").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Makes a rule, behind those that are there. It decides requests that are made from now on. Nothing is approved by a
/// rule that is beyond a quota or privileged, and no host is linked: that takes a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreateRequestRule {
    /// What is asked for.
    pub operation: RequestOf,
    /// Only guests of these environments, or nodes for no others; any unless said.
    #[serde(default)]
    pub environments: Environments,
    /// Only guests of this size or smaller, with no more than its memory, processor time and processes.
    pub size: Option<SizeProfile>,
    /// Only on these nodes, which the request must name.
    #[serde(default)]
    pub nodes: RuleNodes,
    /// Only for these projects; all unless said.
    #[serde(default)]
    pub projects: ZoneProjects,
    /// Only names in this zone.
    pub zone: Option<DnsName>,
    /// What it decides.
    pub verdict: Verdict,
    /// What to tell who asked; needed where it refuses.
    pub reason: Option<Comment>,
}
impl Operation for CreateRequestRule {
    type Kind = Write;
    type Output = RequestRuleMade;
    const META: Meta<Write> = post("create_request_rule", "/request-rules").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Removes a rule. What it decided stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemoveRequestRule {
    /// Which.
    pub rule: RequestRuleId,
}
impl Operation for RemoveRequestRule {
    type Kind = Write;
    type Output = RequestRuleRemoved;
    const META: Meta<Write> = delete("remove_request_rule", "/request-rules/{rule}").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

crate::several!(
    /// Nodes of a rule.
    RuleNodes, NodeId, 50
);

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequestRule {
    /// Its id.
    pub id: RequestRuleId,
    /// What it is for, and what it decides: the fields by which it was made.
    #[schema(value_type = Object)]
    pub rule: CreateRequestRule,
    /// The same in a sentence.
    pub said: String,
    /// Who made it.
    pub created_by: Option<UserName>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
}

crate::page!(
    /// The rules.
    RequestRulePage, RequestRule
);

/// A rule was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequestRuleMade {
    /// Which.
    pub rule: RequestRuleId,
}
impl Reply for RequestRuleMade {
    const STATUS: u16 = 201;
}

/// A rule was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RequestRuleRemoved {
    /// Which.
    pub rule: RequestRuleId,
}
impl Reply for RequestRuleRemoved {}

impl CreateRequestRule {
    /// What of it can't be.
    pub fn wrong(&self) -> Vec<Wrong> {
        let of = self.operation;
        let no = |field: &str, why: &str| Wrong::new(field, why);
        let takes_environments = matches!(of, RequestOf::RequestGuest | RequestOf::LinkNode);
        let takes_projects = matches!(of, RequestOf::RequestGuest | RequestOf::AttachName);
        let takes_nodes = matches!(of, RequestOf::RequestGuest | RequestOf::InitializeNode);
        let wrong = [
            (!self.environments.is_empty() && !takes_environments)
                .then(|| no("environments", "Such a request is for no environment.")),
            (self.size.is_some() && of != RequestOf::RequestGuest).then(|| no("size", "Only a guest has a size.")),
            (!self.nodes.is_empty() && !takes_nodes).then(|| no("nodes", "Such a request names no node.")),
            (!self.projects.is_empty() && !takes_projects)
                .then(|| no("projects", "Such a request is for no project that is there.")),
            (self.zone.is_some() && of != RequestOf::AttachName).then(|| no("zone", "Only a name is in a zone.")),
            (self.verdict == Verdict::Refuse && self.reason.is_none())
                .then(|| no("reason", "Say why, and what to do instead: who asked reads it.")),
            (self.verdict == Verdict::Approve && of == RequestOf::LinkNode)
                .then(|| no("verdict", "A host's key is compared by a person: no rule links one.")),
        ];
        wrong.into_iter().flatten().collect()
    }

    /// Whether it decides about this, which is for that project.
    pub fn decides(&self, wanted: &Wanted, project: Option<&ProjectName>) -> bool {
        let of_projects = self.projects.is_empty() || project.is_some_and(|project| self.projects.contains(project));
        let in_environments = |environments: &[Environment]| {
            self.environments.is_empty() || environments.iter().all(|one| self.environments.contains(one))
        };
        let on_nodes = |node: Option<NodeId>| self.nodes.is_empty() || node.is_some_and(|id| self.nodes.contains(&id));
        let asked = match wanted {
            Wanted::CreateProject(_) => true,
            Wanted::LinkNode(asked) => in_environments(&asked.environments),
            Wanted::InitializeNode(asked) => on_nodes(Some(asked.node)),
            Wanted::RequestGuest(asked) => {
                in_environments(&[asked.environment]) && on_nodes(asked.node) && self.is_within(asked)
            }
            Wanted::AttachName(asked) => self.zone.as_ref().is_none_or(|zone| is_in(&asked.name, zone)),
        };
        wanted.of() == self.operation && of_projects && asked
    }

    /// Whether a guest is no larger than it may be. Root in a privileged one is root on its node: no rule gives that.
    fn is_within(&self, asked: &AskForGuest) -> bool {
        if self.verdict == Verdict::Approve && asked.privileged.is_some() {
            return false;
        }
        let Some(size) = self.size else { return true };
        let (most, limits) = (size.limits(), asked.limits().over(asked.size().limits()));
        asked.size() <= size
            && limits.memory <= most.memory
            && limits.cpu <= most.cpu
            && limits.processes <= most.processes
    }

    /// It in a sentence.
    pub fn said(&self) -> String {
        let mut parts = vec![match self.operation {
            RequestOf::CreateProject => "Projects".to_owned(),
            RequestOf::LinkNode => "Hosts to link".to_owned(),
            RequestOf::InitializeNode => "Nodes to initialize".to_owned(),
            RequestOf::RequestGuest => "Guests".to_owned(),
            RequestOf::AttachName => "DNS names".to_owned(),
        }];
        let all = |words: Vec<String>| words.join(", ");
        if !self.environments.is_empty() {
            parts.push(format!("of {}", all(self.environments.iter().map(ToString::to_string).collect())));
        }
        parts.extend(self.size.map(|size| format!("up to {size}")));
        if !self.nodes.is_empty() {
            parts.push(format!("on {} named nodes", self.nodes.len()));
        }
        if !self.projects.is_empty() {
            parts.push(format!("for {}", all(self.projects.iter().map(ToString::to_string).collect())));
        }
        parts.extend(self.zone.as_ref().map(|zone| format!("in {zone}")));
        let verdict = match self.verdict {
            Verdict::Approve => "yes",
            Verdict::Refuse => "no",
        };
        format!("{}: {verdict}", parts.join(" "))
    }
}

fn is_in(name: &DnsName, zone: &DnsName) -> bool {
    name.as_str().strip_suffix(zone.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(fields: serde_json::Value) -> CreateRequestRule {
        serde_json::from_value(fields).unwrap()
    }

    fn guest(more: &[(&str, &str)]) -> Wanted {
        let mut fields = json!({
            "operation": "request_guest", "name": "www.test", "project": "shop", "environment": "dev", "size": "small",
            "comment": "x",
        });
        for (name, value) in more {
            fields[*name] = json!(value);
        }
        serde_json::from_value(fields).unwrap()
    }

    #[test]
    fn a_rule_decides_what_it_names_and_nothing_else() {
        let shop: ProjectName = "shop".parse().unwrap();
        let node = "0199d3c0-0000-7000-8000-000000000001";
        let dev = rule(json!({
            "operation": "request_guest", "environments": ["dev"], "size": "small", "nodes": [node],
            "projects": ["shop"], "verdict": "approve",
        }));
        assert!(dev.wrong().is_empty());
        let on = ("node", node);
        let decides = |wanted: &Wanted| dev.decides(wanted, Some(&shop));
        assert!(decides(&guest(&[on])) && decides(&guest(&[on, ("size", "xsmall")])));
        for more in [
            vec![],
            vec![on, ("size", "medium")],
            vec![on, ("environment", "prod")],
            vec![on, ("privileged", "NFS")],
            vec![("node", "0199d3c0-0000-7000-8000-000000000002")],
        ] {
            assert!(!decides(&guest(&more)), "{more:?}");
        }
        assert!(!dev.decides(&guest(&[on]), Some(&"other".parse().unwrap())));
        let mut large = guest(&[on]);
        if let Wanted::RequestGuest(asked) = &mut large {
            asked.memory = "64 GiB".parse().ok();
        }
        assert!(!decides(&large), "a small size with much memory is not small");
        assert_eq!(dev.said(), "Guests of dev up to small on 1 named nodes for shop: yes");
    }

    #[test]
    fn a_name_is_in_its_zone_and_not_in_one_that_ends_alike() {
        let zone =
            rule(json!({ "operation": "attach_name", "zone": "corp.test", "verdict": "refuse", "reason": "no" }));
        let named = |name: &str| {
            let fields = json!({ "operation": "attach_name", "name": name, "comment": "x",
                                 "guest": "0199d3c0-0000-7000-8000-000000000001" });
            zone.decides(&serde_json::from_value(fields).unwrap(), None)
        };
        assert!(named("www.corp.test") && named("corp.test") && !named("www.notcorp.test"));
    }

    #[test]
    fn what_can_not_be_decided_is_refused() {
        let fields =
            |rule: &CreateRequestRule| -> Vec<String> { rule.wrong().into_iter().map(|one| one.field).collect() };
        let host =
            rule(json!({ "operation": "link_node", "verdict": "approve", "size": "small", "zone": "corp.test" }));
        assert_eq!(fields(&host), ["size", "zone", "verdict"]);
        assert_eq!(fields(&rule(json!({ "operation": "create_project", "verdict": "refuse" }))), ["reason"]);
    }
}
