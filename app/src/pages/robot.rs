//! A robot: what it is bounded to, its tokens and its deploy keys; the text of a new token is shown once.

use chrono::Utc;
use corpus_api::robots::keys::{AddRobotKey, CreateRobotToken, DeployKey, RemoveRobotKey, RevokeRobotToken};
use corpus_api::robots::{ChangeRobot, EndRobot, GetRobot, Robot};
use corpus_api::tokens::{NewToken, Token};
use corpus_domain::{Grant, ProjectName, RobotName};
use leptos::prelude::*;

use super::Asked;
use super::robots::{bounds, robots_path, until};
use super::tokens::{scope, shown_once};
use crate::caller::Caller;
use crate::components::{
    Field, Tone, age, at, card, code, confirm_as, confirm_at, empty, error_summary, head, shown_at, status, stays_at,
};
use crate::form::{Answered, FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// The forms that stand beside each other, by name.
const TOKEN: &str = "robot-token";
const KEY: &str = "robot-key";

/// Reads and shows it.
pub async fn load(caller: &Caller, (project, name): (&ProjectName, &RobotName), asked: &Asked) -> Result<Page> {
    let robot = caller.ask(GetRobot { project: project.clone(), robot: name.clone() }).await?;
    let new = asked.answered.as_ref().and_then(|Answered(answer)| serde_json::from_value(answer.clone()).ok());
    let view = robot_view(project, &robot, new.as_ref(), &asked.form);
    Ok(Page::new("robot", name.to_string(), view).under("Robots", robots_path(project)))
}

/// The view of plain values.
pub fn robot_view(project: &ProjectName, robot: &Robot, new: Option<&NewToken>, form: &FormState) -> AnyView {
    let of = Of { project, robot };
    let made = robot.line.created_by.as_ref().map(|by| format!("Made by {} ", by.shown()));
    let below = view! {
        <span class="quiet">"Called "<code>{robot.login.to_string()}</code>" wherever it did something. "{made}{age(robot.line.created_at)}</span>
    };
    view! {
        {head(robot.line.robot.to_string().into_any(), below.into_any(), of.end())}
        {error_summary(form)}
        {new.map(shown_once)}
        <div class="cols">
            <div class="stack">
                {card("tokens", "Tokens", ().into_any(), of.tokens())}
                {card("keys", "Deploy keys", ().into_any(), of.keys())}
            </div>
            <div class="stack">
                {card("bounds", "What it may", ().into_any(), of.change(&form.of("")))}
                {card("add-token", "Make a token", ().into_any(), of.add_token(&form.of(TOKEN)))}
                {card("add-key", "Add a deploy key", ().into_any(), of.add_key(&form.of(KEY)))}
            </div>
        </div>
    }
    .into_any()
}

/// A robot of a project.
#[derive(Clone, Copy)]
struct Of<'a> {
    project: &'a ProjectName,
    robot: &'a Robot,
}

