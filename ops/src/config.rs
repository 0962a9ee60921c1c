//! Configuration files: YAML documents with an `apiVersion` and a `kind`, read strictly.
//!
//! A file may hold several documents; [`load`] reads the one with the wanted [`Document::KIND`]. An unknown key is
//! always a mistake. All unknown keys, and all mistakes that [`Document::check`] finds, are reported together, each
//! with its line. Only invalid YAML (bad syntax, a missing key, a value of another type) hides the mistakes after it.
//!
//! `${NAME}` is ordinary text here: a file means the same on every machine. A [`FilePath`] is relative to the directory
//! of the file that names it, not to the working directory.
//!
//! What is *not* here: command-line flags, reloading, the configuration types themselves. Nothing outside this module
//! names the YAML library.
//!
//! A program that refuses its configuration exits with [`EXIT_CODE`] before it binds a port.
//!
//! Reading order: `documents` (which document), `strict` (how it is read), `location` (values that know their line),
//! `problem` (what the operator sees), `duration` and `path` (two value types).

mod api_version;
mod documents;
mod duration;
mod location;
mod path;
mod problem;
mod strict;
mod yaml;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

pub use api_version::API_VERSION;
pub use duration::{Duration, InvalidDuration};
pub use location::{Located, Location};
pub use path::FilePath;
pub use problem::{ConfigErrors, Problem, Problems};
pub use strict::Unread;

/// The exit code of a program that refuses its configuration: `EX_USAGE` of BSD's `sysexits.h`. So a supervisor can
/// tell that a restart will fail again.
pub const EXIT_CODE: u8 = 64;

/// The largest file that is read, in bytes. A configuration with a thousand clusters is about 200 KB.
pub const MAX_BYTES: u64 = 1 << 20;

/// A configuration type: one document of a file.
///
/// The type lists its own keys only; `apiVersion` and `kind` are read by [`parse`]. It needs no
/// `#[serde(deny_unknown_fields)]`, and must not use `#[serde(flatten)]`: serde then hides which keys are known.
pub trait Document: Sized {
    /// The `kind` of the document, for example `ProxyServerConfiguration`.
    const KIND: &'static str;

    /// The `apiVersion` of the document. Another one than ours if Kubernetes defines the format.
    const API_VERSION: &'static str = API_VERSION;

    /// Reads the document: [`Unread::read`].
    ///
    /// Serde's code for a configuration is large. In this method, it is compiled once, with the type. In [`load`], each
    /// crate that loads a file would have a copy.
    ///
    /// # Errors
    /// The document does not have this type.
    fn read(document: Unread<'_>) -> Result<Self, Problems>;

    /// Reports mistakes that the types cannot exclude: contradictory values, duplicate names. Called once, after
    /// reading. A value has a location if its field is a [`Located`].
    fn check(&self, problems: &mut Problems) {
        let _ = problems;
    }
}

/// Reads the document of kind `T::KIND` from a file.
///
/// # Errors
/// All mistakes in the file, by line: see [`ConfigErrors`].
pub fn load<T: Document>(path: &Path) -> Result<T, ConfigErrors> {
    accept(examine(path), path)
}

/// Reads the document of kind `T::KIND` from a text. `origin` is the file that it came from: errors name it, and
/// [`FilePath`]s are relative to its directory.
///
/// # Errors
/// All mistakes in the text, by line: see [`ConfigErrors`].
pub fn parse<T: Document>(text: &str, origin: &Path) -> Result<T, ConfigErrors> {
    accept(examine_text(text, origin), origin)
}

/// Like [`load`], for a program that reports more about a file: returns what could be read, even if the file is
/// refused.
pub fn examine<T: Document>(path: &Path) -> (Option<T>, Problems) {
    match read(path) {
        Ok(text) => examine_text(&text, path),
        Err(problem) => (None, problem.into()),
    }
}

fn examine_text<T: Document>(text: &str, origin: &Path) -> (Option<T>, Problems) {
    let mut problems = Problems::default();
    let directory = origin.parent().unwrap_or(Path::new(""));
    let value = documents::pick(text, T::API_VERSION, T::KIND)
        .and_then(|document| T::read(Unread { text: &document, directory, problems: &mut problems }));
    match value {
        Ok(value) => {
            value.check(&mut problems);
            (Some(value), problems)
        }
        Err(fatal) => {
            problems.extend(fatal);
            (None, problems)
        }
    }
}

fn accept<T>(examined: (Option<T>, Problems), origin: &Path) -> Result<T, ConfigErrors> {
    match examined {
        (Some(value), problems) if problems.is_empty() => Ok(value),
        (_, problems) => Err(problems.into_errors(origin)),
    }
}

/// The kinds of the documents in a file, for a program that reads files of any kind.
///
/// # Errors
/// The file cannot be read, or a document in it is invalid YAML or has no `kind`.
pub fn kinds(path: &Path) -> Result<Vec<Located<String>>, ConfigErrors> {
    read(path)
        .map_err(Problems::from)
        .and_then(|text| documents::kinds(&text))
        .map_err(|problems| problems.into_errors(path))
}

fn read(path: &Path) -> Result<String, Problem> {
    let failed = |error: io::Error| Problem::new(None, format!("cannot read the file: {error}"));
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    // One byte more than the limit shows that the file is too large. Metadata has no size for a pipe.
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Problem::new(None, format!("the file is larger than {MAX_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Problem::new(None, format!("the file is not UTF-8 text (byte {at})"))
    })
}

#[cfg(test)]
mod tests;
