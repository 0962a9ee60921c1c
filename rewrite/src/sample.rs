//! Decides which values of an object a random sample of it contains.
//!
//! A sample is a smaller object of the same form. About the same share of its values is invalid. The values of the object are
//! numbered, and random numbers are drawn. A sample keeps each drawn value, and everything that contains it. It also keeps
//! some values that are not drawn, because an element of a list without its required fields is always invalid. See
//! [`json::sample`](crate::json::sample) and [`protobuf::sample`](crate::protobuf::sample).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

/// A sample may keep this many of the first members of an object, and elements of an array, without drawing them. An object
/// with more members is a map: no structure of the Kubernetes API has as many fields.
pub(crate) const FIRST: usize = 64;

/// A sample does not shorten text up to this length, in bytes. An API server may find an error in each character.
pub(crate) const MAX_TEXT: usize = 1024;

/// The length to which a sample shortens text, in bytes.
pub(crate) const SHORT_TEXT: usize = 512;

/// The number of pieces of a text that a sample keeps after its beginning.
const PIECES: usize = 4;

/// The length of each piece, in bytes. The pieces are as long as the beginning in total.
const PIECE_LENGTH: usize = SHORT_TEXT / (2 * PIECES);

/// A sample keeps at most this many texts of the maximum length without drawing them.
const LONGEST: usize = 4;

/// What separates the parts of a text, which an API server may validate one by one.
const SEPARATORS: [char; 5] = [',', ';', ' ', '\t', '\n'];

/// The number of drawn values in a string whose text is JSON.
pub(crate) const IN_TEXT: usize = 16;

/// An object needs samples if the square of its number of values, times its length in bytes, exceeds this limit. An API
/// server would copy this many bytes if it reported an error for each value, and quoted the whole object in each error.
const MAX_UNSAMPLED: usize = 8 << 30;

/// [`Allowance::all_values`] is this many times [`Allowance::values`].
const COMPLETE: usize = 8;

/// The parts of an object for which an API server may report errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of members, elements and fields.
    pub values: usize,
    /// The number of fields of protobuf without a length, and of parts of packed lists. They are drawn separately: a list can
    /// have a million numbers, which would leave few draws for other values. Always 0 for JSON.
    pub numbers: usize,
    /// The length of the longest text that a sample shortens, in bytes. Text that is JSON counts by its values, too.
    pub text: usize,
    /// The length of the object, in bytes.
    pub length: usize,
}

/// Which values of an object a sample contains.
#[derive(Clone, Debug)]
pub struct Draw {
    /// `None` if the sample contains everything.
    drawn: Option<Drawn>,
    /// What else it may contain.
    pub(crate) allowance: Allowance,
}

#[derive(Clone, Debug)]
struct Drawn {
    /// The positions of the drawn values, in ascending order.
    values: Vec<usize>,
    /// The positions of the drawn numbers, in ascending order.
    numbers: Vec<usize>,
    /// The seed of a hash that also draws by content. Equal elements are drawn together, so that a sample has duplicates if
    /// the object has many.
    seed: u64,
    /// The hash draws an element with the probability `count / of_values`.
    count: usize,
    of_values: usize,
    /// The length of the longest text, in bytes.
    text: usize,
}

/// What a sample may keep without drawing it.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// How many further elements of arrays. The first element of each array does not count.
    elements: usize,
    /// After this many further values, the sample keeps no element of an array except the first one.
    values: usize,
    /// After this many further values, the sample keeps no value without drawing it. The limit is higher than `values`, so
    /// that the elements which the sample keeps are complete: an element without its required fields is invalid.
    all_values: usize,
}

/// A position in an object: how many values and numbers are before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) values: usize,
    pub(crate) numbers: usize,
}

/// The last boundary between characters at or before this index. `str::floor_char_boundary` needs Rust 1.91, and Atoll
/// supports 1.90.
fn boundary(text: &str, index: usize) -> usize {
    (0..=index.min(text.len())).rev().find(|index| text.is_char_boundary(*index)).unwrap_or_default()
}

// === impl Counts ===

impl Counts {
    /// Whether an API server gets samples of the object first: it has a long text, or so many values that their errors could
    /// cost seconds.
    pub fn needs_samples(self) -> bool {
        let values = self.values.saturating_add(self.numbers);
        self.text > MAX_TEXT || values.saturating_mul(values).saturating_mul(self.length) > MAX_UNSAMPLED
    }

    /// The length of text that counts as much as a JSON text with these counts.
    pub(crate) fn as_text(self) -> usize {
        self.text.max(self.values / IN_TEXT * SHORT_TEXT)
    }

