//! Files that operators change while a process runs: certificates, keys, tokens, configuration.
//!
//! A mounted Secret changes by exchanging a symbolic link two directories up (Kubernetes `pkg/volume/util/
//! atomic_writer.go`), which file notification reports late or not at all. So the content is read again and compared
//! every few seconds, and at once on SIGHUP. This module does not interpret the files: [`Reloader::watch`] takes a
//! function that parses them *together*, so a key is never used with an older or newer certificate.
//!
//! Reading order: [`Watched`] (what users of a file hold), [`Reloader`] (reads again), then [`write()`] (writes a file
//! atomically) and [`lock()`] (keeps other processes out).

mod lock;
mod reloader;
mod source;
mod watched;
mod write;

pub use lock::{LOCK, lock};
pub use reloader::{Counts, Reloader};
pub use source::{LoadError, MAX_FILE_BYTES};
pub use watched::{Changes, Watched};
pub use write::{Existing, Secrecy, WriteError, write};
