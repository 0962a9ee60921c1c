//! The W3C Trace Context of a request: its headers `traceparent` and `tracestate`.

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator as _};
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceState};
use opentelemetry_sdk::propagation::TraceContextPropagator;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// A longer `tracestate` of a client is ignored, in bytes: a span keeps it until it is exported. Trace Context, "Tracestate
/// Limits", asks for no more.
const MAX_TRACESTATE: usize = 512;

struct Read<'h>(&'h HeaderMap);
struct Write<'h>(&'h mut HeaderMap);

/// The context of a request. `None` if it has none, or an invalid one.
pub(crate) fn read(headers: &HeaderMap) -> Option<SpanContext> {
    if headers.get_all(TRACEPARENT).iter().count() != 1 {
        return None;
    }
    let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &Read(headers));
    let context = context.span().span_context().clone();
    context.is_valid().then_some(context)
}

/// The same context without what other systems have added, which a link does not need.
pub(crate) fn without_state(context: &SpanContext) -> SpanContext {
    let (trace, span) = (context.trace_id(), context.span_id());
    SpanContext::new(trace, span, context.trace_flags(), context.is_remote(), TraceState::default())
}

/// Replaces the context of a request.
pub(crate) fn write(context: &SpanContext, headers: &mut HeaderMap) {
    remove(headers);
    let context = Context::new().with_remote_span_context(context.clone());
    TraceContextPropagator::new().inject_context(&context, &mut Write(headers));
}

/// Makes the context of a request one that is not sampled. The trace keeps its ID, so that logs can still be found by it.
pub(crate) fn write_unsampled(headers: &mut HeaderMap) {
    if !headers.contains_key(TRACEPARENT) {
        return;
    }
    match read(headers) {
        // Whoever changes the flag must also change the ID (Trace Context, "Mutating the traceparent Field").
        Some(context) if context.is_sampled() => {
            let id = SpanId::from(fastrand::u64(1..));
            let flags = TraceFlags::default();
            write(&SpanContext::new(context.trace_id(), id, flags, false, TraceState::default()), headers);
        }
        Some(_) => {}
        None => remove(headers),
    }
}

fn remove(headers: &mut HeaderMap) {
    headers.remove(TRACEPARENT);
    headers.remove(TRACESTATE);
}

// === impl Read ===

impl Extractor for Read<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        let value = self.0.get(key).filter(|value| key != TRACESTATE.as_str() || value.len() <= MAX_TRACESTATE);
        value.and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

// === impl Write ===

impl Injector for Write<'_> {
    fn set(&mut self, key: &str, value: String) {
        if value.is_empty() {
            return;
        }
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(key.as_bytes()), HeaderValue::from_str(&value)) {
            self.0.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SAMPLED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn headers(values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (TRACEPARENT, HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn a_context_is_read_once() {
        assert!(read(&headers(&[SAMPLED])).is_some_and(|context| context.is_sampled()));
        assert!(read(&headers(&[SAMPLED, SAMPLED])).is_none());
        for bad in ["", "00", "00-00000000000000000000000000000000-00f067aa0ba902b7-01", "x"] {
            assert!(read(&headers(&[bad])).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_long_state_is_ignored() {
        for (length, is_kept) in [(MAX_TRACESTATE, true), (MAX_TRACESTATE + 1, false)] {
            let state = format!("a={0},b={0},c={1}", "x".repeat(200), "y".repeat(length - 408));
            let mut headers = headers(&[SAMPLED]);
            headers.insert(TRACESTATE, HeaderValue::from_str(&state).unwrap());
            let context = read(&headers).unwrap();
            assert_eq!(context.trace_state().header() == state, is_kept, "{length}");
            write(&context, &mut headers);
            assert_eq!(headers.contains_key(TRACESTATE), is_kept);
            let short = without_state(&context);
            assert_eq!((short.trace_id(), short.span_id()), (context.trace_id(), context.span_id()));
            assert!(short.is_sampled() && short.is_remote() && short.trace_state().header().is_empty());
        }
    }

    #[test]
    fn an_unsampled_context_keeps_its_trace() {
        let mut sampled = headers(&[SAMPLED]);
        sampled.insert(TRACESTATE, HeaderValue::from_static("vendor=1"));
        write_unsampled(&mut sampled);
        let context = read(&sampled).unwrap();
        assert!(!context.is_sampled() && !sampled.contains_key(TRACESTATE));
        assert_eq!(context.trace_id(), read(&headers(&[SAMPLED])).unwrap().trace_id());
        assert_ne!(context.span_id(), read(&headers(&[SAMPLED])).unwrap().span_id());

        let mut invalid = headers(&["nonsense"]);
        write_unsampled(&mut invalid);
        assert!(invalid.is_empty());
        let mut none = HeaderMap::new();
        write_unsampled(&mut none);
        assert!(none.is_empty());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(trace in 1u128.., span in 1u64.., is_sampled: bool) {
            let flags = TraceFlags::default().with_sampled(is_sampled);
            let context = SpanContext::new(trace.into(), span.into(), flags, true, TraceState::default());
            let mut headers = headers(&["nonsense", SAMPLED]);
            write(&context, &mut headers);
            prop_assert_eq!(read(&headers), Some(context));
        }

        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                let mut headers = HeaderMap::from_iter([(TRACEPARENT, value.clone()), (TRACESTATE, value)]);
                let _ = read(&headers);
                write_unsampled(&mut headers);
            }
        }
    }
}
