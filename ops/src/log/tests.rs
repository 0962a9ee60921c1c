use std::io::Write;
use std::sync::{Arc, Mutex};

use tracing::{debug, info, info_span};

use super::*;

/// What was written, shared with the subscriber.
#[derive(Clone, Default)]
pub(super) struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

impl SharedBuffer {
    pub(super) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'w> MakeWriter<'w> for SharedBuffer {
    type Writer = Self;

    fn make_writer(&'w self) -> Self {
        self.clone()
    }
}

fn events() {
    let _span = info_span!("tunnel", agent = "site-a").entered();
    info!(clusters = 2, "up");
    debug!("not shown");
}

#[test]
fn a_json_line_is_one_object_with_the_fields_on_top() {
    let buffer = SharedBuffer::default();
    let filter = parse_filter(None, None).unwrap();
    tracing::subscriber::with_default(json(filter, buffer.clone()), events);
    let line: serde_json::Value = serde_json::from_str(&buffer.text()).unwrap();
    assert_eq!(line["message"], "up");
    assert_eq!(line["clusters"], 2);
    assert_eq!(line["level"], "INFO");
    assert_eq!(line["span"]["agent"], "site-a");
}

#[test]
fn text_is_coloured_only_on_request() {
    for color in [false, true] {
        let buffer = SharedBuffer::default();
        let filter = parse_filter(Some("info"), None).unwrap();
        tracing::subscriber::with_default(text(filter, color, buffer.clone()), events);
        assert_eq!(buffer.text().contains('\u{1b}'), color);
        assert_eq!(buffer.text().lines().count(), 1);
    }
    assert!(Color::Auto.resolve(true, false));
    assert!(!Color::Auto.resolve(true, true));
    assert!(!Color::Auto.resolve(false, false));
    assert!(Color::Always.resolve(false, true));
}

#[test]
fn the_flag_overrides_the_variable() {
    let shown = |flag, variable| parse_filter(flag, variable).unwrap().to_string();
    assert_eq!(shown(Some("debug"), Some("trace")), "debug");
    assert_eq!(shown(None, Some("trace")), "trace");
    assert_eq!(shown(None, Some(" ")), DEFAULT_FILTER);
    assert_eq!(shown(None, None), DEFAULT_FILTER);
    for refused in ["tunnel=loud", "[tunnel{agent=site-a}]=debug"] {
        assert!(matches!(parse_filter(Some(refused), None), Err(InitError::Filter { .. })), "{refused}");
    }
}

#[test]
fn a_target_has_its_own_level() {
    let buffer = SharedBuffer::default();
    let filter = parse_filter(Some("warn,ops::log=debug"), None).unwrap();
    tracing::subscriber::with_default(text(filter, false, buffer.clone()), || {
        events();
        info!(target: "h2", "not shown either");
    });
    assert_eq!(buffer.text().lines().count(), 2, "{}", buffer.text());
}

#[test]
fn flags_and_files_accept_the_same_settings() {
    for name in ["text", "json", "loud"] {
        let file: Option<Format> = serde_json::from_value(name.into()).ok();
        assert_eq!(name.parse().ok(), file);
    }
    for name in ["auto", "always", "never", "loud"] {
        let file: Option<Color> = serde_json::from_value(name.into()).ok();
        assert_eq!(name.parse().ok(), file);
    }
}

#[test]
fn a_chain_names_every_cause_once() {
    #[derive(Debug, thiserror::Error)]
    #[error("cannot dial")]
    struct Outer(#[source] io::Error);

    let error = Outer(io::Error::other("no route"));
    assert_eq!(chain(&error).to_string(), "cannot dial: no route");
}
