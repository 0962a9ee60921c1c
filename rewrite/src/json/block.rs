//! Finds the end of a string, sixteen bytes at a time.
//!
//! It uses arithmetic on two words, without branches. For the short strings of Kubernetes objects, this is faster than vector
//! instructions, whose result must be moved from a vector register, and than branches that depend on the length of the string.

/// The number of bytes of one step.
pub(super) const LEN: usize = 16;

/// Bytes in a word.
const WORD: usize = 8;
const LOW_BITS: u64 = u64::from_ne_bytes([0x01; WORD]);
const HIGH_BITS: u64 = u64::from_ne_bytes([0x80; WORD]);

/// The number of leading bytes that are not `"`, `\` or a control character: a string may contain all others unescaped (RFC
/// 8259, section 7).
#[inline(always)]
#[expect(clippy::inline_always, reason = "the innermost loop of the crate; a call costs as much as its body")]
pub(super) fn plain_prefix(block: &[u8; LEN]) -> usize {
    let both = u128::from_le_bytes(*block);
    #[expect(clippy::cast_possible_truncation, reason = "one half each")]
    let [low, high] = [both as u64, (both >> 64) as u64].map(special);
    let in_low = low.trailing_zeros() as usize / 8;
    let in_high = WORD + high.trailing_zeros() as usize / 8;
    if low == 0 { in_high } else { in_low }
}

/// Sets the highest bit of the first special byte of a word, in memory order. It may also set the bits of later bytes.
#[inline(always)]
#[expect(clippy::inline_always, reason = "as above")]
fn special(word: u64) -> u64 {
    // `x - n` borrows into the high bit of a byte below `n` whose high bit was clear. A borrow can also mark the byte
    // above one that is marked rightly, never the one below: the lowest mark, which is the first byte, is right.
    let below = |word: u64, limit: u8| word.wrapping_sub(LOW_BITS * u64::from(limit)) & !word;
    // One test for both: the flip moves the quote to 0x20, next to the control characters, which stay below it.
    let quote_or_control = below(word ^ (LOW_BITS * 0x02), 0x21);
    let backslash = below(word ^ (LOW_BITS * u64::from(b'\\')), 1);
    (quote_or_control | backslash) & HIGH_BITS
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
