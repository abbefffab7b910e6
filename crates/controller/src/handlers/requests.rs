//! Requests to the operators: to see them, and to decide. [`asking`] is how they are made, [`rules`] what is decided
//! without a person.
//!
//! To approve is to do what was asked for, by the handler of that operation and in the same transaction: so nothing is
//! done by half, and of two operators one decides.

mod asking;
mod rules;

use corpus_api::requests::{
    ApproveRequest, GetRequest, ListRequests, RefuseRequest, Request, RequestDecided, RequestPage, Wanted,
    WithdrawRequest,
};
use corpus_api::words::{Comment, KeyText, Password};
use corpus_api::{Cursor, Denied, Operation, Principal, Write};
use corpus_domain::{JobId, ProjectId, ProjectRole, RequestId, RequestState};
use corpus_gate::audit::{self, Entry};
use corpus_gate::{Approval, Ask, Change, Committed, Done, Error, Handle, Last, Permit, Result};
use serde_json::json;
use sqlx::PgConnection;

use super::{after, lines, page};
use crate::store::requests::{self, Decision, Kept, Seen};
use crate::store::users;
use crate::{Controller, events};

/// The list, for its cursors.
const LIST: &str = "requests";

impl Handle<ListRequests> for Controller {
    async fn handle(&self, permit: Permit<ListRequests>) -> Result<RequestPage> {
        let (limit, rows) = lines(permit.limit);
        let after: Option<requests::After> = after(permit.cursor.as_ref(), LIST)?;
        let seen = seen(&permit.who());
        let found = requests::list(&mut *permit.connection().await?, &permit, &seen, after, rows).await?;
        let place = |line: &corpus_api::requests::RequestLine| (line.state == RequestState::Open, line.id.0);
        let (items, next) = page(found, limit, |line| Cursor::after(LIST, &place(line)));
        Ok(RequestPage { items, next })
    }
}

/// An operator sees all, others their own and those of projects that they maintain.
fn seen(who: &Principal) -> Seen {
    let maintained = who.roles.iter().filter(|(_, role)| **role == ProjectRole::Maintainer);
    Seen { asker: (!who.ops).then_some(who.id), projects: maintained.map(|(project, _)| *project).collect() }
}

impl Handle<GetRequest> for Controller {
    async fn handle(&self, permit: Permit<GetRequest>) -> Result<Request> {
        let who = permit.who();
        let kept = requests::get(&mut *permit.connection().await?, permit.request).await?.ok_or(Denied::NotFound)?;
        let open = kept.line.state == RequestState::Open;
        let is_own = kept.asker == who.id;
        Ok(Request {
            may_decide: open && who.can::<ApproveRequest>(None) && !is_own,
            may_withdraw: open && is_own,
            line: kept.line,
            wanted: kept.wanted,
            changed: kept.changed,
            reason: kept.reason,
            path: kept.path,
            job: kept.job,
        })
    }
}

impl Handle<ApproveRequest> for Controller {
    async fn handle(&self, change: Change<ApproveRequest>) -> Result<Committed<ApproveRequest>> {
        let (asked, who) = (change.operation(), change.who());
        let mut conn = change.connection().await?;
        let kept = open(&mut conn, asked.request).await?;
        by_another(&kept, &who)?;
        let member = users::principal(&mut conn, kept.asker).await?;
        drop(conn);
        let login = kept.line.asker.clone();
        let member = member.ok_or_else(|| Error::Conflict(format!("{login} can't sign in any more. Refuse it.")))?;
        let (request, wanted) = (asked.request, kept.wanted.clone().changed(&asked).map_err(Error::Fields)?);
        let approval = Approval {
            request,
            asker: Principal { token: None, ..member.by(who.came_by.door) },
            least: wanted.least(),
            by: who.login.to_string(),
            beyond_quota: true,
        };
        let changed = (wanted != kept.wanted).then(|| wanted.clone());
        let (approved, title, project) = (change.operation(), kept.line.title, kept.project);
        let last: Last = Box::new(move |conn, done| {
            Box::pin(async move {
                let decision = Decision {
                    by: Some(who.id),
                    changed: changed.as_ref(),
                    reason: approved.reason.as_ref().map(Comment::as_str),
                    path: done.location.as_deref(),
                    job: job_of(&done),
                    ..Decision::default()
                };
                decide(conn, request, RequestState::Approved, &decision).await?;
                made_project(conn, request, changed.as_ref().unwrap_or(&kept.wanted)).await?;
                let detail = json!({ "asker": login, "changed": changed, "reason": approved.reason });
                let entry = Entry::new("request.approve", &title).id(request.0).detail(detail);
                Ok(audit::write(conn, &*who, of(entry, project)).await?)
            })
        });
        let answer = RequestDecided { request, state: RequestState::Approved };
        let compared = asked.host_key.clone().map(|key| (key, asked.password.clone()));
        self.carry_out(change, Approved { wanted, compared, approval, last }, answer).await
    }
}

impl Handle<RefuseRequest> for Controller {
    async fn handle(&self, mut change: Change<RefuseRequest>) -> Result<Committed<RefuseRequest>> {
        let (asked, who) = (change.operation(), change.who());
        let tx = change.transaction().await?;
        let kept = open(tx, asked.request).await?;
        by_another(&kept, &who)?;
        let decision = Decision { by: Some(who.id), reason: Some(asked.reason.as_str()), ..Decision::default() };
        decide(tx, asked.request, RequestState::Refused, &decision).await?;
        let detail = json!({ "asker": kept.line.asker, "reason": asked.reason });
        let entry = of(Entry::new("request.refuse", &kept.line.title).id(asked.request.0), kept.project);
        let answer = RequestDecided { request: asked.request, state: RequestState::Refused };
        change.commit(entry.detail(detail), answer).await
    }
}

