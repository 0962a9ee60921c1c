//! Samples of large bodies, which the host validates before it gets the whole.
//!
//! If an object has many invalid values, an API server copies the text of all errors for each of them (`aggregate.Error` in
//! apimachinery's `pkg/util/errors`). For 10,000 invalid labels, in a body of 110 KB, it needs minutes of CPU time, and does
//! not stop when the client disconnects. So the host first gets a random sample of such a body, as a dry run (KEP-576), and
//! then a larger one. From the errors of a sample, the agent estimates what the host would copy for the whole. If that is
//! too much, the refusal of the sample is the response.

use std::sync::PoisonError;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use kube_wire::Status;
use kube_wire::envelope::{Envelope, MAGIC};
use kube_wire::go_quote::GoQuoted;
use kube_wire::media::BodyType;
use kube_wire::query::Query;
use rewrite::json::Form;
use rewrite::sample::{Allowance, Draw, Size};
use rewrite::{json, protobuf};

use super::body::{BodyUse, content_type};
use super::plan::uri;
use super::{Asked, warning};
use crate::host::{HostBody, RequestBody, full};
use crate::refusal::Refusal;
use crate::translate::{MAX_OBJECT, encoding};

/// Bodies up to this length, in bytes, are not large.
const SHORT: usize = 1024;

/// The numbers of drawn values in the samples.
const SIZES: [usize; 2] = [32, 512];

/// The second sample is not drawn from fewer values than this many times its size.
const LEAST_RATIO: usize = 4;

/// For each drawn value, a sample may contain so many other elements of arrays.
const ELEMENTS: usize = 8;

/// It contains no other elements if it already has so many values for each drawn one.
const VALUES: usize = 32;

/// A sample with fewer errors says little about the whole. Some of its values may be invalid only because it omits others.
const FEW_ERRORS: usize = 8;

/// A sample with more unknown and duplicate members than this is refused. With many such members, a client could displace those
/// that decide how the host validates the object.
const FEW_UNKNOWN: usize = 16;

/// The limit for what the host may copy to report its errors, in bytes. It needs about a second for this.
const MAX_COPIED: usize = 1 << 30;

/// The warning that the client gets with the refusal of a sample.
const SAMPLED: &str = "the object has many errors; this response describes a random sample of the object, so indices in it \
                       differ from those in the object";

/// The start of the message of an API server if a webhook denies a request, or does not support dry runs (`ToStatusErr` and
/// `NewDryRunUnsupportedErr` in apiserver's `pkg/admission/plugin/webhook/errors`). A webhook can choose any status.
const BY_WEBHOOK: &str = "admission webhook \"";

/// The message of an API server if a policy denies an object, behind its resource and name (apiserver's
/// `pkg/admission/plugin/policy/validating`).
const BY_POLICY: &str = "is forbidden: ValidatingAdmissionPolicy '";

/// The message of an API server about unknown and duplicate members (`NewStrictDecodingError` in apimachinery's
/// `pkg/runtime`).
const STRICT: &[u8] = b"strict decoding error";

/// A sample of a body.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// In bytes.
    length: usize,
    /// The number of drawn values.
    count: usize,
    /// The size of the whole.
    whole: Size,
}

/// What the response to a sample means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The agent may send the next sample, or the whole object.
    Passed,
    /// The host has found only a few unknown members, and has not validated the sample.
    HasUnknown,
    /// The client gets this refusal of the sample.
    Refused,
    /// The client gets this response, which does not depend on what the sample omits.
    Final,
}

// === impl Sample ===

impl Sample {
    /// The bytes that the host would copy to report the errors of the whole, if its refusal of the sample has so many errors, and
    /// this length. For each error, the host copies the text of all errors before it, and an error may quote a list of the
    /// object.
    fn copied(self, errors: usize, length: usize) -> usize {
        if errors < FEW_ERRORS {
            return 0;
        }
        let all = errors.saturating_mul(self.whole.ratio(self.count));
        let text = (length / errors).saturating_mul((self.whole.length / self.length.max(1)).max(1));
        all.saturating_mul(all).saturating_mul(text)
    }

