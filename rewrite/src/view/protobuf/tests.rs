use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube_wire::envelope::{Envelope, EnvelopeError};
use kube_wire::proto::{Reader, Writer};
use kube_wire::watch::ProtobufFrames;
use proptest::prelude::*;
use serde_json::Value;

use bytes::Bytes;

use super::*;
use crate::schema::program_for;
use crate::view::StreamError;
use crate::view::tests::{guard, mapping};
use crate::view::{Beginning, Certificate, Filter, ListStream, ProtoListStream, ProtoWatchStream, Unreadable, Verdict};
use crate::{Mapping, Program, View};

/// An object of `testdata/shown.json`.
struct Sample {
    name: String,
    program: Program,
    filter: Filter,
    host: (Bytes, Bytes),
    shown: Option<(Value, Bytes)>,
}

static SAMPLES: LazyLock<Vec<Sample>> = LazyLock::new(|| {
    let samples: Vec<Value> = serde_json::from_str(include_str!("../../../testdata/shown.json")).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let proto = |form: &Value| Bytes::from(STANDARD.decode(text(&form["Protobuf"])).unwrap());
    let sample = |sample: &Value| Sample {
        name: text(&sample["Name"]),
        program: program_for(&text(&sample["Group"]), "v1", &text(&sample["Resource"])),
        filter: match &*text(&sample["Filter"]) {
            "ByNamespace" => Filter::ByNamespace,
            "ByName" => Filter::ByName,
            "ByClaim" => Filter::ByClaim,
            "ByNode" => Filter::ByNode,
            "ByParent" => Filter::ByParent,
            "Autoupdated" => Filter::Autoupdated,
            "Nothing" => Filter::Nothing,
            "Everything" => Filter::Everything,
            other => panic!("no filter: {other}"),
        },
        host: (Bytes::from(text(&sample["Host"]["Json"])), proto(&sample["Host"])),
        shown: sample.get("Shown").filter(|shown| !shown.is_null()).map(|shown| {
            let json = serde_json::from_str(&text(&shown["Json"])).unwrap();
            (json, proto(shown))
        }),
    };
    samples.iter().map(sample).collect()
});

fn view() -> View {
    let mapping = mapping().with_nodes(Arc::new([Bytes::from("beijing-1")].into()));
    View::new(mapping).with_guard(guard()).with_certificate(Arc::new(Certificate::new("PEM\n")))
}

fn is_list(sample: &Sample) -> bool {
    sample.name.starts_with("list")
}

fn seal(token: &str) -> String {
    format!("sealed {token}")
}

/// The same object as shown in JSON.
fn in_json(sample: &Sample) -> Option<Value> {
    let mut out: Vec<Bytes> = Vec::new();
    let shown = if is_list(sample) {
        let mut list = ListStream::new(view(), sample.program.clone(), sample.filter).sealing(seal);
        list.push(&sample.host.0, &mut out).unwrap();
        list.finish().unwrap();
        Verdict::Shown
    } else {
        view().object(&sample.program, sample.filter, &sample.host.0, &mut out).unwrap()
    };
    (shown == Verdict::Shown).then(|| serde_json::from_slice(&out.concat()).unwrap())
}

fn listed(sample: &Sample, chunk: usize) -> Result<Bytes, StreamError> {
    let mut list = ProtoListStream::new(view(), sample.program.clone(), sample.filter).sealing(seal);
    for chunk in sample.host.1.chunks(chunk) {
        list.push(chunk)?;
    }
    list.finish().map(|pieces| pieces.concat().into())
}

fn object(sample: &Sample, body: &Bytes) -> Result<Option<Bytes>, Unreadable> {
    let mut out: Vec<Bytes> = Vec::new();
    let verdict = view().protobuf(&sample.program, sample.filter, body, &mut out)?;
    assert!(verdict == Verdict::Shown || out.is_empty());
    Ok((verdict == Verdict::Shown).then(|| out.concat().into()))
}

fn sample(name: &str) -> &'static Sample {
    SAMPLES.iter().find(|sample| sample.name == name).unwrap()
}

