//! What letters say.

use corpus_domain::{CommitId, DeploymentState, Environment, GuestName, ProjectName};
use serde::{Deserialize, Serialize};
use url::Url;

/// The longest line of somebody else's text, in characters.
const MAX_LINE: usize = 300;

/// What a letter is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Letter {
    /// An environment can be pushed to.
    PlatformReady(PlatformLetter),
    /// A deployment failed.
    Failed(DeploymentLetter),
    /// The first deployment that went live after one that failed.
    Recovered(DeploymentLetter),
    /// Another account has proved to have a key that was the addressee's.
    KeyMoved(KeyLetter),
}

/// A key that is another account's now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyLetter {
    /// `SHA256:…`
    pub fingerprint: String,
    /// The word that `ssh-keygen -l` prints in brackets.
    pub algorithm: String,
}

/// A platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlatformLetter {
    /// The project.
    pub project: ProjectName,
    /// Its environment.
    pub environment: Environment,
    /// The guest that it stands on.
    pub guest: String,
    /// Who asked for it, by login name.
    pub by: Option<String>,
    /// The names that lead there.
    pub hosts: Vec<String>,
    /// The command that enters the guest.
    pub ssh: Option<String>,
    /// Where code is pushed to.
    pub git_url: Option<String>,
    /// Where the pillar is pushed to.
    pub pillar_url: Option<String>,
}

/// A deployment that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeploymentLetter {
    /// The project.
    pub project: ProjectName,
    /// Its environment.
    pub environment: Environment,
    /// The deployment's number in its project.
    pub number: i64,
    /// The guest on which it did not go live, though it did on the environment's first one.
    #[serde(default)]
    pub guest: Option<GuestName>,
    /// How it ended.
    pub state: DeploymentState,
    /// Who, for people.
    pub by: String,
    /// The commit that was to go live.
    pub commit: Option<CommitId>,
    /// The first line of its message.
    pub subject: Option<String>,
    /// Where it failed: phase and recipe.
    pub place: Option<String>,
    /// Why it failed.
    pub fault: Option<String>,
    /// The line of the log to read first.
    pub line: Option<String>,
    /// What is live now: the commit, and the number of the deployment that brought it.
    pub live: Option<(Option<CommitId>, Option<i64>)>,
    /// The number of the deployment that failed before, if this is the first success after it.
    pub failed_before: Option<i64>,
}

/// A letter as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// Its subject: one line.
    pub subject: String,
    /// Its text.
    pub text: String,
}

impl Letter {
    /// The letter for people, with links to the pages at `pages`.
    pub fn mail(&self, pages: &Url) -> Mail {
        match self {
            Self::PlatformReady(letter) => platform_ready(letter, pages),
            Self::Failed(letter) => failed(letter, pages),
            Self::Recovered(letter) => recovered(letter, pages),
            Self::KeyMoved(letter) => key_moved(letter, pages),
        }
    }
}

fn platform_ready(letter: &PlatformLetter, pages: &Url) -> Mail {
    let PlatformLetter { project, environment, .. } = letter;
    let mut text = Text::default();
    text.line(&format!("{project} {environment} is ready on {}.", letter.guest));
    text.gap();
    for host in &letter.hosts {
        text.line(&format!("Web:     http://{host}"));
        text.line(&format!("         https://{host}"));
    }
    if let Some(ssh) = &letter.ssh {
        text.line(&format!("SSH:     {ssh}"));
    }
    if let (Some(code), Some(pillar)) = (&letter.git_url, &letter.pillar_url) {
        text.line(&format!("Code:    {code}"));
        text.line(&format!("Pillar:  {pillar}"));
        text.gap();
        text.line("To deploy what you have committed to main:");
        text.gap();
        text.line(&format!("  git remote add {environment} {code}"));
        text.line(&format!("  git push {environment} main"));
    }
    text.gap();
    text.line("You are known by the key that you added at Corpus. The root password is on the guest's page,");
    text.line("for who may see it.");
    text.gap();
    if let Some(by) = &letter.by {
        text.line(&format!("Asked for by {by}."));
    }
    text.line(&page(pages, &format!("projects/{project}")));
    text.mail(&format!("[{project} {environment}] ready to be pushed to"), pages)
}

