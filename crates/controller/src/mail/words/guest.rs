//! Words of guests.

use url::Url;

use super::text::{Mail, Text, page};
use crate::mail::letter::GuestLetter;

/// As many names are told of one guest among others.
const NAMES: usize = 3;

pub fn guest_ready(letter: &GuestLetter, pages: &Url) -> Mail {
    let GuestLetter { name, project, environment, .. } = letter;
    let mut text = Text::default();
    text.line(&format!("{name} is ready, for {project} {environment}."));
    text.gap();
    if let Some(ssh) = &letter.ssh {
        text.line(&format!("SSH:     {ssh}"));
    }
    for host in &letter.hosts {
        text.line(&format!("Web:     http://{host}"));
        text.line(&format!("         https://{host}"));
    }
    if let Some(url) = letter.git_url() {
        text.line(&format!("Code:    {url}"));
        text.line(&format!("Pillar:  {url}/pillar"));
    }
    text.gap();
    text.line("You are known by the key that you added at Corpus. The root password is on the guest's page,");
    text.line("for who may see it.");
    text.gap();
    text.line(&page(pages, &format!("guests/{}", letter.guest)));
    text.mail(&format!("[{project} {environment}] {name} is ready"), pages)
}

/// What of it is said among others, and its page.
pub fn guest_line(letter: &GuestLetter) -> (String, String) {
    let ssh = letter.ssh.as_ref().map(|ssh| format!(": {ssh}")).unwrap_or_default();
    let hosts: Vec<String> = letter.hosts.iter().take(NAMES).map(|host| format!(", https://{host}")).collect();
    let git = letter.git_url().map(|url| format!(", {url}")).unwrap_or_default();
    (format!("{}{ssh}{}{git}", letter.name, hosts.concat()), format!("guests/{}", letter.guest))
}
