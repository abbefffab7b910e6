//! Which archives are kept, and what goes: decided without touching any.
//!
//! A deployment archives what is live before it changes anything. When it fails, that is live still, and its archive
//! one more copy of it: were the newest archives kept whatever they hold, a few failures would push out all that one
//! could go back to. So it is releases that count ([`Release`]), from the newest archive to the oldest:
//!
//! - An archive of what is live goes: there is nothing to go back to. So does one of a release of which a newer
//!   archive is there. All others are kept until there are as many as wanted, and those beyond go.
//! - One that counts alone is kept and counted like a release of its own, whatever it holds: it was made because
//!   somebody asked for it, or before a deployment that ended broken, where a person may need it.
//! - One that does not say what it holds (nothing was live then, or nobody wrote it down) neither pushes a release out
//!   nor goes before its time: it stays while it is among the newest of all. Where nothing is live, it holds just that.
//! - What is in use stays.
//! - Of the trees that failed the last one stays, whether its archive does or not; none where no archives are wanted,
//!   but for that of the deployment that ends.
//!
//! The plan is made from what is on the disk each time, so one that was carried out in part is made good by the next.

use corpus_domain::{DeploymentId, Release};
use corpus_protocol::Live;

use crate::project::archive::Meta;

/// A folder of an archive.
#[derive(Debug, Clone)]
pub struct Known {
    /// The deployment that it is of.
    pub id: DeploymentId,
    /// What is known of the archive; none when it is not whole.
    pub meta: Option<Meta>,
    /// Whether a tree that failed is there.
    pub has_failed_tree: bool,
}

/// What is to be kept.
#[derive(Debug, Clone, Copy)]
pub struct Retention<'a> {
    /// How many releases.
    pub kept: usize,
    /// What is live.
    pub live: Option<&'a Live>,
    /// Archives that stay in any case.
    pub in_use: &'a [DeploymentId],
    /// Whose failed tree stays.
    pub failed_tree: Option<FailedTree>,
}

/// Whose failed tree stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailedTree {
    /// The newest one.
    Newest,
    /// That of a deployment.
    Of(DeploymentId),
}

/// What goes of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Going {
    /// Whose.
    pub id: DeploymentId,
    /// The archive with its copies.
    pub copies: bool,
    /// The tree that failed.
    pub failed_tree: bool,
    /// Nothing is left in it.
    pub is_all: bool,
}

/// What goes of all that is there.
pub fn plan(known: &[Known], rule: &Retention<'_>) -> Vec<Going> {
    let kept = kept(known, rule);
    let failed_tree = failed_tree(known, rule);
    let going = known.iter().map(|one| {
        let copies = !kept.contains(&one.id);
        let stays = failed_tree == Some(one.id);
        Going { id: one.id, copies, failed_tree: one.has_failed_tree && !stays, is_all: copies && !stays }
    });
    going.filter(|going| going.copies || going.failed_tree).collect()
}

fn failed_tree(known: &[Known], rule: &Retention<'_>) -> Option<DeploymentId> {
    let failed = known.iter().filter(|one| one.has_failed_tree).map(|one| one.id);
    match rule.failed_tree? {
        FailedTree::Of(id) => failed.into_iter().find(|failed| *failed == id),
        // Ids are made of the time.
        FailedTree::Newest => failed.max(),
    }
}

fn kept(known: &[Known], rule: &Retention<'_>) -> Vec<DeploymentId> {
    let mut newest: Vec<_> = known.iter().filter_map(|one| Some((one.id, one.meta.as_ref()?))).collect();
    newest.sort_by_key(|(id, meta)| std::cmp::Reverse((meta.at_ms, *id)));
    let mut kept = rule.in_use.to_vec();
    let mut releases = Releases { wanted: rule.kept, counted: 0, seen: Vec::new() };
    releases.seen.extend(rule.live.map(Live::release));
    for (place, (id, meta)) in newest.into_iter().enumerate() {
        let stays = match &meta.live {
            _ if meta.counts_alone => releases.count(),
            Some(held) => releases.take(held.release()),
            None => rule.live.is_some() && place < rule.kept,
        };
        kept.extend(stays.then_some(id));
    }
    kept
}

/// The releases so far, with the one that is live.
struct Releases<'a> {
    wanted: usize,
    counted: usize,
    seen: Vec<Release<'a>>,
}

impl<'a> Releases<'a> {
    fn take(&mut self, held: Release<'a>) -> bool {
        let is_new = !self.seen.iter().any(|seen| seen.is_same(&held));
        self.seen.push(held);
        is_new && self.count()
    }

