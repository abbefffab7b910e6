//! What is destroyed with a project is said before it goes, and its name is to be typed: at the terminal, or where there
//! is none, in a script, as `--confirm NAME`.

use std::fmt::Write as _;
use std::io::{BufRead as _, IsTerminal as _, Write as _};

use clap::{Arg, ArgMatches, Command};
use corpus_api::projects::ending::{PreviewProjectDestroy, ProjectRemains};
use corpus_domain::ProjectName;

use crate::client::Client;
use crate::exit::{Exit, Failure};

/// The operation that is confirmed.
const DESTROY_PROJECT: &str = "destroy_project";
const CONFIRM: &str = "confirm";

/// A command with the option by which it is confirmed, if it is one of those.
pub fn confirmed(command: Command, operation: &str) -> Command {
    if operation != DESTROY_PROJECT {
        return command;
    }
    let help = "The project's name once more, to mean it; asked for at a terminal";
    command.arg(Arg::new(CONFIRM).long(CONFIRM).value_name("NAME").help(help))
}

/// Goes on when the operation is meant, or is none that is to be confirmed.
pub async fn confirm(client: &Client, operation: &str, matches: &ArgMatches) -> Result<(), Failure> {
    if operation != DESTROY_PROJECT {
        return Ok(());
    }
    let project = matches.get_one::<String>("project").map_or("", String::as_str);
    if let Some(typed) = matches.get_one::<String>(CONFIRM) {
        return is_meant(project, typed);
    }
    if !std::io::stdin().is_terminal() {
        let text =
            format!("everything of {project} is destroyed with it, its guests too: say --confirm {project} to mean it");
        return Err(Failure::usage(text));
    }
    let name: ProjectName =
        project.parse().map_err(|_| Failure::usage(format!("{project} is no name of a project")))?;
    let goes = client.call(&PreviewProjectDestroy { project: name }).await?;
    eprint!("{}Type {project} to destroy all of this: ", said(project, &goes));
    std::io::stderr().flush()?;
    let mut typed = String::new();
    std::io::stdin().lock().read_line(&mut typed)?;
    is_meant(project, typed.trim())
}

fn is_meant(project: &str, typed: &str) -> Result<(), Failure> {
    if typed.eq_ignore_ascii_case(project) {
        return Ok(());
    }
    Err(Failure::new(Exit::Refused, format!("that is not {project}: nothing was destroyed")))
}

/// What goes, a line each.
fn said(project: &str, goes: &ProjectRemains) -> String {
    let mut text = format!("With {project} go\n");
    let mut line = |number: u32, things: &str, named: Vec<String>| {
        let others = usize::try_from(number).unwrap_or(usize::MAX).saturating_sub(named.len());
        let more = if others > 0 && !named.is_empty() { format!(" and {others} more") } else { String::new() };
        let named = if named.is_empty() { String::new() } else { format!(", {}{more}", named.join(", ")) };
        let _ = writeln!(text, "  {things}: {number}{named}");
    };
    line(goes.guest_count, "guests", goes.guests.iter().map(|one| one.name.to_string()).collect());
    line(goes.name_count, "DNS names", goes.names.iter().map(ToString::to_string).collect());
    let environments = goes.environments.iter().map(|one| one.environment.to_string());
    line(u32::try_from(goes.environments.len()).unwrap_or(u32::MAX), "environments", environments.collect());
    line(goes.archive_count, "archives", Vec::new());
    line(goes.deployment_count, "deployments", Vec::new());
    line(goes.robot_count, "robots", Vec::new());
    line(goes.preview_count, "previews", Vec::new());
    line(goes.member_count, "members' roles", goes.members.iter().map(ToString::to_string).collect());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_typed_to_mean_it() {
        assert!(is_meant("shop", "shop").is_ok());
        for wrong in ["", "sho", "y", "yes"] {
            assert!(is_meant("shop", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_the_first_are_named() {
        let names = ["a.test", "b.test"].map(|name| name.parse().unwrap()).to_vec();
        let goes = ProjectRemains { name_count: 7, names, deployment_count: 3, ..ProjectRemains::default() };
        let text = said("shop", &goes);
        assert!(text.contains("  DNS names: 7, a.test, b.test and 5 more\n"), "{text}");
        assert!(text.contains("  deployments: 3\n") && text.contains("  guests: 0\n"), "{text}");
    }

    #[test]
    fn it_is_an_option_of_the_command() {
        let command = crate::tree::command();
        let parsed =
            command.try_get_matches_from(["corpus", "project", "destroy", "shop", "--confirm", "shop"]).unwrap();
        let (_, inner) = crate::tree::chosen(&parsed);
        assert_eq!(inner.get_one::<String>(CONFIRM).map(String::as_str), Some("shop"));
    }
}
