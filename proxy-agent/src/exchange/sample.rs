//! Samples of large bodies, which the host validates before it gets the whole.
//!
//! If an object has many invalid values, an API server copies the text of all errors for each of them (`aggregate.Error` in
//! apimachinery's `pkg/util/errors`). For 10,000 invalid labels, in a body of 110 KB, it needs minutes of CPU time, and does
//! not stop when the client disconnects. So the host first gets a random sample of such a body, as a dry run (KEP-576), and
//! then a larger one. If the refusal of a sample is long, it is the response. Otherwise only few values are invalid.

use std::sync::PoisonError;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use kube_wire::Status;
use kube_wire::envelope::{Envelope, MAGIC};
use kube_wire::media::BodyType;
use kube_wire::query::Query;
use rewrite::sample::{Counts, Draw};
use rewrite::{json, protobuf};

use super::body::{BodyUse, content_type};
use super::plan::uri;
use super::{Asked, patch, warning};
use crate::host::{HostBody, RequestBody, full};
use crate::refusal::Refusal;
use crate::translate::{MAX_OBJECT, encoding};

/// A body with at most this many values goes to the host at once. If all of them are invalid, the host needs about a second.
pub(super) const FEW_VALUES: usize = 1024;

/// The numbers of drawn values in the samples.
const SIZES: [usize; 2] = [64, 512];

/// A sample is not drawn from fewer values than this many times its size.
const LEAST_RATIO: usize = 4;

/// The number of values that a sample keeps without drawing, for each drawn value. Objects have some members that
/// Kubernetes requires.
const SURE: usize = 16;

/// A sample with fewer errors says little about the whole. Some values may be invalid only because others are missing.
const FEW_ERRORS: usize = 8;

/// The limit for what the host may copy to write its errors, in bytes. It needs about a second for this.
const MAX_COPIED: usize = 1 << 30;

/// What the client is told if a sample is refused.
const SAMPLED: &str = "many values of the object are invalid; the response is about a random sample of them, so its \
                       indices are others";

/// What an API server says if a webhook has side effects (`NewDryRunUnsupportedErr` in apiserver's
/// `pkg/admission/plugin/webhook/errors`).
const NO_DRY_RUN: &[u8] = b"does not support dry run because the effects are unknown";