#[test]
fn both_encodings_are_shown_as_by_go() {
    for sample in &*SAMPLES {
        let json = sample.shown.as_ref().map(|(json, _)| json);
        assert_eq!(in_json(sample).as_ref(), json, "{} in JSON", sample.name);
        let shown = if is_list(sample) {
            Some(listed(sample, usize::MAX).unwrap())
        } else {
            object(sample, &sample.host.1).unwrap()
        };
        // The same bytes that Go writes, and so no other than those of names have changed.
        assert_eq!(shown.as_ref(), sample.shown.as_ref().map(|(_, proto)| proto), "{}", sample.name);
    }
}

#[test]
fn objects_of_another_kind_are_not_shown() {
    let pod = &sample("pod");
    let kind = |api_version, kind| {
        let envelope = Envelope::decode(&pod.host.1).unwrap();
        object(pod, &Envelope { api_version, kind, ..envelope }.encode().into())
    };
    assert!(matches!(kind("v1", "Secret"), Err(Unreadable::Kind { .. })));
    assert!(matches!(kind("v2", "Pod"), Err(Unreadable::Kind { .. })));
    assert!(matches!(kind("meta.k8s.io/v1", "Table"), Err(Unreadable::Kind { .. })));
    let wrapped = Envelope { content_encoding: "gzip", ..Envelope::decode(&pod.host.1).unwrap() }.encode();
    assert_eq!(object(pod, &wrapped.into()), Err(Unreadable::Wrapped));
    assert!(matches!(object(pod, &pod.host.0), Err(Unreadable::Envelope(EnvelopeError::Magic))));
    let mut out: Vec<Bytes> = Vec::new();
    let widgets = program_for("example.com", "v1", "widgets");
    let verdict = view().protobuf(&widgets, Filter::ByNamespace, &pod.host.1, &mut out);
    assert_eq!(verdict, Err(Unreadable::NoSchema));
}

#[test]
fn a_second_namespace_is_refused() {
    // Go takes the last one, and merges a second metadata into the first.
    let inner = |namespaces: &[&str]| {
        let mut metadata = Writer::new();
        for namespace in namespaces {
            metadata.bytes(3, namespace.as_bytes());
        }
        metadata.into_bytes()
    };
    let pod = |metadata: &[Vec<u8>]| {
        let mut pod = Writer::new();
        for metadata in metadata {
            pod.bytes(METADATA, metadata);
        }
        let raw = pod.into_bytes();
        Bytes::from(Envelope { api_version: "v1", kind: "Pod", raw: &raw, ..Envelope::default() }.encode())
    };
    let shown = |metadata: &[Vec<u8>]| object(sample("pod"), &pod(metadata));
    assert_eq!(shown(&[inner(&["edge-ke"])]), Ok(Some(pod(&[inner(&["edge"])]))));
    assert_eq!(shown(&[inner(&["edge-hz"])]), Ok(None));
    assert_eq!(shown(&[inner(&[])]), Ok(None));
    assert_eq!(shown(&[]), Ok(None));
    for two in [&[inner(&["edge-ke", "edge-hz"])][..], &[inner(&["edge-ke"]), inner(&["edge-hz"])]] {
        assert!(matches!(shown(two), Err(Unreadable::Envelope(EnvelopeError::Repeated(_)))));
    }
}

#[test]
fn a_list_is_kept_up_to_a_limit() {
    let list = &sample("list");
    let limited = |item, all| {
        let list_of_pods = ProtoListStream::new(view(), list.program.clone(), list.filter).limited_to(item, all);
        let mut list_of_pods = list_of_pods.sealing(seal);
        list_of_pods.push(&list.host.1).and_then(|()| list_of_pods.finish()).map(|pieces| Bytes::from(pieces.concat()))
    };
    let shown = list.shown.as_ref().unwrap().1.clone();
    // Items of others do not count towards the limit.
    assert_eq!(limited(10_000, shown.len()), Ok(shown.clone()));
    assert_eq!(limited(10_000, shown.len() / 2), Err(StreamError::TooMuch { limit: shown.len() / 2 }));
    assert_eq!(limited(100, shown.len()), Err(StreamError::TooLong { limit: 100 }));
}

/// A frame of a watch with an enveloped object.
fn frame(event: &str, object: &[u8]) -> Vec<u8> {
    let mut raw = Writer::new();
    raw.bytes(1, object);
    let mut message = Writer::new();
    message.bytes(1, event.as_bytes());
    message.bytes(2, &raw.into_bytes());
    ProtobufFrames::encode(&message.into_bytes()).unwrap()
}

