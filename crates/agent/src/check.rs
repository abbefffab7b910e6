//! Tells what of a node's guests and images is not as it should be, without changing anything.
//!
//! What Corpus owns in a guest is the folder of [`setup::KEYS`]: a file for each account, which
//! [`setup::keys`] writes whole. So every other key in it is foreign. `~/.ssh/authorized_keys`
//! belongs to whoever uses the guest, and is not looked at.

use std::collections::BTreeSet;

use corpus_domain::{DriftKind, GuestName, GuestState, ImageName};
use corpus_protocol::{Difference, GuestCheck, GuestReading};

use crate::drivers;
use crate::drivers::lxc::views;
use crate::failure::Failure;
use crate::image;
use crate::setup;
use crate::task::Task;

/// What is on the host now.
struct Observed {
    guests: Vec<GuestReading>,
    /// Those of them that are others than the guests of their names.
    others: Vec<GuestName>,
    /// Containers that Corpus did not make.
    foreign: Vec<String>,
    images: Vec<ImageName>,
}

/// The differences.
pub fn check(task: &Task<'_>, guests: &[GuestCheck], images: &[ImageName]) -> Result<Vec<Difference>, Failure> {
    let mut others = Vec::new();
    for GuestCheck { name, id, .. } in guests {
        // A container that is not ours has no id, and is told of by its name.
        if drivers::is_another(task.host, name, *id).unwrap_or(false) {
            others.push(name.clone());
        }
    }
    let observed = Observed {
        guests: drivers::readings(task.host),
        others,
        foreign: drivers::foreign(task.host),
        images: image::list(task.host).into_iter().map(|(name, _)| name).collect(),
    };
    let mut differences = compare(guests, images, &observed);
    if !views::is_served(task.host) {
        let text = format!("{} does not serve: free, nproc and uptime in guests tell of the node", views::UNIT);
        differences.push(Difference::of_node(DriftKind::Unit, text));
    }
    for guest in guests {
        task.go_on()?;
        differences.extend(keys(task, guest, &observed)?);
    }
    Ok(differences)
}

/// The decision, from what should be and what was seen.
fn compare(guests: &[GuestCheck], images: &[ImageName], observed: &Observed) -> Vec<Difference> {
    let lacking = images.iter().filter(|image| !observed.images.contains(image));
    let mut differences: Vec<Difference> =
        lacking.map(|image| Difference::of_node(DriftKind::Image, format!("the image {image} is missing"))).collect();
    differences.extend(guests.iter().filter_map(|guest| one(guest, observed)));
    let known: BTreeSet<&GuestName> = guests.iter().map(|guest| &guest.name).collect();
    let unknown = observed.guests.iter().filter(|seen| !known.contains(&seen.name));
    differences.extend(unknown.map(|seen| {
        let text = format!("the container {} is of Corpus, and no guest of this node", seen.name);
        Difference::of_node(DriftKind::Foreign, text)
    }));
    differences.extend(
        observed.foreign.iter().map(|name| {
            Difference::of_node(DriftKind::Foreign, format!("the container {name} was not made by Corpus"))
        }),
    );
    differences
}

fn one(guest: &GuestCheck, observed: &Observed) -> Option<Difference> {
    let name = &guest.name;
    let Some(seen) = state(observed, name) else {
        let gone = || Difference::of_guest(DriftKind::Gone, name, "its container is gone from the node");
        return guest.there.then(gone);
    };
    if observed.others.contains(name) {
        let text = "its container is gone from the node, where another guest has its name";
        return guest.there.then(|| Difference::of_guest(DriftKind::Gone, name, text));
    }
    let running = seen == GuestState::Running;
    let text = match guest.running {
        Some(true) if !running => "it should run and is stopped",
        Some(false) if running => "it should be stopped and runs",
        _ => return None,
    };
    Some(Difference::of_guest(DriftKind::Power, name, text))
}

fn state(observed: &Observed, name: &GuestName) -> Option<GuestState> {
    observed.guests.iter().find(|seen| seen.name == *name).map(|seen| seen.state)
}

/// What differs of the keys in a guest that runs. It may end while it is looked at: then its
/// keys are not what matters.
fn keys(task: &Task<'_>, guest: &GuestCheck, observed: &Observed) -> Result<Vec<Difference>, Failure> {
    let (Some(wanted), Some(GuestState::Running)) = (&guest.keys, state(observed, &guest.name)) else {
        return Ok(Vec::new());
    };
    if observed.others.contains(&guest.name) {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for driver in drivers::all() {
        match driver.running_root(task.host, &guest.name) {
            Ok(Some(root)) => found.extend(setup::key_differences(&root, wanted)?),
            Ok(None) | Err(Failure::Io { .. }) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(found.into_iter().map(|text| Difference::of_guest(DriftKind::Key, &guest.name, text)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> GuestName {
        text.parse().unwrap()
    }

    fn check(text: &str, there: bool, running: Option<bool>) -> GuestCheck {
        GuestCheck { name: name(text), id: None, there, running, keys: None }
    }

    fn seen(text: &str, state: GuestState) -> GuestReading {
        GuestReading {
            name: name(text),
            state,
            uptime_s: None,
            memory_used: None,
            cpu_millis: None,
            processes: None,
            storage: None,
        }
    }

    #[test]
    fn each_kind_is_told_and_what_is_right_is_not() {
        let observed = Observed {
            guests: vec![
                seen("runs.x", GuestState::Running),
                seen("rests.x", GuestState::Stopped),
                seen("busy.x", GuestState::Running),
                seen("swapped.x", GuestState::Running),
                seen("stray.x", GuestState::Running),
            ],
            others: vec![name("swapped.x")],
            foreign: vec!["pet".into()],
            images: vec!["debian-12".parse().unwrap()],
        };
        let right = [check("runs.x", true, Some(true)), check("rests.x", true, Some(false))];
        let busy = ["busy.x", "coming.x", "swapped.x"].map(|name| check(name, false, None));
        let stray = [check("stray.x", true, None)];
        let all: Vec<GuestCheck> = right.iter().chain(&busy).chain(&stray).cloned().collect();
        let told = |guests: &[GuestCheck], images: &[ImageName]| -> Vec<(DriftKind, Option<String>)> {
            let found = compare(guests, images, &observed).into_iter();
            found.map(|one| (one.kind, one.guest.map(|guest| guest.to_string()))).collect()
        };
        let pet = (DriftKind::Foreign, None);
        assert_eq!(told(&all, &["debian-12".parse().unwrap()]), std::slice::from_ref(&pet));
        assert_eq!(told(&all, &["debian-13".parse().unwrap()]), [(DriftKind::Image, None), pet.clone()]);
        let mut wrong = all.clone();
        wrong[0].running = Some(false);
        wrong[1].running = Some(true);
        wrong[3].there = true;
        wrong[4].there = true;
        wrong.pop();
        let of = |kind, guest: &str| (kind, Some(guest.to_owned()));
        assert_eq!(
            told(&wrong, &[]),
            [
                of(DriftKind::Power, "runs.x"),
                of(DriftKind::Power, "rests.x"),
                of(DriftKind::Gone, "coming.x"),
                of(DriftKind::Gone, "swapped.x"),
                (DriftKind::Foreign, None),
                pet
            ]
        );
    }
}
