//! A line for machines: one object.

use std::fmt::{self, Debug};

use serde::Serialize;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime as _;
use tracing_subscriber::fmt::{FmtContext, FormatFields, FormattedFields};
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use super::Stamp;

/// The line of `Format<Json>` with flattened events.
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
    let meta = event.metadata();
    writer.write_str("{\"timestamp\":\"")?;
    stamp.format_time(writer)?;
    writer.write_str("\",\"level\":\"")?;
    writer.write_str(meta.level().as_str())?;
    writer.write_char('"')?;
    let mut fields = Fields { writer: writer.by_ref(), result: Ok(()) };
    event.record(&mut fields);
    fields.result?;
    member(writer, "target")?;
    string(writer, meta.target())?;
    if let Some(parent) = event.parent().and_then(|id| ctx.span(id)).or_else(|| ctx.lookup_current()) {
        member(writer, "span")?;
        span::<S, N>(&parent, writer)?;
        member(writer, "spans")?;
        writer.write_char('[')?;
        // Not the parent, if the event names another one.
        if let Some(current) = ctx.lookup_current() {
            spans::<S, N>(&current, writer)?;
        }
        writer.write_char(']')?;
    }
    writer.write_str("}\n")
}

/// The span, after its parents.
fn spans<S, N>(inner: &SpanRef<'_, S>, writer: &mut Writer<'_>) -> fmt::Result
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    if let Some(parent) = inner.parent() {
        spans::<S, N>(&parent, writer)?;
        writer.write_char(',')?;
    }
    span::<S, N>(inner, writer)
}

/// The fields of a span, which `JsonFields` has written as an object, followed by its name.
fn span<S, N>(span: &SpanRef<'_, S>, writer: &mut Writer<'_>) -> fmt::Result
where
    S: Subscriber + for<'lookup> LookupSpan<'lookup>,
    N: for<'writer> FormatFields<'writer> + 'static,
{
    writer.write_char('{')?;
    let extensions = span.extensions();
    let fields = extensions.get::<FormattedFields<N>>();
    let members = fields.and_then(|fields| fields.strip_prefix('{')?.strip_suffix('}')).unwrap_or_default();
    if !members.is_empty() {
        writer.write_str(members)?;
        writer.write_char(',')?;
    }
    writer.write_str("\"name\":")?;
    string(writer, span.metadata().name())?;
    writer.write_char('}')
}

/// Writes `,"name":value`.
struct Fields<'w> {
    writer: Writer<'w>,
    result: fmt::Result,
}

// === impl Fields ===

impl Fields<'_> {
    fn record(&mut self, field: &Field, write: impl FnOnce(&mut Writer<'_>) -> fmt::Result) {
        self.result = self.result.and_then(|()| {
            member(&mut self.writer, field.name())?;
            write(&mut self.writer)
        });
    }
}

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record(field, |writer| string(writer, value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.record(field, |writer| write!(writer, "{value}"));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.record(field, |writer| write!(writer, "{value}"));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.record(field, |writer| write!(writer, "{value}"));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.record(field, |writer| general(writer, &value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record(field, |writer| general(writer, &format_args!("{value:?}")));
    }
}

/// Writes `,"name":`.
fn member(writer: &mut Writer<'_>, name: &'static str) -> fmt::Result {
    writer.write_char(',')?;
    string(writer, name)?;
    writer.write_char(':')
}

fn string(writer: &mut Writer<'_>, text: &str) -> fmt::Result {
    if !text.bytes().all(is_plain) {
        return general(writer, text);
    }
    writer.write_char('"')?;
    writer.write_str(text)?;
    writer.write_char('"')
}

/// Rare, so it may allocate.
fn general<T: Serialize + ?Sized>(writer: &mut Writer<'_>, value: &T) -> fmt::Result {
    writer.write_str(&serde_json::to_string(value).map_err(|_| fmt::Error)?)
}

/// Whether a JSON string may contain the byte as it is (RFC 8259 section 7).
fn is_plain(byte: u8) -> bool {
    byte >= b' ' && byte != b'"' && byte != b'\\'
}
