//! The operator's hooks: what is in their folder, what is wrong there, and what each did last.

use corpus_api::hooks::{GetHook, Hook, HookHow, HookLine, HookProblem, HookRun, Hooks, ListHooks};
use corpus_domain::{HookFailure, HookHost, HookName, HookStage, HookState, HookUndo};
use leptos::prelude::*;

use crate::caller::Caller;
use crate::components::{Tone, age, card, code, count, empty, head, status};
use crate::form::Result;
use crate::layout::Page;

/// Reads and shows them.
pub async fn load(caller: &Caller) -> Result<Page> {
    Ok(Page::new("hooks", "Hooks", hooks_view(&caller.ask(ListHooks {}).await?)))
}

/// Reads and shows one.
pub async fn load_one(caller: &Caller, (host, stage, name): (HookHost, HookStage, HookName)) -> Result<Page> {
    let hook = caller.ask(GetHook { host, stage, name }).await?;
    Ok(Page::new("hook", hook.hook.path(), hook_view(&hook)).under("Hooks", "/hooks"))
}

/// The view of plain values.
pub fn hooks_view(hooks: &Hooks) -> AnyView {
    let below =
        view! { <span class="quiet">{count(hooks.hooks.len(), "hook")}" in "{code("folder", &hooks.folder)}</span> };
    let body = if hooks.hooks.is_empty() {
        let how = view! {
            "Put an executable below "{code("folder", &hooks.folder)}" on the controller, such as "
            <code>"guest/guest.ping.after/10-monitoring"</code>". It counts at once: "
            <a class="link" href="/docs/hooks">"how hooks are named and run"</a>"."
        };
        empty("There are no hooks", how.into_any())
    } else {
        table(&hooks.hooks)
    };
    view! {
        {head("Hooks".into_any(), below.into_any(), ().into_any())}
        {(!hooks.problems.is_empty()).then(|| card("problems", "Not run", ().into_any(), problems(&hooks.problems)))}
        <section class="card">{body}</section>
    }
    .into_any()
}