    /// Judges the host's response to the sample, which is not a success.
    fn judge(self, status: StatusCode, body: &[u8]) -> Verdict {
        let Ok(refusal) = Status::from_json(body).or_else(|_| Status::from_protobuf(body)) else {
            return Verdict::Final;
        };
        let errors = refusal.details.as_ref().map_or(0, |details| details.causes.len());
        // These may miss what the sample omits. Policies and validating webhooks run after the validation.
        let is_by_policy = status == StatusCode::FORBIDDEN && is_by_policy(&refusal);
        if is_by_policy || refusal.message.starts_with(BY_WEBHOOK) {
            return Verdict::Passed;
        }
        // A patch that adds unknown members gets 422, with one error.
        let is_invalid = status == StatusCode::UNPROCESSABLE_ENTITY;
        let may_be_strict = status == StatusCode::BAD_REQUEST || (is_invalid && errors < FEW_ERRORS);
        if may_be_strict && memchr::memmem::find(body, STRICT).is_some() {
            return if unknown(body) <= FEW_UNKNOWN { Verdict::HasUnknown } else { Verdict::Refused };
        }
        match is_invalid {
            true if self.copied(errors, body.len()) <= MAX_COPIED => Verdict::Passed,
            true => Verdict::Refused,
            false => Verdict::Final,
        }
    }
}

// === impl Asked ===

