//! Previews of projects: how many there may be, made or brought to a commit, kept longer, destroyed.
//!
//! A preview is a project with a guest, a name and an environment of its own. All of it is asked for at once: the jobs
//! that make the guest, attach its name, set the environment up and deploy stand in the queue one behind the other, and
//! what can be refused is refused before any of them is there.

use corpus_api::Denied;
use corpus_api::guests::{RequestGuest, WantedNames};
use corpus_api::jobs::JobAccepted;
use corpus_api::previews::{
    GetPreviewRules, KeepPreview, ListPreviews, MakePreview, PreviewAccepted, PreviewKept, PreviewLine, PreviewRules,
    Previews, RemovePreview, SetPreviewRules,
};
use corpus_domain::{
    Backing, DeploymentId, DnsName, Environment, EnvironmentState, GuestId, GuestName, GuestState, PreviewName,
    ProjectId, ProjectName, Trigger, UserId,
};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use corpus_protocol::Source;
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::guests::node_for;
use crate::sagas::{deploy, environment_set_up, project_destroy};
use crate::store::deployments::{self, NewDeployment, Ordered};
use crate::store::environments::{self, Placement};
use crate::store::previews::Preview;
use crate::store::{guests, names, previews, project_end, projects, projects_shown, zones};
use crate::{Controller, changed, events};

/// The longest name below which previews have theirs: a guest's name has 63 characters at most.
const MAX_DOMAIN: usize = 42;

/// Refuses what is not done in a preview, with what is so instead.
pub(super) async fn no_preview(conn: &mut PgConnection, project: ProjectId, instead: &str) -> Result<()> {
    match previews::of(conn, project).await? {
        None => Ok(()),
        Some(of) => Err(Error::Conflict(format!("This is a preview of {}: {instead}.", of.project))),
    }
}

impl Handle<GetPreviewRules> for Controller {
    async fn handle(&self, permit: Permit<GetPreviewRules>) -> Result<PreviewRules> {
        Ok(previews::rules(&mut *permit.connection().await?, permit.project()?).await?)
    }
}

impl Handle<SetPreviewRules> for Controller {
    async fn handle(&self, mut change: Change<SetPreviewRules>) -> Result<Committed<SetPreviewRules>> {
        let (id, asked) = (change.project()?, change.operation());
        if asked.most.get() > 0 {
            self.dns()?;
        }
        let tx = change.transaction().await?;
        no_preview(tx, id, "it has none itself").await?;
        let name = projects::hold(tx, id).await?.ok_or(Denied::NotFound)?;
        let was = previews::rules(tx, id).await?;
        if was.version != asked.version {
            return Err(changed::by_others(tx, "preview.rules", id.0, |_| None).await);
        }
        match &asked.domain {
            Some(domain) => can_be_below(tx, id, domain).await?,
            None if asked.most.get() > 0 => {
                return Err(Error::field("domain", "Previews need a name that theirs are below."));
            }
            None => {}
        }
        let now = PreviewRules::of(asked.most, asked.domain.clone(), asked.size, asked.days);
        if now.version == was.version {
            return change.unchanged(now).await;
        }
        previews::set_rules(tx, id, &now).await?;
        let entry = Entry::new("preview.rules", name.as_str()).id(id.0);
        change.commit(entry.detail(json!({ "from": told(&was), "to": told(&now) })), now).await
    }
}

/// What the audit tells of rules.
fn told(rules: &PreviewRules) -> Value {
    let PreviewRules { most, domain, size, days, .. } = rules;
    json!({ "most": most, "domain": domain, "size": size, "days": days })
}

/// Whether the project may have names below this one; each of them is judged again when it is asked for.
async fn can_be_below(conn: &mut PgConnection, project: ProjectId, domain: &DnsName) -> Result<()> {
    if domain.as_str().len() > MAX_DOMAIN {
        let message = format!("It has {MAX_DOMAIN} characters at most: names of guests are short.");
        return Err(Error::field("domain", message));
    }
    if let Some(zone) = zones::holding(conn, domain, project).await?.filter(|zone| zone.takes) {
        if zone.asks {
            let message = format!("Operators approve each name in {}, so no push can take one there.", zone.name);
            return Err(Error::field("domain", message));
        }
        return Ok(());
    }
    let message = format!(
        "No zone takes names below {domain} for this project. Ask an operator to make its zone under DNS, or to open it to the project."
    );
    Err(Error::field("domain", message))
}