fn table(hooks: &[HookLine]) -> AnyView {
    let rows = hooks
        .iter()
        .map(|hook| {
            let last = hook.last.as_ref().map_or_else(
                || view! { <span class="quiet">"never ran"</span> }.into_any(),
                |run| view! { {state(run.state)}" "<span class="quiet">{age(run.began_at)}</span> }.into_any(),
            );
            let path = hook.path();
            view! {
                <tr>
                    <td data-label="Hook" class="wrap"><a href=format!("/hooks/{path}")>{hook.name.to_string()}</a></td>
                    <td data-label="Stage"><code>{hook.stage.to_string()}</code></td>
                    <td data-label="Runs on">{place(hook.host)}</td>
                    <td data-label="How" class="wrap quiet">{hook.how.as_ref().map(how)}</td>
                    <td data-label="Last run">{last}</td>
                </tr>
            }
        })
        .collect_view();
    view! {
        <table class="rows" aria-label="Hooks">
            <thead><tr><th>"Hook"</th><th>"Stage"</th><th>"Runs on"</th><th>"How"</th><th>"Last run"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn problems(problems: &[HookProblem]) -> AnyView {
    let rows = problems
        .iter()
        .map(|one| {
            view! {
                <tr>
                    <td data-label="File" class="wrap"><code>{one.path.clone()}</code></td>
                    <td data-label="Why" class="wrap">{one.reason.clone()}</td>
                </tr>
            }
        })
        .collect_view();
    view! {
        <table class="rows" aria-label="Not run">
            <thead><tr><th>"File"</th><th>"Why"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

/// The view of plain values.
pub fn hook_view(hook: &Hook) -> AnyView {
    let line = &hook.hook;
    let what = match &line.how {
        Some(how) => format!("{} on {}, {}", line.stage, place(line.host), self::how(how)),
        None => "Not in the folder any more, or not run".to_owned(),
    };
    let below = view! { <span class="quiet">{what}</span> };
    let body = if hook.runs.is_empty() {
        empty("It never ran", "The next job that comes to its stage runs it.".into_any())
    } else {
        runs(&hook.runs)
    };
    view! {
        {head(line.path().into_any(), below.into_any(), ().into_any())}
        {card("runs", "Last runs", ().into_any(), body)}
    }
    .into_any()
}

fn runs(runs: &[HookRun]) -> AnyView {
    let rows = runs
        .iter()
        .map(|run| {
            let attempt = (run.attempt > 1).then(|| format!(", attempt {}", run.attempt));
            let reason = run.reason.clone().map(|text| view! { <div>{text}</div> });
            let lines = (!run.lines.is_empty()).then(|| {
                let label = format!("Last lines of output, {}", run.title);
                view! { <pre class="small" tabindex="0" role="region" aria-label=label>{run.lines.join("\n")}</pre> }
            });
            view! {
                <tr>
                    <td data-label="Job" class="wrap"><a href=format!("/jobs/{}", run.job)>{run.title.clone()}</a></td>
                    <td data-label="Ran on">{run.machine.clone()}{attempt}</td>
                    <td data-label="State">{state(run.state)}{run.undo.and_then(undo)}</td>
                    <td data-label="Began" class="quiet">{age(run.began_at)}</td>
                    <td data-label="Said" class="wrap">{reason}{lines}</td>
                </tr>
            }
        })
        .collect_view();
    view! {
        <table class="rows" aria-label="Last runs">
            <thead><tr><th>"Job"</th><th>"Ran on"</th><th>"State"</th><th>"Began"</th><th>"Said"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

const fn place(host: HookHost) -> &'static str {
    match host {
        HookHost::Controller => "the controller",
        HookHost::Node => "the node",
        HookHost::Guest => "the guest",
    }
}

/// `60 s at most, its failure only warns, undone by its own undo, only for shop, only in prod`.
fn how(how: &HookHow) -> String {
    let mut words = vec![format!("{} s at most", how.timeout)];
    words.push(match how.on_failure {
        HookFailure::Fail => "its failure fails the step".to_owned(),
        HookFailure::Warn => "its failure only warns".to_owned(),
    });
    if how.has_undo {
        words.push("undone by its own undo".to_owned());
    }
    let joined = |names: Vec<String>| names.join(" and ");
    if !how.projects.is_empty() {
        words.push(format!("only for {}", joined(how.projects.iter().map(ToString::to_string).collect())));
    }
    if !how.environments.is_empty() {
        words.push(format!("only in {}", joined(how.environments.iter().map(ToString::to_string).collect())));
    }
    words.join(", ")
}

fn state(state: HookState) -> AnyView {
    let (tone, word) = match state {
        HookState::Running => (Tone::Busy, "Running"),
        HookState::Done => (Tone::Ok, "Done"),
        HookState::Failed => (Tone::Fail, "Failed"),
        HookState::Warned => (Tone::Warn, "Failed, went on"),
        HookState::Cancelled => (Tone::Off, "Cancelled"),
        HookState::Lost => (Tone::Warn, "Not known"),
    };
    status(tone, word)
}

/// What became of the undo; one that is wanted is nothing to tell.
fn undo(undo: HookUndo) -> Option<AnyView> {
    let word = match undo {
        HookUndo::Wanted => return None,
        HookUndo::Undone => "undone",
        HookUndo::Failed => "its undo failed",
    };
    Some(view! { " "<span class="tag">{word}</span> }.into_any())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(how: Option<HookHow>, runs: Vec<HookRun>) -> Hook {
        let (stage, name) = ("guest.ping.after".parse().unwrap(), "10-monitoring".parse().unwrap());
        let hook = HookLine { host: HookHost::Guest, stage, name, how, last: runs.first().cloned() };
        Hook { hook, runs }
    }

    fn run(state: HookState, lines: &[&str]) -> HookRun {
        HookRun {
            job: corpus_domain::JobId(uuid::Uuid::from_u128(7)),
            title: "Create guest <www>".into(),
            machine: "www.example.org".into(),
            attempt: 2,
            state,
            undo: Some(HookUndo::Undone),
            reason: Some("exit status 3".into()),
            lines: lines.iter().map(ToString::to_string).collect(),
            began_at: chrono::Utc::now(),
            ended_at: Some(chrono::Utc::now()),
        }
    }

    #[test]
    fn what_a_guest_says_is_text() {
        let hook = hook(None, vec![run(HookState::Failed, &["<script>alert(1)</script>"])]);
        let page = Owner::new().with(|| hook_view(&hook).to_html());
        assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;"), "{page}");
        for word in ["exit status 3", "attempt 2", "undone", "Not in the folder any more"] {
            assert!(page.contains(word), "{word}: {page}");
        }
    }

    #[test]
    fn what_is_wrong_is_shown_and_the_empty_folder_says_how() {
        let problem = HookProblem { path: "/etc/corpus/hooks/x".into(), reason: "can be written by others".into() };
        let mut hooks = Hooks { folder: "/etc/corpus/hooks".into(), hooks: Vec::new(), problems: vec![problem] };
        let page = Owner::new().with(|| hooks_view(&hooks).to_html());
        assert!(page.contains("can be written by others") && page.contains("There are no hooks"), "{page}");
        let how = HookHow {
            timeout: 60,
            on_failure: HookFailure::Warn,
            has_undo: true,
            projects: vec!["shop".parse().unwrap()],
            environments: Vec::new(),
        };
        hooks.hooks.push(hook(Some(how), Vec::new()).hook);
        let page = Owner::new().with(|| hooks_view(&hooks).to_html());
        for word in
            ["60 s at most", "only warns", "only for shop", "never ran", "/hooks/guest/guest.ping.after/10-monitoring"]
        {
            assert!(page.contains(word), "{word}: {page}");
        }
    }
}
