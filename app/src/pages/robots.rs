//! The robots of a project, and how to make one.

use corpus_api::robots::{CreateRobot, ListRobots, RobotLine, RobotPage};
use corpus_domain::{Environment, ProjectName, ProjectRole};
use leptos::prelude::*;

use super::Asked;
use super::projects::project_path;
use crate::caller::Caller;
use crate::components::{
    Field, Tone, age, at, card, checks, count, empty, environments, error_summary, head, next_page, picks, shown_at,
    status,
};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// The page of a project's robots.
pub fn robots_path(project: &ProjectName) -> String {
    format!("{}/robots", project_path(project))
}

/// Reads and shows them.
pub async fn load(caller: &Caller, project: &ProjectName, asked: &Asked) -> Result<Page> {
    let page = caller.ask(ListRobots { project: project.clone(), cursor: asked.cursor(), limit: None }).await?;
    let view = robots_view(project, &page, &asked.form);
    Ok(Page::new("robots", format!("Robots of {project}"), view).under(project.as_str(), project_path(project)))
}

/// The view of plain values.
pub fn robots_view(project: &ProjectName, page: &RobotPage, form: &FormState) -> AnyView {
    let path = robots_path(project);
    let below = view! { <span class="quiet">"Programs push and ask the API as one: Jenkins, GitLab, a script. They sign in nowhere and enter no guest."</span> };
    view! {
        {head(format!("Robots of {project}").into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        <div class="cols">
            <div class="stack">
                {card("robots", "Robots", ().into_any(), table(project, &page.items))}
                {next_page(&path, page.next.as_ref())}
            </div>
            <div class="stack">{card("add", "Make a robot", ().into_any(), add(project, form))}</div>
        </div>
    }
    .into_any()
}

fn table(project: &ProjectName, robots: &[RobotLine]) -> AnyView {
    if robots.is_empty() {
        return empty("No robot", "Make one for each program, so that one can be ended alone.".into_any());
    }
    let rows = robots.iter().map(|robot| row(project, robot)).collect_view();
    view! {
        <table class="rows" aria-label="Robots">
            <thead><tr><th>"Name"</th><th>"May"</th><th>"In"</th><th>"Holds"</th><th>"Last used"</th><th>"Until"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row(project: &ProjectName, robot: &RobotLine) -> AnyView {
    let path = format!("{}/{}", robots_path(project), robot.robot);
    let of = |number: i64, what| count(usize::try_from(number).unwrap_or_default(), what);
    let holds = format!("{}, {}", of(robot.tokens, "token"), of(robot.keys, "key"));
    let used = robot.last_used_at.map_or_else(|| "never".into_any(), age);
    view! {
        <tr>
            <td data-label="Name"><a class="link" href=path>{robot.robot.to_string()}</a></td>
            <td data-label="May">{robot.role.as_str()}</td>
            <td data-label="In">{environments(&robot.environments)}</td>
            <td data-label="Holds">{holds}</td>
            <td data-label="Last used" class="quiet">{used}</td>
            <td data-label="Until" class="quiet">{until(robot.expires_at)}</td>
        </tr>
    }
    .into_any()
}

/// Until when something may, as far as it has an end.
pub(super) fn until(end: Option<chrono::DateTime<chrono::Utc>>) -> AnyView {
    match end {
        Some(end) if end <= chrono::Utc::now() => status(Tone::Off, "Expired"),
        Some(end) => at(end),
        None => "no end".into_any(),
    }
}

/// The fields of what a robot is bounded to, with what is so now.
pub(super) fn bounds(form: &FormState, now: Option<&RobotLine>) -> AnyView {
    let role = now.map_or(ProjectRole::Developer, |robot| robot.role);
    let is_in = |one: &Environment| now.is_some_and(|robot| robot.environments.contains(one));
    let options: Vec<(&'static str, bool)> = Environment::ALL.iter().map(|one| (one.as_str(), is_in(one))).collect();
    let last_day = now.and_then(|robot| robot.expires_at).map(|end| (end - chrono::TimeDelta::seconds(1)).date_naive());
    view! {
        {Field::new(form, "role", "Role").required().suggest(role.as_str())
            .hint("As of a member: developers deploy to dev and staging, maintainers to prod too.")
            .select(picks(ProjectRole::ALL.iter().map(|role| role.as_str())))}
        {checks(form, "environments", "Environments", "Where its role counts; it sees nothing of others", &options)}
        {Field::new(form, "until", "Last day").mono().placeholder("no end").suggest(last_day.map(|day| day.to_string()).unwrap_or_default())
            .hint("Such as 2027-12-31, by UTC.").input()}
    }
    .into_any()
}

fn add(project: &ProjectName, form: &FormState) -> AnyView {
    view! {
        <form method="post" action={to::<CreateRobot>(&[project])} class="body form">
            {shown_at(&robots_path(project), "")}
            {Field::new(form, "robot", "Name").required().mono().hint("Such as ci: it is called by it wherever it did something.").input()}
            {bounds(form, None)}
            <div><button class="btn primary">"Make the robot"</button></div>
        </form>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_robot_may_stands_on_its_line() {
        let robot = RobotLine {
            robot: "ci".parse().unwrap(),
            role: ProjectRole::Developer,
            environments: vec![Environment::Staging],
            expires_at: Some(chrono::Utc::now() - chrono::TimeDelta::days(1)),
            created_by: None,
            created_at: chrono::Utc::now(),
            tokens: 1,
            keys: 0,
            last_used_at: None,
        };
        let page = RobotPage { items: vec![robot], next: None };
        let project = "atlas".parse().unwrap();
        let html = Owner::new().with(|| robots_view(&project, &page, &FormState::default()).to_html());
        for said in ["/projects/atlas/robots/ci", "1 token, 0 keys", "never", "Expired"] {
            assert!(html.contains(said), "{said}: {html}");
        }
    }
}