impl Of<'_> {
    fn path(self) -> String {
        format!("{}/{}", robots_path(self.project), self.robot.line.robot)
    }

    fn end(self) -> AnyView {
        let name = &self.robot.line.robot;
        let question = "Its tokens and keys are gone at once. What it did stays on record.";
        confirm_as(
            "btn danger",
            "End robot",
            name.as_str(),
            question,
            to::<EndRobot>(&[self.project, name]),
            ().into_any(),
        )
    }

    fn change(self, form: &FormState) -> AnyView {
        let line = &self.robot.line;
        view! {
            <form method="post" action={to::<ChangeRobot>(&[self.project, &line.robot])} class="body form">
                {stays_at(&self.path(), "")}
                <input type="hidden" name="version" value=form.version(&self.robot.version)/>
                {bounds(&form.unless_too_late(), Some(line))}
                <div><button class="btn">"Set what it may"</button></div>
            </form>
        }
        .into_any()
    }

    fn tokens(self) -> AnyView {
        if self.robot.tokens.is_empty() {
            return empty("No token", "With one a program asks the API.".into_any());
        }
        let rows = self.robot.tokens.iter().map(|token| self.token(token)).collect_view();
        view! {
            <table class="rows" aria-label="Tokens">
                <thead><tr><th>"Name"</th><th>"Good for"</th><th>"Last used"</th><th>"Expires"</th><th><span class="unseen">"Actions"</span></th></tr></thead>
                <tbody>{rows}</tbody>
            </table>
        }
        .into_any()
    }

    fn token(self, token: &Token) -> AnyView {
        let post = to::<RevokeRobotToken>(&[self.project, &self.robot.line.robot, &token.id]);
        let expires = if token.expires_at <= Utc::now() { status(Tone::Off, "Expired") } else { at(token.expires_at) };
        let question = "What uses it is refused from then on.";
        view! {
            <tr>
                <td data-label="Name" class="wrap">{token.name.clone()}</td>
                <td data-label="Good for">{scope(token.scope)}</td>
                <td data-label="Last used" class="quiet">{used(token.last_used_at)}</td>
                <td data-label="Expires" class="quiet">{expires}</td>
                <td class="right">{confirm_at("Revoke", &token.name, question, post, shown_at(&self.path(), ""))}</td>
            </tr>
        }
        .into_any()
    }

    fn keys(self) -> AnyView {
        if self.robot.keys.is_empty() {
            return empty("No deploy key", "With one a program pushes by git.".into_any());
        }
        let rows = self.robot.keys.iter().map(|key| self.key(key)).collect_view();
        view! {
            <table class="rows" aria-label="Deploy keys">
                <thead><tr><th>"Comment"</th><th>"Fingerprint"</th><th>"Good for"</th><th>"Last used"</th><th>"Until"</th><th><span class="unseen">"Actions"</span></th></tr></thead>
                <tbody>{rows}</tbody>
            </table>
        }
        .into_any()
    }

    fn key(self, key: &DeployKey) -> AnyView {
        let name = if key.comment.is_empty() { "without comment".to_owned() } else { key.comment.clone() };
        let post = to::<RemoveRobotKey>(&[self.project, &self.robot.line.robot, &key.id]);
        let question = "What pushes with it is refused from then on.";
        view! {
            <tr>
                <td data-label="Comment" class="wrap">{name.clone()}</td>
                <td data-label="Fingerprint" class="wrap">{code("key-fingerprint", key.fingerprint.clone())}</td>
                <td data-label="Good for">{fetches(key.scope)}</td>
                <td data-label="Last used" class="quiet">{used(key.last_used_at)}</td>
                <td data-label="Until" class="quiet">{until(key.expires_at)}</td>
                <td class="right">{confirm_at("Remove", &name, question, post, shown_at(&self.path(), ""))}</td>
            </tr>
        }
        .into_any()
    }

    fn add_token(self, form: &FormState) -> AnyView {
        let scopes = Grant::ALL.iter().filter(|grant| **grant < Grant::All);
        let scopes = scopes.map(|grant| (grant.as_str().to_owned(), scope(*grant).to_owned())).collect();
        view! {
            <form method="post" action={to::<CreateRobotToken>(&[self.project, &self.robot.line.robot])} class="body form">
                {shown_at(&self.path(), TOKEN)}
                {Field::new(form, "name", "Name").required().beside(TOKEN).hint("What it is for, such as Jenkins.").input()}
                {Field::new(form, "scope", "Good for").beside(TOKEN).suggest(Grant::Deploy.as_str()).select(scopes)}
                {Field::new(form, "days", "Days").required().number().beside(TOKEN).suggest("90")
                    .hint("For how many days it is good, 1 to 365.").input()}
                <div><button class="btn">"Make the token"</button></div>
            </form>
        }
        .into_any()
    }

    fn add_key(self, form: &FormState) -> AnyView {
        let scopes = [Grant::Deploy, Grant::Read].map(|grant| (grant.as_str().to_owned(), fetches(grant).to_owned()));
        view! {
            <form method="post" action={to::<AddRobotKey>(&[self.project, &self.robot.line.robot])} class="body form">
                {shown_at(&self.path(), KEY)}
                {Field::new(form, "line", "Public key").required().mono().beside(KEY)
                    .hint("The line of a .pub file that was made for this robot alone. Never the private key.").lines(4)}
                {Field::new(form, "scope", "Good for").beside(KEY).suggest(Grant::Deploy.as_str()).select(scopes.to_vec())}
                {Field::new(form, "until", "Last day").mono().beside(KEY).placeholder("no end").hint("Such as 2027-12-31, by UTC.").input()}
                <div><button class="btn">"Add the key"</button></div>
            </form>
        }
        .into_any()
    }
}

const fn fetches(grant: Grant) -> &'static str {
    if matches!(grant, Grant::Read) { "Fetching" } else { "Fetching and pushing" }
}

fn used(at: Option<chrono::DateTime<Utc>>) -> AnyView {
    at.map_or_else(|| "never".into_any(), age)
}
