//! Members' API tokens: made, listed, revoked, and recognised at the doors.

use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use corpus_api::principal::{CameBy, UsedToken};
use corpus_api::tokens::{
    CreateToken, ListTokens, NewToken, RevokeToken, TokenBytes, TokenPage, TokenRevoked, TokenText,
};
use corpus_api::words::{Day, Days};
use corpus_api::{Cursor, Denied, Principal};
use corpus_domain::{Door, TokenId};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use rand::RngExt;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{after, lines, page};
use crate::Controller;
use crate::store::{tokens, users};

/// The list, for its cursors.
const LIST: &str = "own tokens, the newest first";
/// Tokens of a member that are good at a time.
const MAX_TOKENS: i64 = 50;
/// The longest that a token is good, in days.
const MAX_DAYS: i64 = 365;

impl Controller {
    /// The member of a token that is good now, who may do with it all that they may, and the token.
    pub async fn holder_of(&self, text: &str) -> Result<Option<(Principal, TokenId)>> {
        let Some(bytes) = TokenText::bytes(text) else { return Ok(None) };
        let mut conn = self.services.db.acquire().await?;
        let Some(token) = tokens::good(&mut conn, &hash(&bytes)).await? else { return Ok(None) };
        let found = users::principal(&mut conn, token.user).await?;
        let came_by = by_token(token.id, token.name);
        Ok(found.map(|who| (Principal { came_by, ..who }, token.id)))
    }

    /// The member of a token that is good now, with what it is good for; none for any other text. Roles are
    /// read anew, as for a session.
    pub async fn principal_of_token(&self, text: &str) -> Result<Option<Principal>> {
        let Some(bytes) = TokenText::bytes(text) else { return Ok(None) };
        let mut conn = self.services.db.acquire().await?;
        let Some(token) = tokens::good(&mut conn, &hash(&bytes)).await? else { return Ok(None) };
        if !token.is_noted {
            tokens::note_use(&mut conn, token.id).await?;
        }
        let found = users::principal(&mut conn, token.user).await?;
        let (grant, came_by) = (Some(token.grant), by_token(token.id, token.name));
        Ok(found.map(|principal| Principal { token: grant, came_by, ..principal }))
    }
}

const fn by_token(id: TokenId, name: String) -> CameBy {
    CameBy { door: Door::Api, token: Some(UsedToken { id, name }) }
}

impl Handle<ListTokens> for Controller {
    async fn handle(&self, permit: Permit<ListTokens>) -> Result<TokenPage> {
        let (limit, rows) = lines(permit.limit);
        let before = after(permit.cursor.as_ref(), LIST)?;
        let found = tokens::of_user(&mut *permit.connection().await?, permit.who().id, before, rows).await?;
        let (items, next) = page(found, limit, |token| Cursor::after(LIST, &token.id));
        Ok(TokenPage { items, next })
    }
}

impl Handle<CreateToken> for Controller {
    async fn handle(&self, mut change: Change<CreateToken>) -> Result<Committed<CreateToken>> {
        let (asked, user) = (change.operation(), change.who().id);
        let expires_at = end((asked.days, asked.until), Utc::now())?;
        let tx = change.transaction().await?;
        if asked.replace == Some(true) {
            tokens::revoke_named(tx, user, asked.name.as_str()).await?;
        }
        if tokens::count(tx, user).await? >= MAX_TOKENS {
            return Err(Error::Conflict(format!(
                "You have {MAX_TOKENS} tokens, which is as many as one can have. Revoke one that is not used any more."
            )));
        }
        let bytes: TokenBytes = rand::rng().random();
        let (name, scope) = (asked.name.to_string(), asked.scope);
        let inserted = tokens::insert(tx, user, &hash(&bytes), (&name, scope, expires_at)).await;
        let taken = "Another of your tokens has this name. Choose another one, or revoke that token first.";
        let id = inserted.map_err(|error| Error::taken(error, "name", taken))?;
        let detail = json!({ "scope": scope, "expires_at": expires_at, "replace": asked.replace });
        let entry = Entry::new("token.create", asked.name.as_str()).id(id.0).detail(detail);
        change.commit(entry, NewToken { id, name, scope, expires_at, token: TokenText::of(&bytes) }).await
    }
}

impl Handle<RevokeToken> for Controller {
    async fn handle(&self, mut change: Change<RevokeToken>) -> Result<Committed<RevokeToken>> {
        let (token, user) = (change.token, change.who().id);
        let name = tokens::revoke(change.transaction().await?, user, token).await?.ok_or(Denied::NotFound)?;
        change.commit(Entry::new("token.revoke", &name).id(token.0), TokenRevoked { token }).await
    }
}

/// Until when a token is to be good.
pub(super) fn end(asked: (Option<Days>, Option<Day>), now: DateTime<Utc>) -> Result<DateTime<Utc>> {
    match asked {
        (Some(days), None) => {
            let end = now.checked_add_days(chrono::Days::new(days.get()));
            end.ok_or_else(|| Error::field("days", "This is later than any day there is."))
        }
        (None, Some(day)) => {
            let fits = |end: &DateTime<Utc>| *end <= now + TimeDelta::days(MAX_DAYS + 1);
            let end = end_of(day, now).filter(fits);
            end.ok_or_else(|| Error::field("until", "Choose a day from today on, within a year."))
        }
        (None, None) => Err(Error::field("days", "Say for how many days it is good, or until which day.")),
        (Some(_), Some(_)) => Err(Error::field("until", "Say either for how many days, or until which day.")),
    }
}

/// The end of a day, by UTC, that is not over yet.
pub(super) fn end_of(day: Day, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let next = day.get().checked_add_days(chrono::Days::new(1))?;
    Some(next.and_time(NaiveTime::MIN).and_utc()).filter(|end| *end > now)
}

pub(super) fn hash(bytes: &TokenBytes) -> tokens::Hash {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(days: Option<&str>, until: Option<&str>) -> (Option<Days>, Option<Day>) {
        (days.map(|text| text.parse().unwrap()), until.map(|text| text.parse().unwrap()))
    }

    #[test]
    fn the_end_is_after_so_many_days_or_with_a_day() {
        let now: DateTime<Utc> = "2027-03-01T12:00:00Z".parse().unwrap();
        let end = |days, until| {
            end(asked(days, until), now).map(|end| end.to_rfc3339()).map_err(|error| match error {
                Error::Field { field, .. } => field,
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(end(Some("30"), None).as_deref(), Ok("2027-03-31T12:00:00+00:00"));
        assert_eq!(end(None, Some("2027-03-01")).as_deref(), Ok("2027-03-02T00:00:00+00:00"));
        assert_eq!(end(None, Some("2028-02-29")).as_deref(), Ok("2028-03-01T00:00:00+00:00"));
        assert_eq!(end(None, Some("2028-03-02")), Err("until"), "later than in a year");
        assert_eq!(end(None, Some("2027-02-28")), Err("until"), "yesterday");
        assert_eq!(end(None, None), Err("days"));
        assert_eq!(end(Some("1"), Some("2027-03-02")), Err("until"));
    }
}