impl Handle<ListPreviews> for Controller {
    async fn handle(&self, permit: Permit<ListPreviews>) -> Result<Previews> {
        let (who, project) = (permit.who(), permit.project()?);
        let mut conn = permit.connection().await?;
        let listed = previews::list(&mut conn, project).await?;
        let ids: Vec<Uuid> = listed.iter().map(|one| one.id).collect();
        let mut lines = projects_shown::lines(&mut conn, &ids, |id| who.roles.get(&id).copied()).await?;
        let leaving = project_end::leaving(&mut conn, project).await?;
        let items = listed.into_iter().filter_map(|one| {
            Some(PreviewLine {
                branch: one.preview.branch(),
                preview: one.preview,
                project: lines.remove(&one.id)?,
                name: one.name,
                by: one.by,
                expires_at: one.expires_at,
                leaving: one.leaving,
            })
        });
        let may_change = leaving.is_none() && who.can::<KeepPreview>(Some(project));
        Ok(Previews { items: items.collect(), may_change })
    }
}

impl Handle<KeepPreview> for Controller {
    async fn handle(&self, mut change: Change<KeepPreview>) -> Result<Committed<KeepPreview>> {
        let (asked, parent) = (change.operation(), change.project()?);
        let tx = change.transaction().await?;
        let preview = previews::get(tx, parent, &asked.preview).await?.ok_or(Denied::NotFound)?;
        stays(tx, preview.id).await?;
        let days = previews::rules(tx, parent).await?.days;
        let expires_at = previews::keep(tx, preview.id, days).await?;
        let entry = Entry::new("preview.keep", preview.name.as_str()).id(preview.id.0);
        let kept = PreviewKept { project: asked.project.clone(), expires_at };
        change.commit(entry.detail(json!({ "expires_at": expires_at })), kept).await
    }
}

impl Handle<RemovePreview> for Controller {
    async fn handle(&self, mut change: Change<RemovePreview>) -> Result<Committed<RemovePreview>> {
        let parent = change.project()?;
        let wanted = change.preview.clone();
        let tx = change.transaction().await?;
        let preview = previews::get(tx, parent, &wanted).await?.ok_or(Denied::NotFound)?;
        projects::hold_alone(tx, preview.id).await?.ok_or(Denied::NotFound)?;
        if let Some(leaving) = corpus_gate::leaving(tx, preview.id).await?.filter(|leaving| !leaving.is_left) {
            return Err(Error::Conflict(leaving.sentence()));
        }
        let nodes = project_end::nodes(tx, preview.id).await?;
        let job = self.queue(&mut change, project_destroy::job(preview.id, &preview.name, &nodes)).await?;
        project_end::leave(change.transaction().await?, preview.id, job).await?;
        let entry = Entry::new("preview.destroy", preview.name.as_str()).id(preview.id.0);
        change.commit(entry, JobAccepted { job }).await
    }
}

/// Refuses what would change a preview that is being destroyed.
async fn stays(conn: &mut PgConnection, preview: ProjectId) -> Result<()> {
    match corpus_gate::leaving(conn, preview).await? {
        None => Ok(()),
        Some(leaving) => Err(Error::Conflict(leaving.sentence())),
    }
}

/// What a preview is to be.
pub(crate) struct Plan {
    /// The project that it is of.
    of: ProjectName,
    /// Its name there.
    preview: PreviewName,
    /// Its name as a project.
    name: ProjectName,
    /// The name of its guest.
    guest: GuestName,
    /// The DNS name.
    dns: DnsName,
    rules: PreviewRules,
    /// What is there of it already.
    known: Option<Preview>,
}

impl Plan {
    /// One that is there has room; a new one only where there are fewer than may be.
    async fn has_room(&self, conn: &mut PgConnection, of: ProjectId) -> Result<()> {
        let (most, there) = (self.rules.most.get(), previews::count(conn, of).await?);
        if self.known.is_some() || there < most {
            return Ok(());
        }
        Err(Error::Conflict(format!(
            "project {} has {there} of {most} previews: delete the branch of one that is not needed any more, and push again.",
            self.of
        )))
    }
}

