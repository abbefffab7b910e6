//! `corpus login` and `corpus logout`: which Corpora are known here, and the token for each.

use std::io::{BufRead, IsTerminal};

use clap::ArgMatches;
use url::Url;

use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::oauth::Door;
use crate::places::{Config, Place, address};

/// Comes to a token, and keeps it.
pub async fn login(matches: &ArgMatches) -> Result<Exit, Failure> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let url = address(text("url").unwrap_or_default())?;
    let name = text("name").or(url.host_str()).unwrap_or("corpus").to_owned();
    let debug = matches.get_flag("debug");
    let token = match text("token-file") {
        Some(file) => crate::ask::from_file(file)?,
        None if matches.get_flag("paste") => pasted(&url)?,
        None => Door::new(url.clone(), debug)?.by_browser(text("scope").unwrap_or("all")).await?.access_token,
    };
    let place = Place { url, token };
    let who = crate::ask::whoami(&Client::new(&place, debug)?).await?;
    let mut config = Config::read()?;
    config.keep(&name, place);
    config.write()?;
    println!("{name}: logged in as {who}");
    Ok(Exit::Done)
}

/// Ends the token of a place, and forgets the place.
pub async fn logout(matches: &ArgMatches) -> Result<Exit, Failure> {
    let mut config = Config::read()?;
    let named = matches.get_one::<String>("name").cloned().or_else(|| config.current.clone());
    let name = named.ok_or_else(|| Failure::usage("no Corpus is known here; `corpus places` lists them"))?;
    let Some(place) = config.forget(&name) else {
        return Err(Failure::usage(format!("there is no place {name}; `corpus places` lists them")));
    };
    let ended = Door::new(place.url, matches.get_flag("debug"))?.revoke(&place.token).await;
    // It is forgotten in any case: who leaves a machine leaves no token on it.
    config.write()?;
    ended.map_err(|failure| {
        Failure::new(failure.exit, format!("{name} is forgotten here, but its token is good still: {failure}"))
    })?;
    println!("{name}: logged out");
    Ok(Exit::Done)
}

/// Asks for the token at the terminal, without showing it.
fn pasted(url: &Url) -> Result<String, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage("say where the token is: --token-file FILE, or - for standard input"));
    }
    let page = url.join("/tokens").map(String::from).unwrap_or_default();
    eprintln!("Make a token at {page} and paste it here.");
    eprint!("Token: ");
    hidden()
}

/// A line from the terminal that is not shown.
fn hidden() -> Result<String, Failure> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    let stdin = std::io::stdin();
    let before = tcgetattr(&stdin).map_err(std::io::Error::from)?;
    let mut quiet = before.clone();
    quiet.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&stdin, OptionalActions::Now, &quiet).map_err(std::io::Error::from)?;
    let mut line = String::new();
    let read = stdin.lock().read_line(&mut line);
    tcsetattr(&stdin, OptionalActions::Now, &before).map_err(std::io::Error::from)?;
    eprintln!();
    read?;
    Ok(line.trim().to_owned())
}
