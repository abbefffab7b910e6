//! Bringing a lane to where a cell begins, by jobs without faults, with as little rebuilt as can be.

use std::time::Duration;

use anyhow::{Context, Result};
use corpus_api::environments::{RemoveEnvironment, SetUpEnvironment};
use corpus_api::guests::{DestroyGuest, GetGuest, StartGuest, StopGuest};
use corpus_api::names::{AttachName, DetachName, ListNames};
use corpus_api::nodes::{GetNode, InitializeNode, ListNodes};
use corpus_api::projects::ListProjects;
use corpus_domain::{Backing, EnvironmentState, GuestId, GuestState, NameState, NodeState, ProjectName, SizeProfile};

use crate::lane::{ENVIRONMENT, Lane};

/// The storage of a guest that has no size.
pub const SIMPLE: (Backing, SizeProfile) = (Backing::Overlayfs, SizeProfile::Small);

/// Those of the guest's project that stand on nothing.
const FORGET_ENVIRONMENTS: &str = "delete from environments e
     where e.project_id = (select project_id from guests where id = $1)
       and not exists (select from environment_guests g
                       where g.project_id = e.project_id and g.environment = e.environment)";

/// What there is when a cell begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// A host that Corpus does not know.
    Bare,
    /// Linked.
    Linked,
    /// Takes guests, has none.
    Ready,
    /// With a guest that runs.
    Running,
    /// With a guest that does not.
    Stopped,
    /// With a guest that runs and whose storage has a size.
    Sized,
    /// With a guest that runs and a name that leads to it.
    Named,
    /// With a guest that runs, an environment on it, and a commit to deploy.
    Environment,
}

impl Level {
    /// The backing and the size of the guest.
    fn storage(self) -> (Backing, SizeProfile) {
        if self == Self::Sized { (Backing::Loop, SizeProfile::Xxxsmall) } else { SIMPLE }
    }
}

impl Lane {
    /// Brings the lane to where a cell begins.
    pub async fn bring_to(&self, level: Level) -> Result<()> {
        if level == Level::Bare {
            return if self.ask(ListNodes::default()).await?.items.is_empty() { Ok(()) } else { self.reset().await };
        }
        let nodes = self.ask(ListNodes::default()).await?.items;
        match nodes.first() {
            Some(node) if matches!(node.state, NodeState::Linked | NodeState::Ready) => {}
            Some(_) => {
                self.reset().await?;
                self.done(self.link().await?).await?;
            }
            None => self.done(self.link().await?).await?,
        }
        if level == Level::Linked {
            return self.back_to_linked().await;
        }
        self.bring_to_ready().await?;
        self.bring_guest_to(level).await
    }

    async fn back_to_linked(&self) -> Result<()> {
        let node = self.node_id().await?;
        if self.ask(GetNode { node }).await?.line.state == NodeState::Linked {
            return Ok(());
        }
        if let Some((guest, _)) = self.guest().await? {
            self.destroy(guest).await?;
        }
        self.scrub(false).await?;
        sqlx::query("update nodes set state = 'linked'").execute(&self.db).await?;
        Ok(())
    }

    async fn bring_to_ready(&self) -> Result<()> {
        let node = self.node_id().await?;
        if self.ask(GetNode { node }).await?.line.state != NodeState::Ready {
            self.unpack_image().await?;
            self.done(self.ask(InitializeNode { node }).await?.job).await?;
        }
        // A disk that is full has no room to promise; and what was read of one that was full says how small it was.
        let ready = "update nodes set slots = 16, storage_overcommit = 1000, reachability = 'reachable',
            facts = jsonb_set(facts, '{storage,total}', '8000000000')";
        sqlx::query(ready).execute(&self.db).await?;
        Ok(())
    }

    /// Saves seconds: the image is linked from a copy that an earlier initialization has left.
    async fn unpack_image(&self) -> Result<()> {
        let home = self.node.folder.join(&self.node.name);
        let (kept, place) = (home.join("kept-images"), home.join("corpus/images"));
        if kept.exists() && !place.exists() {
            let mut copy = crate::process::command("cp");
            copy.args(["-al", "--"]).arg(&kept).arg(&place);
            crate::process::run(copy, Duration::from_secs(30)).await?;
        }
        Ok(())
    }

