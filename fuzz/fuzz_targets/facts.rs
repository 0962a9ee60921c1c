//! What the feeds read in frames and items of the host: what serde_json reads there.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rewrite::facts::{Facts, Frame, frame};
use serde_json::Value;

/// The facts must be in the object. serde_json refuses some texts that Go accepts, such as lone surrogates.
fn compare(facts: &Facts<'_>, text: &[u8]) {
    let at = |range: &std::ops::Range<usize>| &text[range.clone()];
    assert!(at(&facts.metadata_at).starts_with(b"{") && at(&facts.metadata_at).ends_with(b"}"));
    let Ok(object) = serde_json::from_slice::<Value>(text) else { return };
    let metadata = &object["metadata"];
    let named = |field: &str| metadata[field].as_str().unwrap_or_default();
    assert_eq!(facts.name, named("name"));
    assert_eq!(facts.namespace, named("namespace"));
    assert_eq!(facts.resource_version, named("resourceVersion"));
    assert_eq!(serde_json::from_slice::<Value>(at(&facts.metadata_at)).ok().as_ref(), Some(metadata));
    let quoted = [b"\"", at(&facts.resource_version_at), b"\""].concat();
    assert_eq!(serde_json::from_slice::<Value>(&quoted).ok().as_ref(), Some(&metadata["resourceVersion"]));
    // Of equal keys, the last value counts.
    for (key, value) in metadata["labels"].as_object().into_iter().flatten() {
        let label = facts.labels.iter().rfind(|label| label.key == key.as_str());
        assert_eq!(label.map(|label| &*label.value), value.as_str(), "{key}");
    }
}

fuzz_target!(|data: &[u8]| {
    if let Ok(facts) = Facts::read(data, &["spec", "nodeName"]) {
        // Positions begin at the object.
        compare(&facts, data.trim_ascii_start());
    }
    match frame(data, &[]) {
        Ok(Frame::Change { object, facts, .. }) => compare(&facts, &data[object]),
        Ok(Frame::Error { status }) => assert!(!data[status].is_empty()),
        Ok(Frame::Bookmark(_)) | Err(_) => {}
    }
});
