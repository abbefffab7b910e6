//! The words of what tests came to.

use crate::text::{text_type, word_enum};

word_enum!(
    /// What a test came to; the first is the worst news.
    TestResult, "test result", {
        /// What it checks is not so.
        Failed = "failed",
        /// It could not be carried out.
        Errored = "error",
        /// It was left out.
        Skipped = "skipped",
        /// What it checks is so.
        Passed = "passed",
    }
);

text_type!(
    /// What a report of tests is called among those of its deployment.
    TestReportName, "name of a test report", "1 to 100 letters, digits, dots, hyphens and underscores, the first a letter or digit",
    pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", max: 100, example: "unit",
    |given| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
        let begins = given.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric());
        (begins && given.bytes().all(plain)).then(|| given.to_owned())
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_reports() {
        for good in ["unit", "TEST-org.example.ShopTest.xml", "0", &"x".repeat(100)] {
            assert!(good.parse::<TestReportName>().is_ok(), "{good}");
        }
        for wrong in ["", ".", "..", "-x", "a/b", "a b", "ü", &"x".repeat(101)] {
            assert!(wrong.parse::<TestReportName>().is_err(), "{wrong}");
        }
    }
}
