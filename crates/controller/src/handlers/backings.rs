//! What guests of each environment may lie on, as operators say.

use corpus_api::backings::{Backings, EnvironmentBackings, GetBackings, ListBackings, SetBackings};
use corpus_domain::{Backing, Environment};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::store::backings;
use crate::{Controller, changed};

impl Handle<ListBackings> for Controller {
    async fn handle(&self, permit: Permit<ListBackings>) -> Result<Backings> {
        Ok(Backings { items: backings::all(&mut *permit.connection().await?).await? })
    }
}

impl Handle<GetBackings> for Controller {
    async fn handle(&self, permit: Permit<GetBackings>) -> Result<EnvironmentBackings> {
        Ok(backings::of(&mut *permit.connection().await?, permit.environment).await?)
    }
}

impl Handle<SetBackings> for Controller {
    async fn handle(&self, mut change: Change<SetBackings>) -> Result<Committed<SetBackings>> {
        let (asked, environment) = (change.operation(), change.environment);
        if asked.allowed.is_empty() {
            return Err(Error::field("allowed", "Its guests must lie on something: allow one at least."));
        }
        if let Some(usual) = asked.usual.filter(|usual| !asked.allowed.contains(usual)) {
            return Err(Error::field("usual", format!("{usual} is not allowed.")));
        }
        let tx = change.transaction().await?;
        backings::hold(tx, environment).await?;
        let was = backings::of(tx, environment).await?;
        if was.version != asked.version {
            return Err(changed::by_others(tx, "backings.set", id(environment), allowed).await);
        }
        backings::set(tx, environment, &asked.allowed, asked.usual).await?;
        let now = backings::of(tx, environment).await?;
        if now.version == was.version {
            return change.unchanged(now).await;
        }
        let detail = json!({ "from": was.allowed, "to": now.allowed, "usual": now.usual });
        let entry = Entry::new("backings.set", environment.as_str()).id(id(environment)).detail(detail);
        change.commit(entry, now).await
    }
}

/// An environment in the audit, where each thing has an id.
fn id(environment: Environment) -> Uuid {
    let place = Environment::ALL.iter().position(|one| *one == environment).unwrap_or_default();
    Uuid::from_u128(place as u128)
}

/// What a change of it was.
fn allowed(detail: &Value) -> Option<String> {
    let words = |of: &str| {
        Some(changed::read::<Vec<Backing>>(detail, of)?.iter().map(|one| one.as_str()).collect::<Vec<_>>().join(", "))
    };
    changed::parts([("what is allowed", words("from")?, words("to")?)])
}

/// What a guest of the environment lies on: what is asked for, if it may, else what is usual there.
pub(super) fn chosen(of: &EnvironmentBackings, asked: Option<Backing>) -> Result<Option<Backing>> {
    match asked {
        Some(backing) if of.allowed.contains(&backing) => Ok(Some(backing)),
        Some(backing) => {
            let allowed: Vec<&str> = of.allowed.iter().map(|one| one.as_str()).collect();
            Err(Error::field(
                "backing",
                format!(
                    "Guests of {} lie on {}: operators don't want {backing} there.",
                    of.environment,
                    allowed.join(" or ")
                ),
            ))
        }
        None => Ok(of.usual),
    }
}
