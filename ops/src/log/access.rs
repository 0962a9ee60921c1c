//! The lines of the access log, one for each request, so they must be cheap.
//!
//! The general formatters of `tracing_subscriber` write each field through several layers of `fmt`, and the JSON one parses
//! the fields of each span again. [`AccessFormat`] writes the same bytes straight into the buffer of the line. Rare
//! content (text with characters to escape, values that are neither text nor numbers) goes through the general
//! formatter. So do all events of other targets.
//!
//! Reading order: [`AccessFormat`], then `text` and `json`, one for each format.

mod json;
mod text;

use std::fmt;

use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::ACCESS;
use super::stamp::Stamp;

/// Formats the events of the access log itself, and leaves the others to `general`.
#[derive(Debug)]
pub(super) struct AccessFormat<F> {
    general: F,
    form: Form,
    stamp: Stamp,
}

/// The form of `general`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    /// `Format<Full>` as it is by default.
    Text,
    /// `Format<Json>` with flattened events.
    Json,
}

// === impl AccessFormat ===

impl<F> AccessFormat<F> {
    pub(super) fn new(general: F, form: Form, stamp: Stamp) -> Self {
        Self { general, form, stamp }
    }
}

impl<S, N, F> FormatEvent<S, N> for AccessFormat<F>
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
    N: for<'writer> FormatFields<'writer> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, ctx: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let meta = event.metadata();
        // Colours are for people at a terminal, for whom any formatter is fast enough.
        if meta.target() != ACCESS || writer.has_ansi_escapes() {
            return self.general.format_event(ctx, writer, event);
        }
        match self.form {
            Form::Text => text::line(self.stamp, ctx, &mut writer, event),
            Form::Json => json::line(self.stamp, ctx, &mut writer, event),
        }
    }
}

#[cfg(test)]
mod tests;
