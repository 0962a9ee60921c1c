//! What this agent tells a proxy-server, for the crate [`dial`].

use std::sync::Arc;

use dial::offers::Current;
use dial::routes::Verdicts;
use protocol::{AgentId, Registration};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::serve::Streams;

/// An agent that can be registered.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    /// The identity in the certificate.
    pub(crate) id: AgentId,
    /// The ID of this process. It differs between replicas.
    pub(crate) instance: Arc<str>,
    /// The clusters that the agent offers.
    pub(crate) offers: Current,
    /// Serves the streams of tunnels.
    pub(crate) streams: Streams,
}

impl dial::Service for Agent {
    fn registration(&self) -> Registration {
        dial::registration(&self.id, &self.instance, self.offers.borrow().to_vec())
    }

    fn serve<S>(
        self,
        io: S,
        stop: &dial::Stop,
        verdicts: Verdicts,
    ) -> impl Future<Output = Result<String, h2::Error>> + Send
    where
        S: AsyncRead + AsyncWrite + Send + Unpin,
    {
        self.streams.serve(io, stop, verdicts)
    }
}
