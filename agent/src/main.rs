//! `corpus-agent serve` answers requests on standard input and output; `corpus-agent project …`
//! is for people, git and systemd on a guest; `corpus-agent version` tells which agent this is.

use std::io::{BufReader, stdout};
use std::process::ExitCode;

use corpus_agent::host::Host;
use corpus_agent::line::Line;
use corpus_agent::project;
use corpus_agent::serve::serve;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["serve"] => match serve(BufReader::new(Line), stdout(), &Host::default()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("corpus-agent: {error}");
                ExitCode::FAILURE
            }
        },
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
        _ => {
            eprintln!("usage: corpus-agent serve | version\n{}", project::cli::USAGE);
            ExitCode::FAILURE
        }
    }
}
