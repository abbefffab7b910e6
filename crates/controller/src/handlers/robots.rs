//! Robots of a project: made, bound and ended by its maintainers. [`held`] is what they prove themselves with.

mod held;

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use corpus_api::operation::Write;
use corpus_api::robots::{
    ChangeRobot, CreateRobot, EndRobot, Environments, GetRobot, ListRobots, Robot, RobotCreated, RobotEnded, RobotPage,
};
use corpus_api::words::Day;
use corpus_api::{Cursor, Denied, Operation};
use corpus_domain::{ActorName, Environment, ProjectId, ProjectName, RobotName, UserId};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::json;
use sqlx::PgConnection;

use super::previews::no_preview;
use super::tokens::end_of;
use super::{after, lines, page};
use crate::store::robots::Bounds;
use crate::store::{projects, robots};
use crate::{Controller, changed};

/// The list, for its cursors.
const LIST: &str = "robots by name";
/// Robots of a project.
const MAX_ROBOTS: i64 = 20;
/// Tokens of a robot, and keys of it: so few that they are shown with it.
const MAX_HELD: i64 = 20;

impl Handle<ListRobots> for Controller {
    async fn handle(&self, permit: Permit<ListRobots>) -> Result<RobotPage> {
        let (limit, rows) = lines(permit.limit);
        let from: Option<String> = after(permit.cursor.as_ref(), LIST)?;
        let mut conn = permit.connection().await?;
        let found = robots::of_project(&mut conn, permit.project()?, None, from.as_deref(), rows).await?;
        let (items, next) = page(found, limit, |line| Cursor::after(LIST, &line.robot));
        Ok(RobotPage { items, next })
    }
}

impl Handle<GetRobot> for Controller {
    async fn handle(&self, permit: Permit<GetRobot>) -> Result<Robot> {
        let (project, mut conn) = (permit.project()?, permit.connection().await?);
        whole(&mut conn, (project, &permit.project), &permit.robot).await
    }
}

impl Handle<CreateRobot> for Controller {
    async fn handle(&self, mut change: Change<CreateRobot>) -> Result<Committed<CreateRobot>> {
        let (asked, project, by) = (change.operation(), change.project()?, change.who().id);
        let (environments, expires_at) = (several(&asked.environments)?, last_day(asked.until)?);
        let bounds = Bounds { role: asked.role, environments: &environments, expires_at };
        let tx = change.transaction().await?;
        no_preview(tx, project, "the robots of that project are its robots too").await?;
        let of = projects::hold(tx, project).await?.ok_or(Denied::NotFound)?;
        if robots::count(tx, project).await? >= MAX_ROBOTS {
            return Err(Error::Conflict(format!(
                "project {of} has {MAX_ROBOTS} robots, which is as many as a project can have. End one that is not used any more."
            )));
        }
        let made = robots::insert(tx, (project, &of), &asked.robot, &bounds, by).await;
        let taken = format!("project {of} has a robot of this name already.");
        let id = made.map_err(|error| Error::taken(error, "robot", taken))?;
        let login = ActorName::of_robot(&of, &asked.robot);
        let entry = Entry::new("robot.create", login.as_str()).id(id.0).detail(told(&bounds));
        change.commit(entry, RobotCreated { project: of, robot: asked.robot.clone() }).await
    }
}

impl Handle<ChangeRobot> for Controller {
    async fn handle(&self, mut change: Change<ChangeRobot>) -> Result<Committed<ChangeRobot>> {
        let (asked, project) = (change.operation(), change.project()?);
        let (environments, expires_at) = (several(&asked.environments)?, last_day(asked.until)?);
        let bounds = Bounds { role: asked.role, environments: &environments, expires_at };
        let id = hold(&mut change, &asked.robot).await?;
        let tx = change.transaction().await?;
        let before = whole(tx, (project, &asked.project), &asked.robot).await?;
        if before.version != asked.version {
            return Err(changed::by_others(tx, "robot.change", id.0, bounded).await);
        }
        robots::set(tx, id, &bounds).await?;
        let after = whole(tx, (project, &asked.project), &asked.robot).await?;
        let was = Bounds {
            role: before.line.role,
            environments: &before.line.environments,
            expires_at: before.line.expires_at,
        };
        let detail = json!({ "now": told(&bounds), "before": told(&was) });
        let login = after.login.clone();
        change.commit(Entry::new("robot.change", login.as_str()).id(id.0).detail(detail), after).await
    }
}

