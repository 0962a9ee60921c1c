//! The operations of the agent: filter and rewrite a list for one of two virtual clusters, and rewrite the body of a
//! request.

use std::ops::Range;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use rewrite::sink::Sink;
use rewrite::view::{Filter, ListStream, View};
use rewrite::{Guard, Index, Mapping, Program, ProtoProgram, Request, schema};

use crate::allocations::{Allocations, count};
use crate::pods::{self, CLUSTERS, NAMESPACES};

/// Counts the pieces of a rewritten list.
#[derive(Debug, Default)]
pub(super) struct Count {
    pub(super) pieces: usize,
    pub(super) bytes: usize,
}

/// One buffer, to which the output is copied, as the agent does with the body of a request.
#[derive(Debug)]
struct Copied(BytesMut);

/// The body of a request, and how it is rewritten.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) name: String,
    pub(super) bytes: Bytes,
    /// The same object in JSON.
    pub(super) json: Bytes,
    program: Form,
    request: Request,
}

#[derive(Debug)]
enum Form {
    Json(Program),
    Protobuf(ProtoProgram),
}

/// The space for longer names in a body, as in the agent.
const GROWTH: usize = 256;

/// Objects in both encodings, written by the serializers of Kubernetes.
const SAMPLES: &str = include_str!("../../../rewrite/testdata/protobuf.json");
/// The names of long samples.
const SAMPLE_NAMES: [&str; 3] = ["pod, everything set", "deployment", "config map"];

/// Filters and rewrites a list for the first of its virtual clusters.
pub(super) fn rewrite_list<S: Sink>(list: &Bytes, chunk: usize, mut sink: S) -> S {
    let view = View::new(mapping(CLUSTERS[0])).with_guard(Arc::new(guard()));
    let mut stream = ListStream::new(view, schema::program_for("", "v1", "pods"), Filter::ByNamespace);
    let mut rest = list.clone();
    while !rest.is_empty() {
        stream.push(&rest.split_to(chunk.min(rest.len())), &mut sink).expect("the list is valid");
    }
    stream.finish().expect("the list is complete");
    sink
}

/// The allocations for a list in one chunk.
pub(super) fn allocations(list: &Bytes) -> Allocations {
    count(|| {
        rewrite_list(list, usize::MAX, Count::default());
    })
}

/// A pod in JSON, and the samples in both encodings.
pub(super) fn bodies() -> anyhow::Result<Vec<Body>> {
    let pod = Bytes::from(pods::pod_to_create());
    let request = Request::new(mapping(CLUSTERS[0])).in_namespace(NAMESPACES[1].parse()?).with_guard(Arc::new(guard()));
    let program = schema::program_for("", "v1", "pods");
    let name = "pod as a controller creates it, JSON".to_owned();
    let mut bodies = vec![Body { name, bytes: pod.clone(), json: pod, program: Form::Json(program), request }];

    let samples: Vec<serde_json::Value> = serde_json::from_str(SAMPLES)?;
    for name in SAMPLE_NAMES {
        let sample = samples.iter().find(|sample| sample["Name"] == name).context("a sample does not exist")?;
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let [group, version, kind] = ["Group", "Version", "Kind"].map(|key| text(&sample[key]));
        let json = Bytes::from(text(&sample["Virtual"]["Json"]));
        let protobuf = Bytes::from(STANDARD.decode(text(&sample["Virtual"]["Protobuf"]))?);
        let of_protobuf = schema::proto_program_for(&group, &version, &kind).context("the kind has no schema")?;
        let of_json = schema::program_for(&group, &version, &kind);
        for (form, bytes, program) in
            [("JSON", json.clone(), Form::Json(of_json)), ("protobuf", protobuf, Form::Protobuf(of_protobuf))]
        {
            let request = Request::new(mapping("ke")).in_namespace("edge".parse()?).with_guard(Arc::new(guard()));
            bodies.push(Body { name: format!("{name}, {form}"), bytes, json: json.clone(), program, request });
        }
    }
    Ok(bodies)
}

fn mapping(cluster: &str) -> Mapping {
    let mut index = Index::new();
    for cluster in CLUSTERS.into_iter().chain(["ke"]) {
        for namespace in NAMESPACES {
            let host = format!("{namespace}-{cluster}").parse().expect("a label");
            let cluster = cluster.parse().expect("a label");
            index.insert(host, cluster, namespace.parse().expect("a label")).expect("all host names differ");
        }
    }
    Mapping::new(cluster.parse().expect("a label"), Arc::new(index))
}

fn guard() -> Guard {
    Guard::new([("location".to_owned(), "beijing".to_owned())], [])
}

// === impl Count ===

impl Sink for Count {
    fn emit(&mut self, piece: Bytes) {
        self.pieces += 1;
        self.bytes += std::hint::black_box(piece).len();
    }
}

// === impl Copied ===

impl Sink for Copied {
    fn emit(&mut self, piece: Bytes) {
        self.0.extend_from_slice(&piece);
    }

    fn emit_range(&mut self, text: &Bytes, range: Range<usize>) {
        self.0.extend_from_slice(&text[range]);
    }
}

// === impl Body ===

impl Body {
    /// The rewritten body. Empty if the engine refuses it.
    pub(super) fn map(&self) -> BytesMut {
        let mut out = Copied(BytesMut::with_capacity(self.bytes.len() + GROWTH));
        let mapped = match &self.program {
            Form::Json(program) => self.request.map(program, &self.bytes, &mut out),
            Form::Protobuf(program) => self.request.map_protobuf(*program, &self.bytes, &mut out),
        };
        if mapped.is_err() {
            out.0.clear();
        }
        out.0
    }

    /// Fails if the engine refuses or does not change the body, because the measurement would be wrong.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let mapped = self.map();
        ensure!(!mapped.is_empty() && mapped != self.bytes, "{}: the engine does not rewrite it", self.name);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_body_is_rewritten() {
        for body in bodies().unwrap() {
            body.check().unwrap();
        }
    }

    #[test]
    fn half_of_the_pods_are_shown_for_any_chunk_size() {
        let list = Bytes::from(pods::list(10));
        let shown = |chunk| rewrite_list(&list, chunk, Vec::<Bytes>::new()).concat();
        let list_shown: serde_json::Value = serde_json::from_slice(&shown(usize::MAX)).unwrap();
        let namespaces: Vec<_> =
            list_shown["items"].as_array().unwrap().iter().map(|pod| &pod["metadata"]["namespace"]).collect();
        assert_eq!(namespaces, ["default", "edge", "monitoring", "default", "edge"]);
        assert_eq!(shown(100), shown(usize::MAX));
    }

    #[test]
    fn allocations_do_not_depend_on_the_length_of_the_list() {
        let of = |pods| allocations(&pods::list(pods).into());
        // The first list of a process also initializes shared data.
        of(1);
        assert_eq!(of(100), of(1_000));
    }
}
