//! Classifies 64 bytes at a time: bit `n` of a set stands for byte `n` of the block.

use wide::u8x16;

/// The number of bytes of a block.
pub(super) const LEN: usize = 64;

/// The bytes of a block, in vectors that every x86-64 and AArch64 processor has. So nothing must be detected at run time.
#[derive(Clone, Copy)]
struct Lanes([u8x16; LEN / 16]);

/// The bytes that the grammar gives a meaning, by position. It does not know which of them are inside of strings.
pub(super) struct Classes {
    pub(super) quotes: u64,
    /// `{` and `[`.
    pub(super) opening: u64,
    /// `}` and `]`.
    pub(super) closing: u64,
    /// Among the brackets, these are `{` and `}`. Other bytes can be in this set too.
    pub(super) curly: u64,
    pub(super) colons: u64,
    pub(super) commas: u64,
    /// `None` if there are none.
    pub(super) rare: Option<Rare>,
}

/// The bytes that few blocks have.
#[derive(Default)]
pub(super) struct Rare {
    pub(super) backslashes: u64,
    /// Bytes below 0x20.
    pub(super) controls: u64,
}

// === impl Classes ===

impl Classes {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the sets must stay in registers")]
    pub(super) fn of(block: &[u8; LEN]) -> Self {
        let lanes = Lanes::of(block);
        // The brackets of one direction differ in this bit only.
        let folded = lanes.map(|lane| lane | u8x16::splat(0x20));
        let backslashes = lanes.equal(b'\\');
        Self {
            quotes: lanes.equal(b'"').bits(),
            opening: folded.equal(b'{').bits(),
            closing: folded.equal(b'}').bits(),
            // Moves the bit to the highest one, which is the one that counts.
            curly: lanes.map(|lane| lane + lane + lane + lane).bits(),
            colons: lanes.equal(b':').bits(),
            commas: lanes.equal(b',').bits(),
            rare: (backslashes.any() | controls(lanes.least()))
                .to_bitmask()
                .ne(&0)
                .then(|| Rare { backslashes: backslashes.bits(), controls: lanes.map(controls).bits() }),
        }
    }
}

// === impl Lanes ===

#[expect(clippy::inline_always, reason = "each of these is one instruction per vector")]
impl Lanes {
    #[inline(always)]
    fn of(block: &[u8; LEN]) -> Self {
        let (parts, _) = block.as_chunks();
        Self(std::array::from_fn(|part| u8x16::new(parts[part])))
    }

    #[inline(always)]
    fn map(self, change: impl Fn(u8x16) -> u8x16) -> Self {
        Self(self.0.map(change))
    }

    /// All bits of each byte that is `byte`, and no others.
    #[inline(always)]
    fn equal(self, byte: u8) -> Self {
        self.map(|lane| lane.simd_eq(u8x16::splat(byte)))
    }

    /// The highest bits.
    #[inline(always)]
    fn bits(self) -> u64 {
        let [first, second, third, fourth] = self.0.map(|lane| u64::from(lane.to_bitmask()));
        first | second << 16 | third << 32 | fourth << 48
    }

    /// A vector that has the bits of each of them.
    #[inline(always)]
    fn any(self) -> u8x16 {
        let [first, second, third, fourth] = self.0;
        first | second | third | fourth
    }

    /// A vector of the least bytes, by their position in a vector.
    #[inline(always)]
    fn least(self) -> u8x16 {
        let [first, second, third, fourth] = self.0;
        first.min(second).min(third.min(fourth))
    }
}

/// All bits of each byte below 0x20, and no others.
#[inline(always)]
#[expect(clippy::inline_always, reason = "two instructions")]
fn controls(lane: u8x16) -> u8x16 {
    lane.min(u8x16::splat(0x1f)).simd_eq(lane)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn block() -> impl Strategy<Value = [u8; LEN]> {
        let byte = prop_oneof![3 => "[\\[\\]{}\",:\\\\ ;Z|\\^]".prop_map(|text| text.as_bytes()[0]), 1 => any::<u8>()];
        proptest::collection::vec(byte, LEN).prop_map(|bytes| bytes.try_into().unwrap())
    }

    fn one_by_one(block: &[u8; LEN], is: impl Fn(u8) -> bool) -> u64 {
        (0..LEN).map(|at| u64::from(is(block[at])) << at).sum()
    }

    proptest! {
        #[test]
        fn agrees_with_one_byte_at_a_time(block in block()) {
            let classes = Classes::of(&block);
            prop_assert_eq!(classes.quotes, one_by_one(&block, |byte| byte == b'"'));
            let brackets = classes.opening | classes.closing;
            prop_assert_eq!(classes.opening, one_by_one(&block, |byte| matches!(byte, b'{' | b'[')));
            prop_assert_eq!(classes.closing, one_by_one(&block, |byte| matches!(byte, b'}' | b']')));
            prop_assert_eq!(brackets & classes.curly, one_by_one(&block, |byte| matches!(byte, b'{' | b'}')));
            prop_assert_eq!(classes.colons, one_by_one(&block, |byte| byte == b':'));
            prop_assert_eq!(classes.commas, one_by_one(&block, |byte| byte == b','));
            let rare = classes.rare.map_or((0, 0), |rare| (rare.backslashes, rare.controls));
            prop_assert_eq!(rare.0, one_by_one(&block, |byte| byte == b'\\'));
            prop_assert_eq!(rare.1, one_by_one(&block, |byte| byte < 0x20));
        }
    }
}
