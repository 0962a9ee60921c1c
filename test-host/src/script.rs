//! A host that follows a script.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::Cursor;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::{Bytes, BytesMut};
use h2::RecvStream;
use h2::server::SendResponse;
use host_client::{Host, in_memory};
use http::Request;
use ops::drain::Tasks;
use tokio::io::{AsyncReadExt as _, DuplexStream};
use tokio::sync::watch;

use crate::expected::Expected;
use crate::http1;
use crate::received::Received;
use crate::reply::Reply;

/// A response to requests that may arrive at any time.
pub(crate) type Standing = dyn Fn(&Received) -> Option<Reply> + Send + Sync;

/// A host that follows a script. When it is dropped, the test fails unless the whole script was carried out, and
/// nothing else was requested.
pub struct Script {
    state: Arc<Mutex<State>>,
    unanswered: Unanswered,
    tasks: Tasks,
}

/// The number of requests that wait for a response that the host does not send.
type Unanswered = watch::Sender<usize>;

#[derive(Default)]
struct State {
    expected: VecDeque<(Expected, Reply)>,
    standing: Vec<Arc<Standing>>,
    received: Vec<Received>,
    faults: Vec<String>,
}

// === impl Script ===

impl Script {
    /// A host that expects nothing yet.
    #[expect(clippy::new_without_default, reason = "a default would hide that dropping it checks something")]
    pub fn new() -> Self {
        Self { state: Arc::default(), unanswered: watch::Sender::new(0), tasks: Tasks::new() }
    }

    /// A client of this host. It must be called within a tokio runtime.
    pub fn host(&self) -> Host {
        let (state, unanswered, tasks) = (Arc::clone(&self.state), self.unanswered.clone(), self.tasks.clone());
        let accept = move |io| {
            tasks.spawn("scripted host", serve(io, Arc::clone(&state), unanswered.clone(), tasks.clone()));
        };
        in_memory::served_by(Arc::new(accept), &self.tasks)
    }

    /// Expects a request after all that are expected already.
    pub fn on(&self, expected: Expected, reply: Reply) -> &Self {
        self.lock().expected.push_back((expected, reply));
        self
    }

    /// Responds to some requests at any time, unless they are the next ones that are expected. Later rules come first.
    pub fn always(&self, standing: impl Fn(&Received) -> Option<Reply> + Send + Sync + 'static) -> &Self {
        self.lock().standing.insert(0, Arc::new(standing));
        self
    }

    /// Waits until this number of requests wait for a response that the host does not send ([`Reply::never`]).
    pub async fn until_unanswered(&self, count: usize) {
        self.unanswered.subscribe().wait_for(|unanswered| *unanswered == count).await.unwrap();
    }

    /// The requests since the last call, as one line each.
    pub fn transcript(&self) -> Vec<String> {
        self.take_received().iter().map(ToString::to_string).collect()
    }

    /// The requests since the last call.
    pub fn take_received(&self) -> Vec<Received> {
        std::mem::take(&mut self.lock().received)
    }

    /// Fails unless the whole script was carried out so far, and nothing else was requested.
    #[track_caller]
    pub fn check(&self) {
        if let Some(report) = self.lock().report() {
            panic!("{report}");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.check();
        }
    }
}

// === impl State ===

impl State {
    fn reply(&mut self, received: Received) -> Reply {
        let differences = self.expected.front().map(|(expected, _)| expected.differences(&received));
        if differences.as_ref().is_some_and(Vec::is_empty)
            && let Some((_, reply)) = self.expected.pop_front()
        {
            self.received.push(received);
            return reply;
        }
        let standing = self.standing.iter().find_map(|standing| standing(&received));
        let reply = standing.unwrap_or_else(|| self.fault(&received, differences.as_deref()));
        self.received.push(received);
        reply
    }

    fn fault(&mut self, received: &Received, differences: Option<&[String]>) -> Reply {
        let mut fault = format!("the host got a request that it did not expect:\n  {received}\n");
        match (self.expected.front(), differences) {
            (Some((expected, _)), Some(differences)) => {
                writeln!(fault, "it expected:\n  {}", expected.describe()).unwrap();
                for difference in differences {
                    writeln!(fault, "  - {difference}").unwrap();
                }
            }
            _ => fault.push_str("it expected nothing more\n"),
        }
        self.faults.push(fault);
        Reply::status(501, "NotImplemented", "the script of this test does not expect this request")
    }

    fn report(&self) -> Option<String> {
        if self.faults.is_empty() && self.expected.is_empty() {
            return None;
        }
        let mut report = self.faults.concat();
        for (expected, _) in &self.expected {
            writeln!(report, "the host did not get the request that it expected:\n  {}", expected.describe()).unwrap();
        }
        report.push_str("so far, it got:\n");
        for received in &self.received {
            writeln!(report, "  {received}").unwrap();
        }
        Some(report)
    }
}

/// The first bytes of HTTP/2 (RFC 9113, section 3.4). No method of HTTP/1.1 begins with them.
const PREFACE: &[u8; 3] = b"PRI";

async fn serve(mut io: DuplexStream, state: Arc<Mutex<State>>, unanswered: Unanswered, tasks: Tasks) {
    let mut first = [0; PREFACE.len()];
    if io.read_exact(&mut first).await.is_err() {
        return;
    }
    let (from, to) = tokio::io::split(io);
    let mut io = tokio::io::join(Cursor::new(first).chain(from), to);
    if first != *PREFACE {
        let Ok(request) = http1::read_head(&mut io).await else { return };
        let reply = state.lock().unwrap().reply(Received::new(request));
        // This fails if the client has closed the connection.
        return drop(counted(&unanswered, reply.is_never(), reply.send_http1(io)).await);
    }
    let Ok(mut connection) = h2::server::handshake(io).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        let (state, unanswered) = (Arc::clone(&state), unanswered.clone());
        tasks.spawn("request to the scripted host", async move {
            // This fails if the client has reset the stream.
            let _ = exchange(request, respond, &state, &unanswered).await;
        });
    }
}

async fn exchange(
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
    state: &Mutex<State>,
    unanswered: &Unanswered,
) -> Result<(), h2::Error> {
    let (head, mut stream) = request.into_parts();
    let mut body = BytesMut::new();
    while let Some(chunk) = stream.data().await {
        let chunk = chunk?;
        stream.flow_control().release_capacity(chunk.len())?;
        body.extend_from_slice(&chunk);
    }
    let received = Received::new(Request::from_parts(head, body.freeze()));
    let reply = state.lock().unwrap().reply(received);
    counted(unanswered, reply.is_never(), reply.send(respond)).await
}

/// Counts the request while it waits, if it never gets a response.
async fn counted<F: Future>(unanswered: &Unanswered, is_never: bool, sent: F) -> F::Output {
    unanswered.send_modify(|count| *count += usize::from(is_never));
    let output = sent.await;
    unanswered.send_modify(|count| *count -= usize::from(is_never));
    output
}

#[cfg(test)]
mod tests;
