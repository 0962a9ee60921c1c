//! A line for people: `TIME  INFO SPAN{FIELDS}: access: FIELDS`.

use std::fmt::{self, Debug};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::field::VisitOutput as _;
use tracing_subscriber::fmt::format::{DefaultVisitor, Writer};
use tracing_subscriber::fmt::time::FormatTime as _;
use tracing_subscriber::fmt::{FmtContext, FormatFields, FormattedFields};
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use super::Stamp;

/// The line of `Format<Full>`.
pub(super) fn line<S, N>(
    stamp: Stamp,
    ctx: &FmtContext<'_, S, N>,
    writer: &mut Writer<'_>,
    event: &Event<'_>,
) -> fmt::Result
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    stamp.format_time(writer)?;
    let meta = event.metadata();
    write!(writer, " {:>5} ", meta.level().as_str())?;
    if let Some(span) = ctx.parent_span() {
        spans::<S, N>(&span, writer)?;
        writer.write_char(' ')?;
    }
    writer.write_str(meta.target())?;
    writer.write_str(": ")?;
    let mut fields = Fields { writer: writer.by_ref(), is_first: true, result: Ok(()) };
    event.record(&mut fields);
    fields.result?;
    writer.write_char('\n')
}

/// The span, after its parents.
fn spans<S, N>(span: &SpanRef<'_, S>, writer: &mut Writer<'_>) -> fmt::Result
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    if let Some(parent) = span.parent() {
        spans::<S, N>(&parent, writer)?;
    }
    writer.write_str(span.metadata().name())?;
    let extensions = span.extensions();
    if let Some(fields) = extensions.get::<FormattedFields<N>>().filter(|fields| !fields.is_empty()) {
        writer.write_char('{')?;
        writer.write_str(fields)?;
        writer.write_char('}')?;
    }
    writer.write_char(':')
}

/// Writes `name=value`, separated by spaces.
struct Fields<'w> {
    writer: Writer<'w>,
    is_first: bool,
    result: fmt::Result,
}

// === impl Fields ===

impl Fields<'_> {
    /// Writes the space and `name=`.
    fn name(&mut self, field: &Field) -> fmt::Result {
        if !std::mem::take(&mut self.is_first) {
            self.writer.write_char(' ')?;
        }
        self.writer.write_str(field.name())?;
        self.writer.write_char('=')
    }

    fn general(&mut self, record: impl FnOnce(&mut DefaultVisitor<'_>)) {
        let mut visitor = DefaultVisitor::new(self.writer.by_ref(), self.is_first);
        record(&mut visitor);
        self.result = self.result.and(visitor.finish());
        self.is_first = false;
    }
}

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if !is_ours(field.name()) || !value.bytes().all(is_plain) {
            return self.general(|visitor| visitor.record_str(field, value));
        }
        self.result = self.result.and_then(|()| {
            self.name(field)?;
            self.writer.write_char('"')?;
            self.writer.write_str(value)?;
            self.writer.write_char('"')
        });
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if !is_ours(field.name()) {
            return self.general(|visitor| visitor.record_u64(field, value));
        }
        self.result = self.result.and_then(|()| {
            self.name(field)?;
            write!(self.writer, "{value}")
        });
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.general(|visitor| visitor.record_error(field, value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.general(|visitor| visitor.record_debug(field, value));
    }
}

/// Whether the name has no special meaning in [`DefaultVisitor`].
fn is_ours(name: &str) -> bool {
    name != "message" && !name.starts_with("r#") && !name.starts_with("log.")
}

/// Whether `str`'s `Debug` writes the byte as it is.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}