impl Controller {
    /// What the preview of that name is to be; refused where that can be known beforehand.
    pub(crate) async fn plan_preview(
        &self,
        conn: &mut PgConnection,
        (id, of): (ProjectId, &ProjectName),
        preview: &PreviewName,
    ) -> Result<Plan> {
        no_preview(conn, id, "it has none itself").await?;
        let rules = previews::rules(conn, id).await?;
        let Some(domain) = rules.domain.clone().filter(|_| rules.most.get() > 0) else {
            return Err(Error::Conflict(format!(
                "project {of} has no previews: a maintainer allows them on its page."
            )));
        };
        let dns = format!("{preview}.{domain}");
        let (Some(name), Ok(guest), Ok(dns)) = (preview.project(of), dns.parse::<GuestName>(), dns.parse::<DnsName>())
        else {
            let why = format!("{preview} is too long for a preview of {of}: choose a shorter name.");
            return Err(Error::Conflict(why));
        };
        let known = previews::get(conn, id, preview).await?;
        if let Some(known) = &known {
            stays(conn, known.id).await?;
        }
        let plan = Plan { of: of.clone(), preview: preview.clone(), name, guest, dns, rules, known };
        plan.has_room(conn, id).await?;
        Ok(plan)
    }
}

impl Handle<MakePreview> for Controller {
    async fn handle(&self, mut change: Change<MakePreview>) -> Result<Committed<MakePreview>> {
        let (asked, parent, who) = (change.operation(), change.project()?, change.who());
        self.dns()?;
        let mut conn = change.connection().await?;
        let plan = self.plan_preview(&mut conn, (parent, &asked.project), &asked.preview).await?;
        drop(conn);
        let there = plan.known.as_ref().and_then(|known| Some((known.id, known.guest?)));
        let (preview, on) = match there {
            Some((preview, guest)) => (preview, self.again(&mut change, preview, guest).await?),
            None => Box::pin(self.make(&mut change, &plan)).await?,
        };
        let tx = change.transaction().await?;
        let dev = environments::get(tx, parent, Environment::Dev).await?.ok_or_else(|| no_dev(&plan.of))?;
        let expires_at = previews::keep(tx, preview, plan.rules.days).await?;
        let pillar = dev.live.and_then(|live| live.pillar);
        let source = Source::Release { commit: Some(asked.commit.clone()), pillar };
        let id = DeploymentId(Uuid::now_v7());
        let new = NewDeployment {
            id,
            on: &on,
            trigger: Trigger::Push,
            ordered: Some(&Ordered::whole(source)),
            by_id: Some(who.id),
            by: who.login.as_str(),
            leader: None,
        };
        let number = deployments::insert(tx, &new).await?.unwrap_or_default();
        let name = names::of_guest(tx, on.guest).await?.into_iter().next().map_or(plan.dns, |row| row.name);
        let job = self.queue(&mut change, deploy::job(id, number, &on, &[], Vec::new())).await?;
        let tx = change.transaction().await?;
        deployments::set_job(tx, id, job).await?;
        events::deployment_began(tx, id).await?;
        let detail = json!({ "preview": plan.preview, "commit": asked.commit, "deployment": id, "number": number,
                             "guest": on.guest_name, "expires_at": expires_at });
        let entry = Entry::new("preview.make", plan.name.as_str()).id(preview.0).detail(detail);
        let accepted = PreviewAccepted { project: plan.name.clone(), name, deployment: id, job, expires_at };
        change.commit(entry, accepted).await
    }
}

fn no_dev(of: &ProjectName) -> Error {
    Error::Conflict(format!(
        "project {of} has no dev, which previews come from; a maintainer sets it up on the project's page."
    ))
}

