//! The Corpora that are known here, and how to enter them.
//!
//! `corpus login` keeps address and token in `~/.config/corpus/config.toml`, which only its owner reads.
//! The file of old, `~/.makinastates.conf`, names places too: with a login and a password, for which a
//! token of a day is asked and kept there.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::ArgMatches;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::oauth::Door;

/// A token is asked for anew when it is good for no longer than this.
const MARGIN: Duration = Duration::from_mins(1);

/// A Corpus, and a token for it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Place {
    /// Its address.
    pub url: Url,
    /// The token.
    pub token: String,
}

/// What is known here.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Config {
    /// The one that is meant unless another is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    #[serde(default)]
    places: BTreeMap<String, Place>,
    /// Tokens for places of the file of old.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    former: BTreeMap<String, Kept>,
}

/// A token that was asked for by a password.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Kept {
    url: Url,
    id: String,
    token: String,
    /// Until when it is good, in seconds since 1970.
    until: u64,
}

/// A place of the file of old.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Former {
    /// Its address, often without a scheme.
    pub url: String,
    /// The login name.
    pub id: String,
    /// The password.
    pub password: String,
}

fn home() -> PathBuf {
    std::env::var_os("HOME").map_or_else(|| PathBuf::from("."), PathBuf::from)
}

fn file() -> PathBuf {
    let folder = std::env::var_os("XDG_CONFIG_HOME").filter(|value| !value.is_empty());
    folder.map_or_else(|| home().join(".config"), PathBuf::from).join("corpus/config.toml")
}

impl Config {
    /// What is known now.
    pub fn read() -> Result<Self, Failure> {
        Self::read_from(&file())
    }

    /// Keeps it.
    pub fn write(&self) -> Result<(), Failure> {
        self.write_to(&file())
    }

    /// Keeps a place, and means it from now on.
    pub fn keep(&mut self, name: &str, place: Place) {
        self.places.insert(name.to_owned(), place);
        self.current = Some(name.to_owned());
    }

    /// Forgets a place; tells what was known of it.
    pub fn forget(&mut self, name: &str) -> Option<Place> {
        self.current.take_if(|current| current == name);
        let former = self.former.remove(name).map(|Kept { url, token, .. }| Place { url, token });
        self.places.remove(name).or(former)
    }

    fn read_from(file: &Path) -> Result<Self, Failure> {
        let text = match std::fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(Failure::usage(format!("{} can't be read: {error}", file.display()))),
        };
        toml::from_str(&text)
            .map_err(|error| Failure::usage(format!("{} is not what it should be: {error}", file.display())))
    }

    fn write_to(&self, file: &Path) -> Result<(), Failure> {
        let folder = file.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let text = toml::to_string(self).map_err(|error| Failure::usage(error.to_string()))?;
        // Another file in its place, so that it is never half written, or readable for a moment.
        let new = file.with_extension("new");
        let mut out = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o600))?;
        out.write_all(text.as_bytes())?;
        Ok(std::fs::rename(&new, file)?)
    }
}

/// What speaks with the place that is meant.
pub async fn client(matches: &ArgMatches) -> Result<Client, Failure> {
    let debug = matches.get_flag("debug");
    let named = matches.get_one::<String>("place").map(String::as_str);
    Client::new(&place(named, debug).await?, debug)
}

/// The place of that name, or the current one; `CORPUS_URL` and `CORPUS_TOKEN` go before both.
async fn place(named: Option<&str>, debug: bool) -> Result<Place, Failure> {
    if named.is_none()
        && let (Ok(url), Ok(token)) = (std::env::var("CORPUS_URL"), std::env::var("CORPUS_TOKEN"))
    {
        return Ok(Place { url: address(&url)?, token });
    }
    let mut config = Config::read()?;
    let former = former(&home().join(".makinastates.conf"))?;
    let name = match named.map(str::to_owned).or_else(|| config.current.clone()) {
        Some(name) => name,
        None if former.len() == 1 => former.keys().next().cloned().unwrap_or_default(),
        None => return Err(Failure::usage("log in first: corpus login https://corpus.example.org")),
    };
    if let Some(place) = config.places.get(&name) {
        return Ok(place.clone());
    }
    let Some(former) = former.get(&name) else {
        return Err(Failure::usage(format!("there is no place {name}; `corpus places` lists them")));
    };
    former.sign_in(&name, &mut config, debug).await
}