fn watched(stream: &mut ProtoWatchStream, text: &[u8], chunk: usize) -> Result<Vec<u8>, StreamError> {
    let mut out: Vec<Bytes> = Vec::new();
    for chunk in text.chunks(chunk) {
        stream.push(chunk, &mut out)?;
    }
    stream.finish()?;
    Ok(out.concat())
}

fn watch_of(name: &str) -> ProtoWatchStream {
    let sample = sample(name);
    ProtoWatchStream::new(view(), &sample.program, sample.filter).unwrap()
}

#[test]
fn hidden_events_appear_in_bookmarks() {
    let version = |version: &str, marked: bool| {
        let mut metadata = Writer::new();
        metadata.bytes(6, version.as_bytes());
        if marked {
            metadata.bytes(12, b"\x0a\x19k8s.io/initial-events-end\x12\x04true");
        }
        let mut pod = Writer::new();
        pod.bytes(METADATA, &metadata.into_bytes());
        Envelope { api_version: "v1", kind: "Pod", raw: &pod.into_bytes(), ..Envelope::default() }.encode()
    };
    let mut watch = watch_of("pod").beginning_with(Beginning::MarkedState);
    let others = frame("ADDED", &sample("pod-of-others").host.1);
    assert_eq!(watched(&mut watch, &others, 5), Ok(vec![]));
    assert_eq!(watch.bookmark(), None);
    let mark = frame("BOOKMARK", &version("9", true));
    assert_eq!(watched(&mut watch, &mark, 5), Ok(mark.clone()));
    assert_eq!(watch.bookmark().as_deref(), Some(&frame("BOOKMARK", &version("9", false))[..]));
    assert_eq!(watched(&mut watch, &others, 7), Ok(vec![]));
    assert_eq!(watch.bookmark().as_deref(), Some(&frame("BOOKMARK", &version("7", false))[..]));
}

#[test]
fn a_frame_waits_for_an_unknown_namespace() {
    // `namespace` is field 3 of `ObjectMeta`, `resourceVersion` field 6.
    let pod = |field: u32, value: &str| {
        let (mut metadata, mut pod) = (Writer::new(), Writer::new());
        metadata.bytes(field, value.as_bytes());
        pod.bytes(METADATA, &metadata.into_bytes());
        Envelope { api_version: "v1", kind: "Pod", raw: &pod.into_bytes(), ..Envelope::default() }.encode()
    };
    let (waits, bookmark) = (frame("ADDED", &pod(3, "new-ke")), frame("BOOKMARK", &pod(6, "9")));
    let text = [&waits[..], &bookmark].concat();
    let mut watch = watch_of("pod");
    let mut out: Vec<Bytes> = Vec::new();
    let arrived = watch.read(&text, &mut out).unwrap();
    assert_eq!((arrived.unknown, arrived.bookmarks), (vec![b"new-ke"[..].into()], vec![]));
    assert_eq!(arrived.hiding, Some(b"new-ke"[..].into()));
    assert!(out.is_empty() && watch.is_waiting() && watch.held() > 0);
    assert_eq!(watch.finish(), Err(StreamError::Cut));

    let mut index = crate::Index::new();
    index.insert("new-ke".parse().unwrap(), "ke".parse().unwrap(), "new".parse().unwrap()).unwrap();
    watch.remap(Mapping::new("ke".parse().unwrap(), Arc::new(index)));
    let arrived = watch.resume(&mut out).unwrap();
    assert_eq!(out.concat(), [frame("ADDED", &pod(3, "new")), bookmark.clone()].concat());
    let bookmarks = vec![crate::view::Bookmark { resource_version: "9".into(), ends_initial_events: false }];
    assert_eq!(arrived, crate::view::Arrived { bookmarks, ..crate::view::Arrived::default() });
    assert_eq!((watch.is_waiting(), watch.finish()), (false, Ok(())));

    watch.remap(mapping());
    assert_eq!(watch.read(&waits, &mut out).unwrap().unknown.len(), 1);
    watch.give_up();
    out.clear();
    assert_eq!(
        watch.resume(&mut out),
        Ok(crate::view::Arrived { has_unknown: true, ..crate::view::Arrived::default() })
    );
    assert_eq!(watch.read(&text, &mut out).unwrap().bookmarks.len(), 1);
    assert_eq!(out.concat(), bookmark, "nothing waits for it any more");
}

