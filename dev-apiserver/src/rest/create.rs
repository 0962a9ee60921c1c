//! New objects.

use http::{HeaderValue, Response, StatusCode, header};
use kube_wire::query::WriteOptions;
use kube_wire::{ResourceRequest, Status};
use serde_json::Value;

use super::scope;
use crate::answer::Body;
use crate::kinds::Kind;
use crate::protobuf;
use crate::serve::{Call, Sent};
use crate::store::State;
use crate::write::{Writer, check_type, create};

// === impl Call ===

impl Call<'_> {
    pub(super) async fn create(
        &self,
        kind: &'static Kind,
        request: &ResourceRequest<'_>,
        sent: Sent,
    ) -> Result<Response<Body>, Status> {
        let options = self.write_options()?;
        let manager = self.manager()?;
        let mut object = sent.object(self.header(header::CONTENT_TYPE)).await?;
        check_type(kind, &object)?;
        self.conform(kind, &mut object)?;
        let namespace = scope(kind, request).unwrap_or_default();
        let write = |state: &mut State| create(state, kind, namespace, object, self.writer(&manager), options.dry_run);
        let created = self.api.store.write(write)?;
        let mut response = self.show(StatusCode::CREATED, kind, &created)?;
        if let Some(warning) = idle(kind) {
            response.headers_mut().insert(header::WARNING, warning);
        }
        Ok(response)
    }

    /// Drops fields that the kind does not have, or refuses them if the client is strict.
    pub(super) fn conform(&self, kind: &Kind, object: &mut Value) -> Result<(), Status> {
        let unknown = protobuf::conform(&kind.api_version(), kind.kind, object)?;
        if unknown.is_empty() || self.write_options()?.field_validation != "Strict" {
            return Ok(());
        }
        let unknown: Vec<_> = unknown.iter().map(|field| format!("unknown field {field:?}")).collect();
        let message = format!(
            "{} in version {:?} cannot be handled as a {}: strict decoding error: {}",
            kind.kind,
            kind.version,
            kind.kind,
            unknown.join(", ")
        );
        Err(Status::bad_request(message))
    }

    /// As whom a plain write is remembered: what the client says, or the program that it is.
    pub(super) fn manager(&self) -> Result<String, Status> {
        let stated = self.write_options()?.field_manager;
        let agent = self.header(header::USER_AGENT).unwrap_or_default();
        let stated = if stated.is_empty() { agent.split('/').next().unwrap_or_default() } else { &stated };
        Ok(stated.to_owned())
    }

    /// The caller, whose fields are remembered as the manager's.
    pub(super) fn writer<'w>(&'w self, manager: &'w str) -> Writer<'w> {
        Writer { user: Some(&self.user), manager: Some(manager) }
    }

    pub(super) fn write_options(&self) -> Result<WriteOptions<'_>, Status> {
        WriteOptions::parse(self.info.query()).map_err(|error| Status::bad_request(error.to_string()))
    }
}

/// A warning (RFC 7234 section 5.5, which Kubernetes keeps up) for kinds that are stored and that nothing acts upon.
fn idle(kind: &Kind) -> Option<HeaderValue> {
    let is_idle = matches!(
        kind.resource,
        "cronjobs"
            | "horizontalpodautoscalers"
            | "ingresses"
            | "limitranges"
            | "networkpolicies"
            | "persistentvolumeclaims"
            | "persistentvolumes"
            | "resourcequotas"
    );
    let text = format!("299 - \"dev-apiserver stores a {} and does nothing with it\"", kind.kind);
    is_idle.then(|| HeaderValue::from_str(&text).ok()).flatten()
}
