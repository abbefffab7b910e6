//! How requests are made: what may be asked, by whom, how much of it; and what a rule decides at once.

use corpus_api::requests::RequestMade;
use corpus_api::requests::asking::{AskForGuest, AskForName, AskForNode, AskForProject, AskToInitialize, Wanted};
use corpus_api::requests::rules::RequestRule;
use corpus_api::words::Comment;
use corpus_api::{Denied, Operation, Write};
use corpus_domain::{ProjectCreators, ProjectId, RequestId, RequestState, Verdict};
use corpus_gate::audit::{self, Entry};
use corpus_gate::{Approval, Change, Committed, Error, Handle, Last, Result};
use serde_json::json;
use uuid::Uuid;

use super::{Approved, job_of, made_project, of};
use crate::handlers::guests::{request, settings};
use crate::handlers::profiles;
use crate::rules::REQUEST_DAYS;
use crate::store::requests::{self, Decision, New};
use crate::store::{guests, projects, request_rules};
use crate::{Controller, events, quotas};

/// As many of a member are open at once.
const MOST_OPEN: i64 = 20;
/// As many a member makes in a day, whatever becomes of them.
const MOST_A_DAY: i64 = 100;

impl Handle<AskForProject> for Controller {
    async fn handle(&self, change: Change<AskForProject>) -> Result<Committed<AskForProject>> {
        let asked = change.operation();
        if self.services.settings.rules.project_creators == ProjectCreators::Members {
            return Err(Error::Conflict("You may make it yourself, under Projects.".to_owned()));
        }
        self.may_be_called(&change, &asked.name).await?;
        self.ask(change, Wanted::CreateProject((*asked).clone()), None, format!("Project {}", asked.name)).await
    }
}

impl Handle<AskForNode> for Controller {
    async fn handle(&self, change: Change<AskForNode>) -> Result<Committed<AskForNode>> {
        let asked = change.operation();
        if asked.environments.is_empty() {
            let why = "Choose at least one environment that the node takes guests of.";
            return Err(Error::field("environments", why));
        }
        self.ask(change, Wanted::LinkNode((*asked).clone()), None, format!("Link {}", asked.address)).await
    }
}

impl Handle<AskToInitialize> for Controller {
    async fn handle(&self, change: Change<AskToInitialize>) -> Result<Committed<AskToInitialize>> {
        let asked = change.operation();
        let address = requests::node_address(&mut *change.connection().await?, asked.node).await?;
        let title = format!("Initialize {}", address.ok_or(Denied::NotFound)?);
        self.ask(change, Wanted::InitializeNode((*asked).clone()), None, title).await
    }
}

impl Handle<AskForGuest> for Controller {
    async fn handle(&self, change: Change<AskForGuest>) -> Result<Committed<AskForGuest>> {
        let (asked, project) = (change.operation(), change.project()?);
        let mut conn = change.connection().await?;
        let filled = profiles::filled(&mut conn, asked.operation()).await?;
        let making = request::making(&mut conn, &filled).await?;
        request::supported(&mut conn, &making).await?;
        self.image(&mut conn, (&filled, project)).await?;
        settings::can_be_had(&mut conn, &filled.conf).await?;
        self.is_free_for_guest(&mut conn, &change.who(), project, &asked.name).await?;
        if guests::is_there(&mut conn, &asked.name).await? {
            return Err(Error::field("name", format!("{} is taken already; choose another name.", asked.name)));
        }
        drop(conn);
        let wanted = (*asked).clone().filled(filled);
        let title = format!("Guest {}, {} for {} {}", asked.name, wanted.size(), asked.project, asked.environment);
        let wanted = Wanted::RequestGuest(Box::new(wanted));
        self.ask(change, wanted, Some(project), title).await
    }
}

impl Handle<AskForName> for Controller {
    async fn handle(&self, change: Change<AskForName>) -> Result<Committed<AskForName>> {
        let (asked, project) = (change.operation(), change.project()?);
        let guest = guests::get(&mut *change.connection().await?, asked.guest).await?.ok_or(Denied::NotFound)?;
        let title = format!("Name {} for {}", asked.name, guest.name);
        self.ask(change, Wanted::AttachName((*asked).clone()), Some(project), title).await
    }
}

/// A request that is about to be made.
struct Asking {
    id: RequestId,
    wanted: Wanted,
    project: Option<ProjectId>,
    title: String,
    days: u16,
}

impl Asking {
    fn row(&self, asker: corpus_domain::UserId) -> New<'_> {
        let Self { id, ref wanted, project, ref title, days } = *self;
        New { id, wanted, title, asker, project, days }
    }

    /// That it was asked.
    fn asked(&self) -> Entry<'_> {
        let detail = json!({ "operation": self.wanted.of(), "comment": self.wanted.comment() });
        of(Entry::new("request.ask", &self.title).id(self.id.0).detail(detail), self.project)
    }

    /// What a rule made of it.
    fn by_rule(&self, action: &'static str, rule: &RequestRule) -> Entry<'_> {
        let detail = json!({ "rule": rule.said, "rule_id": rule.id });
        of(Entry::new(action, &self.title).id(self.id.0).detail(detail), self.project)
    }
}

