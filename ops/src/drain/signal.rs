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

/// Receives both signals from now on. From then on, neither ends the process by itself, even after this is dropped.
#[derive(Debug)]
pub struct Signals {
    terminate: unix::Signal,
    interrupt: unix::Signal,
}

/// Waits for the first `SIGTERM` or `SIGINT` after this call. If a program also handles a second signal, keep a
/// [`Signals`].
///
/// # Errors
/// The operating system refuses the handler.
pub async fn signal() -> io::Result<Signal> {
    Ok(Signals::install()?.recv().await)
}

// === impl Signals ===

impl Signals {
    /// Starts listening. Call it first, so that an early Ctrl-C is not lost.
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
            // Only while the runtime is being dropped, because its signal driver is gone then.
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