fn failed(letter: &DeploymentLetter, pages: &Url) -> Mail {
    let DeploymentLetter { project, environment, number, by, .. } = letter;
    let broken = letter.state == DeploymentState::Broken;
    let mut text = Text::default();
    let (mut on, mut query) = (String::new(), String::new());
    if let Some(guest) = &letter.guest {
        (on, query) = (format!(" on {guest}"), format!("?guest={guest}"));
    }
    text.line(&format!("Deployment #{number} of {project} to {environment} by {by} has failed{on}."));
    text.line(match (broken, &letter.guest) {
        (true, None) => "PUTTING BACK WHAT WAS LIVE FAILED TOO: somebody must look at it now.",
        (true, Some(_)) => "It is live on the leader, and NOT HERE: somebody must look at it now.",
        (false, None) => "Everything was put back as it was before.",
        (false, Some(_)) => "It is live on the leader. Here everything was put back: deploy again.",
    });
    text.gap();
    text.commit(letter);
    if let Some(place) = &letter.place {
        text.line(&format!("In:      {place}"));
    }
    if let Some(fault) = &letter.fault {
        text.line(&format!("Why:     {fault}"));
    }
    if let Some(line) = &letter.line {
        text.line(&format!("Line:    {line}"));
    }
    text.live(letter);
    text.gap();
    text.line(&page(pages, &format!("projects/{project}/deployments/{number}{query}")));
    let what = if broken { "is broken" } else { "failed and was put back" };
    text.mail(&format!("[{project} {environment}] #{number} {what}{on}"), pages)
}

fn recovered(letter: &DeploymentLetter, pages: &Url) -> Mail {
    let DeploymentLetter { project, environment, number, by, .. } = letter;
    let mut text = Text::default();
    text.line(&format!("Deployment #{number} of {project} to {environment} by {by} is live, and its checks passed."));
    if let Some(before) = letter.failed_before {
        text.line(&format!("It is the first after #{before}, which failed."));
    }
    text.gap();
    text.commit(letter);
    text.gap();
    text.line(&page(pages, &format!("projects/{project}/deployments/{number}")));
    text.mail(&format!("[{project} {environment}] #{number} is live: it works again"), pages)
}

fn key_moved(letter: &KeyLetter, pages: &Url) -> Mail {
    let mut text = Text::default();
    text.line("An SSH key that was yours at Corpus is another account's now:");
    text.gap();
    text.line(&format!("  {} {}", letter.algorithm, letter.fingerprint));
    text.gap();
    text.line("Whoever has that account proved to have the private key, by a signature. If that is you, with an");
    text.line("account of another name, all is well. If not, somebody else has your private key: make a new one,");
    text.line("take the old one from every place that knows it, and tell the operators; the audit says who it was.");
    text.line("The old key does not let you in any more, neither at Corpus nor at your guests.");
    text.gap();
    text.line(&page(pages, "keys"));
    text.mail("An SSH key of yours is another account's now", pages)
}

fn page(pages: &Url, path: &str) -> String {
    format!("{pages}{path}")
}

/// Lines; what others wrote can't make one of its own.
#[derive(Default)]
struct Text(String);

impl Text {
    fn line(&mut self, text: &str) {
        self.0.push_str(&one_line(text));
        self.0.push('\n');
    }

    fn gap(&mut self) {
        if !self.0.ends_with("\n\n") {
            self.0.push('\n');
        }
    }

    fn commit(&mut self, letter: &DeploymentLetter) {
        let Some(commit) = &letter.commit else { return };
        let subject = letter.subject.as_deref().unwrap_or_default();
        self.line(format!("Commit:  {} {subject}", commit.short()).trim_end());
    }

    fn live(&mut self, letter: &DeploymentLetter) {
        let Some((commit, number)) = &letter.live else { return self.line("Live:    nothing yet") };
        let commit = commit.as_ref().map_or("no commit", CommitId::short);
        match number {
            Some(number) => self.line(&format!("Live:    {commit}, by #{number}")),
            None => self.line(&format!("Live:    {commit}")),
        }
    }

    fn mail(mut self, subject: &str, pages: &Url) -> Mail {
        self.gap();
        self.line("-- ");
        self.line(&format!("Corpus sends this. Which mail you get is set at {}", page(pages, "mail")));
        Mail { subject: one_line(subject), text: self.0 }
    }
}

/// The text as one line of a bounded length: every control character is a space.
fn one_line(text: &str) -> String {
    let mut line: String = text.chars().take(MAX_LINE).map(|c| if is_break(c) { ' ' } else { c }).collect();
    if text.chars().nth(MAX_LINE).is_some() {
        line.push('…');
    }
    line
}

fn is_break(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
