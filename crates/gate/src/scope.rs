//! What a question is about: its project, its environment, and what this very thing needs.

use corpus_api::operation::Role;
use corpus_api::principal::{to_deploy, to_start};
use corpus_api::{Denied, Principal, Scope};
use corpus_domain::{Environment, JobKind, ProjectCreators, ProjectId, ProjectRole, RequestId, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{Error, Result};

/// What a question is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// The project, if it is about one.
    pub project: Option<ProjectId>,
    /// The environment, if it is about one or about what is in one.
    pub environment: Option<Environment>,
    /// The least that this thing needs, whatever is asked of it.
    pub at_least: Role,
    /// Whether who may not ask learns nothing of it.
    pub hidden: bool,
    /// Whether this is for a project that is being destroyed too.
    pub while_leaving: bool,
    /// Of a job that destroyed its project: who asked for it, and sees how it ended though nobody has a role there
    /// any more.
    pub asked_by: Option<UserId>,
}

impl About {
    pub(crate) const SITE: Self = Self {
        project: None,
        environment: None,
        at_least: Role::Member,
        hidden: false,
        while_leaving: false,
        asked_by: None,
    };

    fn of(project: Uuid) -> Self {
        Self { project: Some(ProjectId(project)), ..Self::SITE }
    }

    fn within(project: Uuid, environment: &str) -> Self {
        Self { environment: environment.parse().ok(), ..Self::of(project) }
    }
}

/// Whether what a robot asks about is within its environments. By name an environment is refused with the reason:
/// the three words are no secret. What is in another environment is not there for it, and what is in none neither,
/// but for what an operation that is for robots asks of the project as a whole.
pub fn bounded(who: &Principal, scope: &Scope, about: About) -> std::result::Result<(), Denied> {
    if who.robot.is_none() {
        return Ok(());
    }
    match (scope, about.environment) {
        (_, Some(environment)) if who.is_within(environment) => Ok(()),
        (Scope::Environment(..), Some(environment)) => Err(Denied::Bounded(environment)),
        (Scope::Project(_) | Scope::Visible | Scope::Own, None) => Ok(()),
        _ => Err(Denied::NotFound),
    }
}

/// Finds what a scope names. What is not there is [`Denied::NotFound`].
pub async fn resolve(conn: &mut PgConnection, scope: &Scope, creators: ProjectCreators) -> Result<About> {
    let found = match scope {
        Scope::Visible | Scope::Own | Scope::Site => return Ok(About::SITE),
        Scope::NewProject => {
            let at_least = if creators == ProjectCreators::Ops { Role::Ops } else { Role::Member };
            return Ok(About { at_least, ..About::SITE });
        }
        Scope::Node(id) => {
            let there = sqlx::query_scalar!("select id from nodes where id = $1", id.0).fetch_optional(conn).await?;
            return there.map(|_| About::SITE).ok_or(Error::Denied(Denied::NotFound));
        }
        Scope::Zone(id) => {
            let there = sqlx::query_scalar!("select id from zones where id = $1", id.0).fetch_optional(conn).await?;
            return there.map(|_| About::SITE).ok_or(Error::Denied(Denied::NotFound));
        }
        // Who sees it depends on who looks: `request` finds it.
        Scope::Request(_) => None,
        Scope::Job(id) => return job(conn, id.0, false).await,
        Scope::JobDecision(id) => return job(conn, id.0, true).await,
        Scope::ToDeploy(id) => return deployment_like(conn, id.0).await,
        Scope::Project(name) | Scope::Environment(name, _) => {
            let found = sqlx::query_scalar!("select id from projects where name = $1", name.as_str());
            let environment = if let Scope::Environment(_, one) = scope { Some(*one) } else { None };
            found.fetch_optional(conn).await?.map(|id| About { environment, ..About::of(id) })
        }
        Scope::Numbered(name, number) => {
            let number = i64::try_from(number.get()).unwrap_or(i64::MAX);
            let found = sqlx::query!(
                "select p.id, (select d.environment from deployments d
                               where d.project_id = p.id and d.number = $2 limit 1) as environment
                 from projects p where p.name = $1",
                name.as_str(),
                number,
            );
            let found = found.fetch_optional(conn).await?;
            found.map(|row| About::within(row.id, row.environment.as_deref().unwrap_or_default()))
        }
        Scope::Guest(id) => {
            let found = sqlx::query!("select project_id, environment from guests where id = $1", id.0);
            found.fetch_optional(conn).await?.map(|row| About::within(row.project_id, &row.environment))
        }
        Scope::Name(id) => {
            let found = sqlx::query!(
                "select g.project_id, g.environment from dns_names n join guests g on g.id = n.guest_id where n.id = $1",
                id.0
            );
            found.fetch_optional(conn).await?.map(|row| About::within(row.project_id, &row.environment))
        }
        Scope::NameClaim(id) => {
            let found = sqlx::query!(
                "select g.project_id, g.environment from name_claims c join guests g on g.id = c.guest_id where c.id = $1",
                id.0
            );
            found.fetch_optional(conn).await?.map(|row| About::within(row.project_id, &row.environment))
        }
        Scope::FirewallRule(id) => return firewall_rule(conn, id.0).await,
        Scope::Deployment(id) => {
            let found = sqlx::query!("select project_id, environment from deployments where id = $1", id.0);
            found.fetch_optional(conn).await?.map(|row| About::within(row.project_id, &row.environment))
        }
    };
    found.ok_or(Error::Denied(Denied::NotFound))
}