impl Handle<EndRobot> for Controller {
    async fn handle(&self, mut change: Change<EndRobot>) -> Result<Committed<EndRobot>> {
        let asked = change.operation();
        let id = hold(&mut change, &asked.robot).await?;
        robots::delete(change.transaction().await?, id).await?;
        let login = ActorName::of_robot(&asked.project, &asked.robot);
        let ended = RobotEnded { project: asked.project.clone(), robot: asked.robot.clone() };
        change.commit(Entry::new("robot.end", login.as_str()).id(id.0), ended).await
    }
}

/// The robot that something is done to, held.
async fn hold<O: Operation<Kind = Write>>(change: &mut Change<O>, name: &RobotName) -> Result<UserId> {
    let project = change.project()?;
    Ok(robots::hold(change.transaction().await?, project, name).await?.ok_or(Denied::NotFound)?)
}

async fn whole(conn: &mut PgConnection, of: (ProjectId, &ProjectName), name: &RobotName) -> Result<Robot> {
    let (project, of) = of;
    let id = robots::get(conn, project, name).await?.ok_or(Denied::NotFound)?;
    let found = robots::of_project(conn, project, Some(name), None, 1).await?;
    let line = found.into_iter().next().ok_or(Denied::NotFound)?;
    Ok(Robot {
        login: ActorName::of_robot(of, name),
        tokens: robots::tokens(conn, id, 2 * MAX_HELD).await?,
        keys: robots::keys(conn, id, MAX_HELD).await?,
        version: line.version(),
        line,
    })
}

/// What it is bounded to, for the audit.
fn told(bounds: &Bounds<'_>) -> serde_json::Value {
    let Bounds { role, environments, expires_at } = bounds;
    json!({ "role": role, "environments": environments, "expires_at": expires_at })
}

/// What a change of them was.
fn bounded(detail: &serde_json::Value) -> Option<String> {
    let (was, is): (serde_json::Value, serde_json::Value) =
        (changed::read(detail, "before")?, changed::read(detail, "now")?);
    let part = |bounds: &serde_json::Value, part| bounds.get(part).map(ToString::to_string).unwrap_or_default();
    let names = [("role", "role"), ("environments", "environments"), ("expires_at", "last day")];
    changed::parts(names.map(|(key, name)| (name, part(&was, key), part(&is, key))))
}

/// The environments in their own order, each once; one at least.
fn several(asked: &Environments) -> Result<Vec<Environment>> {
    let several: BTreeSet<Environment> = asked.iter().copied().collect();
    if several.is_empty() {
        return Err(Error::field("environments", "Choose at least one."));
    }
    Ok(several.into_iter().collect())
}

/// The end of the last day on which something may.
fn last_day(until: Option<Day>) -> Result<Option<DateTime<Utc>>> {
    let end = |day| end_of(day, Utc::now()).ok_or_else(|| Error::field("until", "Choose a day from today on."));
    until.map(end).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_are_one_at_least_and_each_once() {
        let asked =
            |list: &[Environment]| several(&list.to_vec().try_into().unwrap()).map_err(|error| error.to_string());
        let all = [Environment::Prod, Environment::Dev, Environment::Prod];
        assert_eq!(asked(&all), Ok(vec![Environment::Dev, Environment::Prod]));
        assert_eq!(asked(&[]), Err("Choose at least one.".to_owned()));
    }
}
