//! Writes log lines to standard error, as text for people or as JSON for machines.
//!
//! Lines of the access log are buffered for a moment, so that a request costs no system call. Hold the [`Logging`] that
//! [`init`] returns until the process ends.
//!
//! Standard output is for the output of commands. What is *not* here: the content of the access log (it is made of
//! ordinary events of the binaries) and any export of traces.

mod access;
mod lines;
mod stamp;

use std::error::Error;
use std::fmt;
use std::io::{self, IsTerminal};
use std::str::FromStr;

use serde::Deserialize;
use tracing::Subscriber;
use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

use access::{AccessFormat, Form};
use lines::Lines;
pub use lines::{ACCESS, Logging};
use stamp::Stamp;

/// The variable that is read when no filter is given.
pub const FILTER_VARIABLE: &str = "RUST_LOG";

/// What is logged when neither a filter nor [`FILTER_VARIABLE`] is given.
pub const DEFAULT_FILTER: &str = "info";

/// The form of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// One line for people: time, level, spans, message, fields.
    #[default]
    Text,
    /// One JSON object; the fields of the event are at its top level, those of its spans under `span` and `spans`.
    Json,
}

/// Whether text is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set (<https://no-color.org>).
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The text is not a value of this log setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected one of {expected}")]
pub struct UnknownSetting {
    expected: &'static str,
}

/// Why logging did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InitError {
    /// The filter, or the variable that replaces it, cannot be parsed.
    #[error("invalid log filter {filter:?}")]
    Filter {
        /// The filter as it was given.
        filter: String,
        /// What is wrong with it.
        source: ParseError,
    },
    /// The value of [`FILTER_VARIABLE`] is not text.
    #[error("{FILTER_VARIABLE} is not UTF-8 text")]
    Variable,
    /// Logging in this process has already started.
    #[error("logging was started twice")]
    Twice(#[source] TryInitError),
}

/// An error with its causes, in one line: `outer: inner: innermost`.
///
/// Our errors print only their own level, so they are logged in this form.
pub struct Chain<'a>(&'a (dyn Error + 'a));

/// Starts logging for the whole process. `filter` has the syntax of `RUST_LOG` (`info,tunnel=debug`) and overrides it.
///
/// Directives name targets and levels. Those that select spans by name or by value are refused: they need an engine for
/// regular expressions, which is 0.3 MB of each binary.
///
/// # Errors
/// See [`InitError`]; nothing is logged then.
pub fn init(format: Format, filter: Option<&str>, color: Color) -> Result<Logging, InitError> {
    let variable = match std::env::var(FILTER_VARIABLE) {
        Ok(text) => Some(text),
        Err(std::env::VarError::NotPresent) => None,
        Err(std::env::VarError::NotUnicode(_)) if filter.is_some() => None,
        Err(std::env::VarError::NotUnicode(_)) => return Err(InitError::Variable),
    };
    let filter = parse_filter(filter, variable.as_deref())?;
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let color = color.resolve(io::stderr().is_terminal(), no_color);
    let (lines, logging) = Lines::new(io::stderr());
    match format {
        Format::Text => text(filter, color, lines).try_init(),
        Format::Json => json(filter, lines).try_init(),
    }
    .map_err(InitError::Twice)?;
    Ok(logging)
}

/// An error and its causes on one line.
pub fn chain<'a>(error: &'a (dyn Error + 'a)) -> Chain<'a> {
    Chain(error)
}

/// A flag overrides the variable, and an empty variable counts as not set.
fn parse_filter(flag: Option<&str>, variable: Option<&str>) -> Result<Targets, InitError> {
    let filter = flag.or(variable.filter(|text| !text.trim().is_empty())).unwrap_or(DEFAULT_FILTER);
    filter.parse().map_err(|source| InitError::Filter { filter: filter.to_owned(), source })
}

/// The most detailed level that `filter` lets through anywhere. It lets disabled events end at one comparison.
fn most_detailed(filter: &Targets) -> LevelFilter {
    Layer::<Registry>::max_level_hint(filter).unwrap_or(LevelFilter::TRACE)
}

fn text<W>(filter: Targets, color: bool, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    tracing_subscriber::fmt()
        .with_max_level(most_detailed(&filter))
        .with_ansi(color)
        .with_writer(writer)
        .with_timer(Stamp::new())
        .map_event_format(|general| AccessFormat::new(general, Form::Text, Stamp::new()))
        .finish()
        .with(filter)
}

fn json<W>(filter: Targets, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    tracing_subscriber::fmt()
        .with_max_level(most_detailed(&filter))
        .with_ansi(false)
        .with_writer(writer)
        .json()
        .flatten_event(true)
        .with_timer(Stamp::new())
        .map_event_format(|general| AccessFormat::new(general, Form::Json, Stamp::new()))
        .finish()
        .with(filter)
}

// === impl Format ===

impl FromStr for Format {
    type Err = UnknownSetting;

    fn from_str(text: &str) -> Result<Self, UnknownSetting> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(UnknownSetting { expected: "text, json" }),
        }
    }
}

// === impl Color ===

impl Color {
    fn resolve(self, terminal: bool, no_color: bool) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => terminal && !no_color,
        }
    }
}

impl FromStr for Color {
    type Err = UnknownSetting;

    fn from_str(text: &str) -> Result<Self, UnknownSetting> {
        match text {
            "auto" => Ok(Self::Auto),
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            _ => Err(UnknownSetting { expected: "auto, always, never" }),
        }
    }
}

// === impl Chain ===

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl fmt::Debug for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests;
