//! The conditions of a Namespace that is being deleted, without the objects that Atoll keeps there.

use std::ops::Range;

use super::super::condition::Counting;
use super::Unreadable;
use super::object::ObjectReader;
use crate::protobuf::Message;

/// `NamespaceCondition` in core/v1 generated.proto.
const TYPE: u32 = 1;
const STATUS: u32 = 2;
const REASON: u32 = 5;
const MESSAGE: u32 = 6;

// === impl ObjectReader ===

impl ObjectReader<'_, '_> {
    /// A condition of a Namespace with `mirrors` mirrors.
    pub(super) fn namespace_condition(
        &mut self,
        condition: &Message,
        mirrors: u64,
        range: &Range<usize>,
    ) -> Result<(), Unreadable> {
        let kind = self.splice.text(range, Some(TYPE))?;
        let message = String::from_utf8_lossy(self.splice.text(range, Some(MESSAGE))?);
        let counting = Counting::of(|known| mirrors > 0 && kind == known.as_bytes());
        let Some(recounted) = counting.and_then(|counting| counting.recounted(&message, mirrors)) else {
            return self.descend(condition, range);
        };
        let readable = self.state.view.mapping.readable(&recounted.message);
        let message = readable.unwrap_or(recounted.message);
        for (number, text) in [(STATUS, recounted.status), (REASON, recounted.reason), (MESSAGE, Some(&*message))] {
            if let (Some(found), Some(text)) = (self.splice.only(range, number)?, text) {
                self.splice.replace(&found, text.to_owned().into());
            }
        }
        Ok(())
    }

    /// The number of mirrors in the conditions in the fields `number` of the message at `range`.
    pub(super) fn mirrors(&self, range: &Range<usize>, number: u32) -> Result<u64, Unreadable> {
        let mut conditions = self.splice.fields(range.clone());
        let mut counted = 0_u64;
        while let Some(condition) = conditions.next(|other| other == number)? {
            let kind = self.splice.text(&condition.inside, Some(TYPE))?;
            let message = String::from_utf8_lossy(self.splice.text(&condition.inside, Some(MESSAGE))?);
            counted = counted.saturating_add(Counting::mirrors(|known| kind == known.as_bytes(), &message));
        }
        Ok(counted)
    }
}