impl Handle<WithdrawRequest> for Controller {
    async fn handle(&self, mut change: Change<WithdrawRequest>) -> Result<Committed<WithdrawRequest>> {
        let (request, who) = (change.request, change.who());
        let tx = change.transaction().await?;
        let kept = open(tx, request).await?;
        if kept.asker != who.id {
            return Err(Error::Forbidden(format!("Only {} withdraws it.", kept.line.asker)));
        }
        let decision = Decision { by: Some(who.id), ..Decision::default() };
        decide(tx, request, RequestState::Withdrawn, &decision).await?;
        let entry = of(Entry::new("request.withdraw", &kept.line.title).id(request.0), kept.project);
        change.commit(entry, RequestDecided { request, state: RequestState::Withdrawn }).await
    }
}

impl Controller {
    /// Does what was approved, in the name of who asked for it: the one place that knows which operation it is.
    async fn carry_out<O: Operation<Kind = Write>>(
        &self,
        change: Change<O>,
        approved: Approved,
        answer: O::Output,
    ) -> Result<Committed<O>> {
        let Approved { wanted, compared, approval, last } = approved;
        let way = (approval, answer);
        match wanted {
            Wanted::CreateProject(asked) => self.instead(change, asked.operation(), way, last).await,
            Wanted::InitializeNode(asked) => self.instead(change, asked.operation(), way, last).await,
            Wanted::RequestGuest(asked) => self.instead(change, asked.operation(), way, last).await,
            Wanted::AttachName(asked) => self.instead(change, asked.operation(), way, last).await,
            Wanted::LinkNode(asked) => {
                let missing = || Error::field("host_key", "Read the host's key and compare it first.");
                let (host_key, password) = compared.ok_or_else(missing)?;
                self.instead(change, asked.operation(host_key, password), way, last).await
            }
        }
    }

    async fn instead<O, P>(
        &self,
        change: Change<O>,
        operation: P,
        (approval, answer): (Approval, O::Output),
        last: Last,
    ) -> Result<Committed<O>>
    where
        O: Operation<Kind = Write>,
        P: Ask<Kind = Write>,
        Self: Handle<P>,
    {
        let (change, instead) = change.approved(&self.gate, operation, approval, answer, last).await?;
        Ok(instead.done(Handle::<P>::handle(self, change).await?))
    }

    /// Ends what nobody decided in time, or what can't be done any more.
    pub(crate) async fn lapse_requests(&self, conn: &mut PgConnection) -> Result<()> {
        for lapsed in requests::lapse(conn).await? {
            let entry = of(Entry::new("request.lapse", &lapsed.title).id(lapsed.id.0), lapsed.project);
            audit::write(conn, audit::Author::new(None, "corpus", corpus_domain::Door::Corpus), entry).await?;
            events::request_decided(conn, lapsed.id).await?;
        }
        Ok(())
    }
}

/// What was approved.
struct Approved {
    /// What is to be done.
    wanted: Wanted,
    /// Of a host to be linked: its key, which was compared, and the password of its account.
    compared: Option<(KeyText, Option<Password>)>,
    /// By whom, and for whom.
    approval: Approval,
    /// How the request is decided in the same transaction.
    last: Last,
}

/// The request, while it is open.
async fn open(conn: &mut PgConnection, id: RequestId) -> Result<Kept> {
    let kept = requests::get(conn, id).await?.ok_or(Denied::NotFound)?;
    if kept.line.state == RequestState::Open { Ok(kept) } else { Err(decided(kept.line.state)) }
}

fn decided(state: RequestState) -> Error {
    Error::Conflict(format!("This request is {state} already."))
}

/// Nobody decides about what they asked for themselves.
fn by_another(kept: &Kept, who: &Principal) -> Result<()> {
    if kept.asker == who.id {
        return Err(Error::Conflict("You asked for it yourself: withdraw it, and do it as an operator.".to_owned()));
    }
    Ok(())
}

/// Decides, if nobody did meanwhile, and tells who asked.
async fn decide(conn: &mut PgConnection, id: RequestId, state: RequestState, how: &Decision<'_>) -> Result<()> {
    if !requests::decide(conn, id, state, how).await? {
        return Err(Error::Conflict("Somebody decided it at this moment, or it lapsed. Look at it again.".to_owned()));
    }
    Ok(events::request_decided(conn, id).await?)
}

async fn made_project(conn: &mut PgConnection, id: RequestId, wanted: &Wanted) -> Result<()> {
    if let Wanted::CreateProject(asked) = wanted {
        requests::is_for(conn, id, &asked.name).await?;
    }
    Ok(())
}

/// A row of the audit that the project's members read, if it is for one.
fn of(entry: Entry<'_>, project: Option<ProjectId>) -> Entry<'_> {
    match project {
        Some(project) => entry.of_project(project),
        None => entry,
    }
}

fn job_of(done: &Done) -> Option<JobId> {
    done.answer.get("job")?.as_str()?.parse().ok()
}
