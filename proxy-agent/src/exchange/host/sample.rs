//! Samples of bodies, which the host validates before it gets the whole.
//!
//! If an object has many invalid values, an API server copies the text of all errors for each of them (`aggregate.Error` in
//! apimachinery's `pkg/util/errors`). For 10,000 invalid labels, in a body of 110 KB, it needs minutes of CPU time, and does
//! not stop when the client disconnects. So before the host gets a body with many values or long text, the agent sends it
//! one or two random samples of the body, as dry runs (KEP-576). From the errors of a sample, the agent estimates how many
//! bytes the host would copy for the whole body. If the estimate is too high, the client gets the refusal of the sample.

use std::collections::HashSet;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use kube_wire::Status;
use kube_wire::envelope::{Envelope, MAGIC};
use kube_wire::go_quote::GoQuoted;
use kube_wire::media::BodyType;
use kube_wire::query::Query;
use rewrite::json::{self, Form};
use rewrite::json_patch::JsonPatch;
use rewrite::protobuf;
use rewrite::sample::{Allowance, Counts, Draw};

use crate::exchange::api_request::BodyUse;
use crate::exchange::call::Call;
use crate::exchange::cost::count_refusal_of;
use crate::exchange::findings::warning;
use crate::exchange::undecided::Undecided;
use crate::exchange::upstream::{self, uri};
use crate::refusal::Refusal;
use crate::translate::encoding;
use host_client::collect::MAX_OBJECT;
use host_client::{HostBody, RequestBody, full};

/// Bodies up to this length, in bytes, need no samples.
const SHORT: usize = 1024;

/// The numbers of drawn values in the samples.
const SIZES: [usize; 2] = [32, 512];

/// The second sample is omitted if the object has less than this many times as many values as it would draw.
const LEAST_RATIO: usize = 4;

/// For each drawn value, a sample may keep this many elements of arrays that are not drawn.
const ELEMENTS: usize = 8;

/// A sample keeps no further elements of arrays if it has this many values that are not drawn for each drawn one.
const VALUES: usize = 32;

/// With fewer errors, a sample says little about the whole: a value may be invalid only because the sample omits another
/// one.
const MIN_ERRORS: usize = 8;

/// The maximum number of different unknown and duplicate members in a sample. A client could use more of them to displace the
/// members that decide how the host validates the object.
const MAX_UNKNOWN: usize = 16;

/// The limit for what the host may copy to report its errors, in bytes. It needs about a second for this.
const MAX_COPIED: usize = 1 << 30;

/// The warning that the client gets with the refusal of a sample.
const SAMPLED: &str = "the object has many errors; this response describes a random sample of the object, so indices in it \
                       differ from those in the object";

/// The start of the message of an API server if a webhook denies a request, or does not support dry runs (`ToStatusErr` and
/// `NewDryRunUnsupportedErr` in apiserver's `pkg/admission/plugin/webhook/errors`). A webhook can choose any status.
const BY_WEBHOOK: &str = "admission webhook \"";

/// The message of an API server if a policy denies an object, after its resource and name (apiserver's
/// `pkg/admission/plugin/policy/validating`).
const BY_POLICY: &str = "is forbidden: ValidatingAdmissionPolicy '";

/// The same if a Pod violates the Pod Security Standard of its namespace (`admission/admission.go` of pod-security-admission).
/// A sample may lack the dropped capability that the standard requires.
const BY_POD_SECURITY: &str = "is forbidden: violates PodSecurity \"";

/// The text before the rules in the message of `ConfirmNoEscalation`.
pub(crate) const NOT_HELD: &str = "is attempting to grant RBAC permissions not currently held:\n";

/// The message of an API server about unknown and duplicate members (`NewStrictDecodingError` in apimachinery's
/// `pkg/runtime`).
const STRICT: &str = "strict decoding error: ";

/// What the agent compares to judge the response to a sample.
#[derive(Clone, Copy, Debug)]
struct Measures {
    /// The length of the sample, in bytes.
    length: usize,
    /// The number of values that were drawn. The sample also has others.
    count: usize,
    /// The counts of the whole object.
    whole: Counts,
}

/// Marks a response as the refusal of a sample.
#[derive(Clone, Copy, Debug)]
struct OfSample;

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

// === impl Measures ===