impl Asked<'_> {
    /// Sends a request to the host. If its body has many values, the host validates samples of the body first.
    pub(super) async fn send(&self, request: Request<RequestBody>) -> Result<Response<HostBody>, Refusal> {
        let body = request.body().bytes();
        let Some(counts) = self.many_values(request.method(), &body)? else {
            return Ok(self.send_as_it_is(request).await?);
        };
        for size in SIZES.into_iter().take_while(|size| counts.sum() >= LEAST_RATIO * size) {
            let Some(sample) = self.sample(&request, counts, size)? else { break };
            let response = self.send_as_it_is(self.dry_run_of(&request, sample)?).await?;
            if let Some(refusal) = self.refusal_of_sample(response, counts.ratio(size)).await? {
                return Ok(refusal);
            }
        }
        Ok(self.send_as_it_is(request).await?)
    }

    /// The numbers of values of a body, if the host validates it and there are many.
    fn many_values(&self, method: &Method, body: &Bytes) -> Result<Option<Counts>, Refusal> {
        let is_validated = [Method::POST, Method::PUT, Method::PATCH].contains(method);
        // A JSON patch has few values, or the agent has applied it.
        let is_json_patch = *method == Method::PATCH && self.has_patch(BodyType::JsonPatch);
        // No part of a definition is like another: a sample would be another definition.
        if !is_validated || is_json_patch || self.body_use() != BodyUse::Mapped || self.is_of_definitions() {
            return Ok(None);
        }
        if body.len() <= FEW_VALUES {
            return Ok(None);
        }
        if body.starts_with(&MAGIC) {
            let envelope = Envelope::decode(body).map_err(unreadable)?;
            return Ok(protobuf::values_above(FEW_VALUES, envelope.raw, self.may_have_packed_numbers()));
        }
        json::values_above(FEW_VALUES, body, self.is_strategic(method)).map_err(unreadable)
    }

    /// Draws a sample of this size. `None` if the host cannot read the body either.
    fn sample(&self, request: &Request<RequestBody>, counts: Counts, size: usize) -> Result<Option<Bytes>, Refusal> {
        let body = request.body().bytes();
        let draw = Draw::new(size, counts, SURE * size, |below| fastrand::usize(..below));
        if !body.starts_with(&MAGIC) {
            return json::sample(&body, &draw, self.is_strategic(request.method())).map(Some).map_err(unreadable);
        }
        let envelope = Envelope::decode(&body).map_err(unreadable)?;
        let sample = protobuf::sample(envelope.raw, &draw, self.may_have_packed_numbers());
        Ok(sample.map(|raw| Envelope { raw: &raw, ..envelope }.encode().into()))
    }

    /// Whether the body that goes to the host is a strategic merge patch.
    fn is_strategic(&self, method: &Method) -> bool {
        *method == Method::PATCH && self.has_patch(BodyType::StrategicMergePatch)
    }

    fn is_apply(&self, method: &Method) -> bool {
        *method == Method::PATCH && self.has_patch(BodyType::ApplyYaml)
    }

    fn has_patch(&self, kind: BodyType) -> bool {
        matches!(BodyType::of_patch(content_type(&self.headers)), Ok(found) if found == kind)
    }

    /// Whether the objects have lists of numbers, which a message can have as one field. No others than those with a pod
    /// specification have them (`repeated int` in the generated.proto files of `k8s.io/api`).
    fn may_have_packed_numbers(&self) -> bool {
        self.info.resource().is_some_and(patch::is_guarded)
    }

    /// The request with a sample of its body, as a dry run.
    fn dry_run_of(&self, request: &Request<RequestBody>, sample: Bytes) -> Result<Request<RequestBody>, Refusal> {
        let mut query = Query::new(request.uri().query().unwrap_or_default());
        query.set("dryRun", "All");
        if self.is_apply(request.method()) {
            // A conflict of field managers would hide invalid values.
            query.set("force", "true");
        }
        let mut dry = Request::new(full(sample));
        *dry.method_mut() = request.method().clone();
        *dry.uri_mut() = uri(&Asked::target(request.uri().path(), &query))?;
        dry.headers_mut().clone_from(request.headers());
        dry.extensions_mut().clone_from(request.extensions());
        Ok(dry)
    }

    /// The response to a sample, unless the whole body may be sent. The whole has `ratio` times as many values.
    async fn refusal_of_sample(
        &self,
        response: Response<HostBody>,
        ratio: usize,
    ) -> Result<Option<Response<HostBody>>, Refusal> {
        match response.status() {
            status if status.is_success() => return Ok(None),
            // An admission plugin or a webhook denies the sample, perhaps because something is missing. They validate what
            // the host has found to be valid.
            StatusCode::FORBIDDEN => return Ok(None),
            StatusCode::UNPROCESSABLE_ENTITY | StatusCode::BAD_REQUEST if encoding(response.headers()).is_some() => {}
            _ => return Ok(Some(response)),
        }
        let (parts, body) = response.into_parts();
        let (length, body) = self.outside(self.answer_collector().collect_or_drain(body, MAX_OBJECT)).await;
        let body = body.inspect_err(|_| self.charge_read_refusal(parts.status, length))?;
        let is_passed = match parts.status {
            StatusCode::BAD_REQUEST => memchr::memmem::find(&body, NO_DRY_RUN).is_some(),
            _ => copied(&body, ratio) <= MAX_COPIED,
        };
        if is_passed {
            return Ok(None);
        }
        if parts.status == StatusCode::UNPROCESSABLE_ENTITY {
            let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
            warnings.extend(warning(SAMPLED));
        }
        Ok(Some(Response::from_parts(parts, HostBody::read(body))))
    }
}

/// The bytes that the host would copy to write the errors of the whole, if this is the refusal of a sample. For each
/// error, it copies the text of all before it.
fn copied(refusal: &[u8], ratio: usize) -> usize {
    let status = Status::from_json(refusal).or_else(|_| Status::from_protobuf(refusal));
    let errors = status.map_or(usize::MAX, |status| status.details.map_or(0, |details| details.causes.len()));
    if errors < FEW_ERRORS {
        return 0;
    }
    errors.saturating_mul(ratio).saturating_mul(ratio).saturating_mul(refusal.len())
}

fn unreadable(error: impl std::error::Error) -> Refusal {
    Status::bad_request(format!("the body cannot be read: {error}")).into()
}
