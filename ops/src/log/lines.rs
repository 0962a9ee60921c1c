//! Writes lines: at once, except those of the access log, which are buffered for a moment.
//!
//! A system call for each request costs more than the line itself. All other lines are written at once, after the
//! buffered ones. So lines keep their order, and the last lines of a process that crashes are not lost in a buffer.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tracing::Metadata;
use tracing_subscriber::fmt::MakeWriter;

/// The target of the access log's events, one for each request.
pub const ACCESS: &str = "access";

/// The maximum time that a line waits.
const MAX_DELAY: Duration = Duration::from_millis(20);

/// The limit of waiting bytes. Above it, the logging thread writes them itself, which is slower but loses nothing.
const MAX_WAITING: usize = 256 * 1024;

/// Clones write to the same place.
#[derive(Debug)]
pub(super) struct Lines<W>(Arc<Shared<W>>);

#[derive(Debug)]
struct Shared<W> {
    /// Each writer locks it before `waiting`, so that lines keep their order.
    out: Mutex<W>,
    waiting: Mutex<Waiting>,
    begun: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: Vec<u8>,
    /// Lines are no longer buffered: the process ends.
    ended: bool,
}

/// Writes one line.
#[derive(Debug)]
pub(super) struct Line<'l, W> {
    shared: &'l Shared<W>,
    gathered: bool,
}

/// Dropping it writes the buffered lines. From then on, lines are written at once.
#[must_use = "lines that are gathered are written when this is dropped"]
pub struct Logging(Option<Box<dyn Fn() + Send + Sync>>);

// === impl Lines ===

impl<W: Write + Send + 'static> Lines<W> {
    /// Lines to `out`, and the guard that ends the buffering.
    pub(super) fn new(out: W) -> (Self, Logging) {
        let shared = Arc::new(Shared { out: Mutex::new(out), waiting: Mutex::default(), begun: Condvar::new() });
        let writer = Arc::clone(&shared);
        let thread = thread::Builder::new().name("log".into()).stack_size(64 * 1024).spawn(move || writer.run());
        // Without the thread, every line is written at once.
        shared.waiting().ended = thread.is_err();
        let end = Arc::clone(&shared);
        (Self(shared), Logging(Some(Box::new(move || end.end()))))
    }
}

impl<'w, W: Write + 'static> MakeWriter<'w> for Lines<W> {
    type Writer = Line<'w, W>;

    fn make_writer(&'w self) -> Self::Writer {
        Line { shared: &self.0, gathered: false }
    }

    fn make_writer_for(&'w self, meta: &Metadata<'_>) -> Self::Writer {
        Line { shared: &self.0, gathered: meta.target() == ACCESS }
    }
}

// === impl Line ===

impl<W: Write> Write for Line<'_, W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if !(self.gathered && self.shared.gather(line)) {
            self.shared.write(line)?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// === impl Shared ===

impl<W: Write> Shared<W> {
    /// Writes the buffered lines, repeatedly until the end.
    fn run(&self) {
        loop {
            let mut waiting = self.waiting();
            while waiting.lines.is_empty() && !waiting.ended {
                waiting = self.begun.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
            if waiting.ended {
                return;
            }
            drop(waiting);
            thread::sleep(MAX_DELAY);
            // If the log cannot be written, there is nowhere to report it.
            let _ = self.write(&[]);
        }
    }

    /// `false` if there is no room.
    fn gather(&self, line: &[u8]) -> bool {
        let mut waiting = self.waiting();
        if waiting.ended || waiting.lines.len() + line.len() > MAX_WAITING {
            return false;
        }
        if waiting.lines.is_empty() {
            self.begun.notify_one();
        }
        waiting.lines.extend_from_slice(line);
        true
    }

    /// Writes the buffered lines, and then `line`.
    fn write(&self, line: &[u8]) -> io::Result<()> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let gathered = std::mem::take(&mut self.waiting().lines);
        out.write_all(&gathered)?;
        out.write_all(line)?;
        out.flush()
    }

    fn end(&self) {
        self.waiting().ended = true;
        self.begun.notify_one();
        let _ = self.write(&[]);
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Logging ===

impl Drop for Logging {
    fn drop(&mut self) {
        if let Some(end) = self.0.take() {
            end();
        }
    }
}

impl std::fmt::Debug for Logging {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Logging").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tracing::{info, warn};

    use super::*;

    /// Each write, as one message.
    struct Pipe(mpsc::Sender<String>);

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(String::from_utf8(bytes.to_vec()).unwrap()).map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logging(events: impl FnOnce(Logging)) -> Vec<String> {
        let (sender, written) = mpsc::channel();
        let (lines, logging) = Lines::new(Pipe(sender));
        let subscriber = tracing_subscriber::fmt().without_time().with_ansi(false).with_writer(lines).finish();
        tracing::subscriber::with_default(subscriber, || events(logging));
        written.try_iter().flat_map(|write| write.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    #[test]
    fn lines_are_complete_and_in_order() {
        let many = 3 * MAX_WAITING / 40;
        let written = logging(|logging| {
            for number in 0..many {
                info!(target: ACCESS, number, "GET");
                if number % 1_000 == 0 {
                    warn!(number, "slow");
                }
            }
            drop(logging);
            info!(target: ACCESS, "after the end");
        });
        let requests: Vec<_> = written.iter().filter(|line| line.contains("number=")).collect();
        assert_eq!(requests.len(), many + many.div_ceil(1_000));
        let numbers = requests.iter().map(|line| line.rsplit('=').next().unwrap().parse::<usize>().unwrap());
        assert!(numbers.is_sorted());
        assert!(written.last().unwrap().contains("after the end"));
    }

    #[test]
    fn the_access_log_is_buffered_and_warnings_are_not() {
        let (sender, written) = mpsc::channel();
        let (lines, _logging) = Lines::new(Pipe(sender));
        let subscriber = tracing_subscriber::fmt().without_time().with_ansi(false).with_writer(lines).finish();
        tracing::subscriber::with_default(subscriber, || {
            warn!("now");
            assert!(written.try_iter().collect::<String>().contains("now"));
            info!(target: ACCESS, "soon");
            let mut heard = String::new();
            while !heard.contains("soon") {
                heard += &written.recv_timeout(Duration::from_secs(60)).unwrap();
            }
        });
    }
}
