//! The operator's hooks: what is in the folder of this server now, and what they did last.

use corpus_api::Denied;
use corpus_api::hooks::{GetHook, Hook, HookHow, HookLine, HookProblem, HookRun, Hooks, ListHooks};
use corpus_domain::Invalid;
use corpus_gate::{Error, Handle, Permit, Result};

use crate::Controller;
use crate::hooks::folder::{self, Found};
use crate::services::internal;
use crate::store::hook_runs::{self, RunRow};

impl Handle<ListHooks> for Controller {
    async fn handle(&self, permit: Permit<ListHooks>) -> Result<Hooks> {
        let found = self.hooks_now().await?;
        let ids: Vec<String> = found.hooks.iter().map(folder::Hook::id).collect();
        let last = hook_runs::last(&mut *permit.connection().await?, &ids).await?;
        let mut hooks =
            found.hooks.iter().map(line).collect::<std::result::Result<Vec<_>, Invalid>>().map_err(unnamed)?;
        for row in last {
            if let Some(hook) = hooks.iter_mut().find(|hook| hook.path() == row.hook) {
                hook.last = Some(run(row));
            }
        }
        let problem = |one: folder::Problem| HookProblem { path: one.path.display().to_string(), reason: one.reason };
        let problems = found.problems.into_iter().map(problem).collect();
        Ok(Hooks { folder: self.services.settings.hooks_folder.display().to_string(), hooks, problems })
    }
}

impl Handle<GetHook> for Controller {
    async fn handle(&self, permit: Permit<GetHook>) -> Result<Hook> {
        let (host, stage, name) = (permit.host, permit.stage.clone(), permit.name.clone());
        let asked = HookLine { host, stage, name, how: None, last: None };
        let found = self.hooks_now().await?;
        let found = found.hooks.iter().find(|hook| hook.id() == asked.path()).map(line).transpose().map_err(unnamed)?;
        let mut conn = permit.connection().await?;
        let rows = hook_runs::of_hook(&mut conn, &asked.path(), hook_runs::KEPT).await?;
        let runs: Vec<HookRun> = rows.into_iter().map(run).collect();
        if found.is_none() && runs.is_empty() {
            return Err(Error::Denied(Denied::NotFound));
        }
        let hook = HookLine { last: runs.first().cloned(), ..found.unwrap_or(asked) };
        Ok(Hook { hook, runs })
    }
}

impl Controller {
    async fn hooks_now(&self) -> Result<Found> {
        let folder = self.services.settings.hooks_folder.clone();
        let read = tokio::task::spawn_blocking(move || folder::read(&folder)).await;
        read.map_err(|error| internal("the folder of hooks could not be read", error))
    }
}

fn unnamed(error: Invalid) -> Error {
    internal("a hook is called as none can be", error)
}

fn line(hook: &folder::Hook) -> std::result::Result<HookLine, Invalid> {
    let how = HookHow {
        timeout: u32::try_from(hook.limit.as_secs()).unwrap_or(u32::MAX),
        on_failure: hook.on_failure,
        has_undo: hook.undo.is_some(),
        projects: hook.projects.clone(),
        environments: hook.environments.clone(),
    };
    let stage = format!("{}.{}", hook.stage.name, hook.side).parse()?;
    Ok(HookLine { host: hook.host, stage, name: hook.name.clone(), how: Some(how), last: None })
}

fn run(row: RunRow) -> HookRun {
    HookRun {
        job: row.job,
        title: row.title,
        machine: row.host,
        attempt: u32::try_from(row.attempt).unwrap_or_default(),
        state: row.state,
        undo: row.undo,
        reason: row.reason,
        lines: row.tail,
        began_at: row.began_at,
        ended_at: row.ended_at,
    }
}
