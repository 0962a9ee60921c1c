//! Compares the engine with a plain implementation of the same rules over `serde_json` values.
//!
//! This oracle does not use programs, scanners or edits. It has its own list of paths, written from the Kubernetes
//! documentation rather than from the table, and builds whole trees.

#![expect(clippy::unwrap_used, reason = "a failed test is what an oracle's panic means")]

use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use rewrite::view::{Filter, ListStream, Verdict, View};
use rewrite::{Guard, Index, Mapping, Request, schema};
use serde_json::{Value, json};

#[path = "oracle/objects.rs"]
mod objects;
#[path = "oracle/rules.rs"]
mod rules;

use objects::{KINDS, Kind};

const CLUSTER: &str = "ke";

fn mapping() -> Mapping {
    let mut index = Index::new();
    for name in ["edge", "default"] {
        let host = format!("{name}-{CLUSTER}").parse().unwrap();
        index.insert(host, CLUSTER.parse().unwrap(), name.parse().unwrap()).unwrap();
    }
    index.insert("edge-hz".parse().unwrap(), "hz".parse().unwrap(), "edge".parse().unwrap()).unwrap();
    Mapping::new(CLUSTER.parse().unwrap(), Arc::new(index))
}

fn guard() -> Arc<Guard> {
    Arc::new(Guard::new([("location".to_owned(), "beijing".to_owned())], []))
}

fn view() -> View {
    View::new(mapping()).with_guard(guard())
}

/// The object as the engine maps it for the host.
fn map(kind: &Kind, body: &str) -> String {
    let request = Request::new(mapping()).in_namespace("edge".parse().unwrap()).with_guard(guard());
    let mut out: Vec<Bytes> = Vec::new();
    let body = Bytes::copy_from_slice(body.as_bytes());
    request.map(&schema::program_for(kind.group, "v1", kind.name), &body, &mut out).unwrap();
    String::from_utf8(out.concat()).unwrap()
}

/// The object as the engine shows it to the client.
fn show(kind: &Kind, body: &str) -> Option<String> {
    let mut out: Vec<Bytes> = Vec::new();
    let body = Bytes::copy_from_slice(body.as_bytes());
    let program = schema::program_for(kind.group, "v1", kind.name);
    let verdict = view().object(&program, Filter::ByNamespace, &body, &mut out).unwrap();
    (verdict == Verdict::Shown).then(|| String::from_utf8(out.concat()).unwrap())
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A value as Go writes it, or with white space everywhere.
fn written(value: &Value, pretty: bool) -> String {
    if pretty { serde_json::to_string_pretty(value).unwrap() } else { value.to_string() }
}

fn object() -> impl Strategy<Value = (&'static Kind, Value)> {
    (0..KINDS.len()).prop_flat_map(|number| {
        let kind = &KINDS[number];
        (Just(kind), (kind.object)())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn requests_are_mapped_as_by_the_oracle((kind, object) in object(), pretty: bool) {
        let mapped = map(kind, &written(&object, pretty));
        prop_assert_eq!(parse(&mapped), rules::map(kind, object));
    }

    #[test]
    fn responses_are_shown_as_by_the_oracle((kind, object) in object(), foreign: bool, pretty: bool) {
        let mut host = rules::map(kind, object);
        if foreign {
            host["metadata"]["namespace"] = json!("edge-hz");
        }
        let shown = show(kind, &written(&host, pretty));
        prop_assert_eq!(shown.map(|shown| parse(&shown)), rules::show(kind, host));
    }

    #[test]
    fn mapped_objects_are_mapped_back((kind, object) in object(), pretty: bool) {
        let shown = show(kind, &map(kind, &written(&object, pretty)));
        prop_assert_eq!(shown.map(|shown| parse(&shown)), Some(object));
    }

    /// Bytes that need no change are those of the input, including white space. If the renamed words are restored, the
    /// output equals the input.
    #[test]
    fn untouched_bytes_are_identical((kind, object) in object(), pretty: bool) {
        let kind_without_guard = !kind.is_guarded && !kind.is_confined;
        prop_assume!(kind_without_guard);
        let input = written(&object, pretty);
        prop_assert_eq!(show(kind, &map(kind, &input)), Some(input));
    }

    #[test]
    fn lists_are_shown_as_by_the_oracle(
        objects in proptest::collection::vec((objects::pod(), any::<bool>()), 0..6),
        pretty: bool,
        chunk in 1..200_usize,
    ) {
        let kind = &KINDS[0];
        let mut shown = Vec::new();
        let mut items = Vec::new();
        for (object, foreign) in objects {
            let mut host = rules::map(kind, object);
            if foreign {
                host["metadata"]["namespace"] = json!("edge-hz");
            }
            shown.extend(rules::show(kind, host.clone()));
            items.push(host);
        }
        let list = |items: Vec<Value>| json!({"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": items});
        let text = written(&list(items), pretty);
        let mut stream = ListStream::new(view(), schema::program_for("", "v1", "pods"), Filter::ByNamespace);
        let mut out: Vec<Bytes> = Vec::new();
        for chunk in text.as_bytes().chunks(chunk) {
            stream.push(&Bytes::copy_from_slice(chunk), &mut out).unwrap();
        }
        stream.finish().unwrap();
        prop_assert_eq!(parse(std::str::from_utf8(&out.concat()).unwrap()), list(shown));
    }
}
