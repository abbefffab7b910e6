//! corpus, the command line: every operation of the API, by the same types.
//!
//! A command is not written: it is made from the operation that it asks for, with its fields as arguments
//! and its texts as help. So what the API can do the command line can, and says what is wrong in the same
//! words. What is written here is what a terminal needs besides: places ([`places`]) and how they are entered ([`login`]), tables
//! ([`output`]), waiting for jobs ([`wait`]), following requests of visitors ([`access`]), entering a guest and uploading reports ([`special`]), and the commands of old
//! ([`old`]).

mod access;
mod ask;
mod client;
mod commands;
mod confirm;
mod exit;
mod login;
mod oauth;
mod old;
mod output;
mod places;
mod special;
mod tree;
mod wait;

use std::process::ExitCode;

use clap::ArgMatches;

use crate::exit::Exit;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let matches = tree::command().get_matches();
    match run(&matches).await {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprintln!("corpus: {failure}");
            failure.exit.into()
        }
    }
}

async fn run(matches: &ArgMatches) -> Result<Exit, exit::Failure> {
    let (path, inner) = tree::chosen(matches);
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["login"] => login::login(inner).await,
        ["logout"] => login::logout(inner).await,
        ["places"] => places::list(inner),
        ["completions"] => Ok(tree::completions(inner)),
        ["man"] => tree::man(inner),
        ["guest", "ssh"] => special::ssh(inner).await,
        ["deployment", "tests"] => special::tests(inner).await,
        ["logs"] => special::logs(inner).await,
        [word] if old::is_old(word) => old::run(word, inner).await,
        _ => ask::run(&path, inner).await,
    }
}
