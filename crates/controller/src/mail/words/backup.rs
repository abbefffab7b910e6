//! Words of backups on which nobody should rely, for maintainers and operators.

use url::Url;

use super::own::at;
use super::text::{Mail, Text, page};
use crate::mail::letter::{BackupLetter, BackupNeed};

pub fn needy(letter: &BackupLetter, pages: &Url) -> Mail {
    let BackupLetter { name, need, last_at, problem, .. } = letter;
    let last =
        last_at.map_or_else(|| "There is none yet.".to_owned(), |last| format!("The last one is of {}.", at(last)));
    let (subject, first, then) = match need {
        BackupNeed::Late => (
            format!("No backup of {name} is taken"),
            format!("By its schedule there should be a newer backup of {name} by now."),
            last,
        ),
        BackupNeed::Undumped => (
            format!("The backup of {name} has no dumps"),
            format!("What the project dumps before a backup of {name} is taken failed."),
            "The latest one has the guest's files only, and what was dumped before.".to_owned(),
        ),
        BackupNeed::Unproven => (
            format!("It is not known whether {name} can be had back"),
            format!(
                "For more than two weeks no backup of {name} was brought back well, though each week one is to be tried."
            ),
            last,
        ),
    };
    let mut text = Text::default();
    text.line(&first);
    text.line(&then);
    text.gap();
    if let Some(problem) = problem {
        text.line(&format!("Why:  {problem}"));
        text.gap();
    }
    text.line(&page(pages, &path(letter)));
    text.mail(&subject, pages)
}

/// What of it is said among others, and its page.
pub fn needy_line(letter: &BackupLetter) -> (String, String) {
    let what = match letter.need {
        BackupNeed::Late => "none is taken",
        BackupNeed::Undumped => "without dumps",
        BackupNeed::Unproven => "not tried for two weeks",
    };
    let why = letter.problem.as_ref().map(|problem| format!(": {problem}")).unwrap_or_default();
    (format!("{}, {what}{why}", letter.name), path(letter))
}

fn path(letter: &BackupLetter) -> String {
    format!("guests/{}/backups", letter.guest)
}
