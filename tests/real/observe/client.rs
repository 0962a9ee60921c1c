//! A client with one HTTP/2 connection, which sends many requests at the same time.

use std::time::{Duration, SystemTime};

use anyhow::{Context, ensure};
use atoll_tests::http2::{Session, read, upload};
use atoll_tests::site::Ports;
use atoll_tests::{Credentials, Http2, Kubectl, pause};
use bytes::Bytes;
use h2::SendStream;
use h2::client::ResponseFuture;
use http::Request;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The time limit for a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// A client of a virtual cluster.
pub(super) struct Client {
    http: Http2,
    session: Session,
    cluster: String,
}

/// A watch. It ends when this is dropped.
pub(super) struct Watch(JoinHandle<()>);

/// Requests whose bodies are not sent yet.
pub(super) struct Posts {
    running: Vec<(ResponseFuture, SendStream<Bytes>, String)>,
    begun: SystemTime,
}

// === impl Watch ===

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

// === impl Client ===

impl Client {
    /// With the certificate of this kubectl.
    pub(super) fn new(kubectl: &Kubectl, cluster: &str, ports: Ports) -> anyhow::Result<Self> {
        let http = Http2::with(&Credentials::of(kubectl)?)?;
        let session = http.run(http.session(ports.endpoint, cluster, 1 << 20))?;
        Ok(Self { http, session, cluster: cluster.to_owned() })
    }

    fn request(&self, method: &str, path: &str) -> http::request::Builder {
        let uri = format!("https://{}.atoll.internal{path}", self.cluster);
        Request::builder()
            .method(method)
            .uri(uri)
            .header("content-type", "application/json")
            .header("accept", "application/json")
    }

    /// Sends GET `count` times, at most `at_once` at a time. Returns the status codes.
    pub(super) fn get(&self, path: &str, count: usize, at_once: usize) -> anyhow::Result<Vec<u16>> {
        self.http.run(async {
            let mut codes = Vec::new();
            while codes.len() < count {
                let mut running = Vec::new();
                for _ in 0..at_once.min(count - codes.len()) {
                    running.push(self.session.send(self.request("GET", path).body(())?, true).await?);
                }
                for (answer, _) in running {
                    let answer = timeout(RESPONSE_TIMEOUT, answer).await.context("no response")??;
                    codes.push(answer.status().as_u16());
                    timeout(RESPONSE_TIMEOUT, read(answer.into_body()))
                        .await
                        .context("the response does not end")??;
                }
            }
            Ok(codes)
        })
    }

    /// Creates an object. Returns the status code.
    pub(super) fn post(&self, path: &str, body: String) -> anyhow::Result<u16> {
        let request = self.request("POST", path).body(Bytes::from(body))?;
        self.http.run(async {
            Ok(timeout(RESPONSE_TIMEOUT, self.session.exchange(request)).await.context("no response")??.0)
        })
    }

    /// Begins a watch. All events are read, because unread ones would block the connection.
    pub(super) fn watch(&self, path: &str) -> anyhow::Result<Watch> {
        let body = self.http.run(async {
            let (answer, _) = self.session.send(self.request("GET", path).body(())?, true).await?;
            let answer = timeout(RESPONSE_TIMEOUT, answer).await.context("no response")??;
            ensure!(answer.status() == 200, "{}", answer.status());
            anyhow::Ok(answer.into_body())
        })?;
        Ok(Watch(self.http.spawn(async { drop(read(body).await) })))
    }

    /// Sends requests that create objects, without the bodies.
    pub(super) fn begin_posts(&self, path: &str, bodies: Vec<String>) -> anyhow::Result<Posts> {
        self.http.run(async {
            let mut running = Vec::new();
            for body in bodies {
                let (answer, stream) = self.session.send(self.request("POST", path).body(())?, false).await?;
                running.push((answer, stream, body));
            }
            Ok(Posts { running, begun: SystemTime::now() })
        })
    }

    /// Sends the bodies, at least this long after the heads. Waits for the responses.
    pub(super) fn complete(&self, posts: Posts, delay: Duration) -> anyhow::Result<()> {
        pause(delay.saturating_sub(posts.begun.elapsed()?));
        self.http.run(async {
            for (answer, mut stream, body) in posts.running {
                upload(&mut stream, body.into(), true).await;
                let answer = timeout(RESPONSE_TIMEOUT, answer).await.context("no response")??;
                ensure!(answer.status() == 201, "{}", answer.status());
                read(answer.into_body()).await?;
            }
            Ok(())
        })
    }

    /// Sends `count` requests whose bodies do not come, and then `refused` requests. These must get 429.
    pub(super) fn exceed(&self, path: &str, count: usize, refused: usize) -> anyhow::Result<()> {
        self.http.run(async {
            let mut open = Vec::new();
            for _ in 0..count {
                open.push(self.session.send(self.request("POST", path).body(())?, false).await?);
            }
            for _ in 0..refused {
                let request = self.request("GET", path).body(Bytes::new())?;
                let (code, _) =
                    timeout(RESPONSE_TIMEOUT, self.session.exchange(request)).await.context("no response")??;
                ensure!(code == 429, "{code} instead of 429");
            }
            Ok(())
        })
    }
}
