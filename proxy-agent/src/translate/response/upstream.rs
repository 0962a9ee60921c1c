//! The body of the host's response.

use bytes::Bytes;

use crate::refusal::Refusal;
use crate::translate::overlaid::Overlaid;
use crate::translate::whole::Collector;
use host_client::HostBody;
use host_client::collect::MAX_OBJECT;

/// The body of the host's response.
pub(crate) enum Upstream {
    /// It has not been read yet.
    Stream(HostBody),
    /// It has not been read yet. Overlays replace their pointers.
    Overlaid(Overlaid),
    /// It has been read.
    Whole(Bytes),
}

// === impl Upstream ===

impl Upstream {
    pub(crate) async fn collect(self, collector: Collector<'_>) -> Result<Bytes, Refusal> {
        match self {
            Self::Whole(body) => Ok(body),
            Self::Stream(body) => collector.collect(body, MAX_OBJECT).await,
            Self::Overlaid(body) => collector.collect(body, MAX_OBJECT).await,
        }
    }

    /// Collects the body. If there is no memory for it, the rest is read and discarded. Also returns the length.
    pub(crate) async fn collect_or_drain(self, collector: Collector<'_>) -> (usize, Result<Bytes, Refusal>) {
        match self {
            Self::Whole(body) => (body.len(), Ok(body)),
            Self::Stream(body) => collector.collect_or_drain(body, MAX_OBJECT).await,
            Self::Overlaid(body) => collector.collect_or_drain(body, MAX_OBJECT).await,
        }
    }
}
