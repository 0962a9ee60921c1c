use std::future::{pending, poll_fn, ready};
use std::pin::{Pin, pin};
use std::sync::Mutex;
use std::task::Poll;

use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt as _;
use ops::log::ACCESS;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;
use tower::{ServiceExt, service_fn};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

use super::super::fixture;
use super::super::send::{Content, send};
use super::*;

/// The lines of the access log of all tests in this process.
static ACCESS_LINES: Mutex<Vec<Line>> = Mutex::new(Vec::new());

/// A part of a line of the access log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Line {
    name: String,
    status: u64,
    end: String,
}

/// Collects [`ACCESS_LINES`]. It must be the default of all threads: `tracing` asks only the thread in which an event occurs first
/// whether it is wanted at all.
struct Collector;

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == ACCESS
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        ACCESS_LINES.lock().unwrap().push(line);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

impl Visit for Line {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "status" {
            self.status = value;
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "name" => value.clone_into(&mut self.name),
            "end" => value.clone_into(&mut self.end),
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn std::fmt::Debug) {}
}

/// A request with an empty body.
async fn request(uri: &str, headers: &[(&'static str, &'static str)]) -> Request<Incoming> {
    let mut request = Request::get(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(fixture::incoming().await).unwrap()
}

/// Polls once.
async fn is_pending(future: Pin<&mut impl Future>) -> bool {
    let mut future = Some(future);
    poll_fn(|cx| Poll::Ready(future.take().is_some_and(|future| future.poll(cx).is_pending()))).await
}

async fn status<S>(stack: S, request: Request<Incoming>) -> u16
where
    S: Service<Request<Incoming>, Response = Response<Logged>, Error = Infallible>,
{
    stack.oneshot(request).await.unwrap_or_else(|never| match never {}).status().as_u16()
}

/// The agent, the host and the client have the same ID, and the client gets none of the facts.
#[tokio::test]
async fn the_audit_log_has_what_the_agent_tells() {
    let directory = tempfile::TempDir::new().unwrap();
    let connection = fixture::connection(Some("ke-beijing"));
    let services = &connection.services;
    let audit = format!("log: {{path: {}/audit.log}}", directory.path().display());
    let config = format!(
        "apiVersion: atoll.dev/v1alpha1\nkind: ProxyServerConfiguration\nservingCA: {{certificate: a, key: b}}\n\
         agentCA: {{certificate: c}}\naudit: {{log: {{path: \"{{cluster}}\"}}}}\nclusters:\n\
         - {{name: ke-beijing, agents: [a], clientCA: {{certificate: d}}, audit: {{{audit}}}}}\n"
    );
    let config = ops::config::parse::<crate::config::ProxyServerConfiguration>(&config, "p".as_ref()).unwrap();
    let (cluster, reloader) = (&config.clusters[0], ops::files::Reloader::new(ops::files::Reloader::DEFAULT_PERIOD));
    let settings = cluster.audit(config.audit.as_deref()).unwrap();
    services.auditors.exchange(services.auditors.open([(&cluster.name, settings)], &reloader).unwrap());
    fixture::agent(services, |head| {
        let user = protocol::audit::UserInfo { username: "robot".into(), ..Default::default() };
        let mut response = Response::new("answer");
        assert!(head.headers.contains_key("x-atoll-audit") && head.headers["audit-id"] == "chosen");
        protocol::audit::write(response.headers_mut(), protocol::audit::USER, &user);
        response.headers_mut().insert("audit-id", "of-the-host".parse().unwrap());
        response
    })
    .await;
    let stack = stack(Arc::clone(&connection), send(Arc::clone(services)));
    let headers = [("authorization", "Bearer t"), ("audit-id", "chosen"), ("x-atoll-audit", "forged")];
    let response = stack.clone().oneshot(request("/api/v1/pods", &headers).await).await.unwrap();
    assert_eq!(response.headers()["audit-id"], "chosen");
    assert!(!response.headers().keys().any(|name| name.as_str().starts_with("x-atoll")));
    response.into_body().collect().await.unwrap();
    let log = loop {
        tokio::task::yield_now().await;
        let log = std::fs::read_to_string(directory.path().join("audit.log")).unwrap();
        if !log.is_empty() {
            break log;
        }
    };
    assert!(
        log.contains(r#""auditID":"chosen","stage":"ResponseComplete""#) && log.contains(r#""username":"robot""#),
        "{log}"
    );
}

#[tokio::test]
async fn a_refused_request_is_not_sent_and_has_a_status() {
    let never = service_fn(|outgoing: Outgoing| async move { panic!("sent {outgoing:?}") });
    let stack = stack(fixture::connection(None), never);
    let protobuf = [("accept", "application/vnd.kubernetes.protobuf")];
    let response = stack.clone().oneshot(request("/api", &protobuf).await).await.unwrap();
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    assert_eq!(response.headers()[header::CONTENT_TYPE], protobuf[0].1);
    for (uri, headers, code) in
        [("/clusters/nowhere/api", &[][..], 404), ("/clusters/ke-beijing/api", &[("connection", "authorization")], 400)]
    {
        assert_eq!(status(stack.clone(), request(uri, headers).await).await, code, "{uri}");
    }
}

#[tokio::test]
async fn the_agent_gets_the_request_of_the_client_and_nothing_of_the_connection() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = service_fn(|outgoing: Outgoing| {
        seen.lock().unwrap().push(outgoing);
        ready(Err(Refusal::Silent))
    });
    let stack = stack(fixture::connection(None), note);
    let spdy = [("connection", "Upgrade"), ("upgrade", "SPDY/3.1")];
    let forged = [("connection", "keep-alive"), ("x-atoll-user", "root"), ("authorization", "Bearer t")];
    for headers in [&spdy[..], &forged[..]] {
        assert_eq!(status(stack.clone(), request("/clusters/ke-beijing/api?a=b", headers).await).await, 504);
    }
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    let [upgrade, plain] = &seen[..] else { panic!("{seen:?}") };
    assert!(matches!(upgrade.content, Content::Upgrade) && upgrade.head.method() == "CONNECT");
    assert!(matches!(plain.content, Content::Nothing) && plain.head.method() == "GET");
    assert_eq!(plain.head.uri().path_and_query().unwrap(), "/api?a=b");
    let names = |headers: &HeaderMap| headers.keys().map(|name| name.as_str().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(upgrade.head.headers()), [protocol::stream::CLUSTER.as_str(), protocol::stream::METHOD.as_str()]);
    let accepted = [protocol::encoding::ACCEPT_ENCODING, protocol::encoding::ACCEPT];
    let expected = [header::AUTHORIZATION, protocol::stream::CLUSTER].into_iter().chain(accepted);
    assert!(names(plain.head.headers()).into_iter().eq(expected.map(|name| name.as_str().to_owned())));
    assert!(!plain.is_proven);
}

#[tokio::test]
async fn a_request_keeps_its_place_until_it_has_a_result_or_is_cancelled() {
    let silent = service_fn(|_: Outgoing| pending());
    let connection = fixture::connection(Some("ke-beijing"));
    let stack = stack(Arc::clone(&connection), silent);
    // The limit of an address is two.
    let mut first = Box::pin(stack.clone().oneshot(request("/api", &[]).await));
    let mut second = pin!(stack.clone().oneshot(request("/api", &[]).await));
    assert!(is_pending(first.as_mut()).await && is_pending(second.as_mut()).await);
    assert_eq!(status(stack.clone(), request("/api", &[]).await).await, 429);
    let errors = connection.services.metrics.last_errors(&fixture::cluster().name);
    assert_eq!((errors[0].code, &*errors[0].message), (429, "the limit \"address\" is exceeded"));
    drop(first);
    assert_eq!(connection.services.limits.streams.count(), 1);
    let mut third = pin!(stack.oneshot(request("/api", &[]).await));
    assert!(is_pending(third.as_mut()).await);
}

// Cancelled requests are forgotten with time.
#[tokio::test(start_paused = true)]
async fn a_client_that_cancels_too_many_requests_is_refused() {
    let silent = service_fn(|outgoing: Outgoing| async move {
        if outgoing.head.uri().path() == "/answered" { Err(Refusal::Silent) } else { pending().await }
    });
    let stack = stack(fixture::connection(Some("ke-beijing")), silent);
    for _ in 0..150 {
        assert_eq!(status(stack.clone(), request("/answered", &[]).await).await, 504);
    }
    for count in 0.. {
        let mut cancelled = Box::pin(stack.clone().oneshot(request("/api", &[]).await));
        if !is_pending(cancelled.as_mut()).await {
            assert!((100..110).contains(&count), "{count}");
            break;
        }
    }
    assert_eq!(status(stack, request("/answered", &[]).await).await, 429);
}

#[tokio::test(start_paused = true)]
async fn only_a_short_request_has_a_deadline_and_all_end_with_their_cluster() {
    let stack = stack(fixture::connection(Some("ke-beijing")), service_fn(|_: Outgoing| pending()));
    assert_eq!(status(stack.clone(), request("/api/v1/pods", &[]).await).await, 504);
    let hour = std::time::Duration::from_secs(3600);
    let watch = request("/api/v1/pods?watch=1", &[]).await;
    assert!(timeout(hour, stack.oneshot(watch)).await.is_err());

    let connection = fixture::connection(Some("ke-beijing"));
    let silent = super::stack(Arc::clone(&connection), service_fn(|_: Outgoing| pending()));
    let mut watch = pin!(silent.oneshot(request("/api/v1/pods?watch=1", &[]).await));
    assert!(is_pending(watch.as_mut()).await);
    connection.services.registry.reload(crate::registry::Clusters::new([]));
    assert_eq!(watch.await.unwrap().status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_response_comes_back_through_the_tunnel() {
    let connection = fixture::connection(Some("ke-beijing"));
    let services = &connection.services;
    let stack = stack(Arc::clone(&connection), send(Arc::clone(services)));
    let unserved = stack.clone().oneshot(request("/api", &[]).await).await.unwrap();
    assert_eq!(
        (unserved.status(), unserved.headers()[header::RETRY_AFTER].as_bytes()),
        (StatusCode::SERVICE_UNAVAILABLE, &b"1"[..])
    );
    drop(unserved);

    fixture::agent(services, |head| {
        assert_eq!(head.uri.path(), "/api");
        assert_eq!(head.headers[&protocol::stream::CLUSTER], "ke-beijing");
        Response::builder().header("x-atoll-fault", "host").body("answer").unwrap()
    })
    .await;
    let response = stack.oneshot(request("/api", &[("x-remote-user", "root")]).await).await.unwrap();
    assert_eq!((response.status(), response.headers().len()), (StatusCode::OK, 0));
    assert_eq!(services.limits.streams.count(), 1, "the stream counts until the body has ended");
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "answer");
    assert_eq!(services.limits.streams.count(), 0);
}

#[tokio::test]
async fn the_operator_sees_errors_of_atoll_and_not_those_of_clients_and_hosts() {
    let connection = fixture::connection(Some("ke-beijing"));
    let services = Arc::clone(&connection.services);
    let stack = stack(connection, send(Arc::clone(&services)));
    let seen = || {
        let errors = services.metrics.last_errors(&fixture::cluster().name).into_iter();
        errors.map(|error| (error.code, error.count, error.fault, error.message)).collect::<Vec<_>>()
    };
    let secret = [("authorization", "Bearer secret")];
    for (path, headers, code) in
        [("/api?a=secret", &secret[..], 503), ("/readyz", &[], 503), ("/api", &[("connection", "authorization")], 400)]
    {
        assert_eq!(status(stack.clone(), request(path, headers).await).await, code, "{path}");
    }
    let absent =
        "cluster ke-beijing has no agent connected (none since this proxy-server started): check the proxy-agent \
                  of its site with `atoll status`"
            .to_owned();
    assert_eq!(seen(), [(503, 2, "tunnel".to_owned(), absent)]);
    fixture::agent(&services, |head| {
        let response = Response::builder().status(if head.uri.path() == "/denied" { 403 } else { 503 });
        let by_agent = head.uri.path() != "/by-host";
        let response = if by_agent { response.header("x-atoll-fault", "host") } else { response };
        response.body("secret").unwrap()
    })
    .await;
    for (path, code) in [("/denied", 403), ("/by-host", 503), ("/by-agent", 503)] {
        assert_eq!(status(stack.clone(), request(path, &[]).await).await, code, "{path}");
    }
    let [by_agent, _] = &seen()[..] else { panic!("{:?}", seen()) };
    assert_eq!((by_agent.0, by_agent.1, &*by_agent.2), (503, 1, "host"));
    assert!(by_agent.3.contains("the status of the agent has the reason"), "{by_agent:?}");
}

#[tokio::test]
async fn bytes_follow_a_response_that_switches_the_protocol() {
    let connection = fixture::connection(Some("ke-beijing"));
    let services = Arc::clone(&connection.services);
    fixture::agent(&services, |head| {
        assert_eq!(
            (&head.method, &head.headers[&protocol::stream::METHOD]),
            (&http::Method::CONNECT, &"GET".parse().unwrap())
        );
        Response::new("answer")
    })
    .await;
    let stack = stack(connection, send(Arc::clone(&services)));
    let (mut client, server) = tokio::io::duplex(4096);
    let service = hyper_util::service::TowerToHyperService::new(stack);
    let http = hyper::server::conn::http1::Builder::new();
    let http = http.serve_connection(hyper_util::rt::TokioIo::new(server), service).with_upgrades();
    services.tasks.spawn("client", async move { http.await.unwrap() });
    let head = "GET /api/v1/namespaces/a/pods/b/exec HTTP/1.1\r\nconnection: upgrade\r\nupgrade: SPDY/3.1\r\n\r\n";
    client.write_all(head.as_bytes()).await.unwrap();
    let mut read = String::new();
    client.read_to_string(&mut read).await.unwrap();
    assert!(read.starts_with("HTTP/1.1 101 ") && read.ends_with("\r\n\r\nanswer"), "{read}");
    assert!(read.contains("upgrade: SPDY/3.1\r\n"), "{read}");
}

/// A server behind `proxy` that ignores the header `Upgrade`.
#[tokio::test]
async fn an_upgrade_that_is_ignored_has_the_status_of_the_host() {
    const UPGRADE: &[(&str, &str)] = &[("connection", "Upgrade"), ("upgrade", "websocket")];
    for (headers, sent, written, expected) in
        [(UPGRADE, 400, "200", 200), (UPGRADE, 400, "101", 400), (UPGRADE, 403, "200", 403), (&[], 400, "200", 400)]
    {
        let connection = fixture::connection(Some("ke-beijing"));
        let services = Arc::clone(&connection.services);
        fixture::agent(&services, move |_| {
            let response = Response::builder().status(sent).header(protocol::stream::STATUS, written);
            response.header("x-own", "1").body("answer").unwrap()
        })
        .await;
        let stack = stack(connection, send(services));
        let response = stack.oneshot(request("/api/v1/namespaces/a/pods/b/proxy/", headers).await).await.unwrap();
        assert_eq!(response.status().as_u16(), expected, "{sent} {written}");
        assert_eq!(response.headers().keys().collect::<Vec<_>>(), ["x-own"]);
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "answer");
    }
}

#[tokio::test]
async fn an_upgrade_has_a_status_in_the_access_log_even_if_its_client_disconnects() {
    tracing::subscriber::set_global_default(Collector).unwrap();
    tracing::callsite::rebuild_interest_cache();
    let connection = fixture::connection(Some("ke-beijing"));
    let services = Arc::clone(&connection.services);
    fixture::agent(&services, |_| Response::new("")).await;
    let stack = stack(connection, send(services));
    // This request has no connection that could switch the protocol.
    let exec = request("/api/v1/namespaces/a/pods/gone/exec", &[("connection", "Upgrade"), ("upgrade", "SPDY/3.1")]);
    let response = stack.oneshot(exec.await).await.unwrap();
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    let line = || ACCESS_LINES.lock().unwrap().iter().find(|line| line.name == "gone").cloned();
    for _ in 0..1000 {
        if line().is_some() {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(line(), Some(Line { name: "gone".to_owned(), status: 101, end: "left".to_owned() }));
}
