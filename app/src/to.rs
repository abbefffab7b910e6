//! Where a form is sent: the operation says it, with what stands in its path.

use std::fmt::Display;

use corpus_api::Operation;

/// The address of an operation's form: `to::<CancelJob>(&[&job])`, with the values of its path in order.
pub fn to<O: Operation>(values: &[&dyn Display]) -> String {
    let mut values = values.iter();
    let path = O::META.plain().form_path();
    let parts = path.split('/').map(|part| match part.strip_prefix('{') {
        Some(_) => values.next().map(ToString::to_string).unwrap_or_default(),
        None => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use corpus_api::jobs::CancelJob;

    use super::*;

    #[test]
    fn the_address_of_a_form() {
        assert_eq!(to::<CancelJob>(&[&7]), "/jobs/7/cancel");
    }
}
