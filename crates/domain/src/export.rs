//! How a list is written to a file.

use crate::text::word_enum;

word_enum!(
    /// The format of a file that a list is exported to.
    ExportFormat, "format", {
        /// Comma-separated values with a line of headings, as RFC 4180 has them, for spreadsheets.
        Csv = "csv",
        /// A JSON object on each line, for programs.
        JsonLines = "jsonl",
    }
);
