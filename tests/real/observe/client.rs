//! A client with one HTTP/2 connection, which sends many requests at the same time.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_tests::http2::{Session, read, upload};
use atoll_tests::site::Ports;
use atoll_tests::{Credentials, Http2, Kubectl};
use bytes::Bytes;
use http::Request;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// The time limit for a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// A client of a virtual cluster.
pub(super) struct Client {
    http: Http2,
    session: Arc<Session>,
    cluster: String,
}

/// A watch. It ends when this is dropped.
pub(super) struct Watch(JoinHandle<()>);

/// Requests that run.
pub(super) struct Posts(JoinHandle<anyhow::Result<()>>);

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
        let session = http.run(http.session(ports.endpoint, cluster, 1 << 20))?.into();
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

    /// Creates objects at the same time, and sends the bodies only after `delay`. Does not wait for the responses.
    pub(super) fn post_slowly(&self, path: &str, bodies: Vec<String>, delay: Duration) -> anyhow::Result<Posts> {
        let request = || self.request("POST", path).body(());
        let requests = bodies.iter().map(|_| request()).collect::<Result<Vec<_>, _>>()?;
        let session = Arc::clone(&self.session);
        Ok(Posts(self.http.spawn(async move {
            let mut running = Vec::new();
            for request in requests {
                running.push(session.send(request, false).await?);
            }
            sleep(delay).await;
            for ((answer, mut stream), body) in running.into_iter().zip(bodies) {
                upload(&mut stream, body.into(), true).await;
                let answer = timeout(RESPONSE_TIMEOUT, answer).await.context("no response")??;
                ensure!(answer.status() == 201, "{}", answer.status());
                read(answer.into_body()).await?;
            }
            Ok(())
        })))
    }

    /// Waits for the responses.
    pub(super) fn wait(&self, posts: Posts) -> anyhow::Result<()> {
        self.http.run(posts.0)?
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
