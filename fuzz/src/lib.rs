//! What the targets share: a virtual cluster `ke` beside another one, and the oracle for JSON.

use std::sync::Arc;

use bytes::Bytes;
use rewrite::guard::Toleration;
use rewrite::view::Certificate;
use rewrite::{Guard, Index, Mapping, Request, View};
use serde_json::Value;

/// Kinds that between them have every place that the engine knows, as group and resource.
pub const KINDS: [(&str, &str); 12] = [
    ("", "pods"),
    ("", "namespaces"),
    ("", "events"),
    ("", "secrets"),
    ("", "configmaps"),
    ("", "bindings"),
    ("apps", "deployments"),
    ("apps", "controllerrevisions"),
    ("networking.k8s.io", "networkpolicies"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("example.com", "widgets"),
];

/// Namespaces `edge` and `default` of the cluster, `edge` of another one, and one of nobody.
pub fn mapping() -> Mapping {
    let mut index = Index::new();
    for (host, cluster, name) in [("edge-ke", "ke", "edge"), ("default-ke", "ke", "default"), ("edge-hz", "hz", "edge")]
    {
        let (host, cluster) = (host.parse().expect("a name"), cluster.parse().expect("a name"));
        index.insert(host, cluster, name.parse().expect("a name")).expect("no two are the same");
    }
    index.insert_host("kube-system".parse().expect("a name"));
    Mapping::new("ke".parse().expect("a name"), Arc::new(index))
}

/// A guard of one label and one toleration.
pub fn guard() -> Arc<Guard> {
    Arc::new(Guard::new([("location".into(), "beijing".into())], [Toleration::of_key("edge")]))
}

/// How the cluster sees answers.
pub fn view() -> View {
    View::new(mapping()).with_guard(guard()).with_certificate(Arc::new(Certificate::new("PEM\n")))
}

/// How a request in namespace `edge` is mapped.
pub fn request() -> Request {
    Request::new(mapping()).with_guard(guard()).in_namespace("edge".parse().expect("a name"))
}

/// The first byte chooses a kind; the rest is what it is about.
pub fn kind_and_rest(data: &[u8]) -> Option<(&'static str, &'static str, Bytes)> {
    let (first, rest) = data.split_first()?;
    let (group, resource) = KINDS[usize::from(*first) % KINDS.len()];
    Some((group, resource, Bytes::copy_from_slice(rest)))
}

/// Cuts text into pieces whose lengths follow from its first bytes.
pub fn pieces(text: &Bytes) -> Vec<Bytes> {
    let mut lengths = text.iter().take(16).cycle();
    let (mut pieces, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let length = lengths.next().map_or(1, |byte| usize::from(*byte % 37) + 1).min(text.len() - at);
        pieces.push(text.slice(at..at + length));
        at += length;
    }
    pieces
}

/// Whether serde_json takes the text. Deeper than it goes is not compared.
pub fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<Value>(text).is_ok()
}
