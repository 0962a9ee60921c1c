use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use tracing::{error_span, info, info_span, warn};
use tracing_subscriber::fmt::format::{DefaultFields, Format, Full, Json, JsonFields};
use tracing_subscriber::fmt::{FormatEvent, SubscriberBuilder};
use tracing_subscriber::registry::Registry;

use super::super::tests::SharedBuffer;
use super::*;

/// The oracles: the general formatters.
fn general_text() -> Format<Full, Stamp> {
    Format::default().with_timer(stamp())
}

fn general_json() -> Format<Json, Stamp> {
    Format::default().json().flatten_event(true).with_timer(stamp())
}

fn stamp() -> Stamp {
    Stamp::of(|| SystemTime::UNIX_EPOCH + Duration::new(1_777_777_777, 123_456_789))
}

fn text_by(format: impl FormatEvent<Registry, DefaultFields> + Send + Sync + 'static, events: impl Fn()) -> String {
    written(
        |buffer| SubscriberBuilder::default().with_ansi(false).event_format(format).with_writer(buffer).finish(),
        events,
    )
}

fn json_by(format: impl FormatEvent<Registry, JsonFields> + Send + Sync + 'static, events: impl Fn()) -> String {
    let builder = SubscriberBuilder::default().fmt_fields(JsonFields::new());
    written(|buffer| builder.with_ansi(false).event_format(format).with_writer(buffer).finish(), events)
}

fn written<S: Subscriber + Send + Sync>(subscriber: impl FnOnce(SharedBuffer) -> S, events: impl Fn()) -> String {
    let buffer = SharedBuffer::default();
    tracing::subscriber::with_default(subscriber(buffer.clone()), events);
    buffer.text()
}

/// Checks that both forms are the same bytes as before. Returns them.
fn check(events: impl Fn() + Copy) -> (String, String) {
    let text = text_by(AccessFormat::new(general_text(), Form::Text, stamp()), events);
    assert_eq!(text, text_by(general_text(), events));
    let json = json_by(AccessFormat::new(general_json(), Form::Json, stamp()), events);
    assert_eq!(json, json_by(general_json(), events));
    (text, json)
}

/// The event of the proxy-server.
fn request(user: Option<&str>, resource: &str, name: Option<&str>, bytes: u64) {
    let none: Option<&str> = None;
    let verb = "get".to_owned();
    info!(target: ACCESS, user, acting_as = none, verb, resource, name, status = 200_u16, bytes, end = "whole");
}

#[test]
fn a_request_is_one_line_as_before() {
    let (text, json) = check(|| request(Some("jane"), "pods", Some("web-0"), 3_900));
    let fields = r#"user="jane" verb="get" resource="pods" name="web-0" status=200 bytes=3900 end="whole""#;
    assert_eq!(text, format!("2026-05-03T03:09:37.123456Z  INFO access: {fields}\n"));
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&value["user"], &value["bytes"], &value["target"]), (&"jane".into(), &3_900.into(), &"access".into()));
}

#[test]
fn spans_are_written_before_a_line() {
    let (text, json) = check(|| {
        let _outer = info_span!("endpoint", cluster = "ke-beijing", port = 443).entered();
        request(None, "/version", None, 0);
        let _bare = error_span!("bare").entered();
        request(None, "/version", None, 0);
        let inner = info_span!("inner", quoted = "a\"b\n", late = tracing::field::Empty, is_last = true);
        let _inner = inner.clone().entered();
        inner.record("late", 1.5);
        request(Some("jane"), "pods", None, 1);
        info!(target: ACCESS, parent: None, "an orphan");
    });
    assert!(text.contains("INFO endpoint{cluster=\"ke-beijing\" port=443}: access: "), "{text}");
    assert!(json.contains(r#""spans":[{"cluster":"ke-beijing","port":443,"name":"endpoint"}]"#), "{json}");
}

#[test]
fn values_of_all_kinds_are_written_as_before() {
    let error = std::io::Error::other("no route");
    check(|| {
        info!(target: ACCESS, "only a message");
        info!(target: ACCESS, a = 1, "a message with {} and \u{1b}[31m", "arguments");
        warn!(target: ACCESS, yes = true, below = -1, ratio = 0.1, large = u128::MAX, debug = ?Some("x\\"), shown = %"y\"");
        info!(target: ACCESS, r#type = "keyword", message = "as a field", log.file = "hidden", last = 1_u8);
        info!(target: ACCESS, error = &error as &dyn std::error::Error, nothing = tracing::field::Empty);
        info!("not a request");
    });
}

#[test]
fn colours_are_left_to_the_general_formatter() {
    let colored = |format| {
        let builder = SubscriberBuilder::default().with_ansi(true);
        written(|buffer| builder.event_format(format).with_writer(buffer).finish(), || request(None, "pods", None, 1))
    };
    let ours = colored(AccessFormat::new(general_text(), Form::Text, stamp()));
    assert!(ours.contains('\u{1b}'));
}

proptest! {
    /// Clients choose names and paths: quotes, control characters and any letters.
    #[test]
    fn any_text_is_written_as_before(user in proptest::option::of(".*"), resource in "\\PC*|[ -~]*|(?s:.*)", bytes: u64) {
        check(|| request(user.as_deref(), &resource, Some(&resource), bytes));
    }
}
