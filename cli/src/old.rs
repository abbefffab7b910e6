//! The commands as the first document of Corpus spelled them, so that what was written for it works.
//!
//! Each is another spelling of a command that is there, with its arguments in the order of old. The
//! first, an endpoint, is the name of a place, or `-` for the current one.

use clap::{Arg, ArgMatches, Command};

use crate::exit::{Exit, Failure};
use crate::{ask, tree};

/// What a command of old is now.
struct Old {
    word: &'static str,
    about: &'static str,
    /// Its arguments, the ones that may be left out with a `?`.
    arguments: &'static [&'static str],
    /// The words of the command it is now.
    now: &'static [&'static str],
    /// Which option or place each argument has there; an empty one is left out.
    as_now: &'static [&'static str],
}

const OLD: &[Old] = &[
    Old {
        word: "computenode_list",
        about: "Lists the hosts",
        arguments: &["endpoint?"],
        now: &["node", "list"],
        as_now: &[""],
    },
    Old {
        word: "computenode_infos",
        about: "Shows a host: its free slots, and what is on it",
        arguments: &["endpoint", "node"],
        now: &["node", "get"],
        as_now: &["", "node"],
    },
    Old {
        word: "computenode_init",
        about: "Sets a linked host up for guests",
        arguments: &["endpoint", "platform_type", "node"],
        now: &["node", "initialize"],
        as_now: &["", "", "node"],
    },
    Old {
        word: "computenode_switchmode",
        about: "Switches how a guest is operated",
        arguments: &["endpoint", "env_uuid", "operation_mode"],
        now: &["guest", "switch-mode"],
        as_now: &["", "guest", "--mode"],
    },
    Old {
        word: "project_create",
        about: "Creates a project",
        arguments: &["endpoint", "name"],
        now: &["project", "create"],
        as_now: &["", "--name"],
    },
    Old {
        word: "project_destroy",
        about: "Destroys a project",
        arguments: &["endpoint", "env_uuid?", "project"],
        now: &["project", "destroy"],
        as_now: &["", "", "project"],
    },
    Old {
        word: "guest_create",
        about: "Requests a guest",
        arguments: &["endpoint", "name", "project", "environment", "size"],
        now: &["guest", "request"],
        as_now: &["", "--name", "--project", "--environment", "--size"],
    },
    Old {
        word: "guest_delete",
        about: "Destroys a guest",
        arguments: &["endpoint", "guest"],
        now: &["guest", "destroy"],
        as_now: &["", "guest"],
    },
    Old {
        word: "push",
        about: "Deploys what was pushed last",
        arguments: &["endpoint", "environment", "project"],
        now: &["deploy"],
        as_now: &["", "environment", "project"],
    },
    Old {
        word: "enlarge",
        about: "Enlarges the storage of a guest",
        arguments: &["endpoint", "env_uuid?", "guest", "size"],
        now: &["guest", "enlarge"],
        as_now: &["", "", "guest", "--size"],
    },
    Old {
        word: "trim",
        about: "Shrinks the storage of a guest",
        arguments: &["endpoint", "env_uuid?", "guest", "size"],
        now: &["guest", "shrink"],
        as_now: &["", "", "guest", "--size"],
    },
];

/// What was given to a command of old, in its order.
const GIVEN: &str = "given";

/// Whether this is a command of old.
pub fn is_old(word: &str) -> bool {
    OLD.iter().any(|old| old.word == word)
}

/// The commands.
pub fn commands() -> Vec<Command> {
    let name = |name: &&str| name.trim_end_matches('?').to_uppercase();
    let command = |old: &'static Old| {
        let names = old.arguments.iter().map(name).collect::<Vec<_>>();
        let given = Arg::new(GIVEN).value_names(names).num_args(old.needed()..=old.arguments.len()).required(true);
        Command::new(old.word).about(old.about).hide(true).arg(given)
    };
    OLD.iter().map(command).collect()
}

