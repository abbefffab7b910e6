//! A check that ends by a moment too early for itself is done again.
//!
//! Before it reads contents, `rustic_core` wants back what its own threads have just read the index with. It waits a tenth
//! of a second for them, and panics where they hold it for longer, as they do on a busy machine. A check only reads.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// How often at most.
const TIMES: u32 = 4;
/// How such a panic begins.
const TOLD: &str = "index still in use";

/// What it comes to; any other panic goes on.
pub fn again_where_late<T>(work: impl Fn() -> T) -> T {
    for _ in 1..TIMES {
        match catch_unwind(AssertUnwindSafe(&work)) {
            Ok(done) => return done,
            Err(panic) if is_late(panic.as_ref()) => {}
            Err(panic) => resume_unwind(panic),
        }
    }
    work()
}

fn is_late(panic: &(dyn Any + Send)) -> bool {
    panic.downcast_ref::<String>().is_some_and(|text| text.starts_with(TOLD))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn tried(late: u32, text: &str) -> (Option<u32>, u32) {
        let times = Cell::new(0);
        let work = || {
            times.set(times.get() + 1);
            assert!(times.get() > late, "{text}: Index {{ .. }}");
            times.get()
        };
        (catch_unwind(AssertUnwindSafe(|| again_where_late(work))).ok(), times.get())
    }

    #[test]
    fn it_is_done_again_some_times() {
        assert_eq!(tried(0, TOLD), (Some(1), 1));
        assert_eq!(tried(2, TOLD), (Some(3), 3));
        assert_eq!(tried(9, TOLD), (None, TIMES));
    }

    #[test]
    fn what_breaks_otherwise_breaks_once() {
        assert_eq!(tried(1, "no such pack"), (None, 1));
    }
}
