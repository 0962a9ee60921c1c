//! The conditions of a Namespace that is being deleted, without the objects that Atoll keeps there.

use std::ops::Range;

use super::super::condition::Counting;
use super::super::error::Unreadable;
use super::names::Names;

/// `NamespaceCondition` in core/v1 generated.proto.
const TYPE: u32 = 1;
const STATUS: u32 = 2;
const REASON: u32 = 5;
const MESSAGE: u32 = 6;

/// Shows a condition of a Namespace with `mirrors` mirrors. Returns `false`, without a change, if it has no counts.
pub(super) fn recount(names: &mut Names<'_, '_>, mirrors: u64, range: &Range<usize>) -> Result<bool, Unreadable> {
    let kind = names.splice.text(range, Some(TYPE))?;
    let message = String::from_utf8_lossy(names.splice.text(range, Some(MESSAGE))?);
    let counting = Counting::of(|known| mirrors > 0 && kind == known.as_bytes());
    let Some(recounted) = counting.and_then(|counting| counting.recounted(&message, mirrors)) else {
        return Ok(false);
    };
    let message = recounted.readable(names.mapping);
    for (number, text) in [(STATUS, recounted.status), (REASON, recounted.reason), (MESSAGE, Some(&*message))] {
        if let (Some(found), Some(text)) = (names.splice.only(range, number)?, text) {
            names.splice.replace(&found, text.to_owned().into());
        }
    }
    Ok(true)
}

/// The number of mirrors in the conditions in the fields `number` of the message at `range`.
pub(super) fn mirrors(names: &Names<'_, '_>, range: &Range<usize>, number: u32) -> Result<u64, Unreadable> {
    let mut conditions = names.splice.fields(range.clone());
    let mut counted = 0_u64;
    while let Some(condition) = conditions.next(|other| other == number)? {
        let kind = names.splice.text(&condition.inside, Some(TYPE))?;
        let message = String::from_utf8_lossy(names.splice.text(&condition.inside, Some(MESSAGE))?);
        counted = counted.saturating_add(Counting::mirrors(|known| kind == known.as_bytes(), &message));
    }
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use kube_wire::envelope::Envelope;
    use kube_wire::proto::Writer;

    use super::*;
    use crate::schema::program_for;
    use crate::view::tests::view;
    use crate::view::{Filter, Verdict};

    /// A message of these texts.
    fn message(texts: &[(u32, &[u8])]) -> Vec<u8> {
        let mut message = Writer::new();
        for (number, text) in texts {
            message.bytes(*number, text);
        }
        message.into_bytes()
    }

    /// Kubernetes does not limit the conditions that a client writes.
    #[test]
    fn mirrors_are_counted_once() {
        let namespace = |name: &[u8], bindings: &str, finalizers: &str| {
            let content =
                format!("Some resources are remaining: rolebindings.rbac.authorization.k8s.io has {bindings}");
            let finalizers = format!("Some content in the namespace has finalizers remaining: {finalizers}");
            let mut status = Writer::new();
            for _ in 0..100_000 {
                status.bytes(2, b"");
            }
            status.bytes(2, &message(&[(TYPE, b"NamespaceContentRemaining"), (MESSAGE, content.as_bytes())]));
            status.bytes(2, &message(&[(TYPE, b"NamespaceFinalizersRemaining"), (MESSAGE, finalizers.as_bytes())]));
            let raw = message(&[(1, &message(&[(1, name)])), (3, &status.into_bytes())]);
            Bytes::from(Envelope { api_version: "v1", kind: "Namespace", raw: &raw, ..Envelope::default() }.encode())
        };
        let other = "example.com/hold in 1 resource instances";
        let both = format!("atoll.dev/mirror in 2 resource instances, {other}");
        let host = namespace(b"edge-ke", "3 resource instances", &both);
        let mut shown: Vec<Bytes> = Vec::new();
        let program = program_for("", "v1", "namespaces");
        assert_eq!(view().protobuf(&program, Filter::Everything, &host, &mut shown).unwrap(), Verdict::Shown);
        assert!(shown.concat() == namespace(b"edge", "1 resource instances", other), "it is shown in another way");
    }
}
