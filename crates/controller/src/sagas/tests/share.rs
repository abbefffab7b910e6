//! How much of what can be tried a run tries.
//!
//! Every step of a job can fail before and after its effect, or run twice, and a server can die at each of its events: all of
//! that on real nodes, for each change, takes longer than anybody waits for. So a run takes a part, another one for other
//! commits, and `make slow` takes all. A part has each step of a job in it, with one of its faults.

use crate::jobs::testing::Fault;

/// Which of how many parts, as `1/3`; all where it is not set.
const SHARE: &str = "CORPUS_TEST_SHARE";
/// A list that is this short is tried whole.
const FEW: usize = 2;

/// Each step with each of the faults that a step can have.
pub fn faults(steps: &[&str]) -> Vec<Fault> {
    let of = |step: &&str| {
        let step = (*step).to_owned();
        [Fault::FailBefore(step.clone()), Fault::FailAfter(step.clone()), Fault::Repeat(step)]
    };
    let (which, parts) = if steps.len() > FEW { share() } else { (0, 1) };
    let each = steps.iter().enumerate().flat_map(|(number, step)| (number..).zip(of(step)));
    each.filter(|(number, _)| number % parts == which).map(|(_, fault)| fault).collect()
}

/// So many of a list, evenly.
pub fn some<T>(all: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    let (which, parts) = share();
    all.into_iter().skip(which).step_by(parts)
}

fn share() -> (usize, usize) {
    let Ok(said) = std::env::var(SHARE) else { return (0, 1) };
    let parsed = said.split_once('/').and_then(|(which, parts)| Some((which.parse().ok()?, parts.parse().ok()?)));
    parsed.filter(|(which, parts)| which < parts).unwrap_or_else(|| panic!("{SHARE} is one of so many, as 1/3: {said}"))
}
