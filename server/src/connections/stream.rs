//! A connection whose other end must read what it asked for.
//!
//! As long as the other end takes nothing, an answer stays in memory. Within the time
//! that is given it takes at least [`STEP`] bytes or all there is; else the connection is closed.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// How many bytes: a slow telephone takes them in a second.
const STEP: usize = 4096;

/// The connection.
pub(super) struct Watched<S = TcpStream> {
    stream: S,
    within: Duration,
    /// Runs from the first byte that was not taken at once.
    waiting: Option<Pin<Box<Sleep>>>,
    taken: usize,
}

impl<S> Watched<S> {
    pub(super) const fn new(stream: S, within: Duration) -> Self {
        Self { stream, within, waiting: None, taken: 0 }
    }

    /// What became of a write, unless the other end has been too slow for too long.
    fn judge(&mut self, context: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(count)) = written {
            self.taken += count;
            if self.taken >= STEP {
                self.waiting = None;
            }
            return written;
        }
        if written.is_ready() {
            return written;
        }
        if self.waiting.is_none() {
            self.taken = 0;
        }
        let within = self.within;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(within)));
        ready!(waiting.as_mut().poll(context));
        waiting.as_mut().reset(Instant::now() + within);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the other end does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, from);
        self.judge(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, from);
        self.judge(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper flushes when the stream has taken all it has.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.waiting = None;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const WITHIN: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn who_reads_nothing_or_a_byte_now_and_then_is_left() {
        for byte_every in [None, Some(Duration::from_millis(20))] {
            let (mine, mut other) = duplex(64);
            let began = Instant::now();
            let reading = tokio::spawn(async move {
                loop {
                    sleep(byte_every.unwrap_or(WITHIN)).await;
                    if byte_every.is_some() {
                        other.read_u8().await.ok();
                    }
                }
            });
            let error = Watched::new(mine, WITHIN).write_all(&vec![0; 100_000]).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert!(began.elapsed() < 4 * WITHIN, "{:?}", began.elapsed());
            reading.abort();
        }
    }

    #[tokio::test]
    async fn a_slow_reader_and_one_that_rests_between_answers_stay() {
        let (mine, mut other) = duplex(64);
        let reading = tokio::spawn(async move {
            let mut all = Vec::new();
            let mut part = [0; 64];
            while let Ok(count) = other.read(&mut part).await
                && count > 0
            {
                all.extend_from_slice(part.get(..count).unwrap());
                sleep(Duration::from_millis(1)).await;
            }
            all.len()
        });
        let mut mine = Watched::new(mine, WITHIN);
        for _ in 0..2 {
            mine.write_all(&vec![0; 20_000]).await.unwrap();
            mine.flush().await.unwrap();
            sleep(WITHIN * 3).await;
        }
        drop(mine);
        assert_eq!(reading.await.unwrap(), 40_000);
    }
}
