//! Letters, the queue, and a relay that speaks SMTP.

mod letters;
mod queue;
mod sink;
