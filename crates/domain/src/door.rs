//! By which door something was asked of Corpus, as the audit tells.

use crate::text::word_enum;

word_enum!(
    /// By which door something was asked, or that nobody asked.
    Door, "door", {
        /// A page, in a browser.
        Page = "page",
        /// The API, as JSON: programs and the command line.
        Api = "api",
        /// The git server.
        Git = "git",
        /// A job, in the name of who asked for it.
        Job = "job",
        /// A command on the server's own machine.
        CommandLine = "command_line",
        /// Corpus itself: what it found, or does from time to time.
        Corpus = "corpus",
    }
);
