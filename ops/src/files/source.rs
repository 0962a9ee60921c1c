//! Reads files, and detects changes.

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

use super::watched::{Publisher, Watched};

/// Larger files are refused: 4 MiB, four times what a Secret can hold.
pub const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

/// The files cannot be read or parsed.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file system refused.
    #[error("cannot read {}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// More than [`MAX_FILE_BYTES`].
    #[error("{} is larger than {MAX_FILE_BYTES} bytes", path.display())]
    TooLarge {
        /// Which file.
        path: PathBuf,
    },
    /// The content is invalid.
    #[error("{} cannot be used", join(paths))]
    Parse {
        /// The files that were parsed together.
        paths: Vec<PathBuf>,
        /// The parser's error.
        source: Box<dyn StdError + Send + Sync>,
    },
}

/// The result of reading a source again.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The files have not changed, whether they are valid or not.
    Same,
    /// The new value is in use.
    Reloaded,
    /// The changed files are invalid: the previous value stays in use. Reported once per change.
    Failed(LoadError),
}

/// Files with a parser and a user, for any type of value.
pub(super) trait Source: Send + Sync {
    /// Reads the files again. Blocks on the file system.
    fn reread(&self) -> Outcome;
    /// Whether anyone still holds the value.
    fn is_wanted(&self) -> bool;
    /// The files, for messages.
    fn paths(&self) -> &[PathBuf];
}

/// `N` files that `parse` turns into a `T`.
pub(super) struct Parsed<T, P, const N: usize> {
    paths: [PathBuf; N],
    parse: P,
    publisher: Publisher<T>,
    seen: Mutex<Seen>,
}

/// The result of the last read. If it has not changed, the files are not parsed again.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Content([u8; 32]),
    Unreadable(String),
}

// === impl Parsed ===

impl<T, P, E, const N: usize> Parsed<T, P, N>
where
    P: Fn([&[u8]; N]) -> Result<T, E>,
    E: Into<Box<dyn StdError + Send + Sync>>,
{
    /// Reads the files for the first time.
    pub(super) fn open(paths: [PathBuf; N], parse: P) -> Result<(Self, Watched<T>), LoadError> {
        let (contents, digest) = read(&paths)?;
        let value = parse_all(&paths, &contents, &parse)?;
        let watched = Watched::fixed(value);
        let publisher = watched.publisher();
        Ok((Self { paths, parse, publisher, seen: Mutex::new(Seen::Content(digest)) }, watched))
    }
}

impl<T, P, E, const N: usize> Source for Parsed<T, P, N>
where
    T: Send + Sync,
    P: Fn([&[u8]; N]) -> Result<T, E> + Send + Sync,
    E: Into<Box<dyn StdError + Send + Sync>>,
{
    fn reread(&self) -> Outcome {
        // Held while reading, so that two concurrent reads (a poll and SIGHUP) cannot publish in the wrong order.
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (now, contents) = match read(&self.paths) {
            Ok((contents, digest)) => (Seen::Content(digest), Ok(contents)),
            Err(error) => (Seen::Unreadable(error.to_string()), Err(error)),
        };
        if *seen == now {
            return Outcome::Same;
        }
        *seen = now;
        match contents.and_then(|contents| parse_all(&self.paths, &contents, &self.parse)) {
            Ok(value) => {
                self.publisher.publish(value);
                Outcome::Reloaded
            }
            Err(error) => Outcome::Failed(error),
        }
    }

    fn is_wanted(&self) -> bool {
        self.publisher.is_wanted()
    }

    fn paths(&self) -> &[PathBuf] {
        &self.paths
    }
}

fn read<const N: usize>(paths: &[PathBuf; N]) -> Result<([Vec<u8>; N], [u8; 32]), LoadError> {
    let mut contents = [const { Vec::new() }; N];
    let mut digest = Sha256::new();
    for (path, content) in paths.iter().zip(&mut contents) {
        let cause = |source| LoadError::Read { path: path.clone(), source };
        File::open(path).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(content)).map_err(cause)?;
        let length = content.len() as u64;
        if length > MAX_FILE_BYTES {
            return Err(LoadError::TooLarge { path: path.clone() });
        }
        // The length reveals a byte that has moved from one file to the next.
        digest.update(length.to_le_bytes());
        digest.update(&content);
    }
    Ok((contents, digest.finalize().into()))
}

fn parse_all<T, E, const N: usize>(
    paths: &[PathBuf; N],
    contents: &[Vec<u8>; N],
    parse: impl Fn([&[u8]; N]) -> Result<T, E>,
) -> Result<T, LoadError>
where
    E: Into<Box<dyn StdError + Send + Sync>>,
{
    parse(contents.each_ref().map(Vec::as_slice))
        .map_err(|error| LoadError::Parse { paths: paths.to_vec(), source: error.into() })
}

/// `a.crt, a.key`.
pub(super) fn join(paths: &[PathBuf]) -> String {
    let mut out = String::new();
    for (index, path) in paths.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        write!(out, "{separator}{}", path.display()).expect("writing to a String cannot fail");
    }
    out
}
