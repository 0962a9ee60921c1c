//! A whole body.

use bytes::Bytes;
use kube_wire::envelope::Envelope;

use super::super::error::{StreamError, Unreadable};
use super::super::filter::{Filter, Verdict};
use super::super::settings::Settings;
use super::kind::{Content, Kind};
use super::list::List;
use super::object::ObjectReader;
use super::status::status;
use crate::protobuf::Splice;
use crate::{Program, Sink};

/// Shows an object or its metadata, a Status, or a whole list.
pub(in crate::view) fn body(
    view: &Settings,
    program: &Program,
    filter: Filter,
    body: &Bytes,
    sink: &mut impl Sink,
) -> Result<Verdict, Unreadable> {
    let envelope = Envelope::decode(body)?;
    let kind = Kind::of(program)?;
    let part = match kind.content(envelope.api_version, envelope.kind)? {
        Content::Status => {
            sink.emit(status(view, body)?);
            return Ok(Verdict::Shown);
        }
        Content::List(_) => {
            let mut list = List::new(view.clone(), program.clone(), filter);
            // Not longer than the body, which is already in memory.
            (list.item_limit, list.limit) = (body.len(), usize::MAX);
            let shown = list.push(body).and_then(|()| list.finish());
            shown.map_err(StreamError::unreadable)?.into_iter().for_each(|piece| sink.emit(piece));
            return Ok(Verdict::Shown);
        }
        Content::Object(part) => part,
    };
    let mut reader = ObjectReader::new(view, &kind, filter, Splice::new(body));
    let verdict = reader.enveloped(part, 0..body.len())?;
    if verdict == Verdict::Shown {
        reader.into_splice().finish(body, sink);
    }
    Ok(verdict)
}