    /// How many values of the object one drawn value stands for, if `count` values are drawn. At least 1. If a long text is
    /// shortened, each byte that is kept stands for this many bytes of it.
    pub fn ratio(self, count: usize) -> usize {
        let values = self.values.max(self.numbers).div_ceil(count.max(1));
        values.max(self.text / SHORT_TEXT).max(1)
    }
}

// === impl Draw ===

impl Draw {
    /// Draws at most `count` values and at most `count` numbers of an object with these counts. One position can be drawn
    /// twice. `random` returns a random number below its argument.
    pub fn new(count: usize, whole: Counts, allowance: Allowance, mut random: impl FnMut(usize) -> usize) -> Self {
        let mut draw = |positions: usize| {
            let mut drawn: Vec<_> = (0..count.min(positions)).map(|_| random(positions)).collect();
            drawn.sort_unstable();
            drawn
        };
        let (values, numbers) = (draw(whole.values), draw(whole.numbers));
        let seed = random(usize::MAX) as u64;
        let drawn = Drawn { values, numbers, seed, count, of_values: whole.values.max(1), text: whole.text };
        Self { drawn: Some(drawn), allowance }
    }

    /// Keeps everything.
    pub(crate) fn all() -> Self {
        Self { drawn: None, allowance: Allowance::new(0, 0) }
    }

    /// Draws values of a string whose text is JSON with these counts.
    pub(crate) fn in_text(&self, whole: Counts) -> Self {
        let mut state = self.drawn.as_ref().map_or(0, |drawn| drawn.seed);
        let allowance = Allowance::new(2 * IN_TEXT, 8 * IN_TEXT);
        Self::new(IN_TEXT, whole, allowance, |below| {
            let mut hasher = DefaultHasher::new();
            state.hash(&mut hasher);
            state = hasher.finish();
            usize::try_from(state % (below as u64)).unwrap_or_default()
        })
    }

    /// Whether the sample contains everything.
    pub(crate) fn is_all(&self) -> bool {
        self.drawn.is_none()
    }

    /// Whether any value or number in the range is drawn.
    pub(crate) fn has_any(&self, range: Range<Position>) -> bool {
        let Some(drawn) = &self.drawn else { return true };
        let has = |numbers: &[usize], range: Range<usize>| {
            let first = numbers.partition_point(|number| *number < range.start);
            numbers.get(first).is_some_and(|number| *number < range.end)
        };
        has(&drawn.values, range.start.values..range.end.values)
            || has(&drawn.numbers, range.start.numbers..range.end.numbers)
    }

    /// Whether the hash draws elements with this content. In JSON, only scalars in arrays; in protobuf, all fields with a
    /// length.
    pub(crate) fn has_element(&self, content: &[u8]) -> bool {
        let Some(drawn) = &self.drawn else { return true };
        drawn.hashed(content, drawn.of_values) < drawn.count
    }

    /// Whether the sample keeps a text of this length because no text is longer. `kept` is the number of such texts that it
    /// has already kept. They could have the most errors.
    pub(crate) fn keeps_longest(&self, length: usize, kept: usize) -> bool {
        kept < LONGEST && self.drawn.as_ref().is_some_and(|drawn| length >= drawn.text)
    }

    /// Shortens a text of more than [`MAX_TEXT`] bytes to its beginning, and pieces at random places.
    pub(crate) fn shorten(&self, text: &str) -> String {
        let Some(drawn) = &self.drawn else { return text.to_owned() };
        let mut end = boundary(text, SHORT_TEXT / 2);
        let mut short = text[..end].to_owned();
        let mut places: Vec<_> = (0..PIECES).map(|index| end + drawn.hashed(index, text.len() - end)).collect();
        places.sort_unstable();
        for place in places {
            let start = boundary(text, place).max(end);
            end = boundary(text, start + PIECE_LENGTH);
            let piece = &text[start..end];
            // A part that is cut would be an error that the object does not have.
            let cut = (piece.find(SEPARATORS), piece.rfind(SEPARATORS));
            short.push_str(if let (Some(first), Some(last)) = cut { &piece[first..last] } else { piece });
        }
        short
    }
}

// === impl Drawn ===

impl Drawn {
    /// A number below `below`, which depends on the seed and on `key`.
    fn hashed(&self, key: impl Hash, below: usize) -> usize {
        let mut hasher = DefaultHasher::new();
        (self.seed, key).hash(&mut hasher);
        usize::try_from(hasher.finish() % below.max(1) as u64).unwrap_or_default()
    }
}

