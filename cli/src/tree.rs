//! The tree of commands: made from the operations, with what a terminal needs besides.

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use clap_complete::Shell;
use corpus_api::Plain;

use crate::commands::{self, Described, Field};
use crate::exit::{Exit, Failure, HELP};
use crate::{confirm, old};

/// The whole tree.
pub fn command() -> Command {
    let mut root = Command::new("corpus")
        .version(clap::crate_version!())
        .about("Corpus, from the command line")
        .after_help(HELP)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .args(everywhere());
    for one in commands::all() {
        root = put(root, &commands::words(one.meta.id), &one);
    }
    let root = group(root, "guest").mut_subcommand("guest", |guest| guest.subcommand(ssh()));
    let root = group(root, "deployment").mut_subcommand("deployment", |one| one.subcommand(tests_command()));
    root.subcommand(login())
        .subcommand(logout())
        .subcommand(places())
        .subcommand(logs())
        .subcommand(completions_command())
        .subcommand(man_command())
        .subcommands(old::commands())
}

/// What every command takes.
fn everywhere() -> Vec<Arg> {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).help(help).global(true).action(ArgAction::SetTrue)
    };
    vec![
        flag("json", "Print JSON and nothing else on standard output"),
        flag("debug", "Print the requests, without secrets, on standard error"),
        flag("no-wait", "Don't wait for the job"),
        Arg::new("timeout")
            .long("timeout")
            .value_name("SECONDS")
            .help("How long to wait for the job, at most")
            .global(true)
            .value_parser(value_parser!(u64)),
        Arg::new("place")
            .long("place")
            .value_name("NAME")
            .help("Which Corpus; the one that was logged in to last unless said")
            .global(true)
            .env("CORPUS_PLACE"),
    ]
}

/// Puts a command where its words say.
fn put(parent: Command, words: &[String], one: &Described) -> Command {
    match words {
        [] => parent,
        [last] => parent.subcommand(leaf(last, one)),
        [first, rest @ ..] => group(parent, first).mut_subcommand(first, |group| put(group, rest, one)),
    }
}

/// What can be done with a thing stands under its name.
fn group(parent: Command, name: &str) -> Command {
    if parent.find_subcommand(name).is_some() {
        return parent;
    }
    let about = format!("What can be done with {}", things(name));
    parent.subcommand(Command::new(name.to_owned()).about(about).subcommand_required(true).arg_required_else_help(true))
}

fn things(word: &str) -> String {
    format!("{word}s")
}

fn leaf(name: &str, one: &Described) -> Command {
    let params: Vec<&str> = one.meta.params().collect();
    let fields = one.fields.iter().filter(|field| one.meta.if_match != Some(field.name));
    // Arguments of a path stand in its order.
    let (mut placed, named): (Vec<&Field>, Vec<&Field>) = fields.partition(|field| params.contains(&field.name));
    placed.sort_by_key(|field| params.iter().position(|param| *param == field.name));
    let summary = one.about.lines().next().unwrap_or_default().trim_end_matches('.').to_owned();
    let command = Command::new(name.to_owned()).about(summary).long_about(one.about.clone());
    // Both are said in one word, too.
    let needs_it = |field: &Field| !(names_environment(&one.meta) && field.name == "environment");
    let placed = placed.into_iter().map(|field| positional(field).required(field.needed && needs_it(field)));
    let sent = |field: &Field| one.meta.file.is_some_and(|file| file.streamed && file.field == field.name);
    let named =
        named.into_iter().map(|field| if sent(field) { option(field).value_name("FILE") } else { option(field) });
    let command = command.args(placed).args(named);
    confirm::confirmed(command, one.meta.id)
}

/// Whether all that names it is an environment: `PROJECT ENVIRONMENT`, or `PROJECT/ENVIRONMENT`.
pub fn names_environment(meta: &Plain) -> bool {
    meta.params().eq(["project", "environment"])
}

fn positional(field: &Field) -> Arg {
    Arg::new(field.name).help(help(field))
}

/// A secret is never an argument, where others would see it: it is read from a file, or `-`.
fn option(field: &Field) -> Arg {
    let word = field.name.replace('_', "-");
    let arg = Arg::new(field.name).help(help(field));
    match (field.secret, field.several) {
        (true, _) => arg
            .long(format!("{word}-file"))
            .value_name("FILE")
            .help(format!("{}; from a file, - for standard input", help(field))),
        (_, true) => arg.long(word).action(ArgAction::Append),
        _ => arg.long(word).required(field.needed),
    }
}

fn help(field: &Field) -> String {
    field.about.trim_end_matches('.').to_owned()
}

fn ssh() -> Command {
    Command::new("ssh")
        .about("Enters a guest")
        .arg(Arg::new("guest").required(true).help("Its name or id"))
        .arg(Arg::new("command").num_args(0..).trailing_var_arg(true).help("What to run there; a shell unless said"))
}

