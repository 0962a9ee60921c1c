//! The signals that ask a program to end.

use std::fmt;
use std::io;

use tokio::signal::unix::{self, SignalKind};

/// A signal that asks a program to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// `SIGTERM`: a supervisor, such as a kubelet.
    Terminate,
    /// `SIGINT`: Ctrl-C.
    Interrupt,
}

/// Both signals, from now on. While this exists, and after, neither ends the process by itself.
#[derive(Debug)]
pub struct Signals {
    terminate: unix::Signal,
    interrupt: unix::Signal,
}

/// Waits for the first `SIGTERM` or `SIGINT` after this call. For a program that also heeds a second one, keep a
/// [`Signals`].
///
/// # Errors
/// The operating system refuses the handler.
pub async fn signal() -> io::Result<Signal> {
    Ok(Signals::install()?.recv().await)
}

// === impl Signals ===

impl Signals {
    /// Starts listening. Call it first thing, so that an early Ctrl-C is not lost.
    ///
    /// # Errors
    /// The operating system refuses the handler.
    pub fn install() -> io::Result<Self> {
        Ok(Self {
            terminate: unix::signal(SignalKind::terminate())?,
            interrupt: unix::signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal.
    pub async fn recv(&mut self) -> Signal {
        tokio::select! {
            Some(()) = self.terminate.recv() => Signal::Terminate,
            Some(()) = self.interrupt.recv() => Signal::Interrupt,
            // Only when the runtime's signal driver is gone, that is while the runtime is being dropped.
            else => std::future::pending().await,
        }
    }
}

// === impl Signal ===

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
        })
    }
}