/// A rule of a guest or an environment is its project's. One of a node, or of all, is the operators', and for others
/// it is not there.
async fn firewall_rule(conn: &mut PgConnection, id: Uuid) -> Result<About> {
    let row = sqlx::query!(
        "select r.project_id, coalesce(r.environment, g.environment) as environment
         from firewall_rules r left join guests g on g.id = r.guest_id where r.id = $1",
        id
    );
    let row = row.fetch_optional(conn).await?.ok_or(Error::Denied(Denied::NotFound))?;
    let Some(project) = row.project_id else {
        return Ok(About { at_least: Role::Ops, hidden: true, ..About::SITE });
    };
    Ok(About::within(project, row.environment.as_deref().unwrap_or_default()))
}

/// To add to a deployment takes what it takes to order one to its environment.
async fn deployment_like(conn: &mut PgConnection, id: Uuid) -> Result<About> {
    let row = sqlx::query!("select project_id, environment from deployments where id = $1", id);
    let row = row.fetch_optional(conn).await?.ok_or(Error::Denied(Denied::NotFound))?;
    let at_least = row.environment.parse().map_or(Role::Maintainer, to_deploy);
    Ok(About { at_least, ..About::within(row.project_id, &row.environment) })
}

/// A request is seen by who made it, by maintainers of its project and by operators; for others it is not there. It is
/// about Corpus as a whole: nobody decides by a role in a project.
pub async fn request(conn: &mut PgConnection, id: RequestId, who: &Principal) -> Result<About> {
    let found = sqlx::query!("select asker_id, project_id from requests where id = $1", id.0);
    let found = found.fetch_optional(conn).await?.ok_or(Error::Denied(Denied::NotFound))?;
    let role = found.project_id.and_then(|project| who.roles.get(&ProjectId(project)));
    let sees = who.ops || found.asker_id == who.id.0 || role == Some(&ProjectRole::Maintainer);
    if sees { Ok(About::SITE) } else { Err(Error::Denied(Denied::NotFound)) }
}

/// A job of a node tells of guests of every project: it is for operators. To decide about a job takes what
/// it takes to start one like it.
async fn job(conn: &mut PgConnection, id: Uuid, decides: bool) -> Result<About> {
    let row = sqlx::query!(
        "select j.project_id, j.kind, j.params #>> '{on,environment}' as environment, g.environment as \"of_guest?\",
             j.created_by, exists (select from projects p where p.id = j.project_id) as \"is_there!\"
         from jobs j left join guests g on g.id = j.guest_id where j.id = $1",
        id
    );
    let row = row.fetch_optional(conn).await?.ok_or(Error::Denied(Denied::NotFound))?;
    let Some(project) = row.project_id else {
        return Ok(About { at_least: Role::Ops, hidden: true, ..About::SITE });
    };
    let word = |word: Option<String>| word.and_then(|word| word.parse::<Environment>().ok());
    let environment = word(row.environment);
    // A kind that this release does not know is of a later one: only operators decide about it.
    let kind = row.kind.parse::<JobKind>();
    let start = kind.as_ref().map_or(Role::Ops, |kind| to_start(*kind, environment));
    let environment = environment.or_else(|| word(row.of_guest));
    if decides {
        // Jobs are what the end of a project waits for, and what can be cancelled of it.
        return Ok(About { environment, at_least: start, while_leaving: true, ..About::of(project) });
    }
    let destroyed_it = !row.is_there && kind.is_ok_and(|kind| kind == JobKind::ProjectDestroy);
    let asked_by = row.created_by.filter(|_| destroyed_it).map(UserId);
    Ok(About { environment, at_least: Role::Viewer, asked_by, ..About::of(project) })
}
