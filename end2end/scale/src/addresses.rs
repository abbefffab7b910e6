//! Every page, in one list: each list also with a filter and further on, each kind of thing at one like the
//! others and at the largest. A page that is not in the list fails the test beside it.

use corpus_api::Cursor;
use serde_json::Value;
use sqlx::PgConnection;

use crate::readers::Reader;

/// Who may see what an address shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sees {
    /// All readers.
    Everyone,
    /// Who has the largest project.
    OfLargest,
    /// Operators.
    Ops,
}

/// Something to ask for.
#[derive(Debug, Clone)]
pub struct Address {
    /// For people: its path without ids, and which thing it is about.
    pub name: String,
    /// What is asked for; `{claim}` stands for the reader's own.
    pub path: String,
    /// Who may.
    pub sees: Sees,
    /// Whether it is a list of things: what it costs must not grow with their number.
    pub list: bool,
}

impl Address {
    /// What this reader asks for; nothing when they may not.
    pub fn path_for(&self, reader: &Reader) -> Option<String> {
        let may = match self.sees {
            Sees::Everyone => true,
            Sees::OfLargest => reader.of_largest,
            Sees::Ops => reader.ops,
        };
        may.then(|| self.path.replace("{claim}", &reader.claim))
    }
}

/// The things that addresses are about, by the words that stand for them in [`PAGES`].
#[derive(Debug, Clone)]
pub struct Things(Vec<(&'static str, String)>);

impl Things {
    /// Finds them in a database that was filled.
    pub async fn find(conn: &mut PgConnection) -> anyhow::Result<Self> {
        let mut found = Vec::new();
        for (word, query) in THINGS {
            let one: Option<String> = sqlx::query_scalar(query).fetch_optional(&mut *conn).await?;
            found.push((word, one.ok_or_else(|| anyhow::anyhow!("there is no {word}: what was filled is too small"))?));
        }
        for (word, list, query) in HALF_WAY {
            let position: Value = sqlx::query_scalar(query).fetch_one(&mut *conn).await?;
            found.push((word, Cursor::after(list, &position).to_string()));
        }
        Ok(Self(found))
    }

    /// The one that a word stands for.
    pub fn get(&self, word: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == word).map(|(_, thing)| thing.as_str())
    }

    /// These, for a test.
    #[cfg(test)]
    pub(crate) fn of(things: &[(&'static str, &str)]) -> Self {
        Self(things.iter().map(|(word, thing)| (*word, (*thing).to_owned())).collect())
    }

    fn put_into(&self, path: &str) -> String {
        self.0.iter().fold(path.to_owned(), |path, (word, thing)| path.replace(&format!("{{{word}}}"), thing))
    }
}

/// All pages.
pub fn pages(things: &Things) -> Vec<Address> {
    let address = |(list, sees, name, path): &(bool, Sees, &str, &str)| Address {
        name: (*name).to_owned(),
        path: things.put_into(path),
        sees: *sees,
        list: *list,
    };
    PAGES.iter().map(address).collect()
}

use Sees::{Everyone, OfLargest, Ops};

const PAGES: &[(bool, Sees, &str, &str)] = &[
    (true, Everyone, "/", "/"),
    (true, Everyone, "/nodes", "/nodes"),
    (false, Ops, "/nodes/link", "/nodes/link"),
    (true, Ops, "/nodes/balance", "/nodes/balance"),
    (false, Everyone, "/nodes/…", "/nodes/{node}"),
    (false, Everyone, "/nodes/…, the largest", "/nodes/{largest node}"),
    (false, Ops, "/nodes/…/unlink", "/nodes/{node}/unlink"),
    (false, Ops, "/nodes/…/empty, the largest", "/nodes/{largest node}/empty"),
    (false, Ops, "/nodes/…/firewall", "/nodes/{node}/firewall"),
    (false, Ops, "/networks", "/networks"),
    (false, Ops, "/intrusion", "/intrusion"),
    (true, Everyone, "/nodes, half-way", "/nodes?cursor={middle of nodes}"),
    (true, Everyone, "/nodes?q", "/nodes?q=10.1"),
    (true, Everyone, "/nodes?sort=free_slots", "/nodes?sort=free_slots"),
    (true, Everyone, "/guests", "/guests"),
    (true, Everyone, "/guests, half-way", "/guests?cursor={middle of guests}"),
    (true, Everyone, "/guests?q", "/guests?q=web"),
    (true, Everyone, "/guests?sort=newest", "/guests?sort=newest"),
    (false, Everyone, "/guests/new", "/guests/new"),
    (false, Everyone, "/guests/choice", "/guests/choice"),
    (false, Everyone, "/guests/…", "/guests/{guest}"),
    (false, OfLargest, "/guests/…, the largest", "/guests/{largest guest}"),
    (false, Everyone, "/guests/…/move", "/guests/{guest}/move"),
    (false, Everyone, "/guests/…/destroy", "/guests/{guest}/destroy"),
    (false, Everyone, "/guests/…/firewall", "/guests/{guest}/firewall"),
    (false, Everyone, "/guests/…/mail", "/guests/{guest}/mail"),
    (false, Everyone, "/guests/…/states", "/guests/{guest}/states"),
    (true, Everyone, "/states", "/states"),
    (true, Everyone, "/states?outcome", "/states?outcome=never&environment=prod"),
    (true, Everyone, "/states?outcome, none", "/states?outcome=failed"),
    (true, Everyone, "/projects/…/states", "/projects/project2/states"),
    (true, OfLargest, "/projects/…/states, the largest", "/projects/atlas/states"),
    (false, Everyone, "/projects/…/users", "/projects/project2/users"),
    (false, Ops, "/baseline", "/baseline"),
    (false, Ops, "/nodes/…/baseline", "/nodes/{node}/baseline"),
    (false, Ops, "/salt-masters", "/salt-masters"),
    (false, Everyone, "/guests/…/snapshots", "/guests/{guest}/snapshots"),
    (false, Everyone, "/guests/…/backups", "/guests/{guest}/backups"),
    (false, Everyone, "/projects/…/backups", "/projects/project2/backups"),
    (false, Everyone, "/projects/…/images", "/projects/project2/images"),
    (true, Everyone, "/projects", "/projects"),
    (false, Ops, "/projects/new", "/projects/new"),
    (false, Everyone, "/projects/…", "/projects/project2"),
    (false, OfLargest, "/projects/…, the largest", "/projects/atlas"),
    (false, Everyone, "/projects/…/remove", "/projects/project2/remove"),
    (true, Ops, "/projects/…/robots", "/projects/project2/robots"),
    (false, Ops, "/projects/…/robots/…", "/projects/project2/robots/robot2"),
    (true, Everyone, "/projects/…/webhooks", "/projects/project2/webhooks"),
    (true, Everyone, "/projects/…/webhooks/…", "/projects/project2/webhooks/{webhook}"),
    (false, Everyone, "/projects/…/dev", "/projects/project2/dev"),
    (false, OfLargest, "/projects/…/prod, the largest", "/projects/atlas/prod"),
    (false, Everyone, "/projects/…/dev/remove", "/projects/project2/dev/remove"),
    (false, Everyone, "/projects/…/dev/guests/…/remove", "/projects/project2/dev/guests/{other}/remove"),
    (false, Everyone, "/projects/…/dev/drill", "/projects/project2/dev/drill"),
    (false, Everyone, "/projects/…/dev/firewall", "/projects/project2/dev/firewall"),
    (false, Everyone, "/projects/…/dev/traffic", "/projects/project2/dev/traffic"),
    (false, OfLargest, "/projects/…/prod/traffic, the largest", "/projects/atlas/prod/traffic?span=month"),
    (false, Everyone, "/projects/…/dev/mail", "/projects/project2/dev/mail"),
    (false, OfLargest, "/projects/…/prod/mail, the largest", "/projects/atlas/prod/mail"),
    (false, Everyone, "/projects/…/dev/backups", "/projects/project2/dev/backups"),
    (false, OfLargest, "/projects/…/prod/backups, the largest", "/projects/atlas/prod/backups"),
    (false, Everyone, "/projects/…/dev/restore/…", "/projects/project2/dev/restore/{archive}"),
    (true, Everyone, "/requests", "/requests"),
    (true, Everyone, "/requests?state", "/requests?state=refused"),
    (false, Ops, "/requests/…", "/requests/{request}"),
    (false, Ops, "/requests/rules", "/requests/rules"),
    (true, Everyone, "/quotas", "/quotas"),
    (true, Everyone, "/quotas?own", "/quotas?own=false&q=project"),
    (true, Everyone, "/deployments", "/deployments"),
    (true, Everyone, "/deployments?project", "/deployments?project=project2&environment=prod"),
    (true, OfLargest, "/deployments?project, the largest", "/deployments?project=atlas"),
    (true, Everyone, "/deployments?state", "/deployments?state=broken"),
    (true, Everyone, "/deployments?by", "/deployments?by=member7"),
    (true, Everyone, "/deployments?q", "/deployments?q=better"),
    (true, Everyone, "/deployments?sort=oldest", "/deployments?sort=oldest"),
    (true, Everyone, "/deployments?sort=longest", "/deployments?sort=longest"),
    (true, Everyone, "/deployments, half-way", "/deployments?cursor={middle of deployments}"),
    (false, Everyone, "/projects/…/deployments/…", "/projects/project2/deployments/{deployment}"),
    (false, Everyone, "/projects/…/deployments/…, failed", "/projects/project2/deployments/{failed deployment}"),
    (false, OfLargest, "/projects/…/deployments/…, the largest", "/projects/atlas/deployments/{largest deployment}"),
    (
        false,
        OfLargest,
        "/projects/…/deployments/…?q, the largest",
        "/projects/atlas/deployments/{largest deployment}?q=line+77",
    ),
    (
        false,
        OfLargest,
        "/projects/…/deployments/…?log=whole, the largest",
        "/projects/atlas/deployments/{largest deployment}?log=whole",
    ),
    (false, Everyone, "/projects/…/deployments/….json", "/projects/project2/deployments/{deployment}.json"),
    (true, Everyone, "/dns", "/dns"),
    (true, Everyone, "/dns, half-way", "/dns?cursor={middle of names}"),
    (true, Everyone, "/dns?q", "/dns?q=web"),
    (true, Everyone, "/dns?sort=newest", "/dns?sort=newest"),
    (false, Everyone, "/names/…", "/names/{name}"),
    (true, Ops, "/certificates", "/certificates"),
    (false, Ops, "/dns/zones/…", "/dns/zones/{zone}"),
    (false, Everyone, "/name-claims/…", "/name-claims/{name claim}"),
    (false, Ops, "/dns/zones/…, the largest", "/dns/zones/{largest zone}"),
    (true, Everyone, "/jobs", "/jobs"),
    (true, Everyone, "/jobs?state=open", "/jobs?state=open"),
    (true, Everyone, "/jobs?state=stuck", "/jobs?state=stuck"),
    (true, Everyone, "/jobs?state, half-way", "/jobs?state=done&cursor={middle of jobs}"),
    (true, Everyone, "/jobs?q", "/jobs?q=destroy+web"),
    (true, Everyone, "/jobs?kind", "/jobs?kind=guest_stop&by=member7"),
    (true, Everyone, "/jobs?sort=oldest", "/jobs?sort=oldest"),
    (true, Everyone, "/jobs?sort=longest", "/jobs?sort=longest"),
    (false, Everyone, "/jobs/…", "/jobs/{job}"),
    (false, OfLargest, "/jobs/…, the largest", "/jobs/{largest job}"),
    (false, OfLargest, "/jobs/…, stuck", "/jobs/{stuck job}"),
    (false, OfLargest, "/jobs/…, waiting", "/jobs/{waiting job}"),
    (true, Everyone, "/keys", "/keys"),
    (false, Everyone, "/keys/claim/…", "/keys/claim/{claim}"),
    (true, Everyone, "/tokens", "/tokens"),
    (true, Everyone, "/search?q", "/search?q=project1"),
    (false, Everyone, "/api", "/api"),
    (false, Everyone, "/api/…", "/api/list_guests"),
    (false, Everyone, "/docs", "/docs"),
    (false, Everyone, "/docs?q", "/docs?q=guest"),
    (false, Everyone, "/docs/…, the largest", "/docs/reliability"),
    (true, Everyone, "/notices", "/notices"),
    (true, Everyone, "/not-created", "/not-created"),
    (false, Everyone, "/mail", "/mail"),
    (false, Ops, "/controller-backups", "/controller-backups"),
    (false, Ops, "/images", "/images"),
    (false, Ops, "/hooks", "/hooks"),
    (true, Everyone, "/audit", "/audit"),
    (true, Everyone, "/audit, half-way", "/audit?cursor={middle of the audit}"),
    (true, Everyone, "/audit?actor", "/audit?actor=member7&action=guest"),
    (true, Everyone, "/audit?q", "/audit?q=reason&subject=web"),
    (true, OfLargest, "/audit?project, the largest", "/audit?project=atlas"),
    (true, Everyone, "/audit?sort=oldest", "/audit?sort=oldest"),
];

/// `project2` is one like the others, `atlas` is the largest.
const THINGS: [(&str, &str); 22] = [
    ("request", "select id::text from requests where state = 'open' order by id desc limit 1"),
    ("node", "select id::text from nodes where state = 'ready' and reachability = 'reachable' order by id desc limit 1"),
    ("largest node", "select node_id::text from guests group by node_id order by count(*) desc, node_id limit 1"),
    (
        "guest",
        "select guest_id::text from environment_guests e join projects p on p.id = e.project_id
         where p.name = 'project2' and role = 'leader' and environment = 'dev'",
    ),
    ("largest guest", "select guest_id::text from dns_names group by guest_id order by count(*) desc, guest_id limit 1"),
    (
        "name",
        "select n.id::text from dns_names n join projects p on p.id = n.project_id
         where p.name = 'project2' order by n.name limit 1",
    ),
    ("project", "select id::text from projects where name = 'project2'"),
    (
        "webhook",
        "select w.id::text from webhooks w join projects p on p.id = w.project_id where p.name = 'project2' limit 1",
    ),
    (
        "other",
        "select guest_id::text from environment_guests e join projects p on p.id = e.project_id
         where p.name = 'project2' and role = 'follower' and environment = 'dev' order by guest_id limit 1",
    ),
    (
        "archive",
        "select archives -> 0 ->> 'id' from environment_guests e join projects p on p.id = e.project_id
         where p.name = 'project2' and role = 'leader' and environment = 'dev'",
    ),
    (
        "deployment",
        "select number::text from deployments d join projects p on p.id = d.project_id
         where p.name = 'project2' and leader_id is null and report is not null and state = 'live' order by number desc limit 1",
    ),
    (
        "deployment id",
        "select d.id::text from deployments d join projects p on p.id = d.project_id
         where p.name = 'project2' and leader_id is null and report is not null and state = 'live' order by number desc limit 1",
    ),
    (
        "failed deployment",
        "select number::text from deployments d join projects p on p.id = d.project_id
         where p.name = 'project2' and leader_id is null and report is not null and state = 'rolled_back'
         order by number desc limit 1",
    ),
    ("largest deployment", "select number::text from deployments where leader_id is null order by lines desc, number desc limit 1"),
    (
        "name claim",
        "select c.id::text from name_claims c join projects p on p.id = c.project_id where p.name = 'project2' limit 1",
    ),
    ("zone", "select id::text from zones where open order by id limit 1"),
    ("largest zone", "select zone_id::text from dns_names where zone_id is not null group by zone_id order by count(*) desc limit 1"),
    (
        "name",
        "select n.id::text from dns_names n join guests g on g.id = n.guest_id join projects p on p.id = g.project_id
         where p.name = 'project2' order by n.id limit 1",
    ),
    (
        "job",
        "select j.id::text from jobs j join projects p on p.id = j.project_id
         where p.name = 'project2' and j.state = 'done' and exists (select from job_steps s where s.job_id = j.id)
         order by j.id desc limit 1",
    ),
    ("largest job", "select id::text from jobs order by feed_seq desc limit 1"),
    ("stuck job", "select id::text from jobs where state = 'stuck' order by id limit 1"),
    ("waiting job", "select id::text from jobs where state = 'waiting' order by id desc limit 1"),
];

/// Where a list is half-way: a word, the list that a cursor is good for, and a line's position in it.
const HALF_WAY: [(&str, &str, &str); 6] = [
    (
        "middle of nodes",
        "nodes by address",
        "select json_build_array(0, address, ssh_port) from nodes
         order by address, ssh_port offset (select count(*) / 2 from nodes) limit 1",
    ),
    (
        "middle of guests",
        "guests by name",
        "select to_json(name) from guests order by name offset (select count(*) / 2 from guests) limit 1",
    ),
    (
        "middle of deployments",
        "deployments, the newest first",
        "select json_build_object('ordered_at', ordered_at, 'id', id) from deployments where leader_id is null
         order by ordered_at offset (select count(*) / 2 from deployments where leader_id is null) limit 1",
    ),
    (
        "middle of names",
        "names",
        "select json_build_array(name, wildcard) from dns_names order by name, wildcard offset (select count(*) / 2 from dns_names) limit 1",
    ),
    (
        "middle of jobs",
        "jobs, the newest first",
        "select to_json(queue_order) from jobs order by queue_order offset (select count(*) / 2 from jobs) limit 1",
    ),
    (
        "middle of the audit",
        "audit by time",
        "select json_build_array(at, id) from audit order by at, id offset (select count(*) / 2 from audit) limit 1",
    ),
];
