use std::future::pending;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::{Mutex, mpsc};
use tokio::time::Instant;

use super::*;
use crate::drain::Drained;
use crate::metrics::{Build, Registry};
use crate::probes::{Checks, PageResponse};
use crate::report::Report;

const LARGE: usize = 3 << 20;

/// Streams that a test provides.
struct Pipes(Mutex<mpsc::UnboundedReceiver<DuplexStream>>);

impl Accept for Pipes {
    type Stream = DuplexStream;

    async fn accept(&self) -> std::io::Result<(DuplexStream, SocketAddr)> {
        match self.0.lock().await.recv().await {
            Some(stream) => Ok((stream, SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1))),
            None => pending().await,
        }
    }
}

struct World {
    tasks: Tasks,
    dial: mpsc::UnboundedSender<DuplexStream>,
    ready: Arc<AtomicBool>,
}

impl World {
    fn new() -> Self {
        let ready = Arc::new(AtomicBool::new(true));
        let is_ready = ready.clone();
        let readyz = Checks::new().with("tunnel", Duration::from_secs(1), move || {
            let up = is_ready.load(Ordering::SeqCst);
            std::future::ready(if up { Ok(()) } else { Err("no agent") })
        });
        let registry = Registry::new(Build { component: "test", version: "0" });
        let pages = Pages::new("a test")
            .with_probes(&Checks::new(), &readyz)
            .with_metrics(&registry)
            .with("/debug/echo", "reports the readiness", |query| {
                std::future::ready(PageResponse::json(format!("{:?}", query.values("q").collect::<Vec<_>>())))
            })
            .with_report("/debug/report", "a report; ?wide", |wide| {
                Report::new(if wide { "<wide>" } else { "<narrow>" })
            })
            .with("/debug/large", "more than any buffer", |_| {
                std::future::ready(PageResponse::text("x".repeat(LARGE)))
            });
        let (dial, pipes) = mpsc::unbounded_channel();
        let local = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 2);
        let listener = Listener::new(Pipes(Mutex::new(pipes)), local, MAX_CONNECTIONS);
        let tasks = Tasks::new();
        tasks.spawn("probes", serve(listener, pages, tasks.clone(), "probe"));
        Self { tasks, dial, ready }
    }

    fn connect(&self) -> DuplexStream {
        let (ours, theirs) = duplex(64 << 10);
        self.dial.send(theirs).unwrap();
        ours
    }

    /// Sends a request that ends its connection, and reads the whole response.
    async fn get(&self, line: &str) -> String {
        self.get_as("*/*", line).await
    }

    /// The same by a client that accepts these media types.
    async fn get_as(&self, accept: &str, line: &str) -> String {
        let mut stream = self.connect();
        let request = format!("{line} HTTP/1.1\r\nhost: localhost\r\naccept: {accept}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }
}

#[tokio::test(start_paused = true)]
async fn probes_metrics_and_debug_pages_are_served() {
    let world = World::new();
    let livez = world.get("GET /livez").await;
    assert!(livez.starts_with("HTTP/1.1 200 OK\r\n") && livez.ends_with("\r\n\r\nok"), "{livez}");
    let verbose = world.get("GET /readyz?verbose").await;
    assert!(verbose.ends_with("[+]ping ok\n[+]tunnel ok\nreadyz check passed\n"), "{verbose}");
    let metrics = world.get("GET /metrics").await;
    assert!(metrics.contains("content-type: text/plain; version=0.0.4"), "{metrics}");
    assert!(metrics.contains("\natoll_build_info{component=\"test\",version=\"0\"} 1\n"), "{metrics}");
    let echo = world.get("GET /debug/echo?q=1&q=2").await;
    assert!(echo.ends_with("[\"1\", \"2\"]"), "{echo}");
    assert!(world.get("GET /debug/large").await.len() > LARGE);
}

#[tokio::test(start_paused = true)]
async fn a_failing_check_alone_is_503_too() {
    let world = World::new();
    world.ready.store(false, Ordering::SeqCst);
    for path in ["/readyz", "/readyz/tunnel"] {
        let answer = world.get(&format!("GET {path}")).await;
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert!(answer.contains("[-]tunnel failed: no agent\n"), "{answer}");
    }
    assert!(world.get("GET /livez").await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test(start_paused = true)]
async fn the_index_lists_the_pages() {
    let index = World::new().get("GET /").await;
    let (_, text) = index.split_once("\r\n\r\n").unwrap();
    let paths: Vec<_> = text.lines().skip(2).filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(paths, ["/livez", "/readyz", "/metrics", "/debug/echo", "/debug/report", "/debug/large"]);
}

/// curl gets text, and a browser gets HTML that it must not let run anything.
#[tokio::test(start_paused = true)]
async fn pages_for_people_have_two_forms() {
    const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let world = World::new();
    for (line, expected) in
        [("GET /debug/report", "\r\n\r\n<narrow>\n"), ("GET /debug/report?wide", "\r\n\r\n<wide>\n")]
    {
        let text = world.get(line).await;
        assert!(text.ends_with(expected) && text.contains("content-type: text/plain; charset=utf-8\r\n"), "{text}");
        assert!(text.contains("vary: accept\r\n") && !text.contains("content-security-policy"), "{text}");
    }
    let page = world.get_as(BROWSER, "GET /debug/report").await;
    assert!(page.contains("<title>Status of a test</title>") && page.contains("<h1>&lt;wide&gt;</h1>"), "{page}");
    let index = world.get_as(BROWSER, "GET /").await;
    assert!(index.contains("<a href=\"/debug/report\">/debug/report</a> a report; ?wide"), "{index}");
    for page in [page, index] {
        for header in [
            "content-type: text/html; charset=utf-8\r\n",
            "content-security-policy: default-src 'none'; style-src 'sha256-",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff\r\n",
            "vary: accept\r\n",
        ] {
            assert!(page.contains(header), "{header}\n{page}");
        }
    }
    // Other pages have one form.
    let echo = world.get_as(BROWSER, "GET /debug/echo").await;
    assert!(echo.contains("content-type: application/json\r\n") && !echo.contains("vary"), "{echo}");
}

#[tokio::test(start_paused = true)]
async fn unknown_pages_are_refused() {
    let world = World::new();
    assert!(world.get("GET /nothing").await.starts_with("HTTP/1.1 404 "));
    assert!(world.get("GET /debug").await.starts_with("HTTP/1.1 404 "));
    let post = world.get("POST /livez").await;
    assert!(post.starts_with("HTTP/1.1 405 ") && post.contains("allow: GET, HEAD"), "{post}");
    let head = world.get("HEAD /livez").await;
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(head.contains("content-length: 2\r\n"), "{head}");
    assert!(world.get("nonsense").await.starts_with("HTTP/1.1 400 "));
    let long = world.get(&format!("GET /{}", "x".repeat(2 * MAX_HEAD))).await;
    assert!(long.starts_with("HTTP/1.1 4"), "{long}");
}

#[tokio::test(start_paused = true)]
async fn an_idle_client_is_disconnected() {
    let world = World::new();
    let begun = Instant::now();
    let mut stream = world.connect();
    stream.write_all(b"GET /livez HT").await.unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), IDLE.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_idle_connections_at_once() {
    let world = World::new();
    let mut stream = world.connect();
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut head = [0; 15];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    let begun = Instant::now();
    let drained = world.tasks.drain(Duration::from_secs(30), pending::<()>()).await;
    assert_eq!(drained, Drained::Clean);
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

/// A web page can let its own name resolve to loopback.
#[test]
fn a_listener_on_loopback_has_no_other_name() {
    let with = |host: &'static str| HeaderMap::from_iter([(HOST, host.parse().unwrap())]);
    for host in ["127.0.0.1:8095", "127.0.0.1", "[::1]:8095", "localhost:8095", "LocalHost", "10.0.0.7:80"] {
        assert!(names_this_machine(&with(host)), "{host}");
    }
    for host in ["evil.example:8095", "localhost.evil.example", "127.0.0.1.evil.example", "", "a b"] {
        assert!(!names_this_machine(&with(host)), "{host}");
    }
    assert!(names_this_machine(&HeaderMap::new()), "HTTP/1.0");
}

#[tokio::test(start_paused = true)]
async fn a_request_with_another_name_is_misdirected() {
    let world = World::new();
    let mut stream = world.connect();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 421 ") && !response.contains("process_"), "{response}");
}
