//! The columns of events.

use super::age::since;
use super::cell::text_or;
use super::column::{Column, text, wide};
use crate::object;

pub(super) const COLUMNS: &[Column] = &[
    text("Last Seen", |object| since(&object["lastTimestamp"]).into()),
    text("Type", |object| text_or(object, "/type", "")),
    text("Reason", |object| text_or(object, "/reason", "")),
    text("Object", |object| {
        let of = &object["involvedObject"];
        let kind = of["kind"].as_str().unwrap_or_default().to_lowercase();
        format!("{kind}/{}", of["name"].as_str().unwrap_or_default()).into()
    }),
    wide("Subobject", |object| text_or(object, "/involvedObject/fieldPath", "")),
    wide("Source", |object| text_or(object, "/source/component", "")),
    text("Message", |object| object["message"].as_str().unwrap_or_default().trim().into()),
    wide("First Seen", |object| since(&object["firstTimestamp"]).into()),
    wide("Count", |object| text_or(object, "/count", "1")),
    wide("Name", |object| object::name(object).into()),
];
