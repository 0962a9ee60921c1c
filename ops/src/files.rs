//! Files that operators change while a process runs: certificates, keys, tokens, configuration.
//!
//! A mounted Secret changes by exchanging a symbolic link two directories up (Kubernetes `pkg/volume/util/
//! atomic_writer.go`), which file notification sees late or not at all. So the content is read again every few seconds
//! and compared, and at once on SIGHUP. Nothing here knows what the files mean: [`Reloader::watch`] takes a function
//! that parses them *together*, so a key is never used with the certificate of another moment.
//!
//! Reading order: [`Watched`] (what users of a file hold), [`Reloader`] (what reads again), then [`write()`]: putting new
//! files in place in one step.

mod reloader;
mod source;
mod watched;
mod write;

pub use reloader::{Counts, Reloader};
pub use source::{LoadError, MAX_FILE_BYTES};
pub use watched::{Changes, Watched};
pub use write::{Existing, Secrecy, WriteError, write};
