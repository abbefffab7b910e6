//! Lines of containers' configurations: which there are, as operators say.

use corpus_api::Denied;
use corpus_api::lxc_lines::{
    AllowedLine, AllowedLines, CreateLxcLine, GetLxcLine, ListLxcLines, LxcLineRemoved, RemoveLxcLine, SetLxcLine,
};
use corpus_api::words::Label;
use corpus_domain::{LxcKey, LxcLine, LxcLineName, LxcValue};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::store::lxc_lines::{self, Kept};
use crate::store::profiles;
use crate::{Controller, changed};

impl Handle<ListLxcLines> for Controller {
    async fn handle(&self, permit: Permit<ListLxcLines>) -> Result<AllowedLines> {
        let ops = permit.who().ops;
        let kept = lxc_lines::list(&mut *permit.connection().await?, None).await?;
        Ok(AllowedLines { items: kept.into_iter().map(|one| shown(one, ops)).collect() })
    }
}

impl Handle<GetLxcLine> for Controller {
    async fn handle(&self, permit: Permit<GetLxcLine>) -> Result<AllowedLine> {
        let ops = permit.who().ops;
        Ok(shown(known(&mut *permit.connection().await?, &permit.line).await?, ops))
    }
}

impl Handle<CreateLxcLine> for Controller {
    async fn handle(&self, mut change: Change<CreateLxcLine>) -> Result<Committed<CreateLxcLine>> {
        let (asked, by, id) = (change.operation(), change.who().id, Uuid::now_v7());
        takes(&asked.key, asked.value.as_ref())?;
        let tx = change.transaction().await?;
        if lxc_lines::are_full(tx).await? {
            return Err(Error::Conflict(format!("There are {} lines already: remove one.", lxc_lines::MOST)));
        }
        let comment = asked.comment.as_ref().map(Label::as_str);
        let inserted = lxc_lines::insert(tx, (id, &asked.name), (&asked.key, asked.value.as_ref()), comment, by).await;
        inserted.map_err(|error| Error::taken(error, "name", format!("There is a line {} already.", asked.name)))?;
        let made = shown(known(tx, &asked.name).await?, true);
        let entry = Entry::new("lxc_line.create", asked.name.as_str()).id(id);
        change.commit(entry.detail(json!({ "says": made.text() })), made).await
    }
}

impl Handle<SetLxcLine> for Controller {
    async fn handle(&self, mut change: Change<SetLxcLine>) -> Result<Committed<SetLxcLine>> {
        let asked = change.operation();
        takes(&asked.key, asked.value.as_ref())?;
        let tx = change.transaction().await?;
        lxc_lines::hold(tx, &asked.line).await?;
        let Kept { id, line: was, .. } = known(tx, &asked.line).await?;
        if was.version != asked.version {
            return Err(changed::by_others(tx, "lxc_line.set", id, told).await);
        }
        let comment = asked.comment.as_ref().map(Label::as_str);
        lxc_lines::set(tx, id, (&asked.key, asked.value.as_ref()), comment).await?;
        let now = shown(known(tx, &asked.line).await?, true);
        if now.version == was.version {
            return change.unchanged(now).await;
        }
        let detail = json!({ "from": was.text(), "to": now.text() });
        change.commit(Entry::new("lxc_line.set", asked.line.as_str()).id(id).detail(detail), now).await
    }
}

impl Handle<RemoveLxcLine> for Controller {
    async fn handle(&self, mut change: Change<RemoveLxcLine>) -> Result<Committed<RemoveLxcLine>> {
        let name = change.line.clone();
        let tx = change.transaction().await?;
        lxc_lines::hold(tx, &name).await?;
        let Kept { id, line: was, guests } = known(tx, &name).await?;
        if guests > 0 {
            let have = if guests == 1 { "1 guest has".to_owned() } else { format!("{guests} guests have") };
            return Err(Error::Conflict(format!("{have} the line {name}: it is taken from them first.")));
        }
        let profiles = profiles::list(tx, None).await?;
        if let Some(by) = profiles.iter().find(|one| one.profile.defaults.conf.contains(&name)) {
            let message = format!("The profile {} has the line {name}: it is taken from it first.", by.profile.name);
            return Err(Error::Conflict(message));
        }
        lxc_lines::delete(tx, id).await?;
        let entry = Entry::new("lxc_line.remove", name.as_str()).id(id).detail(json!({ "said": was.text() }));
        change.commit(entry, LxcLineRemoved { line: was.name }).await
    }
}

/// As who asks sees it.
fn shown(kept: Kept, ops: bool) -> AllowedLine {
    AllowedLine { guests: ops.then_some(kept.guests), ..kept.line }
}

async fn known(conn: &mut PgConnection, name: &LxcLineName) -> Result<Kept> {
    Ok(lxc_lines::get(conn, name).await?.ok_or(Denied::NotFound)?)
}

/// Refused where the key takes no such value: a guest that had it would not start.
fn takes(key: &LxcKey, value: Option<&LxcValue>) -> Result<()> {
    let Some(value) = value else { return Ok(()) };
    LxcLine::new(key.clone(), value.clone()).map(drop).map_err(|error| Error::field("value", error.to_string()))
}

/// What a change of it was.
fn told(detail: &Value) -> Option<String> {
    changed::parts([("what it says", changed::read::<String>(detail, "from")?, changed::read::<String>(detail, "to")?)])
}
