//! What can be done from anywhere: the commands of the palette, those that one may use.

use corpus_api::Principal;
use corpus_api::audit::ListAudit;
use corpus_api::nodes::LinkNode;
use corpus_api::zones::CreateZone;

use crate::islands::Command;
use crate::pages::guests::may_request;

/// The commands of a member.
pub fn commands(who: &Principal, projects: u32) -> Vec<Command> {
    let command = |title: &str, path: &str| Command { title: title.to_owned(), path: path.to_owned() };
    let mut all = Vec::new();
    if may_request(who, projects) {
        all.push(command("Request a guest", "/guests/new"));
    }
    if who.can::<LinkNode>(None) {
        all.push(command("Link a compute node", "/nodes/link"));
    }
    if who.ops {
        all.push(command("New project", "/projects/new"));
    }
    if who.can::<CreateZone>(None) {
        all.push(command("Make a DNS zone", "/dns"));
    }
    let places = [
        ("Overview", "/"),
        ("Projects", "/projects"),
        ("Guests", "/guests"),
        ("Failed guests", "/guests?state=failed"),
        ("Compute nodes", "/nodes"),
        ("DNS", "/dns"),
        ("Deployments", "/deployments"),
        ("Jobs", "/jobs"),
        ("Stuck jobs", "/jobs?state=stuck"),
        ("Requests", "/requests"),
        ("Quotas", "/quotas"),
        ("Notices", "/notices"),
        ("SSH keys", "/keys"),
        ("API tokens", "/tokens"),
        ("Mail", "/mail"),
        ("API", "/api"),
        ("Documentation", "/docs"),
        ("First steps", "/docs/first-steps"),
    ];
    all.extend(places.map(|(title, path)| command(title, path)));
    if who.can::<ListAudit>(None) {
        all.push(command("Audit", "/audit"));
        all.push(command("Hooks", "/hooks"));
        all.push(command("Backups of Corpus", "/controller-backups"));
        all.push(command("Images", "/images"));
    }
    if who.ops {
        all.push(command("Certificates", "/certificates"));
    }
    all
}