impl Former {
    /// The token that is kept, or another one for login and password.
    async fn sign_in(&self, name: &str, config: &mut Config, debug: bool) -> Result<Place, Failure> {
        let url = address(&self.url)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let is_good =
            |kept: &&Kept| kept.url == url && kept.id == self.id && Duration::from_secs(kept.until) > now + MARGIN;
        if let Some(kept) = config.former.get(name).filter(is_good) {
            return Ok(Place { url, token: kept.token.clone() });
        }
        let given = Door::new(url.clone(), debug)?.by_password(&self.id, &self.password).await?;
        let (token, until) = (given.access_token, now.as_secs() + given.expires_in);
        let kept = Kept { url: url.clone(), id: self.id.clone(), token: token.clone(), until };
        config.former.insert(name.to_owned(), kept);
        config.write()?;
        Ok(Place { url, token })
    }
}

/// An address as people write it: https unless said.
pub fn address(text: &str) -> Result<Url, Failure> {
    let text = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    Url::parse(&text).map_err(|error| Failure::usage(format!("{text} is no address: {error}")))
}

/// The file of old; its own example lacks a colon after `password`, so that is read too.
pub fn former(file: &Path) -> Result<BTreeMap<String, Former>, Failure> {
    let Ok(text) = std::fs::read_to_string(file) else { return Ok(BTreeMap::new()) };
    let mended: Vec<String> = text
        .lines()
        .map(|line| match line.trim_start().strip_prefix("password ") {
            Some(value) if !value.trim_start().starts_with(':') => line.replacen("password ", "password: ", 1),
            _ => line.to_owned(),
        })
        .collect();
    serde_saphyr::from_str(&mended.join("\n"))
        .map_err(|_| Failure::usage(format!("{} is not `nickname: {{url, id, password}}` in YAML", file.display())))
}

/// Lists the places.
pub fn list(_: &ArgMatches) -> Result<Exit, Failure> {
    let config = Config::read()?;
    for (name, kept) in &config.places {
        let mark = if config.current.as_ref() == Some(name) { "*" } else { " " };
        println!("{mark} {name}\t{}", kept.url);
    }
    for (name, place) in former(&home().join(".makinastates.conf"))? {
        println!("  {name}\t{} (as {}, of .makinastates.conf)", place.url, place.id);
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_old_is_read_as_it_was_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("conf");
        let text = " prod:\n    url: masteralt.foo.net\n    id: someone@foo.net\n    password s3cr3t\n dev:\n    url: devhost.local\n    id: someone@foo.net\n    password: s3cr3t3\n";
        std::fs::write(&file, text).unwrap();
        let places = former(&file).unwrap();
        assert_eq!((places["prod"].password.as_str(), places["dev"].password.as_str()), ("s3cr3t", "s3cr3t3"));
        assert_eq!(address(&places["prod"].url).unwrap().as_str(), "https://masteralt.foo.net/");
        assert!(former(&folder.path().join("none")).unwrap().is_empty());
    }

    #[test]
    fn only_its_owner_reads_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("corpus/config.toml");
        let mut config = Config::default();
        config.keep("x", Place { url: "https://corpus.example.org".parse().unwrap(), token: "corpus_x".into() });
        config.write_to(&file).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let mut again = Config::read_from(&file).unwrap();
        assert_eq!(again.current.as_deref(), Some("x"));
        assert_eq!(again.forget("x").unwrap().token, "corpus_x");
        assert_eq!((again.current, again.places.len()), (None, 0));
    }
}