fn tests_command() -> Command {
    Command::new("tests")
        .about("Uploads what tests came to, as files of JUnit's XML")
        .long_about(
            "Uploads what tests came to, as files of JUnit's XML, to be shown with the deployment. Each is kept by its \
             path; what was uploaded by the same path before is replaced.",
        )
        .arg(Arg::new("deployment").required(true).help("The deployment's id"))
        .arg(Arg::new("file").required(true).num_args(1..).help("The files"))
}

fn logs() -> Command {
    Command::new("logs")
        .about("Shows the log of a job, or the requests of an environment's visitors")
        .arg(Arg::new("id").required(true).help("The job's id; with --access PROJECT/ENVIRONMENT"))
        .arg(Arg::new("follow").short('f').long("follow").action(ArgAction::SetTrue).help("Go on until it is over"))
        .arg(
            Arg::new("access")
                .long("access")
                .requires("follow")
                .action(ArgAction::SetTrue)
                .help("Requests of visitors, each as it ends; they are kept nowhere, so they can be followed only"),
        )
}

fn login() -> Command {
    Command::new("login")
        .about("Comes to a token for a Corpus, by a browser on any machine, and keeps it")
        .arg(Arg::new("url").required(true).help("Its address: https://corpus.example.org"))
        .arg(Arg::new("name").long("name").help("What to call it here; its host name unless said"))
        .arg(
            Arg::new("token-file")
                .long("token-file")
                .value_name("FILE")
                .help("Where a token is that was made on the page Tokens, - for standard input"),
        )
        .arg(Arg::new("paste").long("paste").action(ArgAction::SetTrue).help("Ask for such a token at the terminal"))
        .arg(
            Arg::new("scope")
                .long("scope")
                .value_parser(["read", "deploy", "operate", "all"])
                .help("What the token is to be good for; all unless said"),
        )
}

fn logout() -> Command {
    Command::new("logout")
        .about("Ends the token for a Corpus, and forgets the Corpus")
        .arg(Arg::new("name").help("What it is called here; the one that was logged in to last unless said"))
}

fn places() -> Command {
    Command::new("places").about("Lists the Corpora that are known here")
}

fn completions_command() -> Command {
    Command::new("completions")
        .about("Prints the completions for a shell")
        .arg(Arg::new("shell").required(true).value_parser(value_parser!(Shell)))
}

fn man_command() -> Command {
    Command::new("man")
        .about("Writes the manual pages into a folder")
        .arg(Arg::new("folder").required(true).value_parser(value_parser!(std::path::PathBuf)))
}

/// Which command was chosen, and its arguments.
pub fn chosen(matches: &ArgMatches) -> (Vec<String>, &ArgMatches) {
    let (mut path, mut inner) = (Vec::new(), matches);
    while let Some((word, next)) = inner.subcommand() {
        path.push(word.to_owned());
        inner = next;
    }
    (path, inner)
}

/// Prints the completions.
pub fn completions(matches: &ArgMatches) -> Exit {
    if let Some(shell) = matches.get_one::<Shell>("shell") {
        clap_complete::generate(*shell, &mut command(), "corpus", &mut std::io::stdout());
    }
    Exit::Done
}

/// Writes the manual pages.
pub fn man(matches: &ArgMatches) -> Result<Exit, Failure> {
    if let Some(folder) = matches.get_one::<std::path::PathBuf>("folder") {
        std::fs::create_dir_all(folder)?;
        clap_mangen::generate_to(command(), folder)?;
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn words_and_arguments() {
        let id = "0199d3c0-0000-7000-8000-000000000001";
        let matches = command().try_get_matches_from(["corpus", "job", "get", id, "--json"]).unwrap();
        let (path, inner) = chosen(&matches);
        assert_eq!(path, ["job", "get"]);
        assert_eq!(inner.get_one::<String>("job").map(String::as_str), Some(id));
        assert!(inner.get_flag("json"));
    }

    #[test]
    fn an_environment_is_one_word_or_two() {
        for words in [["traffic", "atlas/prod"].as_slice(), &["traffic", "atlas", "prod", "--span", "hour"]] {
            let matches = command().try_get_matches_from([&["corpus"], words].concat()).unwrap();
            assert_eq!(chosen(&matches).0, ["traffic"]);
        }
        let logs = |words: &[&str]| command().try_get_matches_from([&["corpus", "logs"], words].concat());
        assert!(logs(&["--access", "-f", "atlas/prod"]).is_ok());
        assert!(logs(&["--access", "atlas/prod"]).is_err(), "they are kept nowhere");
    }

    #[test]
    fn there_are_manual_pages() {
        let folder = tempfile::tempdir().unwrap();
        clap_mangen::generate_to(command(), folder.path()).unwrap();
        assert!(folder.path().join("corpus-job-cancel.1").exists());
    }
}
