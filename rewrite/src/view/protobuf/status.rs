//! A Status in its envelope.

use bytes::Bytes;
use kube_wire::Status;
use kube_wire::envelope::EnvelopeError;
use kube_wire::proto::WireError;

use super::super::error::Unreadable;
use super::super::settings::Settings;
use super::super::status;
use crate::json::{Cursor, Edits};

/// Shows a Status. It is short, and has only the fields of the type in `kube_wire`.
pub(in crate::view) fn status(view: &Settings, body: &[u8]) -> Result<Bytes, Unreadable> {
    let broken = |_| Unreadable::Envelope(EnvelopeError::Wire(WireError::Truncated));
    let json = Bytes::from(Status::from_protobuf(body).map_err(broken)?.to_json());
    let (mut cursor, mut edits) = (Cursor::new(&json, 0, 0), Edits::new());
    status::status(view, &mut cursor, &mut edits)?;
    cursor.finish()?;
    let mut shown: Vec<Bytes> = Vec::new();
    edits.splice(&json, 0..json.len(), &mut shown);
    let status = Status::from_json(&shown.concat()).map_err(broken)?;
    Ok(status.to_protobuf().into())
}