// === impl Allowance ===

impl Allowance {
    /// Allows this many elements of arrays, until there are this many values.
    pub fn new(elements: usize, values: usize) -> Self {
        Self { elements, values, all_values: values.saturating_mul(COMPLETE) }
    }

    /// Uses up a value for the member of an object with this index. Returns whether the sample may keep the member.
    pub(crate) fn take_member(&mut self, index: usize) -> bool {
        index < FIRST && self.take_value()
    }

    /// Uses up a value, and an element unless it is the first one, for the element of an array with this index. Returns
    /// whether the sample may keep the element.
    pub(crate) fn take_element(&mut self, index: usize) -> bool {
        if index == 0 {
            return self.take_value();
        }
        if index >= FIRST || self.elements == 0 || self.values == 0 || !self.take_value() {
            return false;
        }
        self.elements -= 1;
        true
    }

    /// Uses up a value. Returns whether the sample may keep it.
    fn take_value(&mut self) -> bool {
        let is_left = self.all_values > 0;
        self.values = self.values.saturating_sub(1);
        self.all_values = self.all_values.saturating_sub(1);
        is_left
    }

    /// Whether the sample can keep no further value without drawing it.
    pub(crate) fn is_used_up(&self) -> bool {
        self.all_values == 0
    }

    /// Removes a third of the elements from the allowance for the next value, so that values after it get some. Returns
    /// their number.
    pub(crate) fn keep_back(&mut self) -> usize {
        let back = self.elements / 3;
        self.elements -= back;
        back
    }

    /// Gives back what [`keep_back`](Self::keep_back) returned.
    pub(crate) fn give_back(&mut self, back: usize) {
        self.elements += back;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A [`Draw`] that depends only on `seed`.
    pub(crate) fn drawn(count: usize, whole: Counts, elements: usize, seed: u64) -> Draw {
        let mut state = seed;
        Draw::new(count, whole, Allowance::new(elements, 32 * count + 4 * elements), |below| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        })
    }

    #[test]
    fn ranges_contain_drawn_positions() {
        let whole = Counts { values: 1000, numbers: 10, text: 0, length: 0 };
        let draw = drawn(20, whole, 0, 1);
        let at = |values, numbers| Position { values, numbers };
        let count = (0..1000).filter(|value| draw.has_any(at(*value, 0)..at(value + 1, 0))).count();
        assert!((15..=20).contains(&count), "{count}");
        assert!(draw.has_any(at(0, 0)..at(1000, 0)) && draw.has_any(at(0, 0)..at(0, 10)));
        assert!(!draw.has_any(at(7, 3)..at(7, 3)) && !draw.has_any(at(1000, 10)..at(2000, 20)));
        let elements = (0..1000).filter(|element: &usize| draw.has_element(element.to_string().as_bytes())).count();
        assert!((5..60).contains(&elements), "{elements}");
        let with_text = Counts { text: 10 * SHORT_TEXT, ..whole };
        assert_eq!((whole.ratio(20), whole.ratio(3000), with_text.ratio(3000)), (50, 1, 10));
    }

    #[test]
    fn text_keeps_its_beginning_and_whole_parts() {
        let whole_counts = Counts { values: 1000, text: 20_000, ..Counts::default() };
        let valid = "abcd,".repeat(1000);
        let whole = format!("{valid}{}", "é!,".repeat(4000));
        let short = drawn(20, whole_counts, 0, 1).shorten(&whole);
        assert!(short.len() <= SHORT_TEXT && short.starts_with(&valid[..SHORT_TEXT / 2]), "{short}");
        assert!(short.matches('é').count() > PIECE_LENGTH / 8, "{short}");
        // Only the beginning can end within a part.
        assert!(short.split(',').filter(|part| !["abcd", "é!", ""].contains(part)).count() <= 1, "{short}");
        let token = "é".repeat(1000);
        assert!(drawn(20, whole_counts, 0, 1).shorten(&token).len() > SHORT_TEXT / 2);
        assert_eq!(Draw::all().shorten(&token), token);
    }

    #[test]
    fn few_values_need_samples_in_a_long_body() {
        let needs_samples = |values, length| Counts { values, length, ..Counts::default() }.needs_samples();
        assert!(!needs_samples(150, 5_000) && !needs_samples(500, 20_000) && !needs_samples(20, 3 << 20));
        assert!(needs_samples(1100, 10_000) && needs_samples(340, 100_000));
        assert!(needs_samples(usize::MAX, 2));
        assert!(Counts { text: MAX_TEXT + 1, ..Counts::default() }.needs_samples());
    }
}
