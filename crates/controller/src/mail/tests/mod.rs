//! Letters, the queue, and a relay that speaks SMTP.

mod bundles;
mod jobs;
mod lasting;
mod letters;
mod queue;
mod sink;
mod tls;
