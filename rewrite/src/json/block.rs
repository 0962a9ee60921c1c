//! Finds the end of a string, sixteen bytes at a time.

use wide::u8x16;

/// The number of bytes of one step.
pub(super) const LEN: usize = 16;

/// The number of leading bytes that are not `"`, `\` or a control character: a string may contain all others unescaped (RFC
/// 8259, section 7).
#[inline(always)]
#[expect(clippy::inline_always, reason = "the innermost loop of the crate; a call costs as much as its body")]
pub(super) fn plain_prefix(block: &[u8; LEN]) -> usize {
    let bytes = u8x16::new(*block);
    let quotes = bytes.simd_eq(u8x16::splat(b'"'));
    let backslashes = bytes.simd_eq(u8x16::splat(b'\\'));
    let controls = bytes.min(u8x16::splat(0x1f)).simd_eq(bytes);
    // A bit behind the last one ends a block without any.
    ((quotes | backslashes | controls).to_bitmask() | 1 << LEN).trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_one_byte_at_a_time(block: [u8; LEN]) {
            let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
            prop_assert_eq!(plain_prefix(&block), block.iter().position(special).unwrap_or(LEN));
        }
    }
}
