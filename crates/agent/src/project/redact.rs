//! No secret leaves a deployment: it is blacked out before the journal is written.

use corpus_protocol::{DeploymentEvent, Proof, RecipeReport};

const BLACK: &str = "[secret]";

/// The secrets of a project, the longest first.
#[derive(Debug, Clone, Default)]
pub struct Redactor(Vec<String>);

impl Redactor {
    /// Blacks out these texts, and how JSON writes them.
    pub fn new(secrets: Vec<String>) -> Self {
        let quoted = |secret: &String| {
            let json = serde_json::to_string(secret).unwrap_or_default();
            json.get(1..json.len().saturating_sub(1)).map(str::to_owned).filter(|text| text != secret)
        };
        let mut all: Vec<String> = secrets.iter().filter_map(quoted).collect();
        all.extend(secrets);
        all.sort_unstable_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(all)
    }

    /// Also what another one blacks out.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self.0.sort_unstable_by_key(|secret| std::cmp::Reverse(secret.len()));
        self.0.dedup();
        self
    }

    /// The length of the longest secret, in bytes.
    pub fn reach(&self) -> usize {
        self.0.first().map_or(0, String::len)
    }

    /// A text without secrets.
    pub fn text(&self, text: &str) -> String {
        let found = self.0.iter().filter(|secret| text.contains(secret.as_str()));
        found.fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), BLACK))
    }

    /// An event without secrets.
    #[must_use]
    pub fn event(&self, mut event: DeploymentEvent) -> DeploymentEvent {
        let clean = |text: &mut String| *text = self.text(text);
        match &mut event {
            DeploymentEvent::Line { text, .. }
            | DeploymentEvent::Waiting { what: text }
            | DeploymentEvent::Warned { text } => clean(text),
            DeploymentEvent::RecipeEnded { recipe, .. } => self.recipe(recipe),
            DeploymentEvent::Proved { proof } => self.proof(proof),
            DeploymentEvent::Ended { report } => {
                report.phases.iter_mut().flat_map(|phase| &mut phase.recipes).for_each(|recipe| self.recipe(recipe));
                report.proofs.iter_mut().for_each(|proof| self.proof(proof));
                report.fault.iter_mut().for_each(|fault| clean(&mut fault.message));
                report.warnings.iter_mut().for_each(clean);
            }
            DeploymentEvent::Begun { commits, .. } => commits.iter_mut().for_each(|commit| clean(&mut commit.subject)),
            DeploymentEvent::PhaseBegun { .. }
            | DeploymentEvent::NeedsRoom { .. }
            | DeploymentEvent::LeavesBalance { .. }
            | DeploymentEvent::RecipeBegun { .. }
            | DeploymentEvent::PhaseEnded { .. } => {}
        }
        event
    }

    fn recipe(&self, recipe: &mut RecipeReport) {
        let clean = |text: &mut String| *text = self.text(text);
        recipe.reason.iter_mut().for_each(clean);
        recipe.states.iter_mut().for_each(|state| {
            [&mut state.id, &mut state.name, &mut state.comment].into_iter().for_each(clean);
        });
    }

    fn proof(&self, proof: &mut Proof) {
        proof.check = self.text(&proof.check);
        proof.seen = self.text(&proof.seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_goes_first_and_json_is_known() {
        let redactor = Redactor::new(vec!["hunter".into(), "hunter22".into(), "a\"b/c\\d".into()]);
        assert_eq!(redactor.text("hunter22 hunter2"), "[secret] [secret]2");
        assert_eq!(redactor.text(r#"{"x": "a\"b/c\\d"}"#), r#"{"x": "[secret]"}"#);
        assert_eq!(redactor.text("nothing here"), "nothing here");
        assert_eq!(redactor.reach(), 9);
    }
}
