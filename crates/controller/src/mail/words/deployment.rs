//! Words of deployments, and of the environments that they go to.

use corpus_domain::DeploymentState;
use url::Url;

use super::text::{Mail, Text, page};
use crate::mail::letter::{DeploymentLetter, PlatformLetter};

pub fn platform_ready(letter: &PlatformLetter, pages: &Url) -> Mail {
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

pub fn failed(letter: &DeploymentLetter, pages: &Url) -> Mail {
    let DeploymentLetter { project, environment, number, by, .. } = letter;
    let broken = letter.state == DeploymentState::Broken;
    let mut text = Text::default();
    let on = on(letter);
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
    text.line(&page(pages, &deployment_path(letter)));
    let what = if broken { "is broken" } else { "failed and was put back" };
    text.mail(&format!("[{project} {environment}] #{number} {what}{on}"), pages)
}

pub fn recovered(letter: &DeploymentLetter, pages: &Url) -> Mail {
    let DeploymentLetter { project, environment, number, by, .. } = letter;
    let mut text = Text::default();
    text.line(&format!("Deployment #{number} of {project} to {environment} by {by} is live, and its checks passed."));
    if let Some(before) = letter.failed_before {
        text.line(&format!("It is the first after #{before}, which failed."));
    }
    text.gap();
    text.commit(letter);
    text.gap();
    text.line(&page(pages, &deployment_path(letter)));
    text.mail(&format!("[{project} {environment}] #{number} is live: it works again"), pages)
}

fn on(letter: &DeploymentLetter) -> String {
    letter.guest.as_ref().map(|guest| format!(" on {guest}")).unwrap_or_default()
}

fn deployment_path(letter: &DeploymentLetter) -> String {
    let query = letter.guest.as_ref().map(|guest| format!("?guest={guest}")).unwrap_or_default();
    format!("projects/{}/deployments/{}{query}", letter.project, letter.number)
}

/// What of it is said among others, and its page.
pub fn failed_line(letter: &DeploymentLetter) -> (String, String) {
    let DeploymentLetter { project, environment, number, by, .. } = letter;
    let what = if letter.state == DeploymentState::Broken { "is BROKEN" } else { "was put back" };
    let why = letter.fault.as_ref().map(|fault| format!(": {fault}")).unwrap_or_default();
    (format!("{project} {environment} #{number} by {by} {what}{}{why}", on(letter)), deployment_path(letter))
}

/// The same of one that is live.
pub fn recovered_line(letter: &DeploymentLetter) -> (String, String) {
    let DeploymentLetter { project, environment, number, by, .. } = letter;
    (format!("{project} {environment} #{number} by {by} is live"), deployment_path(letter))
}

/// The same of an environment.
pub fn platform_line(letter: &PlatformLetter) -> (String, String) {
    let PlatformLetter { project, environment, guest, .. } = letter;
    let code = letter.git_url.as_ref().map(|url| format!(": {url}")).unwrap_or_default();
    (format!("{project} {environment} on {guest}{code}"), format!("projects/{project}"))
}
