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