impl Controller {
    /// Keeps a request, or does what a rule says of it at once.
    async fn ask<O: Operation<Kind = Write, Output = RequestMade>>(
        &self,
        mut change: Change<O>,
        wanted: Wanted,
        project: Option<ProjectId>,
        title: String,
    ) -> Result<Committed<O>> {
        let who = change.who();
        if who.ops {
            return Err(Error::Conflict("You are an operator: do it yourself.".to_owned()));
        }
        let days = self.services.settings.rules.request_days.unwrap_or(REQUEST_DAYS);
        let asking = Asking { id: RequestId(Uuid::now_v7()), wanted, project, title, days };
        let tx = change.transaction().await?;
        bounded(requests::hold_asker(tx, who.id).await?)?;
        request_rules::hold(tx, false).await?;
        match rule_for(&mut change, &asking).await? {
            Some(rule) if rule.rule.verdict == Verdict::Approve => self.let_have(change, asking, rule).await,
            Some(rule) => refuse(change, &asking, &rule).await,
            None => {
                let tx = change.transaction().await?;
                requests::insert(tx, &asking.row(who.id)).await?;
                events::request_made(tx, asking.id).await?;
                change.commit(asking.asked(), RequestMade { request: asking.id, state: RequestState::Open }).await
            }
        }
    }

    /// What a rule approves is done in the transaction in which it is asked.
    async fn let_have<O: Operation<Kind = Write, Output = RequestMade>>(
        &self,
        change: Change<O>,
        asking: Asking,
        rule: RequestRule,
    ) -> Result<Committed<O>> {
        let who = change.who();
        let (request, wanted) = (asking.id, asking.wanted.clone());
        let (asker, by) = ((*who).clone(), format!("rule: {}", rule.said));
        let approval = Approval { request, asker, least: wanted.least(), by, beyond_quota: false };
        let last: Last = Box::new(move |conn, done| {
            Box::pin(async move {
                request_rules::hold(conn, false).await?;
                if !request_rules::is_there(conn, rule.id).await? {
                    return Err(Error::Conflict("The rules changed at this moment. Ask again.".to_owned()));
                }
                bounded(requests::hold_asker(conn, who.id).await?)?;
                requests::insert(conn, &asking.row(who.id)).await?;
                audit::write(conn, &*who, asking.asked()).await?;
                let (path, job) = (done.location.as_deref(), job_of(&done));
                let reason = rule.rule.reason.as_ref().map(Comment::as_str);
                let decision = Decision { rule: Some(&rule.said), reason, path, job, ..Decision::default() };
                requests::decide(conn, request, RequestState::Approved, &decision).await?;
                made_project(conn, request, &asking.wanted).await?;
                Ok(audit::write(conn, &*who, asking.by_rule("request.approve", &rule)).await?)
            })
        });
        let answer = RequestMade { request, state: RequestState::Approved };
        self.carry_out(change, Approved { wanted, compared: None, approval, last }, answer).await
    }
}

/// The rule that decides, if one does: the first that fits. None gives what is beyond a quota: that waits for a person.
async fn rule_for<O: Operation<Kind = Write>>(change: &mut Change<O>, asking: &Asking) -> Result<Option<RequestRule>> {
    let tx = change.transaction().await?;
    let name = match asking.project {
        Some(project) => projects::name(tx, project).await?,
        None => None,
    };
    let rules = request_rules::all(tx).await?;
    let rule = rules.into_iter().find(|rule| rule.rule.decides(&asking.wanted, name.as_ref()));
    let approves = rule.as_ref().is_some_and(|rule| rule.rule.verdict == Verdict::Approve);
    let more = match &asking.wanted {
        Wanted::CreateProject(_) | Wanted::LinkNode(_) | Wanted::InitializeNode(_) => return Ok(rule),
        Wanted::RequestGuest(asked) => {
            let asked = asked.operation();
            request::more(&asked, request::making(tx, &asked).await?.needed)
        }
        Wanted::AttachName(_) => quotas::More { names: 1, ..quotas::More::default() },
    };
    let project = asking.project.ok_or(Denied::NotFound)?;
    let fits = !approves || quotas::now(tx, project, more).await?.is_empty();
    Ok(rule.filter(|_| fits))
}

async fn refuse<O: Operation<Kind = Write, Output = RequestMade>>(
    mut change: Change<O>,
    asking: &Asking,
    rule: &RequestRule,
) -> Result<Committed<O>> {
    let who = change.who().id;
    let tx = change.transaction().await?;
    requests::insert(tx, &asking.row(who)).await?;
    let reason = rule.rule.reason.as_ref().map(Comment::as_str);
    let decision = Decision { rule: Some(&rule.said), reason, ..Decision::default() };
    requests::decide(tx, asking.id, RequestState::Refused, &decision).await?;
    change.note(asking.asked()).await?;
    let answer = RequestMade { request: asking.id, state: RequestState::Refused };
    change.commit(asking.by_rule("request.refuse", rule), answer).await
}

/// So that nobody fills the queue of the operators, nor the database.
fn bounded((open, lately): (i64, i64)) -> Result<()> {
    if open >= MOST_OPEN {
        let why = format!("{MOST_OPEN} of your requests are open: withdraw one, or wait until they are decided.");
        return Err(Error::Conflict(why));
    }
    if lately >= MOST_A_DAY {
        return Err(Error::Conflict(format!("You asked {MOST_A_DAY} times in a day. Ask again tomorrow.")));
    }
    Ok(())
}
