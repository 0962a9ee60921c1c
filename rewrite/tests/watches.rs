//! Compares watches with a plain implementation of the same rules over `serde_json` values: which names frames wait
//! for, which bookmarks there are, and what is shown, for any division of the bytes into chunks, and for any end.

#![expect(clippy::unwrap_used, reason = "a failed test is what an oracle's panic means")]

use bytes::Bytes;
use proptest::prelude::*;
use rewrite::schema::program_for;
use rewrite::view::{Arrived, Filter, ProtoWatchStream, StreamError, View, WatchStream};
use rewrite::{Index, Mapping};
use serde_json::{Value, json};

#[path = "watches/events.rs"]
mod events;
#[path = "watches/protobuf.rs"]
mod protobuf;
#[path = "watches/rules.rs"]
mod rules;

use events::{bookmark, change, error, event, partial, table};
use rules::{Found, Reading, becomes_known, virtual_name};

/// The host's namespaces that are known from the beginning: two of the virtual cluster `ke`, and two of others.
fn index() -> Index {
    let mut index = Index::new();
    for (host, cluster, name) in [("edge-ke", "ke", "edge"), ("default-ke", "ke", "default"), ("edge-hz", "hz", "edge")]
    {
        index.insert(host.parse().unwrap(), cluster.parse().unwrap(), name.parse().unwrap()).unwrap();
    }
    index.insert_host("kube-system".parse().unwrap());
    index
}

fn mapping(index: &Index) -> Mapping {
    Mapping::new("ke".parse().unwrap(), std::sync::Arc::new(index.clone()))
}

/// A watch in JSON or protobuf.
trait Watch {
    fn read(&mut self, chunk: &Bytes, out: &mut Vec<Bytes>) -> Result<Arrived, StreamError>;
    fn resume(&mut self, out: &mut Vec<Bytes>) -> Result<Arrived, StreamError>;
    fn give_up(&mut self);
    fn remap(&mut self, mapping: Mapping);
}

macro_rules! watch {
    ($stream:ty) => {
        impl Watch for $stream {
            fn read(&mut self, chunk: &Bytes, out: &mut Vec<Bytes>) -> Result<Arrived, StreamError> {
                <$stream>::read(self, chunk, out)
            }
            fn resume(&mut self, out: &mut Vec<Bytes>) -> Result<Arrived, StreamError> {
                <$stream>::resume(self, out)
            }
            fn give_up(&mut self) {
                <$stream>::give_up(self);
            }
            fn remap(&mut self, mapping: Mapping) {
                <$stream>::remap(self, mapping);
            }
        }
    };
}

watch!(WatchStream);
watch!(ProtoWatchStream);

fn in_json() -> WatchStream {
    WatchStream::new(View::new(mapping(&index())), program_for("", "v1", "events"), Filter::ByNamespace)
}

fn in_protobuf() -> ProtoWatchStream {
    let program = program_for("", "v1", "events");
    ProtoWatchStream::new(View::new(mapping(&index())), &program, Filter::ByNamespace).unwrap()
}

