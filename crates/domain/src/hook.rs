//! Words of the operator's hooks: where one runs, on which side of its stage, what it did.

use crate::text::{text_type, word_enum};

word_enum!(
    /// Where a hook runs.
    HookHost, "place of a hook", {
        /// On the machine of the controller, as the server's user.
        Controller = "controller",
        /// On the compute node that the job is about, as root.
        Node = "node",
        /// In the guest that the job is about, as its root.
        Guest = "guest",
    }
);

word_enum!(
    /// On which side of its stage a hook runs.
    HookSide, "side of a stage", {
        /// Before it.
        Before = "before",
        /// After it, when it succeeded.
        After = "after",
    }
);

word_enum!(
    /// What a run of a hook came to.
    HookState, "state of a hook's run", {
        /// It runs.
        Running = "running",
        /// It succeeded.
        Done = "done",
        /// It failed, and its step with it.
        Failed = "failed",
        /// It failed, and its step went on.
        Warned = "warned",
        /// Its job was cancelled.
        Cancelled = "cancelled",
        /// Its server ended meanwhile; how far it came is not known.
        Lost = "lost",
    }
);

word_enum!(
    /// What became of what a run of a hook is to be undone by.
    HookUndo, "state of a hook's undo", {
        /// It is undone when its step is.
        Wanted = "wanted",
        /// It was undone.
        Undone = "undone",
        /// Its undo failed.
        Failed = "failed",
    }
);

word_enum!(
    /// What a hook that fails does to its step.
    HookFailure, "effect of a hook's failure", {
        /// The step fails, and the job is undone.
        Fail = "fail",
        /// It is said in the job's log.
        Warn = "warn",
    }
);

/// Two digits, a hyphen, and what it is called.
fn hook_name(given: &str) -> Option<String> {
    let stem = given.strip_suffix(".sls").unwrap_or(given);
    let bytes = stem.as_bytes();
    let [first, second, b'-', rest @ ..] = bytes else { return None };
    let is_named =
        !rest.is_empty() && rest.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-');
    (first.is_ascii_digit() && second.is_ascii_digit() && is_named).then(|| given.to_owned())
}

fn hook_stage(given: &str) -> Option<String> {
    let mut parts = given.split('.');
    let (subject, stage, side) = (parts.next()?, parts.next()?, parts.next()?);
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    let fits = ["node", "guest", "project"].contains(&subject)
        && is_word(stage)
        && side.parse::<HookSide>().is_ok()
        && parts.next().is_none();
    fits.then(|| given.to_owned())
}

text_type!(
    /// The name of a hook's file: two digits that say its order, and a word. A `.sls` is one for Salt.
    HookName, "name of a hook",
    "two digits, a hyphen, then lower-case letters, digits and hyphens, and .sls for Salt: 10-monitoring",
    pattern: "^[0-9]{2}-[a-z0-9-]+([.]sls)?$", max: 64, example: "10-monitoring", hook_name
);
text_type!(
    /// What hooks hang on: a stage and its side, which is the name of their folder.
    HookStage, "stage of hooks", "subject, stage and side joined by dots: guest.spawn.before",
    pattern: "^(node|guest|project)[.][a-z-]+[.](before|after)$", max: 64, example: "guest.ping.after", hook_stage
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_stages_are_paths_of_one_part() {
        for good in ["10-monitoring", "00-a", "99-x-1.sls"] {
            assert!(good.parse::<HookName>().is_ok(), "{good}");
        }
        for bad in ["", "1-a", "10-", "10-a/../b", "10-A", "10-a.undo", "10-a.toml", "10-.sls", "..", "10-a.sls.sls"] {
            assert!(bad.parse::<HookName>().is_err(), "{bad}");
        }
        assert!("project.release-sync.after".parse::<HookStage>().is_ok());
        for bad in
            ["guest.spawn", "guest.spawn.during", "image.a.after", "guest..after", "guest.a.after.x", "guest.../.after"]
        {
            assert!(bad.parse::<HookStage>().is_err(), "{bad}");
        }
    }
}