impl Old {
    fn needed(&self) -> usize {
        self.arguments.iter().filter(|name| !name.ends_with('?')).count()
    }

    /// The arguments that stand at a place in the command that it is now, in their order.
    fn places(&self) -> Vec<String> {
        let (root, mut words) = (tree::command(), self.now.iter());
        let command = words.try_fold(&root, |command, word| command.find_subcommand(word));
        let name = |argument: &Arg| argument.get_id().to_string();
        command.map(|command| command.get_positionals().map(name).collect()).unwrap_or_default()
    }

    /// Each argument with what was given for it: one that may be left out is there when there are enough.
    fn with<'a>(&self, given: &'a [String]) -> Vec<Option<&'a String>> {
        let (mut given, mut spare) = (given.iter(), given.len().saturating_sub(self.needed()));
        let one = |name: &&str| {
            let is_left_out = name.ends_with('?') && spare == 0;
            spare -= usize::from(name.ends_with('?') && !is_left_out);
            if is_left_out { None } else { given.next() }
        };
        self.arguments.iter().map(one).collect()
    }
}

/// Runs one.
pub async fn run(word: &str, matches: &ArgMatches) -> Result<Exit, Failure> {
    let Some(old) = OLD.iter().find(|old| old.word == word) else { return Err(Failure::usage("no such command")) };
    let parsed = tree::command()
        .try_get_matches_from(spelled(old, matches))
        .map_err(|error| Failure::usage(error.to_string()))?;
    let (path, inner) = tree::chosen(&parsed);
    ask::run(&path, inner).await
}

/// The words of the command as it is now.
fn spelled(old: &Old, matches: &ArgMatches) -> Vec<String> {
    let mut words = vec!["corpus".to_owned()];
    for flag in ["json", "debug", "no-wait"] {
        words.extend(matches.get_flag(flag).then(|| format!("--{flag}")));
    }
    let given: Vec<String> = matches.get_many(GIVEN).into_iter().flatten().cloned().collect();
    let given = old.with(&given);
    let place = given.first().copied().flatten().filter(|place| *place != "-");
    words.extend(place.map(|place| format!("--place={place}")));
    words.extend(old.now.iter().map(|word| (*word).to_owned()));
    let given: Vec<_> = old.as_now.iter().zip(given).filter_map(|(now, value)| Some((*now, value?))).collect();
    words.extend(
        given.iter().filter(|(now, _)| now.starts_with("--")).map(|(option, value)| format!("{option}={value}")),
    );
    // The order of what stands at a place is another one now.
    for place in old.places() {
        words.extend(given.iter().filter(|(now, _)| *now == place).map(|(_, value)| (*value).clone()));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_old_is_spelled_anew() {
        let old = OLD.iter().find(|old| old.word == "guest_delete").unwrap();
        let matches = tree::command()
            .try_get_matches_from(["corpus", "guest_delete", "prod", "www.example.org", "--json"])
            .unwrap();
        let (_, inner) = tree::chosen(&matches);
        assert_eq!(spelled(old, inner), ["corpus", "--json", "--place=prod", "guest", "destroy", "www.example.org"]);

        let old = OLD.iter().find(|old| old.word == "push").unwrap();
        let matches = tree::command().try_get_matches_from(["corpus", "push", "-", "staging", "atlas"]).unwrap();
        assert_eq!(spelled(old, tree::chosen(&matches).1), ["corpus", "deploy", "atlas", "staging"]);
    }

    #[test]
    fn each_is_a_command_that_is_there() {
        for old in OLD {
            let mut command = tree::command();
            for word in old.now {
                command =
                    command.find_subcommand(word).unwrap_or_else(|| panic!("{}: no {:?}", old.word, old.now)).clone();
            }
            for now in old.as_now.iter().filter(|now| !now.is_empty()) {
                let name = now.trim_start_matches('-').replace('-', "_");
                assert!(
                    command.get_arguments().any(|argument| argument.get_id() == name.as_str()),
                    "{}: no {now}",
                    old.word
                );
            }
        }
    }
}