impl Measures {
    /// Estimates how many bytes the host would copy to report all errors of the whole. The refusal of the sample has this many
    /// errors, and this length in bytes. For each error, the host copies the text of all errors before it. An error may quote
    /// a list, so the text of each error is taken to grow with the length of the object. All values of the sample are treated
    /// as drawn, although the sample also has others, so the estimate tends to be high.
    fn copied(self, errors: usize, length: usize) -> usize {
        if errors < MIN_ERRORS {
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
        // A policy or webhook may deny a sample because of what the sample omits, so its refusal decides nothing. Policies and
        // validating webhooks run after the validation. A mutating webhook runs before it: its refusal hides the errors, and
        // the agent accepts that (SECURITY.md).
        let is_by_policy = status == StatusCode::FORBIDDEN && is_by_policy(&refusal);
        if is_by_policy || refusal.message.starts_with(BY_WEBHOOK) {
            return Verdict::Passed;
        }
        // A patch that adds unknown members gets 422, with one error.
        let is_invalid = status == StatusCode::UNPROCESSABLE_ENTITY;
        let may_be_strict = status == StatusCode::BAD_REQUEST || (is_invalid && errors < MIN_ERRORS);
        if may_be_strict && let Some((_, found)) = refusal.message.rsplit_once(STRICT) {
            return if unknown(found) <= MAX_UNKNOWN { Verdict::HasUnknown } else { Verdict::Refused };
        }
        match status {
            StatusCode::UNPROCESSABLE_ENTITY if self.copied(errors, body.len()) <= MAX_COPIED => Verdict::Passed,
            StatusCode::UNPROCESSABLE_ENTITY => Verdict::Refused,
            // In an apply, an element without its key is an error of the server. A sample may omit the key.
            StatusCode::INTERNAL_SERVER_ERROR => Verdict::Passed,
            // The message lists the rights that the caller would need to grant those of the sample.
            StatusCode::FORBIDDEN if refusal.message.contains(NOT_HELD) => Verdict::Refused,
            _ => Verdict::Final,
        }
    }
}

/// Sends a request to the host. If its body needs samples, the host validates them first.
pub(crate) async fn send(call: &Call<'_>, request: Request<RequestBody>) -> Result<Response<HostBody>, Refusal> {
    let body = request.body().bytes();
    let form = form(call, request.method());
    let Some(whole) = counts_if_sampled(call, request.method(), &body, form) else {
        return Ok(call.send_unsampled(request).await?);
    };
    Box::pin(send_sampled(call, request, &body, form, whole)).await
}

/// The same for a decision. The client may get another refusal instead of the response, so the warning about a sample becomes
/// a finding.
pub(crate) async fn send_to_decide(
    call: &Undecided<'_>,
    request: Request<RequestBody>,
) -> Result<Response<HostBody>, Refusal> {
    let response = send(call, request).await?;
    if response.extensions().get::<OfSample>().is_some() {
        call.findings().warn_also(SAMPLED);
    }
    Ok(response)
}

async fn send_sampled(
    call: &Call<'_>,
    request: Request<RequestBody>,
    body: &Bytes,
    form: Form,
    whole: Counts,
) -> Result<Response<HostBody>, Refusal> {
    for (index, count) in SIZES.into_iter().enumerate() {
        if index > 0 && whole.values.max(whole.numbers) < LEAST_RATIO * count {
            break;
        }
        let Some(sample) = draw(body, form, whole, count)? else { break };
        let dry_runs = dry_runs_of(call, &request, form, &sample)?;
        let measures = Measures { length: sample.len(), count, whole };
        if let Some(refusal) = refusal_of(call, dry_runs, measures).await? {
            return Ok(refusal);
        }
    }
    Ok(call.send_unsampled(request).await?)
}

/// The counts of a body, if the host validates it and it needs samples. The host refuses what the agent cannot read.
fn counts_if_sampled(call: &Call<'_>, method: &Method, body: &Bytes, form: Form) -> Option<Counts> {
    let is_validated = [Method::POST, Method::PUT, Method::PATCH].contains(method);
    // If the result could need samples, the agent applies a JSON patch itself, and sends the result as a PUT.
    let is_json_patch = *method == Method::PATCH && call.api.has_patch(BodyType::JsonPatch);
    if !is_validated || is_json_patch || call.api.body_use() != BodyUse::Mapped || !may_be_sampled(call) {
        return None;
    }
    if body.len() <= SHORT {
        return None;
    }
    if body.starts_with(&MAGIC) {
        let envelope = Envelope::decode(body).ok()?;
        return protobuf::counts_if_sampled(envelope.raw, form.is_data);
    }
    json::counts_if_sampled(body, form).unwrap_or_default()
}

/// Whether a sample of these objects shows how many errors the whole has. A sample of a CustomResourceDefinition is another
/// definition. An aggregated API server may ignore `dryRun`, and store the sample. An API server ignores it for reviews and
/// tokens, which it does not store.
fn may_be_sampled(call: &Call<'_>) -> bool {
    let Some(request) = call.api.info.resource() else { return false };
    let is_action = ["binding", "eviction", "token"].contains(&request.subresource().unwrap_or_default())
        || ["authentication.k8s.io", "authorization.k8s.io"].contains(&request.group());
    if is_action {
        return false;
    }
    let name = || format!("{}.{}", request.resource(), request.group());
    !call.api.is_of_definitions()
        && (call.api.is_built_in() || call.services.definitions.is_of_clusters(&name()).is_some())
}

fn form(call: &Call<'_>, method: &Method) -> Form {
    let is_strategic = *method == Method::PATCH && call.api.has_patch(BodyType::StrategicMergePatch);
    Form { is_strategic, is_built_in: call.api.is_built_in(), is_data: is_data(call) }
}

/// Whether the host does not validate text in these objects, apart from their metadata.
fn is_data(call: &Call<'_>) -> bool {
    call.api
        .info
        .resource()
        .is_some_and(|request| request.group().is_empty() && ["configmaps", "secrets"].contains(&request.resource()))
}

/// Whether a JSON patch could make the object need samples. Then the agent applies the patch itself: if the host applied
/// it, the host would validate the result without samples.
pub(crate) fn result_needs_samples(call: &Call<'_>, body: &[u8], patch: &JsonPatch) -> bool {
    // The data of ConfigMaps and Secrets is long text, which the host does not validate. Outside metadata, long text is
    // usual: for example, a script. If the agent applies the patch, the caller needs the rights to read and to update the
    // object.
    let text_counts = !is_data(call) && patch.pointers().any(is_of_metadata);
    let needs_samples = |counts: Counts| text_counts || Counts { text: 0, ..counts }.needs_samples();
    json::counts_if_sampled(body, Form::default()).map_or(true, |counts| counts.is_some_and(needs_samples))
}

/// The dry runs of a sample, in this order. For a built-in kind in JSON, the first one has `fieldValidation=Strict`, so the
/// host refuses unknown members. The host does not check protobuf for them. An apply has no such dry run.
fn dry_runs_of(
    call: &Call<'_>,
    request: &Request<RequestBody>,
    form: Form,
    sample: &Bytes,
) -> Result<Vec<Request<RequestBody>>, Refusal> {
    let is_apply = *request.method() == Method::PATCH && call.api.has_patch(BodyType::ApplyYaml);
    let is_decoded_strictly = form.is_built_in && !is_apply && !sample.starts_with(&MAGIC);
    let modes = if is_decoded_strictly { &[true, false][..] } else { &[false] };
    modes.iter().map(|is_strict| dry_run_of(call, request, sample.clone(), *is_strict)).collect()
}

/// Sends the dry runs of a sample to the host. Returns the response for the client, or `None` if the agent may send the
/// next sample or the whole object.
async fn refusal_of(
    call: &Call<'_>,
    dry_runs: Vec<Request<RequestBody>>,
    measures: Measures,
) -> Result<Option<Response<HostBody>>, Refusal> {
    for dry_run in dry_runs {
        let response = call.send_unsampled(dry_run).await?;
        if response.status().is_success() {
            break;
        }
        if encoding(response.headers()).is_none() {
            return Ok(Some(response));
        }
        let (mut parts, body) = response.into_parts();
        let (read, body) = call.outside(call.collector().collect_or_drain(body, MAX_OBJECT)).await;
        // If the body was read, and becomes the response, the caller counts it.
        let body = body.inspect_err(|_| count_refusal_of(call, parts.status, read))?;
        let verdict = measures.judge(parts.status, &body);
        if matches!(verdict, Verdict::Passed) {
            // The host has spent this time, although the whole may be valid: it compares a sample of a Pod with the stored
            // Pod, for example. The length of a refusal for unknown members shows no such time: for a patch, it quotes the
            // whole object, and names 100 members at most (`saveStrictError` in sigs.k8s.io/json).
            count_refusal_of(call, parts.status, read);
        }
        match verdict {
            Verdict::Passed => break,
            Verdict::HasUnknown => continue,
            Verdict::Refused => {
                parts.headers.extend(warning(SAMPLED).map(|text| (header::WARNING, text)));
                parts.extensions.insert(OfSample);
            }
            Verdict::Final => {}
        }
        return Ok(Some(Response::from_parts(parts, HostBody::read(body))));
    }
    Ok(None)
}

/// The request with a sample of its body, as a dry run.
fn dry_run_of(
    call: &Call<'_>,
    request: &Request<RequestBody>,
    sample: Bytes,
    is_strict: bool,
) -> Result<Request<RequestBody>, Refusal> {
    let mut query = Query::new(request.uri().query().unwrap_or_default());
    query.set("dryRun", "All");
    if is_strict {
        query.set("fieldValidation", "Strict");
    }
    if *request.method() == Method::PATCH && call.api.has_patch(BodyType::ApplyYaml) {
        // A conflict of field managers would hide invalid values.
        query.set("force", "true");
    }
    let mut dry = Request::new(full(sample));
    *dry.method_mut() = request.method().clone();
    *dry.uri_mut() = uri(&upstream::target(request.uri().path(), &query))?;
    dry.headers_mut().clone_from(request.headers());
    dry.extensions_mut().clone_from(request.extensions());
    Ok(dry)
}

/// Draws a sample of a body, with this many drawn values. `None` if the sample is not shorter than the body, or if no protobuf
/// decoder can read the body.
fn draw(body: &Bytes, form: Form, whole: Counts, count: usize) -> Result<Option<Bytes>, Refusal> {
    let others = Allowance::new(count * ELEMENTS, count * VALUES);
    let draw = Draw::new(count, whole, others, |below| fastrand::usize(..below));
    let sample = if body.starts_with(&MAGIC) {
        let envelope = Envelope::decode(body).map_err(unreadable)?;
        let sample = protobuf::sample(envelope.raw, &draw, form.is_data);
        sample.map(|raw| Bytes::from(Envelope { raw: &raw, ..envelope }.encode()))
    } else {
        json::sample(body, &draw, form).map(Some).map_err(unreadable)?
    };
    Ok(sample.filter(|sample| sample.len() < body.len()))
}

/// Whether a JSON patch changes metadata through this pointer.
fn is_of_metadata(pointer: &str) -> bool {
    pointer.is_empty() || pointer.strip_prefix("/metadata").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a policy or a Pod Security Standard denies the object. The rest of the message may quote text of the client.
fn is_by_policy(refusal: &Status) -> bool {
    let name = refusal.details.as_ref().map_or("", |details| details.name.as_str());
    let Some((_resource, rest)) = refusal.message.split_once(' ') else { return false };
    let reason = rest.strip_prefix(&*format!("{} ", GoQuoted(name))).unwrap_or(rest);
    reason.starts_with(BY_POLICY) || reason.starts_with(BY_POD_SECURITY)
}

/// The number of different unknown and duplicate members that a message names. A member of each element of a list is the same
/// member: an API server that is older than the client may find one in each element.
fn unknown(message: &str) -> usize {
    let paths = message.split(" field \"").skip(1).filter_map(|rest| rest.split('"').next());
    let without_index = |part| str::split_once(part, ']').map_or(part, |(_index, rest)| rest);
    paths.map(|path| path.split('[').map(without_index).collect::<String>()).collect::<HashSet<_>>().len()
}

fn unreadable(error: impl std::error::Error) -> Refusal {
    Status::bad_request(format!("the body cannot be read: {error}")).into()
}

#[cfg(test)]
mod tests {
    use kube_wire::gvr::{GroupKind, GroupResource};
    use kube_wire::status::FieldError;

    use super::*;

    const WHOLE: Counts = Counts { values: 20_000, numbers: 0, text: 0, length: 200_000 };

    fn judged(status: &Status) -> Verdict {
        let measures = Measures { length: 2_000, count: 32, whole: WHOLE };
        measures.judge(StatusCode::from_u16(status.code).unwrap(), &status.to_json())
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
        assert_eq!(judged(&invalid(MIN_ERRORS - 1, "!")), Verdict::Passed);
        assert_eq!(judged(&invalid(MIN_ERRORS, "!")), Verdict::Refused);
        // The whole has only about three times as many values as the sample, so the estimate is below the limit.
        let measures = Measures { length: 2_000, count: 32, whole: Counts { values: 100, length: 4_000, ..WHOLE } };
        assert_eq!(measures.judge(StatusCode::UNPROCESSABLE_ENTITY, &invalid(90, "!").to_json()), Verdict::Passed);
    }

    /// A client can write any text into its objects, and the host quotes it.
    #[test]
    fn quoted_text_does_not_decide() {
        let unknown = "strict decoding error: unknown field \"a\"";
        for text in ["admission webhook \"a\"", unknown, BY_POLICY, BY_POD_SECURITY] {
            assert_eq!(judged(&invalid(64, text)), Verdict::Refused, "{text}");
            assert_eq!(judged(&forbidden(&format!("no account a/\" {text}"))), Verdict::Final, "{text}");
        }
        // Nor can a name, although it is in front of the reason.
        let resource = GroupResource { group: "", resource: "pods" };
        let named = Status::forbidden_because(resource, "\" is forbidden: ValidatingAdmissionPolicy 'a", "no");
        assert_eq!(judged(&named), Verdict::Final);
    }

    #[test]
    fn checks_after_the_validation_do_not_decide() {
        let webhook = "admission webhook \"a.example.com\"";
        for message in ["denied the request: no", "does not support dry run"] {
            assert_eq!(judged(&Status::bad_request(format!("{webhook} {message}"))), Verdict::Passed);
        }
        let policy = "ValidatingAdmissionPolicy 'a' with binding 'b' denied request: no";
        assert_eq!(judged(&forbidden(policy)), Verdict::Passed);
        let standard = "violates PodSecurity \"restricted:latest\": unrestricted capabilities";
        assert_eq!(judged(&forbidden(standard)), Verdict::Passed);
        assert_eq!(judged(&forbidden("error looking up service account a/b")), Verdict::Final);
        assert_eq!(
            judged(&forbidden("user \"a\" is attempting to grant RBAC permissions not currently held:\n")),
            Verdict::Refused
        );
        // An element of an associative list that lacks its key, in an apply.
        let internal =
            Status::failure(500, kube_wire::status::Reason::InternalError, "failed to create typed patch object");
        assert_eq!(judged(&internal), Verdict::Passed);
    }

    #[test]
    fn many_unknown_members_are_refused() {
        let strict = |count| {
            let unknown = (0..count).map(|field| format!("unknown field \"x{field}\"")).collect::<Vec<_>>().join(", ");
            Status::bad_request(format!("Pod in version \"v1\" cannot be handled: strict decoding error: {unknown}"))
        };
        assert_eq!(judged(&strict(MAX_UNKNOWN)), Verdict::HasUnknown);
        assert_eq!(judged(&strict(MAX_UNKNOWN + 1)), Verdict::Refused);
        // An API server that is older than the client finds the same member in each element.
        let list =
            (0..500).map(|index| format!("unknown field \"endpoints[{index}].hints.forNodes\"")).collect::<Vec<_>>();
        let message = format!("strict decoding error: {}", list.join(", "));
        assert_eq!(judged(&Status::bad_request(&message)), Verdict::HasUnknown);
        // A patch repeats the message in its only cause, behind the patch itself.
        let error = [FieldError::invalid("patch", "{\"unknown field \\\"a\\\"\": 1}".repeat(20), message)];
        let patch = Status::invalid(GroupKind { group: "", kind: "Pod" }, "a", &error);
        assert_eq!(judged(&patch), Verdict::HasUnknown);
        // The only cause of a patch quotes all members again. They count once.
        for (count, verdict) in [(MAX_UNKNOWN, Verdict::HasUnknown), (MAX_UNKNOWN + 1, Verdict::Refused)] {
            let error = [FieldError::invalid("patch", "{}", strict(count).message)];
            let patch = Status::invalid(GroupKind { group: "", kind: "Pod" }, "a", &error);
            assert_eq!((patch.code, judged(&patch)), (422, verdict), "{count}");
        }
        assert_eq!(judged(&Status::bad_request("the body is not JSON")), Verdict::Final);
    }
}
