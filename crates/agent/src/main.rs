//! `corpus-agent serve` answers requests on standard input and output, and all files of a guest go there by
//! `corpus-agent read-tree …`, `write-tree …` and `sum-tree …`; `corpus-agent project …` is for people, git and systemd on a guest;
//! `corpus-agent version` tells which agent this is.
//! LXC and the agent itself have words of their own ([`itself`]).

use std::io::{BufReader, stdout};
use std::process::ExitCode;

use corpus_agent::host::Host;
use corpus_agent::itself;
use corpus_agent::line::Line;
use corpus_agent::project;
use corpus_agent::serve::serve;
use corpus_agent::tree;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["serve"] => ended(serve(BufReader::new(Line), stdout(), &Host::default())),
        ["version"] => {
            println!("corpus-agent {}, protocol {}", env!("CARGO_PKG_VERSION"), corpus_protocol::VERSION);
            ExitCode::SUCCESS
        }
        ["project", words @ ..] => {
            if project::cli::main(words) {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        words => {
            if let Some(done) = tree::serve(&Host::default(), words) {
                return ended(done);
            }
            if let Some(done) = itself::serve(words) {
                return ended(done);
            }
            eprintln!("usage: corpus-agent serve | version\n{}", project::cli::USAGE);
            ExitCode::FAILURE
        }
    }
}

fn ended<E: std::fmt::Display>(done: Result<(), E>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("corpus-agent: {error}");
            ExitCode::FAILURE
        }
    }
}
