//! What objects have below them.

use http::Response;
use kube_wire::{ResourceRequest, Status, Verb};

use super::not_allowed;
use super::read::find;
use crate::answer::Body;
use crate::kinds::Kind;
use crate::serve::{Call, Sent};
use crate::write::Part;

// === impl Call ===

impl Call<'_> {
    pub(super) async fn subresource(
        &self,
        kind: &'static Kind,
        request: &ResourceRequest<'_>,
        subresource: &str,
        sent: Sent,
    ) -> Result<Response<Body>, Status> {
        match (subresource, request.verb()) {
            ("status", Verb::Get) => self.get(kind, request),
            ("status", Verb::Update) => self.update(kind, request, Part::Status, sent).await,
            ("status", Verb::Patch) => self.patch(kind, request, Part::Status, sent).await,
            ("scale", _) => self.scale(kind, request, sent).await,
            ("log", Verb::Get) => self.log(kind, request),
            ("exec" | "attach", _) => self.exec(kind, request, sent),
            ("binding", _) => self.bind(kind, request, sent).await,
            ("eviction", _) => self.evict(kind, request, sent).await,
            ("token", Verb::Create) => self.token(kind, request, sent).await,
            ("finalize", Verb::Update) => self.finalize(kind, request, sent).await,
            _ => {
                self.api.store.read(|state| find(state, kind, request).map(|_| ()))?;
                Err(not_allowed())
            }
        }
    }

    /// Sets a Namespace's finalizers; the last one that goes takes the Namespace with it.
    async fn finalize(
        &self,
        kind: &'static Kind,
        request: &ResourceRequest<'_>,
        sent: Sent,
    ) -> Result<Response<Body>, Status> {
        self.update(kind, request, Part::Main, sent).await
    }
}