#[test]
fn errors_of_a_watch_are_in_virtual_names() {
    let status = &sample("status");
    let shown = status.shown.as_ref().unwrap().1.clone();
    let mut watch = watch_of("namespace");
    assert_eq!(watched(&mut watch, &frame("ERROR", &status.host.1), 9), Ok(frame("ERROR", &shown)));
    let mut cut = frame("ERROR", &status.host.1);
    cut.pop();
    assert_eq!(watched(&mut watch, &cut, 9), Err(StreamError::Cut));
    let list = frame("ADDED", &sample("list").host.1);
    assert!(matches!(watched(&mut watch_of("pod"), &list, 9), Err(StreamError::Unreadable(_))));
}

/// The values of `metadata.namespace` of an object.
fn namespaces(body: &[u8]) -> Vec<Vec<u8>> {
    let inside = |message: &[u8], number| {
        let (mut reader, mut found) = (Reader::new(message), Vec::new());
        while let Some(field) = reader.next_field().unwrap() {
            if field.number == number {
                found.push(field.bytes().unwrap().to_vec());
            }
        }
        found
    };
    let raw = Envelope::decode(body).unwrap().raw.to_vec();
    inside(&raw, METADATA).iter().flat_map(|metadata| inside(metadata, 3)).collect()
}

proptest! {
    #[test]
    fn chunking_of_lists_and_watches_makes_no_difference(chunk in 1..4000_usize) {
        for sample in SAMPLES.iter() {
            let shown = sample.shown.as_ref().map(|(_, shown)| shown.clone());
            if is_list(sample) {
                prop_assert_eq!(listed(sample, chunk).ok(), shown);
                continue;
            }
            let mut watch = ProtoWatchStream::new(view(), &sample.program, sample.filter).unwrap();
            let text = [frame("ADDED", &sample.host.1), frame("DELETED", &sample.host.1)].concat();
            let shown = shown.map_or_else(Vec::new, |shown| [frame("ADDED", &shown), frame("DELETED", &shown)].concat());
            prop_assert_eq!(watched(&mut watch, &text, chunk).unwrap(), shown, "{}", sample.name);
        }
    }

    #[test]
    fn damaged_bodies_are_refused_or_in_a_namespace_of_the_cluster(
        number in 0..100_usize,
        damages in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let sample = &SAMPLES[number % SAMPLES.len()];
        let mut body = sample.host.1.to_vec();
        for (place, byte) in damages {
            let place = place.index(body.len());
            body[place] = byte;
        }
        let body = Bytes::from(body);
        let whole = object(sample, &body);
        let mut list = ProtoListStream::new(view(), sample.program.clone(), sample.filter).sealing(seal);
        let pushed = body.chunks(7).try_for_each(|chunk| list.push(chunk)).and_then(|()| list.finish());
        if is_list(sample) {
            prop_assert_eq!(whole.is_ok(), pushed.is_ok());
        }
        if let Ok(Some(shown)) = whole
            && sample.filter == Filter::ByNamespace
            && !is_list(sample)
        {
            let namespaces = namespaces(&shown);
            prop_assert!(matches!(&namespaces[..], [one] if one == b"edge" || one == b"default"), "{namespaces:?}");
        }
    }
}

/// The names become known one by one, as the list needs them.
#[test]
fn items_of_a_list_wait_for_their_namespaces() {
    let lists = SAMPLES.iter().filter(|sample| is_list(sample) && sample.filter == Filter::ByNamespace);
    let mut waits = 0;
    for sample in lists {
        for chunk in [1, 7, usize::MAX] {
            let known = Mapping::new("ke".parse().unwrap(), Arc::default());
            let view = view().renewed(known);
            let list = ProtoListStream::new(view, sample.program.clone(), sample.filter).sealing(seal);
            let mut list = list.awaiting_namespaces();
            for chunk in sample.host.1.chunks(chunk) {
                list.push(chunk).unwrap();
                while let Some(name) = list.unknown() {
                    assert!(name.ends_with(b"-ke"), "{name:?}");
                    let held = list.held();
                    waits += 1;
                    list.await_only(Arc::new([name.into()].into()));
                    list.remap(mapping());
                    list.resume().unwrap();
                    assert!(held > 0);
                }
            }
            let shown = list.finish().unwrap().concat();
            assert_eq!(shown, listed(sample, usize::MAX).unwrap(), "{}", sample.name);
        }
    }
    assert!(waits > 0);
}
