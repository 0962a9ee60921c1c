use http::{HeaderValue, Method, StatusCode};
use kube_wire::RequestInfo;
use opentelemetry::trace::{SpanId, Status};
use opentelemetry_sdk::trace::SpanData;
use ops::metrics::Build;
use tokio::sync::mpsc;

use super::*;
use crate::Phase;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const MILLION: u32 = 1_000_000;

/// Traces with this rate, and the spans that have ended.
fn traces(rate: u32) -> (Traces, mpsc::Receiver<SpanData>) {
    let counts = counts(&Registry::new(Build { component: "test", version: "0" }), true).unwrap();
    let (queue, spans) = Queue::new(counts.dropped);
    (Traces::recording(queue, Resource::builder_empty().build(), rate), spans)
}

fn headers(flags: &str) -> HeaderMap {
    let value = format!("00-{TRACE}-00f067aa0ba902b7-{flags}");
    HeaderMap::from_iter([(http::HeaderName::from_static("traceparent"), HeaderValue::from_str(&value).unwrap())])
}

fn ended(spans: &mut mpsc::Receiver<SpanData>) -> Vec<SpanData> {
    std::iter::from_fn(|| spans.try_recv().ok()).collect()
}

#[tokio::test]
async fn only_a_trusted_client_decides() {
    let (never, mut spans) = traces(0);
    for (flags, trust, is_recorded) in [
        ("01", Trust::Parent, true),
        ("00", Trust::Parent, false),
        ("01", Trust::Link, false),
        ("00", Trust::Link, false),
    ] {
        let span = never.of_client(&headers(flags), trust, Instant::now());
        assert_eq!(span.is_some(), is_recorded, "{flags} {trust:?}");
    }
    let [span] = ended(&mut spans).try_into().unwrap();
    assert_eq!(span.span_context.trace_id().to_string(), TRACE);
    assert_eq!(span.parent_span_id, SpanId::from_hex("00f067aa0ba902b7").unwrap());

    let (always, mut spans) = traces(MILLION);
    assert!(always.of_client(&headers("00"), Trust::Parent, Instant::now()).is_none());
    assert!(always.of_client(&HeaderMap::new(), Trust::Parent, Instant::now()).is_some());
    assert!(always.of_client(&headers("01"), Trust::Link, Instant::now()).is_some());
    let [new, linked] = ended(&mut spans).try_into().unwrap();
    assert!(new.links.links.is_empty());
    assert_ne!(linked.span_context.trace_id().to_string(), TRACE);
    assert_eq!(linked.links.links[0].span_context.trace_id().to_string(), TRACE);
    assert_eq!(linked.parent_span_id, SpanId::INVALID);
}

#[tokio::test]
async fn a_request_has_one_trace_in_both_halves() {
    let ((server, mut by_server), (agent, mut by_agent)) = (traces(0), traces(0));
    let mut headers = headers("01");
    let mut span = server.of_client(&headers, Trust::Parent, Instant::now()).unwrap();
    let in_tunnel = span.phase(Phase::Tunnel).unwrap();
    server.write_for_agent(Some(&in_tunnel), &mut headers);
    let at_agent = agent.of_tunnel(&mut headers).unwrap();
    let parent = at_agent.as_parent();
    let mut at_host = parent.phase(Phase::Host).unwrap();
    at_host.write(&mut headers);
    assert_eq!(headers.len(), 1, "{headers:?}");
    assert_eq!(traceparent::read(&headers).unwrap().trace_id().to_string(), TRACE);
    at_host.failed("host");
    drop((at_host, at_agent, in_tunnel));
    span.answered(StatusCode::BAD_GATEWAY);
    drop(span);

    let [in_tunnel, span] = ended(&mut by_server).try_into().unwrap();
    let [at_host, at_agent] = ended(&mut by_agent).try_into().unwrap();
    let parents = [&at_host, &at_agent, &in_tunnel].map(|span| span.parent_span_id);
    assert_eq!(parents, [&at_agent, &in_tunnel, &span].map(|span| span.span_context.span_id()));
    assert_eq!(traceparent::read(&headers).unwrap().span_id(), at_host.span_context.span_id());
    assert_eq!((at_host.status, span.status), (Status::error(""), Status::error("")));
}

#[tokio::test]
async fn the_proxy_server_decides_for_the_agent() {
    let (agent, _spans) = traces(MILLION);
    let mut refused = headers("01");
    traces(0).0.write_for_agent(None, &mut refused);
    assert!(agent.of_tunnel(&mut refused).is_none());
    assert!(!traceparent::read(&refused).unwrap().is_sampled() && refused.len() == 1, "{refused:?}");
    // A proxy-server that records nothing does not decide, and changes nothing.
    let mut unchanged = headers("01");
    Traces::default().write_for_agent(None, &mut unchanged);
    assert_eq!(unchanged, headers("01"));
    assert!(agent.of_tunnel(&mut unchanged).is_some());
    // Nor does an agent that records nothing.
    let mut unchanged = headers("01");
    assert!(Traces::default().of_tunnel(&mut unchanged).is_none());
    assert_eq!(unchanged, headers("01"));
}

#[tokio::test]
async fn a_span_tells_what_the_request_does_but_no_names() {
    let (traces, mut spans) = traces(MILLION);
    let mut span = traces.of_client(&HeaderMap::new(), Trust::Link, Instant::now()).unwrap();
    let path = "/apis/apps/v1/namespaces/shop/deployments/web/scale";
    let info = RequestInfo::parse(&Method::PATCH, path, Some("fieldManager=secret")).unwrap();
    span.routed(&"ke-beijing".parse().unwrap());
    span.classified(&Method::PATCH, Some(&info));
    span.answered(StatusCode::NOT_FOUND);
    drop(span);
    let [span] = ended(&mut spans).try_into().unwrap();
    let route = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale";
    assert_eq!((span.name.as_ref(), &span.status), (format!("PATCH {route}").as_str(), &Status::Unset));
    let attributes: Vec<_> = span.attributes.iter().map(|pair| format!("{}={}", pair.key, pair.value)).collect();
    let expected = [
        "atoll.cluster=ke-beijing",
        "http.request.method=PATCH",
        &format!("http.route={route}"),
        "atoll.verb=patch",
        "atoll.resource=deployments.apps/scale",
        "k8s.namespace.name=shop",
        "http.response.status_code=404",
    ];
    assert_eq!(attributes, expected);
}

#[tokio::test]
async fn spans_are_dropped_when_the_queue_is_full() {
    let counts = counts(&Registry::new(Build { component: "test", version: "0" }), true).unwrap();
    let (queue, mut spans) = Queue::new(counts.dropped.clone());
    let traces = Traces::recording(queue, Resource::builder_empty().build(), MILLION);
    for _ in 0..3000 {
        traces.of_client(&HeaderMap::new(), Trust::Link, Instant::now()).unwrap();
    }
    let kept = ended(&mut spans).len();
    assert_eq!((kept as u64 + counts.dropped.get(), kept), (3000, 2048));
}