/// What the engine reports and shows. A namespace that [`becomes_known`] is known as soon as an event waits for it, and
/// the watch gives up all others.
fn read(watch: &mut impl Watch, text: &[u8], sizes: &[usize]) -> (Vec<Found>, Vec<u8>) {
    let (mut index, mut found, mut out) = (index(), Vec::new(), Vec::new());
    let (mut rest, mut sizes) = (text, sizes.iter().cycle());
    while !rest.is_empty() {
        let (chunk, behind) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
        rest = behind;
        let mut arrived = watch.read(&Bytes::copy_from_slice(chunk), &mut out).unwrap();
        loop {
            found.extend(
                arrived
                    .bookmarks
                    .into_iter()
                    .map(|bookmark| Found::Bookmark(text_of(&bookmark.resource_version), bookmark.ends_initial_events)),
            );
            let names: Vec<String> = arrived.unknown.iter().map(|name| text_of(name)).collect();
            if names.is_empty() {
                break;
            }
            for name in names.iter().filter(|name| becomes_known(name)) {
                let shown = virtual_name(name).parse().unwrap();
                index.insert(name.parse().unwrap(), "ke".parse().unwrap(), shown).unwrap();
            }
            watch.remap(mapping(&index));
            if !names.iter().all(|name| becomes_known(name)) {
                watch.give_up();
            }
            found.push(Found::Wait(names));
            arrived = watch.resume(&mut out).unwrap();
        }
    }
    (found, out.concat())
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Checks a watch that ends after `text`.
fn check_json(text: &[u8], sizes: &[usize]) {
    let mut reading = Reading::default();
    let mut ends_well = true;
    for event in serde_json::Deserializer::from_slice(text).into_iter::<Value>() {
        match event {
            Ok(event) => reading.event(event),
            Err(error) => {
                assert!(error.is_eof(), "{error}");
                ends_well = false;
            }
        }
    }
    let mut watch = in_json();
    let (found, out) = read(&mut watch, text, sizes);
    let shown: Vec<Value> = serde_json::Deserializer::from_slice(&out).into_iter().collect::<Result<_, _>>().unwrap();
    assert_eq!((found, shown), (reading.found, reading.shown));
    assert_eq!((watch.finish().is_ok(), watch.held() == 0), (ends_well, ends_well));
}

/// The same for the frames of these events, of which only the first `length` bytes arrive.
fn check_protobuf(frames: &[(Value, Vec<u8>)], length: usize, sizes: &[usize]) {
    let (mut reading, mut end) = (Reading::default(), 0);
    let mut ends_well = length == 0;
    for (event, frame) in frames {
        end += frame.len();
        if end <= length {
            reading.event(event.clone());
        }
        ends_well |= end == length;
    }
    let all: Vec<u8> = frames.iter().flat_map(|(_, frame)| frame).copied().collect();
    let mut watch = in_protobuf();
    let (found, out) = read(&mut watch, &all[..length], sizes);
    let shown: Vec<u8> = reading.shown.iter().flat_map(protobuf::frame).collect();
    assert_eq!((found, out), (reading.found, shown));
    assert_eq!(watch.finish().is_ok(), ends_well);
}

/// The events that exist in protobuf.
fn frames(texts: &[String]) -> Vec<(Value, Vec<u8>)> {
    let events = texts.iter().map(|text| serde_json::from_str::<Value>(text).unwrap());
    events
        .filter(|event| event["object"]["kind"] != "Table")
        .map(|event| (event.clone(), protobuf::frame(&event)))
        .collect()
}

fn length(frames: &[(Value, Vec<u8>)]) -> usize {
    frames.iter().map(|(_, frame)| frame.len()).sum()
}

/// Ends at any byte of a text with all kinds of events.
#[test]
fn a_watch_that_ends_anywhere_is_read_as_by_the_oracle() {
    let texts = [
        table("edge-hz", "[{\"name\":\"Last Seen\"}]"),
        table("gone-a-ke", "null"),
        change("ADDED", "edge-ke", "gone-b-ke"),
        bookmark("7", true),
        table("new-a-ke", "null"),
        error("new-b-ke"),
        change("MODIFIED", "\\u006eew-b-ke", "new-c-ke"),
        partial("edge-hz"),
        change("DELETED", "gone-a-ke", "new-d-ke"),
        partial("new-e-ke"),
        bookmark("", false),
        change("ADDED", "edge-ke", "edge-hz"),
    ];
    let text = texts.map(|text| text + "\n");
    let all = text.concat();
    for end in 0..=all.len() {
        check_json(&all.as_bytes()[..end], &[end % 61 + 1, end % 1013 + 1]);
    }
    let frames = frames(&text);
    for end in 0..=length(&frames) {
        check_protobuf(&frames, end, &[end % 61 + 1, end % 1013 + 1]);
    }
}

/// Clients that watch only metadata (`PartialObjectMetadata`) must not miss a new Namespace, either.
#[test]
fn the_metadata_of_a_namespace_waits_for_its_name() {
    let event = |name: &str| {
        let object =
            json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": name}});
        json!({"type": "ADDED", "object": object})
    };
    let (view, program) = (View::new(mapping(&index())), program_for("", "v1", "namespaces"));
    let found = || vec![Found::Wait(vec!["new-a-ke".to_owned()])];
    let [host, shown] = ["new-a-ke", "new-a"].map(|name| event(name).to_string().into_bytes());
    let mut watch = WatchStream::new(view.clone(), program.clone(), Filter::ByName);
    assert_eq!(read(&mut watch, &host, &[usize::MAX]), (found(), shown));
    let [host, shown] = ["new-a-ke", "new-a"].map(|name| protobuf::frame(&event(name)));
    let mut watch = ProtoWatchStream::new(view, &program, Filter::ByName).unwrap();
    assert_eq!(read(&mut watch, &host, &[usize::MAX]), (found(), shown));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_watch_is_read_as_by_the_oracle(
        texts in proptest::collection::vec(event(), 0..10),
        space in "[ \n]{0,2}",
        sizes in proptest::collection::vec(prop_oneof![1..40_usize, 1..4000_usize], 1..5),
        end in prop_oneof![Just(1.0), 0.0..1.0_f64],
    ) {
        let all = texts.iter().map(|text| text.clone() + &space).collect::<String>();
        check_json(&all.as_bytes()[..part(all.len(), end)], &sizes);
        let frames = frames(&texts);
        check_protobuf(&frames, part(length(&frames), end), &sizes);
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "about this part"
)]
fn part(length: usize, end: f64) -> usize {
    (length as f64 * end) as usize
}
