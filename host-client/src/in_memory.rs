//! A host in memory, to which each connection is a pipe.
//!
//! This shows which requests the agent would send to a host, with the same code that sends them to a real one. Only
//! dialling differs. [`answered_by`] needs no server: a function responds to every request.

use std::future;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{Request, Response};
use ops::drain::Tasks;
use tokio::io::DuplexStream;

use super::counters::Counters;
use super::dial::{BoxIo, Dial, Dialling, Version};
use super::host::Host;
use super::servers::Servers;
use super::upstream::Upstream;
use kubeconfig::Address;

/// The size of the pipe, in bytes.
const PIPE: usize = 256 * 1024;

/// Returns the response to one request.
pub type ResponseFn = dyn Fn(&Request<Bytes>) -> Response<Bytes> + Send + Sync;

/// Serves HTTP/2 on one connection to the host. It must not block: it may spawn a task.
pub type Accept = dyn Fn(DuplexStream) + Send + Sync;

struct InMemory {
    accept: Arc<Accept>,
}

/// A host with these responses. It must be called within a tokio runtime.
pub fn answered_by(answer: Arc<ResponseFn>, tasks: &Tasks) -> Host {
    let serving = tasks.clone();
    let accept = move |theirs| {
        serving.spawn("host in memory", serve(theirs, Arc::clone(&answer), serving.clone()));
    };
    served_by(Arc::new(accept), tasks)
}

/// A host whose connections this function serves. It must be called within a tokio runtime.
pub fn served_by(accept: Arc<Accept>, tasks: &Tasks) -> Host {
    let address: Address = "https://host.invalid".parse().expect("a constant address");
    let counters = Arc::new(Counters::default());
    let dial: Arc<dyn Dial> = Arc::new(InMemory { accept });
    let servers = Servers::new(&[address], &dial, None, &counters, tasks);
    Host::begin(Upstream { servers, bearer: None }, counters, tasks.clone()).0
}

// === impl InMemory ===

impl Dial for InMemory {
    fn dial<'a>(&'a self, _: &'a Address, _: Version) -> Dialling<'a> {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        (self.accept)(theirs);
        Box::pin(future::ready(Ok(Box::new(ours) as BoxIo)))
    }
}

async fn serve(io: DuplexStream, answer: Arc<ResponseFn>, tasks: Tasks) {
    let Ok(mut connection) = h2::server::handshake(io).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        let answer = Arc::clone(&answer);
        tasks.spawn("request in memory", async move {
            // This fails if the client has dropped the request.
            let _ = exchange(request, respond, &*answer).await;
        });
    }
}

async fn exchange(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    answer: &ResponseFn,
) -> Result<(), h2::Error> {
    let (head, mut stream) = request.into_parts();
    let mut body = BytesMut::new();
    while let Some(chunk) = stream.data().await {
        let chunk = chunk?;
        stream.flow_control().release_capacity(chunk.len())?;
        if body.len() + chunk.len() > crate::collect::MAX_OBJECT {
            respond.send_reset(Reason::ENHANCE_YOUR_CALM);
            return Ok(());
        }
        body.extend_from_slice(&chunk);
    }
    let (head, body) = answer(&Request::from_parts(head, body.freeze())).into_parts();
    respond.send_response(Response::from_parts(head, ()), false)?.send_data(body, true)
}
