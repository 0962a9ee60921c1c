//! The options of a delete (`DeleteOptions` in apimachinery's `meta/v1`).

use bytes::Bytes;
use http::Method;
use kube_wire::Status;
use kube_wire::envelope::{Envelope, EnvelopeError};
use kube_wire::media::{BodyType, Encoding};
use kube_wire::proto::Reader;
use kube_wire::query::{DeleteOptions, WriteOptions};
use serde_json::{Map, Value, json};

use crate::exchange::cost::admit_sent;
use crate::exchange::undecided::Undecided;
use crate::exchange::write::yaml::yaml_to_json;
use crate::refusal::{DryRunScope, Refusal, Unmapped};

/// A `DeleteOptions`, in JSON.
pub(crate) struct Deletion(Value);

/// Whether the request is a dry run. The body of a delete may request it, too; other bodies have no options.
pub(crate) fn is_dry_run(call: &Undecided<'_>, body: &Bytes) -> Result<bool, Refusal> {
    if call.api.info.method() == Method::DELETE {
        return Ok(deletion(call, body)?.is_dry_run());
    }
    Ok(WriteOptions::parse(call.api.info.query())?.dry_run)
}

/// The options of the body, or of the query if there is no body. With a body, the API server ignores the query,
/// even for options that the body lacks (`DeleteResource` and `DeleteCollection` in apiserver's
/// `handlers/delete.go`).
pub(crate) fn deletion(call: &Undecided<'_>, body: &Bytes) -> Result<Deletion, Refusal> {
    if body.is_empty() {
        return Ok(Deletion::of_query(&DeleteOptions::parse(call.api.info.query())?));
    }
    let bad = |error: String| {
        let status = Status::bad_request(format!("cannot decode the DeleteOptions: {error}"));
        Unmapped::refusal(status, DryRunScope::KubeApiserver)
    };
    let json = |json: &[u8]| {
        let options: Result<Map<String, Value>, _> = serde_json::from_slice(json);
        options.map(|options| Deletion(Value::Object(options))).map_err(|error| bad(error.to_string()))
    };
    match BodyType::of_object(call.api.content_type()) {
        Ok(BodyType::Object(Encoding::Json)) => json(body),
        Ok(BodyType::Object(Encoding::Yaml)) => {
            let body = yaml_to_json(body)?;
            admit_sent(call, &body)?;
            json(&body)
        }
        Ok(BodyType::Object(Encoding::Protobuf)) => Deletion::of_protobuf(body).map_err(|error| bad(error.to_string())),
        Ok(_) => Err(bad("it is neither JSON nor YAML nor protobuf".to_owned())),
        Err(error) => Err(Unmapped::refusal(Status::unsupported_media_type(error), DryRunScope::WithoutBody)),
    }
}

// === impl Deletion ===

impl Deletion {
    fn of_query(query: &DeleteOptions<'_>) -> Self {
        let mut options = empty_options();
        if !query.propagation_policy.is_empty() {
            options["propagationPolicy"] = json!(query.propagation_policy);
        }
        if let Some(seconds) = query.grace_period_seconds {
            options["gracePeriodSeconds"] = json!(seconds);
        }
        if let Some(orphan) = query.orphan_dependents {
            options["orphanDependents"] = json!(orphan);
        }
        if query.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        Self(options)
    }

    /// Field numbers as in `meta/v1/generated.proto`.
    fn of_protobuf(body: &[u8]) -> Result<Self, EnvelopeError> {
        let mut options = empty_options();
        let mut reader = Reader::new(Envelope::decode(body)?.raw);
        while let Some(field) = reader.next_field()? {
            match field.number {
                1 => options["gracePeriodSeconds"] = json!(field.varint()?.cast_signed()),
                2 => {
                    let mut preconditions = reader.nested(field.bytes()?)?;
                    while let Some(field) = preconditions.next_field()? {
                        let key = match field.number {
                            1 => "uid",
                            2 => "resourceVersion",
                            _ => continue,
                        };
                        options["preconditions"][key] = json!(field.text()?);
                    }
                }
                3 => options["orphanDependents"] = json!(field.varint()? != 0),
                4 => options["propagationPolicy"] = json!(field.text()?),
                5 => options["dryRun"] = json!([field.text()?]),
                _ => {}
            }
        }
        Ok(Self(options))
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.0["dryRun"].as_array().is_some_and(|stages| !stages.is_empty())
    }

    /// The message of the first precondition that this metadata does not meet, as in `BeforeDelete` in apiserver's
    /// `registry/rest`.
    pub(crate) fn unmet(&self, metadata: &Value) -> Option<String> {
        [("uid", "UID"), ("resourceVersion", "ResourceVersion")].into_iter().find_map(|(key, word)| {
            let given = self.0["preconditions"][key].as_str()?;
            let is = metadata[key].as_str().unwrap_or_default();
            let unmet = format!("Precondition failed: {word} in precondition: {given}, {word} in object meta: {is}");
            (given != is).then_some(unmet)
        })
    }

    /// The same options with preconditions: only this object in this version.
    pub(crate) fn of(&self, uid: &str, version: &str) -> Value {
        let mut options = self.0.clone();
        options["preconditions"] = json!({"uid": uid, "resourceVersion": version});
        options
    }
}

/// An empty `DeleteOptions`.
fn empty_options() -> Value {
    json!({"kind": "DeleteOptions", "apiVersion": "v1"})
}

#[cfg(test)]
mod tests {
    use kube_wire::proto::Writer;

    use super::*;

    #[test]
    fn protobuf_says_the_same() {
        let mut preconditions = Writer::new();
        preconditions.bytes(1, b"u");
        preconditions.bytes(2, b"7");
        let mut options = Writer::new();
        options.varint(1, 0);
        options.bytes(2, &preconditions.into_bytes());
        options.bytes(4, b"Background");
        options.bytes(5, b"All");
        let body = Envelope { raw: &options.into_bytes(), ..Envelope::default() }.encode();
        let deletion = Deletion::of_protobuf(&body).unwrap();
        let expected = json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0,
            "preconditions": {"uid": "u", "resourceVersion": "7"}, "propagationPolicy": "Background", "dryRun": ["All"]});
        assert_eq!(deletion.0, expected);
        assert!(deletion.is_dry_run());
    }

    #[test]
    fn preconditions_are_met_or_reported() {
        let deletion = Deletion(json!({"preconditions": {"uid": "u", "resourceVersion": "7"}}));
        assert_eq!(deletion.unmet(&json!({"uid": "u", "resourceVersion": "7"})), None);
        let unmet = deletion.unmet(&json!({"uid": "u", "resourceVersion": "8"})).unwrap();
        assert_eq!(unmet, "Precondition failed: ResourceVersion in precondition: 7, ResourceVersion in object meta: 8");
        assert_eq!(Deletion(json!({})).unmet(&json!({"uid": "u"})), None);
        assert!(!Deletion(json!({"dryRun": []})).is_dry_run());
        assert_eq!(deletion.of("u", "8")["preconditions"], json!({"uid": "u", "resourceVersion": "8"}));
    }
}