impl Controller {
    /// The preview with its guest, its name and its environment, which jobs make. Of one whose guest is gone what is
    /// missing is made again.
    async fn make(&self, change: &mut Change<MakePreview>, plan: &Plan) -> Result<(ProjectId, Placement)> {
        let (parent, who) = (change.project()?, change.who());
        if plan.known.is_none() {
            self.is_of_no_groups(&plan.name).await?;
        }
        let size = plan.rules.size;
        let asked = RequestGuest::new(plan.name.clone(), Environment::Dev, plan.guest.clone(), size);
        let names = WantedNames::try_from(vec![plan.dns.clone()]).unwrap_or_default();
        // Whoever may push makes them, so its disk holds it, whatever comes to it.
        let wanted = RequestGuest { names, autostart: true, backing: Some(Backing::Loop), ..asked };
        self.is_nobody_elses(change, parent, (&plan.dns, false)).await?;
        let node = node_for(change, &wanted).await?;
        let tx = change.transaction().await?;
        projects::hold(tx, parent).await?.ok_or(Denied::NotFound)?;
        // Another push may have been faster.
        let known = previews::get(tx, parent, &plan.preview).await?;
        let what = |known: &Option<Preview>| known.as_ref().map(|known| (known.id, known.guest));
        if what(&known) != what(&plan.known) {
            let branch = plan.preview.branch();
            return Err(Error::Conflict(format!("{branch} was pushed at the same time; push it again.")));
        }
        plan.has_room(tx, parent).await?;
        self.can_be_called(tx, &who, parent, &plan.guest).await?;
        let preview = match known {
            Some(known) => known.id,
            None => insert(tx, parent, plan, who.id).await?,
        };
        let guest = self.make_guest(change, &wanted, (preview, node.id)).await?;
        let detail = json!({ "node": node.address, "preview": plan.preview });
        change.note(Entry::new("guest.request", guest.name.as_str()).id(guest.id.0).detail(detail)).await?;
        let (name, _) = self.want_name(change, (&guest, None), (&plan.dns, false)).await?;
        let entry = Entry::new("name.attach", plan.dns.as_str()).id(name.0);
        change.note(entry.detail(json!({ "guest": guest.name }))).await?;
        Ok((preview, self.set_up(change, preview, guest.id).await?))
    }

    /// The environment of a preview that is there, or is being made; set up again where it could not be.
    async fn again(&self, change: &mut Change<MakePreview>, preview: ProjectId, guest: GuestId) -> Result<Placement> {
        let tx = change.transaction().await?;
        stays(tx, preview).await?;
        guests::hold(tx, guest).await?;
        let row = guests::get(tx, guest).await?.ok_or(Denied::NotFound)?;
        if !matches!(row.state, GuestState::Creating | GuestState::Running) {
            return Err(Error::Conflict(format!(
                "{}, the guest of {}, is {}; start it, or destroy the preview and push again.",
                row.name, row.project, row.state
            )));
        }
        let Some(on) = environments::on_guest(tx, guest).await? else {
            return self.set_up(change, preview, guest).await;
        };
        if !matches!(on.state, EnvironmentState::SettingUp | EnvironmentState::Ready) {
            return Err(Error::Conflict(format!(
                "The environment of {} is {}; destroy the preview and push again.",
                on.name, on.state
            )));
        }
        Ok(on)
    }

    async fn set_up(&self, change: &mut Change<MakePreview>, preview: ProjectId, guest: GuestId) -> Result<Placement> {
        let by = change.who().id;
        let tx = change.transaction().await?;
        environments::insert(tx, preview, Environment::Dev, guest, by).await?;
        let on = environments::on_guest(tx, guest).await?.ok_or(Denied::NotFound)?;
        self.queue(change, environment_set_up::job(&on)).await?;
        let detail = json!({ "environment": on.environment, "guest": on.guest_name, "role": on.role });
        let entry = Entry::new("environment.set_up", on.name.as_str()).id(preview.0);
        change.note(entry.detail(detail)).await?;
        Ok(on)
    }

    /// A project that groups of the directory are for would get their members.
    async fn is_of_no_groups(&self, name: &ProjectName) -> Result<()> {
        let Some(groups) = &self.services.groups else { return Ok(()) };
        match groups.has_groups(name).await {
            Ok(false) => Ok(()),
            Ok(true) => Err(not_free(name)),
            Err(source) => {
                let message = format!(
                    "The directory does not answer, so it is not known whether its groups are for {name}. Try again in a moment."
                );
                Err(Error::Unavailable { message, source })
            }
        }
    }
}

async fn insert(conn: &mut PgConnection, parent: ProjectId, plan: &Plan, by: UserId) -> Result<ProjectId> {
    let id = ProjectId(Uuid::now_v7());
    let kept = previews::insert(conn, parent, (id, &plan.name), &plan.preview, (plan.rules.days, by)).await;
    match kept {
        Ok(_) => Ok(id),
        Err(sqlx::Error::Database(inner)) if inner.is_unique_violation() => Err(not_free(&plan.name)),
        Err(error) => Err(error.into()),
    }
}

/// The same whatever the reason, since a project that is there is nothing for strangers to know of.
fn not_free(name: &ProjectName) -> Error {
    Error::Conflict(format!("{name} is taken or reserved already: push a branch of another name."))
}