    /// Keeps a copy of the image that an initialization has brought.
    pub async fn keep_image(&self) -> Result<()> {
        let home = self.node.folder.join(&self.node.name);
        let (kept, place) = (home.join("kept-images"), home.join("corpus/images"));
        if !kept.exists() && place.exists() {
            let mut copy = crate::process::command("cp");
            copy.args(["-al", "--"]).arg(&place).arg(&kept);
            crate::process::run(copy, Duration::from_secs(30)).await?;
        }
        Ok(())
    }

    async fn bring_guest_to(&self, level: Level) -> Result<()> {
        let mut guest = self.guest().await?;
        let broken = |state| !matches!(state, GuestState::Running | GuestState::Stopped);
        if let Some((id, state)) = guest
            && (level == Level::Ready || broken(state) || !self.fits(level, id).await?)
        {
            self.destroy(id).await?;
            guest = None;
        }
        if level == Level::Ready {
            return Ok(());
        }
        if guest.is_none() {
            self.done(self.request(level.storage()).await?).await?;
            guest = self.guest().await?;
        }
        let (id, state) = guest.context("no guest")?;
        match (level, state) {
            (Level::Stopped, GuestState::Running) => {
                self.done(self.controller.call(&self.member, StopGuest { guest: id }, None).await?.job).await?;
            }
            (Level::Running | Level::Sized | Level::Named | Level::Environment, GuestState::Stopped) => {
                self.done(self.controller.call(&self.member, StartGuest { guest: id }, None).await?.job).await?;
            }
            _ => {}
        }
        self.bring_name_to(level, id).await?;
        self.bring_environment_to(level, id).await
    }

    /// A guest on which an environment stands is not destroyed; an earlier cell may have left one.
    async fn destroy(&self, guest: GuestId) -> Result<()> {
        for statement in ["delete from environment_guests where guest_id = $1", FORGET_ENVIRONMENTS] {
            sqlx::query(statement).bind(guest.0).execute(&self.db).await?;
        }
        self.done(self.controller.call(&self.member, DestroyGuest { guest }, None).await?.job).await
    }

    /// Whether the guest is one that cells of this level can begin with.
    async fn fits(&self, level: Level, guest: GuestId) -> Result<bool> {
        let guest = self.controller.call(&self.member, GetGuest { guest }, None).await?;
        Ok((guest.backing, guest.line.size) == level.storage())
    }

    async fn bring_environment_to(&self, level: Level, guest: GuestId) -> Result<()> {
        let project = self.project().await?;
        let found = self.environment().await?;
        let wanted = level == Level::Environment;
        if found.is_some_and(|state| !wanted || state != EnvironmentState::Ready) {
            let gone = RemoveEnvironment { project: project.clone(), environment: ENVIRONMENT, with_data: true };
            self.done(self.controller.call(&self.member, gone, None).await?.job).await?;
        }
        if !wanted {
            return Ok(());
        }
        if self.environment().await?.is_none() {
            let made = SetUpEnvironment { project, environment: Some(ENVIRONMENT), guest };
            self.done(self.controller.call(&self.member, made, None).await?.job).await?;
        }
        let script = format!("guest={}; project=atlas\n{}", self.guest_name(), include_str!("commit.sh"));
        self.node.attach(&script).await.map(drop)
    }

    /// The state of the lane's environment; none when it is not there.
    pub async fn environment(&self) -> Result<Option<EnvironmentState>> {
        let projects = self.controller.call(&self.member, ListProjects::default(), None).await?.items;
        let environments = projects.first().context("no project")?.environments.first();
        Ok(environments.map(|environment| environment.state))
    }

    /// The lane's project.
    pub async fn project(&self) -> Result<ProjectName> {
        let projects = self.controller.call(&self.member, ListProjects::default(), None).await?.items;
        Ok(projects.into_iter().next().context("no project")?.name)
    }

    async fn bring_name_to(&self, level: Level, guest: GuestId) -> Result<()> {
        let names = self.controller.call(&self.member, ListNames::default(), None).await?.items;
        let attached = names.iter().any(|name| name.state == NameState::Attached);
        if level == Level::Named && attached {
            return Ok(());
        }
        for name in names {
            self.done(self.controller.call(&self.member, DetachName { name: name.id }, None).await?.job).await?;
        }
        if level == Level::Named {
            let attach = AttachName { guest, name: self.dns_name().parse()?, wildcard: false };
            self.done(self.controller.call(&self.member, attach, None).await?.job).await?;
        }
        Ok(())
    }
}
