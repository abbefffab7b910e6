//! The lines that letters are made of. What others wrote stays within its line.

use corpus_domain::CommitId;
use url::Url;

use crate::mail::letter::DeploymentLetter;

/// The longest line of somebody else's text, in characters.
const MAX_LINE: usize = 300;

/// A letter as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// Its subject: one line.
    pub subject: String,
    /// Its text.
    pub text: String,
}

/// The address of a page.
pub fn page(pages: &Url, path: &str) -> String {
    format!("{pages}{path}")
}

/// Lines; what others wrote can't make one of its own.
#[derive(Default)]
pub struct Text(String);

impl Text {
    pub fn line(&mut self, text: &str) {
        self.0.push_str(&one_line(text));
        self.0.push('\n');
    }

    pub fn gap(&mut self) {
        if !self.0.ends_with("\n\n") {
            self.0.push('\n');
        }
    }

    pub fn commit(&mut self, letter: &DeploymentLetter) {
        let Some(commit) = &letter.commit else { return };
        let subject = letter.subject.as_deref().unwrap_or_default();
        self.line(format!("Commit:  {} {subject}", commit.short()).trim_end());
    }

    pub fn live(&mut self, letter: &DeploymentLetter) {
        let Some((commit, number)) = &letter.live else { return self.line("Live:    nothing yet") };
        let commit = commit.as_ref().map_or("no commit", CommitId::short);
        match number {
            Some(number) => self.line(&format!("Live:    {commit}, by #{number}")),
            None => self.line(&format!("Live:    {commit}")),
        }
    }

    pub fn mail(mut self, subject: &str, pages: &Url) -> Mail {
        self.gap();
        self.line("-- ");
        self.line(&format!("Corpus sends this. Which mail you get is set at {}", page(pages, "mail")));
        Mail { subject: one_line(subject), text: self.0 }
    }
}

/// The text as one line of a bounded length: every control character is a space.
pub fn one_line(text: &str) -> String {
    let mut line: String = text.chars().take(MAX_LINE).map(|c| if is_break(c) { ' ' } else { c }).collect();
    if text.chars().nth(MAX_LINE).is_some() {
        line.push('…');
    }
    line
}

fn is_break(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