    fn count(&mut self) -> bool {
        let fits = self.counted < self.wanted;
        self.counted += usize::from(fits);
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> DeploymentId {
        DeploymentId(uuid::Uuid::from_u128(number))
    }

    /// `4` is what deployment 4 made live; `4=2` the same of the commit of 2; `4~` with another pillar.
    fn live(word: &str) -> Option<Live> {
        let (word, pillar) = word.strip_suffix('~').map_or((word, "a"), |word| (word, "b"));
        let (deployment, commit) = word.split_once('=').unwrap_or((word, word));
        Some(Live {
            deployment: id(deployment.parse().ok()?),
            commit: format!("{commit:0>40}").parse().ok(),
            pillar: pillar.repeat(40).parse().ok(),
            since_ms: 0,
        })
    }

    /// `9:4` is the archive of deployment 9, which holds release 4; `9:` one that does not say what it holds;
    /// `9:4!` one that counts alone; `9` no archive; `9:4x` and `9x` with a tree that failed.
    fn known(word: &str) -> Known {
        let (word, has_failed_tree) = word.strip_suffix('x').map_or((word, false), |word| (word, true));
        let (word, counts_alone) = word.strip_suffix('!').map_or((word, false), |word| (word, true));
        let (number, held) = word.split_once(':').map_or((word, None), |(number, held)| (number, Some(held)));
        let number: u64 = number.parse().unwrap();
        let meta = held.map(|held| Meta { live: live(held), at_ms: number, bytes: 1, counts_alone });
        Known { id: id(number.into()), meta, has_failed_tree }
    }

    /// What is left, in the same words.
    fn left(there: &str, kept: usize, now: &str) -> String {
        let folders: Vec<(&str, Known)> = there.split_whitespace().map(|word| (word, known(word))).collect();
        let all: Vec<Known> = folders.iter().map(|(_, known)| known.clone()).collect();
        let live = live(now);
        let rule = Retention { kept, live: live.as_ref(), in_use: &[], failed_tree: Some(FailedTree::Newest) };
        let going = plan(&all, &rule);
        let word = |(word, known): &(&str, Known)| {
            let Some(going) = going.iter().find(|going| going.id == known.id) else { return Some((*word).to_owned()) };
            let number = word.split(':').next()?.trim_end_matches('x');
            match (going.is_all, going.copies) {
                (true, _) => None,
                (false, true) => Some(format!("{number}x")),
                (false, false) => Some(word.trim_end_matches('x').to_owned()),
            }
        };
        folders.iter().filter_map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_stays() {
        let table = [
            ("5:4 4:3 3:2 2:1", 3, "5", "5:4 4:3 3:2", "the newest releases"),
            ("9:5x 8:5x 7:5x 5:4 4:3", 3, "5", "9x 5:4 4:3", "failures push nothing out, and one failed tree stays"),
            ("10:5 9:5x 8:5x 5:4 4:3 3:2", 3, "10", "10:5 9x 5:4 4:3", "nor do they once another one is live"),
            ("9:8 8:7=4 5:4 4:3", 3, "9", "9:8 8:7=4 4:3", "a release that came back counts once, its newest copy"),
            ("9:8=4 5:4 4:3", 3, "9=4", "4:3", "the live commit deployed again is no other release"),
            ("9:8=4~ 4:3", 3, "9=4", "9:8=4~ 4:3", "with another pillar it is"),
            ("5:4 4:3 2:1", 0, "5", "", "none wanted"),
            ("9:5! 8:5! 5:4 4:3", 3, "5", "9:5! 8:5! 5:4", "what was asked for counts alone, even of what is live"),
            ("9:5 8:5! 5:4 4:3", 3, "9", "9:5 8:5! 5:4", "and takes no release's place as its newest copy"),
            ("3:2 2:1 1:", 3, "3", "3:2 2:1 1:", "unknown: it stays among the newest"),
            ("4:3 3:2 2:1 1:", 3, "4", "4:3 3:2 2:1", "and goes with them"),
            ("9: 8: 7: 5:4 4:3 3:2 2:1", 3, "5", "9: 8: 7: 5:4 4:3 3:2", "it pushes no release out"),
            ("3: 2: 1:x", 3, "", "1x", "nothing was live, and nothing is"),
            ("4:3 3:2", 3, "", "4:3 3:2", "nothing is live any more"),
            ("9x 8x 7 5:4x 4:3x", 3, "5", "9x 5:4 4:3", "what is no archive goes, of failed trees all but one"),
        ];
        for (there, kept, now, stays, what) in table {
            assert_eq!(left(there, kept, now), stays, "{what}");
            assert_eq!(left(stays, kept, now), stays, "{what}, once more");
        }
    }

    #[test]
    fn what_is_in_use_stays() {
        let all: Vec<Known> = ["9:5", "8:7x", "5:4", "4:3x"].map(known).into();
        let live = live("5");
        let in_use = [id(9), id(4)];
        let rule =
            Retention { kept: 0, live: live.as_ref(), in_use: &in_use, failed_tree: Some(FailedTree::Of(id(8))) };
        let gone = |id, copies, failed_tree, is_all| Going { id, copies, failed_tree, is_all };
        let going = [gone(id(8), true, false, false), gone(id(5), true, false, true), gone(id(4), false, true, false)];
        assert_eq!(plan(&all, &rule), going);
        let [first, ..] = plan(&all, &Retention { failed_tree: None, ..rule })[..] else { panic!() };
        assert_eq!(first, gone(id(8), true, true, true));
    }
}
