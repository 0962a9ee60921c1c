//! The protobuf form: field numbers of apimachinery's `pkg/apis/meta/v1/generated.proto`. Go's generated code writes
//! every text and number, empty ones too, and in the order of the numbers; so does this.

use super::{Cause, Details, ListMeta, Status};
use crate::envelope::Envelope;
use crate::proto::Writer;

pub(super) fn write(status: &Status) -> Vec<u8> {
    let mut message = Writer::new();
    message.bytes(1, &list_meta(&status.metadata));
    message.bytes(2, status.outcome.as_str().as_bytes());
    message.bytes(3, status.message.as_bytes());
    message.bytes(4, status.reason.as_str().as_bytes());
    if let Some(details) = &status.details {
        message.bytes(5, &write_details(details));
    }
    message.varint(6, status.code.into());
    let envelope = Envelope { api_version: "v1", kind: "Status", raw: &message.into_bytes(), ..Envelope::default() };
    envelope.encode()
}

fn list_meta(metadata: &ListMeta) -> Vec<u8> {
    let mut message = Writer::new();
    // selfLink, which has been empty since Kubernetes 1.20.
    message.bytes(1, b"");
    message.bytes(2, metadata.resource_version.as_bytes());
    message.bytes(3, metadata.continue_token.as_bytes());
    if let Some(count) = metadata.remaining_item_count {
        message.varint(4, count.cast_unsigned());
    }
    message.into_bytes()
}

fn write_details(details: &Details) -> Vec<u8> {
    let mut message = Writer::new();
    message.bytes(1, details.name.as_bytes());
    message.bytes(2, details.group.as_bytes());
    message.bytes(3, details.kind.as_bytes());
    for cause in &details.causes {
        message.bytes(4, &write_cause(cause));
    }
    // A negative int32 is written as 64 bits.
    message.varint(5, i64::from(details.retry_after_seconds).cast_unsigned());
    message.bytes(6, details.uid.as_bytes());
    message.into_bytes()
}

fn write_cause(cause: &Cause) -> Vec<u8> {
    let mut message = Writer::new();
    message.bytes(1, cause.cause_type.as_bytes());
    message.bytes(2, cause.message.as_bytes());
    message.bytes(3, cause.field.as_bytes());
    message.into_bytes()
}
