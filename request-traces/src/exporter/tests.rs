use std::convert::Infallible;
use std::future::{pending, ready};
use std::sync::{Arc, Mutex};

use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTracePartialSuccess, ExportTraceServiceResponse};
use ops::drain::Tasks;
use ops::files::Reloader;
use ops::metrics::{Build, Registry};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::*;
use crate::config::Tracing;
use crate::{Service, Traces, Trust};

/// What a collector has received.
type Received = Arc<Mutex<Vec<(Request<()>, ExportTraceServiceRequest)>>>;

/// A collector that responds with this status, and refuses one span of each batch.
async fn collector(status: StatusCode) -> (String, Received) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let received = Received::default();
    let store = Arc::clone(&received);
    let tasks = Tasks::new();
    tasks.clone().spawn("collector", async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let store = Arc::clone(&store);
            let respond = service_fn(move |request: Request<Incoming>| {
                let store = Arc::clone(&store);
                async move {
                    let (head, body) = request.into_parts();
                    let batch = ExportTraceServiceRequest::decode(body.collect().await.unwrap().to_bytes()).unwrap();
                    store.lock().unwrap().push((Request::from_parts(head, ()), batch));
                    let partial = ExportTracePartialSuccess { rejected_spans: 1, error_message: "no".into() };
                    let body = ExportTraceServiceResponse { partial_success: Some(partial) }.encode_to_vec();
                    let response = Response::builder().status(status).body(Full::new(Bytes::from(body))).unwrap();
                    Ok::<_, Infallible>(response)
                }
            });
            let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), respond);
            tasks.spawn("connection", async move { drop(connection.await) });
        }
    });
    (address, received)
}

/// An exporter with this number of spans.
fn exporter(endpoint: String, count: usize) -> (Exporter, Traces, Counts) {
    let config = Tracing { endpoint: endpoint.into(), sampling_rate_per_million: 1_000_000.into(), server_ca: None };
    let service = Service { name: "test", version: "1", instance: "a" };
    let metrics = Registry::new(Build { component: "test", version: "0" });
    let reloader = Reloader::new(Reloader::DEFAULT_PERIOD);
    let (traces, exporter) = Traces::open(Some(&config), service, &metrics, &reloader).unwrap();
    for _ in 0..count {
        traces.of_client(&HeaderMap::new(), Trust::Link, Instant::now()).unwrap();
    }
    let exporter = exporter.unwrap();
    let counts = exporter.counts.clone();
    (exporter, traces, counts)
}

fn counted(counts: &Counts) -> (u64, u64, u64) {
    (counts.exported.get(), counts.failed.get(), counts.dropped.get())
}

#[tokio::test]
async fn a_collector_gets_the_spans_that_wait() {
    let (endpoint, received) = collector(StatusCode::OK).await;
    let (exporter, _traces, counts) = exporter(format!("{endpoint}/otlp"), 3);
    exporter.run(ready(())).await;
    assert_eq!(counted(&counts), (2, 1, 0));
    let received = received.lock().unwrap();
    let [(head, batch)] = received.as_slice() else { panic!("{received:?}") };
    assert_eq!((head.method().as_str(), head.uri().path()), ("POST", "/otlp/v1/traces"));
    assert_eq!(head.headers()["content-type"], "application/x-protobuf");
    let [of_resource] = batch.resource_spans.as_slice() else { panic!("{batch:?}") };
    assert_eq!(of_resource.resource.as_ref().unwrap().attributes.len(), 4);
    assert_eq!(of_resource.scope_spans[0].spans.len(), 3);
}

#[tokio::test]
async fn a_refused_batch_is_not_sent_again() {
    let (endpoint, received) = collector(StatusCode::BAD_REQUEST).await;
    let (mut exporter, _traces, counts) = exporter(endpoint, 2);
    let mut batch = Vec::new();
    batch.extend(std::iter::from_fn(|| exporter.spans.try_recv().ok()));
    exporter.export(batch, ATTEMPTS).await;
    assert_eq!((counted(&counts), received.lock().unwrap().len()), ((0, 2, 0), 1));
}

#[tokio::test(start_paused = true)]
async fn a_collector_that_is_away_only_loses_spans() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (exporter, traces, counts) = exporter(format!("http://{free}"), 3000);
    Tasks::new().spawn("traces", exporter.run(pending::<()>()));
    let failed = async {
        while counts.failed.get() < 512 {
            tokio::task::yield_now().await;
            tokio::time::advance(Duration::from_millis(100)).await;
        }
    };
    failed.await;
    // The queue accepts spans again.
    let dropped = counts.dropped.get();
    traces.of_client(&HeaderMap::new(), Trust::Link, Instant::now()).unwrap();
    assert_eq!((counts.dropped.get(), counts.exported.get()), (dropped, 0));
}
