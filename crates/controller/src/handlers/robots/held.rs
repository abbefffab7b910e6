//! What a robot proves itself with: tokens for the API, deploy keys for git. Its maintainers make and take them; it
//! can't itself.

use chrono::Utc;
use corpus_api::Denied;
use corpus_api::robots::keys::{
    AddRobotKey, CreateRobotToken, RemoveRobotKey, RevokeRobotToken, RobotKeyAdded, RobotKeyRemoved, RobotTokenRevoked,
};
use corpus_api::tokens::{NewToken, TokenBytes, TokenText};
use corpus_domain::{ActorName, Grant};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Result};
use rand::RngExt;
use serde_json::json;

use super::{MAX_HELD, hold, last_day};
use crate::Controller;
use crate::handlers::tokens::{end, hash};
use crate::ssh_keys::{KeyRefused, MemberKey};
use crate::store::{keys, robots, tokens};

impl Handle<CreateRobotToken> for Controller {
    async fn handle(&self, mut change: Change<CreateRobotToken>) -> Result<Committed<CreateRobotToken>> {
        let asked = change.operation();
        if asked.scope == Grant::All {
            return Err(Error::field("scope", "A robot's token is good to read, to deploy or to operate."));
        }
        let expires_at = end((asked.days, asked.until), Utc::now())?;
        let robot = hold(&mut change, &asked.robot).await?;
        let tx = change.transaction().await?;
        if tokens::count(tx, robot).await? >= MAX_HELD {
            return Err(too_many(&asked.robot, "tokens"));
        }
        let bytes: TokenBytes = rand::rng().random();
        let (name, scope) = (asked.name.to_string(), asked.scope);
        let inserted = tokens::insert(tx, robot, &hash(&bytes), (&name, scope, expires_at)).await;
        let taken = "Another token of this robot has this name. Choose another one, or revoke that token first.";
        let id = inserted.map_err(|error| Error::taken(error, "name", taken))?;
        let of = ActorName::of_robot(&asked.project, &asked.robot);
        let detail = json!({ "robot": of, "scope": scope, "expires_at": expires_at });
        let entry = Entry::new("robot.token_create", asked.name.as_str()).id(id.0).detail(detail);
        change.commit(entry, NewToken { id, name, scope, expires_at, token: TokenText::of(&bytes) }).await
    }
}

impl Handle<RevokeRobotToken> for Controller {
    async fn handle(&self, mut change: Change<RevokeRobotToken>) -> Result<Committed<RevokeRobotToken>> {
        let asked = change.operation();
        let robot = hold(&mut change, &asked.robot).await?;
        let name = tokens::revoke(change.transaction().await?, robot, asked.token).await?.ok_or(Denied::NotFound)?;
        let of = ActorName::of_robot(&asked.project, &asked.robot);
        let entry = Entry::new("robot.token_revoke", &name).id(asked.token.0).detail(json!({ "robot": of }));
        let (project, robot) = (asked.project.clone(), asked.robot.clone());
        change.commit(entry, RobotTokenRevoked { project, robot, token: asked.token }).await
    }
}

/// A key that an account has is not taken from it, and whose it is is not told.
impl Handle<AddRobotKey> for Controller {
    async fn handle(&self, mut change: Change<AddRobotKey>) -> Result<Committed<AddRobotKey>> {
        let asked = change.operation();
        if asked.scope > Grant::Deploy {
            return Err(Error::field("scope", "A deploy key is good to read, or to deploy."));
        }
        let expires_at = last_day(asked.until)?;
        let line = asked.line.to_string();
        let key: MemberKey = line.parse().map_err(|error: KeyRefused| Error::field("line", error.to_string()))?;
        let robot = hold(&mut change, &asked.robot).await?;
        let tx = change.transaction().await?;
        if robots::count_keys(tx, robot).await? >= MAX_HELD {
            return Err(too_many(&asked.robot, "keys"));
        }
        let taken = "An account has this key already. Make a new one for this robot alone.";
        let inserted = keys::insert(tx, robot, &key).await;
        let id = inserted.map_err(|error| Error::taken(error, "line", taken))?;
        robots::set_key(tx, id, asked.scope, expires_at).await?;
        let of = ActorName::of_robot(&asked.project, &asked.robot);
        let detail = json!({ "robot": of, "scope": asked.scope, "expires_at": expires_at });
        let entry = Entry::new("robot.key_add", key.fingerprint()).id(id.0).detail(detail);
        let (project, robot) = (asked.project.clone(), asked.robot.clone());
        change.commit(entry, RobotKeyAdded { project, robot, key: id }).await
    }
}

impl Handle<RemoveRobotKey> for Controller {
    async fn handle(&self, mut change: Change<RemoveRobotKey>) -> Result<Committed<RemoveRobotKey>> {
        let asked = change.operation();
        let robot = hold(&mut change, &asked.robot).await?;
        let removed = keys::delete(change.transaction().await?, robot, asked.key).await?.ok_or(Denied::NotFound)?;
        let of = ActorName::of_robot(&asked.project, &asked.robot);
        let detail = json!({ "robot": of });
        let entry = Entry::new("robot.key_remove", &removed.fingerprint).id(asked.key.0).detail(detail);
        let (project, robot) = (asked.project.clone(), asked.robot.clone());
        change.commit(entry, RobotKeyRemoved { project, robot, key: asked.key }).await
    }
}

fn too_many(robot: &corpus_domain::RobotName, what: &str) -> Error {
    Error::Conflict(format!(
        "{robot} has {MAX_HELD} {what}, which is as many as a robot can have. Take one that is not used any more."
    ))
}
