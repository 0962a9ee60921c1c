//! The protobuf encoding, with the field numbers of apimachinery's `pkg/apis/meta/v1/generated.proto`. Like Go's generated
//! code, it writes all strings and numbers, including empty ones, in the order of the field numbers.

use std::borrow::Cow;

use super::error::NotAStatus;
use super::fields::{Cause, Details, Fields, ListMeta, Outcome};
use super::reason::Reason;
use crate::envelope::Envelope;
use crate::proto::{Field, Reader, WireError, Writer};

pub(super) fn write(status: &Fields<'_>) -> Vec<u8> {
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

pub(super) fn read(bytes: &[u8]) -> Result<Fields<'static>, NotAStatus> {
    let envelope = Envelope::decode(bytes)?;
    if envelope.kind != "Status" || !matches!(envelope.api_version, "v1" | "meta.k8s.io/v1") {
        let (api_version, kind) = (envelope.api_version.to_owned(), envelope.kind.to_owned());
        return Err(NotAStatus::Kind { api_version, kind });
    }
    let (mut metadata, mut outcome, mut message) = (ListMeta::default(), Outcome::default(), "");
    let (mut reason, mut details, mut code) = (Reason::default(), None, 0);
    each(envelope.raw, |field| {
        match field.number {
            1 => metadata = read_list_meta(field.bytes()?)?,
            2 if field.text()? == "Success" => outcome = Outcome::Success,
            3 => message = field.text()?,
            4 => reason = Reason::from(field.text()?.to_owned()),
            5 => details = Some(Cow::Owned(read_details(field.bytes()?)?)),
            // Ignore invalid HTTP status codes.
            6 => code = u16::try_from(field.varint()?).ok().filter(|code| *code < 1000).unwrap_or_default(),
            _ => {}
        }
        Ok(())
    })?;
    let message = Cow::Owned(message.to_owned());
    Ok(Fields { metadata: Cow::Owned(metadata), outcome, message, reason: Cow::Owned(reason), details, code })
}

fn read_list_meta(message: &[u8]) -> Result<ListMeta, WireError> {
    let mut metadata = ListMeta::default();
    each(message, |field| {
        match field.number {
            2 => field.text()?.clone_into(&mut metadata.resource_version),
            3 => field.text()?.clone_into(&mut metadata.continue_token),
            4 => metadata.remaining_item_count = Some(field.varint()?.cast_signed()),
            _ => {}
        }
        Ok(())
    })?;
    Ok(metadata)
}

fn read_details(message: &[u8]) -> Result<Details, WireError> {
    let mut details = Details::default();
    each(message, |field| {
        match field.number {
            1 => field.text()?.clone_into(&mut details.name),
            2 => field.text()?.clone_into(&mut details.group),
            3 => field.text()?.clone_into(&mut details.kind),
            4 => details.causes.push(read_cause(field.bytes()?)?),
            // Ignore values that are not an int32.
            5 => details.retry_after_seconds = i32::try_from(field.varint()?.cast_signed()).unwrap_or_default(),
            6 => field.text()?.clone_into(&mut details.uid),
            _ => {}
        }
        Ok(())
    })?;
    Ok(details)
}

fn read_cause(message: &[u8]) -> Result<Cause, WireError> {
    let mut cause = Cause::default();
    each(message, |field| {
        match field.number {
            1 => cause.cause_type = Cow::Owned(field.text()?.to_owned()),
            2 => field.text()?.clone_into(&mut cause.message),
            3 => field.text()?.clone_into(&mut cause.field),
            _ => {}
        }
        Ok(())
    })?;
    Ok(cause)
}

fn each<'m>(message: &'m [u8], mut read: impl FnMut(&Field<'m>) -> Result<(), WireError>) -> Result<(), WireError> {
    let mut reader = Reader::new(message);
    while let Some(field) = reader.next_field()? {
        read(&field)?;
    }
    Ok(())
}
