//! The users that all guests of a project have: who says so, and how it comes to the guests.

use std::collections::BTreeSet;

use corpus_api::Denied;
use corpus_api::guest_users::{
    GuestUserSet, GuestUsers, ListGuestUsers, MOST_GUEST_USERS, MOST_USER_KEYS, RemoveGuestUser, SetGuestUser,
};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::json;

use super::previews::no_preview;
use crate::Controller;
use crate::ssh_keys::{KeyRefused, MemberKey};
use crate::store::{chores, guest_users, projects};

/// Accounts that a guest has anyway, or that mean something to it.
const TAKEN: [&str; 34] = [
    "root",
    "sysadmin",
    "editor",
    "admin",
    "daemon",
    "bin",
    "sys",
    "sync",
    "games",
    "man",
    "lp",
    "mail",
    "news",
    "uucp",
    "proxy",
    "www-data",
    "backup",
    "list",
    "irc",
    "gnats",
    "nobody",
    "sshd",
    "messagebus",
    "systemd-network",
    "systemd-resolve",
    "systemd-timesync",
    "_apt",
    "postgres",
    "mysql",
    "redis",
    "nginx",
    "postfix",
    "polkitd",
    "salt",
];

impl Handle<ListGuestUsers> for Controller {
    async fn handle(&self, permit: Permit<ListGuestUsers>) -> Result<GuestUsers> {
        let (project, who) = (permit.project()?, permit.who());
        let may_change = who.can::<SetGuestUser>(Some(project));
        let mut conn = permit.connection().await?;
        let items = guest_users::of_project(&mut conn, project).await?;
        let waiting = chores::waiting_for_users(&mut conn, project).await?;
        Ok(GuestUsers { project: permit.project.clone(), items, waiting, most: MOST_GUEST_USERS, may_change })
    }
}

impl Handle<SetGuestUser> for Controller {
    async fn handle(&self, mut change: Change<SetGuestUser>) -> Result<Committed<SetGuestUser>> {
        let (project, asked, by) = (change.project()?, change.operation(), change.who().id);
        let (user, sudo) = (&asked.user, asked.sudo);
        if TAKEN.contains(&user.as_str()) {
            return Err(Error::field("user", format!("{user} is an account of guests already: choose another name.")));
        }
        let keys = keys(asked.keys.as_str())?;
        let environments: Vec<_> = asked.environments.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
        let tx = change.transaction().await?;
        no_preview(tx, project, "the users of that project are its users too").await?;
        projects::hold(tx, project).await?.ok_or(Denied::NotFound)?;
        let before = guest_users::of_project(tx, project).await?;
        let was = before.iter().find(|line| line.user == *user);
        if was.is_none() && before.len() >= MOST_GUEST_USERS as usize {
            let message = format!("A project has {MOST_GUEST_USERS} such users at most: remove one first.");
            return Err(Error::Conflict(message));
        }
        guest_users::set(tx, (project, by), user, (&environments, sudo, &keys)).await?;
        let guests = chores::ask_users(tx, project, by).await?;
        let detail = json!({
            "user": user, "environments": environments, "sudo": sudo, "keys": keys.len(), "new": was.is_none(),
        });
        let entry = Entry::new("guest_user.set", asked.project.as_str()).id(project.0);
        change.commit(entry.detail(detail), GuestUserSet { user: user.clone(), guests }).await
    }
}

impl Handle<RemoveGuestUser> for Controller {
    async fn handle(&self, mut change: Change<RemoveGuestUser>) -> Result<Committed<RemoveGuestUser>> {
        let (project, asked, by) = (change.project()?, change.operation(), change.who().id);
        let user = &asked.user;
        let tx = change.transaction().await?;
        if !guest_users::remove(tx, project, user).await? {
            return Err(Denied::NotFound.into());
        }
        let guests = chores::ask_users(tx, project, by).await?;
        let entry = Entry::new("guest_user.remove", asked.project.as_str()).id(project.0);
        change.commit(entry.detail(json!({ "user": user })), GuestUserSet { user: user.clone(), guests }).await
    }
}

/// The keys of a text with one a line, as they are kept.
fn keys(text: &str) -> Result<Vec<String>> {
    let mut keys = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let key: MemberKey = line.parse().map_err(|error: KeyRefused| {
            let which = keys.len() + 1;
            Error::field("keys", format!("Key {which}: {error}."))
        })?;
        if !keys.iter().any(|kept| kept == key.line()) {
            keys.push(key.line().to_owned());
        }
    }
    match keys.len() {
        0 => Err(Error::field("keys", "Paste at least one public key: nothing else opens the account.")),
        many if many > MOST_USER_KEYS as usize => {
            Err(Error::field("keys", format!("There are {many} keys, and {MOST_USER_KEYS} at most are taken.")))
        }
        _ => Ok(keys),
    }
}
