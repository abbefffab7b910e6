//! Threads that work on repositories give way to everybody else.
//!
//! A backup compresses and encrypts for minutes, and a check reads for longer. Nobody waits for that, while pages and pushes on
//! the same machine are waited for. What such a thread starts gives way as well; bringing files back does not.

use rustix::process::setpriority_process;
use tokio::sync::oneshot;

/// How nice it is to others: as `nice` makes a program.
const NICE: i32 = 5;

/// Does it in a thread of its own. It goes on when nobody waits for it any more; nothing comes where it could not.
pub(crate) fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> oneshot::Receiver<T> {
    let (told, ended) = oneshot::channel();
    let begun = std::thread::Builder::new().name("repository".to_owned()).spawn(move || {
        // Of the calling thread, on Linux. One that stays as it is works as well.
        let _ = setpriority_process(None, NICE);
        drop(told.send(work()));
    });
    if let Err(error) = begun {
        tracing::error!(%error, "no thread could be started for a repository");
    }
    ended
}

#[cfg(test)]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    #[tokio::test]
    async fn it_gives_way_and_nobody_else_does() {
        let nice = || getpriority_process(None).unwrap();
        let before = nice();
        let there = aside(move || (nice(), std::thread::spawn(nice).join().unwrap())).await.unwrap();
        assert_eq!((there, nice()), ((NICE, NICE), before));
        assert!(aside(|| panic!("it breaks")).await.is_err());
    }
}
