//! The ids of headings, as GitHub makes them: so a link `#section` is good there and here.

use std::collections::HashSet;

/// The ids that a document has so far.
#[derive(Debug, Default)]
pub struct Anchors(HashSet<String>);

impl Anchors {
    /// The id of the next heading: of a second one of the same text it ends with `-1`, and so on.
    pub fn next(&mut self, heading: &str) -> String {
        let plain = slug(heading);
        let further = (1..).map(|number| format!("{plain}-{number}"));
        std::iter::once(plain.clone()).chain(further).find(|id| self.0.insert(id.clone())).unwrap_or_default()
    }
}

/// In small letters, hyphens for spaces, without punctuation.
fn slug(heading: &str) -> String {
    let kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
    heading.to_lowercase().chars().filter(kept).map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_github() {
        let mut anchors = Anchors::default();
        let ids = ["Deploying with git push", "The API, asked what nobody", "A_b & c", "Install", "Install", "Größe"];
        assert_eq!(
            ids.map(|heading| anchors.next(heading)),
            ["deploying-with-git-push", "the-api-asked-what-nobody", "a_b--c", "install", "install-1", "größe"]
        );
    }
}