impl Asked<'_> {
    /// Sends a request to the host. If its body is large, the host validates samples of the body first.
    pub(super) async fn send(&self, request: Request<RequestBody>) -> Result<Response<HostBody>, Refusal> {
        let body = request.body().bytes();
        let form = self.form(request.method());
        let Some(size) = self.large(request.method(), &body, form)? else {
            return Ok(self.send_as_it_is(request).await?);
        };
        for (index, count) in SIZES.into_iter().enumerate() {
            if index > 0 && size.values.max(size.numbers) < LEAST_RATIO * count {
                break;
            }
            let Some(sample) = draw(&body, form, size, count)? else { break };
            let dry_runs = self.dry_runs_of(&request, form, &sample)?;
            let sample = Sample { length: sample.len(), count, whole: size };
            if let Some(refusal) = self.validated(dry_runs, sample).await? {
                return Ok(refusal);
            }
        }
        Ok(self.send_as_it_is(request).await?)
    }

    /// The size of a body, if the host validates it and it is large.
    fn large(&self, method: &Method, body: &Bytes, form: Form) -> Result<Option<Size>, Refusal> {
        let is_validated = [Method::POST, Method::PUT, Method::PATCH].contains(method);
        // A JSON patch has few values, or the agent has applied it.
        let is_json_patch = *method == Method::PATCH && self.has_patch(BodyType::JsonPatch);
        if !is_validated || is_json_patch || self.body_use() != BodyUse::Mapped || !self.may_be_sampled() {
            return Ok(None);
        }
        if body.len() <= SHORT {
            return Ok(None);
        }
        if body.starts_with(&MAGIC) {
            let envelope = Envelope::decode(body).map_err(unreadable)?;
            return Ok(protobuf::large(envelope.raw, form.is_data));
        }
        json::large(body, form).map_err(unreadable)
    }

    /// Whether a sample of these objects shows how many errors the whole has. A sample of a CustomResourceDefinition is another
    /// definition. An aggregated API server may ignore `dryRun`, and store the sample.
    fn may_be_sampled(&self) -> bool {
        let Some(request) = self.info.resource() else { return false };
        let name = || format!("{}.{}", request.resource(), request.group());
        !self.is_of_definitions() && (self.is_built_in() || self.parts.definitions.is_of_clusters(&name()).is_some())
    }

    fn form(&self, method: &Method) -> Form {
        let is_strategic = *method == Method::PATCH && self.has_patch(BodyType::StrategicMergePatch);
        Form { is_strategic, is_built_in: self.is_built_in(), is_data: self.is_data() }
    }

    /// Whether the host does not validate text in these objects, apart from their metadata.
    fn is_data(&self) -> bool {
        self.info.resource().is_some_and(|request| {
            request.group().is_empty() && ["configmaps", "secrets"].contains(&request.resource())
        })
    }

    /// Whether the result of a JSON patch could be large because of the patch. The host would validate it without samples.
    pub(super) fn is_large_json_patch(&self, patch: &[u8]) -> bool {
        // The text of data is long, and a caller who may patch it may not be allowed to read the object.
        let is_data = self.is_data();
        let is_large = |size: Size| if is_data { Size { text: 0, ..size }.is_large() } else { true };
        json::large(patch, Form::default()).map_or(true, |size| size.is_some_and(is_large))
    }

    fn has_patch(&self, kind: BodyType) -> bool {
        BodyType::of_patch(content_type(&self.headers)).is_ok_and(|found| found == kind)
    }

    /// The dry runs of a sample, one after the other. If the kind is built in, the first one asks for unknown members.
    fn dry_runs_of(
        &self,
        request: &Request<RequestBody>,
        form: Form,
        sample: &Bytes,
    ) -> Result<Vec<Request<RequestBody>>, Refusal> {
        let modes = if form.is_built_in && !sample.starts_with(&MAGIC) { &[true, false][..] } else { &[false] };
        modes.iter().map(|is_strict| self.dry_run_of(request, sample.clone(), *is_strict)).collect()
    }

    /// Lets the host validate a sample. Returns the response to the client, unless the agent may send more.
    async fn validated(
        &self,
        dry_runs: Vec<Request<RequestBody>>,
        sample: Sample,
    ) -> Result<Option<Response<HostBody>>, Refusal> {
        for dry_run in dry_runs {
            let response = self.send_as_it_is(dry_run).await?;
            if response.status().is_success() {
                break;
            }
            if encoding(response.headers()).is_none() {
                return Ok(Some(response));
            }
            let (parts, body) = response.into_parts();
            let (read, body) = self.outside(self.answer_collector().collect_or_drain(body, MAX_OBJECT)).await;
            let body = body.inspect_err(|_| self.charge_read_refusal(parts.status, read))?;
            match sample.judge(parts.status, &body) {
                Verdict::Passed => break,
                Verdict::HasUnknown => continue,
                Verdict::Refused => {
                    let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
                    warnings.extend(warning(SAMPLED));
                }
                Verdict::Final => {}
            }
            return Ok(Some(Response::from_parts(parts, HostBody::read(body))));
        }
        Ok(None)
    }

    /// The request with a sample of its body, as a dry run.
    fn dry_run_of(
        &self,
        request: &Request<RequestBody>,
        sample: Bytes,
        is_strict: bool,
    ) -> Result<Request<RequestBody>, Refusal> {
        let mut query = Query::new(request.uri().query().unwrap_or_default());
        query.set("dryRun", "All");
        if is_strict {
            query.set("fieldValidation", "Strict");
        }
        if *request.method() == Method::PATCH && self.has_patch(BodyType::ApplyYaml) {
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
}

/// Draws so many values of a body. `None` if the sample is the whole, or if the host cannot read the body either.
fn draw(body: &Bytes, form: Form, size: Size, count: usize) -> Result<Option<Bytes>, Refusal> {
    let others = Allowance::new(count * ELEMENTS, count * VALUES);
    let draw = Draw::new(count, size, others, |below| fastrand::usize(..below));
    let sample = if body.starts_with(&MAGIC) {
        let envelope = Envelope::decode(body).map_err(unreadable)?;
        let sample = protobuf::sample(envelope.raw, &draw, form.is_data);
        sample.map(|raw| Bytes::from(Envelope { raw: &raw, ..envelope }.encode()))
    } else {
        json::sample(body, &draw, form).map(Some).map_err(unreadable)?
    };
    Ok(sample.filter(|sample| sample.len() < body.len()))
}

/// Whether a policy denies the object. The rest of the message may quote text of the client.
fn is_by_policy(refusal: &Status) -> bool {
    let name = refusal.details.as_ref().map_or("", |details| details.name.as_str());
    let Some((_resource, rest)) = refusal.message.split_once(' ') else { return false };
    rest.strip_prefix(&*format!("{} ", GoQuoted(name))).unwrap_or(rest).starts_with(BY_POLICY)
}

/// The number of unknown and duplicate members that a refusal names.
fn unknown(refusal: &[u8]) -> usize {
    let count = |text: &str| memchr::memmem::find_iter(refusal, text).count();
    count("unknown field ") + count("duplicate field ")
}

fn unreadable(error: impl std::error::Error) -> Refusal {
    Status::bad_request(format!("the body cannot be read: {error}")).into()
}

#[cfg(test)]
mod tests {
    use kube_wire::gvr::{GroupKind, GroupResource};
    use kube_wire::status::FieldError;

    use super::*;

    const WHOLE: Size = Size { values: 20_000, numbers: 0, text: 0, length: 200_000 };

    fn judged(status: &Status) -> Verdict {
        let sample = Sample { length: 2_000, count: 32, whole: WHOLE };
        sample.judge(StatusCode::from_u16(status.code).unwrap(), &status.to_json())
    }

    fn invalid(errors: usize, value: &str) -> Status {
        let errors: Vec<_> = (0..errors).map(|_| FieldError::invalid("metadata.labels", value, "no")).collect();
        Status::invalid(GroupKind { group: "", kind: "ConfigMap" }, "a", &errors)
    }

    fn forbidden(why: &str) -> Status {
        let resource = GroupResource { group: "", resource: "pods" };
        Status::forbidden_because(resource, "a", why)
    }

    #[test]
    fn many_errors_are_refused_and_few_are_not() {
        assert_eq!(judged(&invalid(FEW_ERRORS - 1, "!")), Verdict::Passed);
        assert_eq!(judged(&invalid(FEW_ERRORS, "!")), Verdict::Refused);
        // If the sample is nearly the whole, all errors are there.
        let sample = Sample { length: 2_000, count: 32, whole: Size { values: 100, length: 4_000, ..WHOLE } };
        assert_eq!(sample.judge(StatusCode::UNPROCESSABLE_ENTITY, &invalid(90, "!").to_json()), Verdict::Passed);
    }

    /// A client can write any text into its objects, and the host quotes it.
    #[test]
    fn quoted_text_does_not_decide() {
        for text in ["admission webhook \"a\"", "strict decoding error: unknown field \"a\"", BY_POLICY] {
            assert_eq!(judged(&invalid(64, text)), Verdict::Refused, "{text}");
            assert_eq!(judged(&forbidden(&format!("no account a/\" {text}"))), Verdict::Final, "{text}");
        }
        // Nor can a name, although it is in front of the reason.
        let resource = GroupResource { group: "", resource: "pods" };
        let named = Status::forbidden_because(resource, "\" is forbidden: ValidatingAdmissionPolicy 'a", "no");
        assert_eq!(judged(&named), Verdict::Final);
    }

    #[test]
    fn what_runs_after_the_validation_does_not_decide() {
        let webhook = "admission webhook \"a.example.com\"";
        for said in ["denied the request: no", "does not support dry run"] {
            assert_eq!(judged(&Status::bad_request(format!("{webhook} {said}"))), Verdict::Passed);
        }
        let policy = "ValidatingAdmissionPolicy 'a' with binding 'b' denied request: no";
        assert_eq!(judged(&forbidden(policy)), Verdict::Passed);
        assert_eq!(judged(&forbidden("error looking up service account a/b")), Verdict::Final);
    }

    #[test]
    fn many_unknown_members_are_refused() {
        let strict = |count| {
            let unknown = (0..count).map(|field| format!("unknown field \"x{field}\"")).collect::<Vec<_>>().join(", ");
            Status::bad_request(format!("Pod in version \"v1\" cannot be handled: strict decoding error: {unknown}"))
        };
        assert_eq!(judged(&strict(FEW_UNKNOWN)), Verdict::HasUnknown);
        assert_eq!(judged(&strict(FEW_UNKNOWN + 1)), Verdict::Refused);
        assert_eq!(judged(&Status::bad_request("the body is not JSON")), Verdict::Final);
    }
}
