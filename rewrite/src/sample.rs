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

/// How many pieces of a text a sample has besides its beginning, and the length of each, in bytes.
const PIECES: usize = 4;
const PIECE: usize = SHORT_TEXT / (2 * PIECES);

/// A sample always contains so many of the longest texts.
const LONGEST: usize = 4;

/// What separates the parts of a text, which an API server may validate one by one.
const SEPARATORS: [char; 5] = [',', ';', ' ', '\t', '\n'];

/// The number of drawn values in a string whose text is JSON.
pub(crate) const IN_TEXT: usize = 16;

/// An object is large if the square of its number of values, times its length in bytes, exceeds this limit. An API server
/// would copy this many bytes if it reported an error for each value, and quoted the whole object in each error.
const LARGE: usize = 8 << 30;

/// How many values the elements may contain, for each value of an [`Allowance`].
const WHOLE: usize = 8;

/// How much there is in an object that an API server may report errors for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// The number of members, elements and fields.
    pub values: usize,
    /// The number of fields of protobuf without a length, and of parts of packed lists. They are drawn separately: a list can
    /// have a million numbers, which would leave few draws for other values. Always 0 for JSON.
    pub numbers: usize,
    /// The length of the longest text that a sample shortens, in bytes.
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
    /// The seed of a hash that also draws scalars in lists. Equal scalars are drawn together, so that a sample has
    /// duplicates if the object has many.
    seed: u64,
    /// The hash draws a scalar with the probability `size / of`.
    size: usize,
    of: usize,
    /// The length of the longest text, in bytes.
    text: usize,
}

/// What a sample may keep without drawing it.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// The number of further elements of arrays. The first element of each array does not count.
    elements: usize,
    /// The number of further values. If it is used up, there are no further elements.
    values: usize,
    /// The same limit for what an element contains: it should be whole.
    in_elements: usize,
}

/// A position in an object: how many values and numbers are before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) values: usize,
    pub(crate) numbers: usize,
}

/// The last boundary of characters at or before this index.
fn boundary(text: &str, index: usize) -> usize {
    (0..=index.min(text.len())).rev().find(|index| text.is_char_boundary(*index)).unwrap_or_default()
}

// === impl Size ===

impl Size {
    /// Whether errors of the object could cost an API server seconds.
    pub fn is_large(self) -> bool {
        let values = self.values.saturating_add(self.numbers);
        self.text > MAX_TEXT || values.saturating_mul(values).saturating_mul(self.length) > LARGE
    }

    /// The length of text that counts as much as a JSON text of this size.
    pub(crate) fn as_text(self) -> usize {
        self.text.max(self.values / IN_TEXT * SHORT_TEXT)
    }

    /// How many values of the object one drawn value stands for, if `size` values are drawn. At least 1. Text counts as values
    /// that are drawn by its first bytes.
    pub fn ratio(self, size: usize) -> usize {
        let values = self.values.max(self.numbers).div_ceil(size.max(1));
        values.max(self.text / SHORT_TEXT).max(1)
    }
}

// === impl Draw ===

impl Draw {
    /// Draws at most `size` values and at most `size` numbers of an object of the size `of`. One position can be drawn twice.
    /// `random` returns a random number below its argument.
    pub fn new(size: usize, of: Size, allowance: Allowance, mut random: impl FnMut(usize) -> usize) -> Self {
        let mut draw = |of: usize| {
            let mut numbers: Vec<_> = (0..size.min(of)).map(|_| random(of)).collect();
            numbers.sort_unstable();
            numbers
        };
        let (values, numbers) = (draw(of.values), draw(of.numbers));
        let seed = random(usize::MAX) as u64;
        let drawn = Drawn { values, numbers, seed, size, of: of.values.max(1), text: of.text };
        Self { drawn: Some(drawn), allowance }
    }

    /// Keeps everything.
    pub(crate) fn all() -> Self {
        Self { drawn: None, allowance: Allowance::new(0, 0) }
    }

    /// Draws values of a string whose text is JSON of this size.
    pub(crate) fn in_text(&self, of: Size) -> Self {
        let mut state = self.drawn.as_ref().map_or(0, |drawn| drawn.seed);
        let allowance = Allowance::new(2 * IN_TEXT, 8 * IN_TEXT);
        Self::new(IN_TEXT, of, allowance, |below| {
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

    /// Whether the hash draws scalars with this text.
    pub(crate) fn has_element(&self, content: &[u8]) -> bool {
        let Some(drawn) = &self.drawn else { return true };
        drawn.hashed(content, drawn.of) < drawn.size
    }

    /// Whether the sample contains a text of this length, if it contains so many of the longest ones. These could have the most
    /// errors.
    pub(crate) fn has_text(&self, length: usize, longest: usize) -> bool {
        longest < LONGEST && self.drawn.as_ref().is_some_and(|drawn| length >= drawn.text)
    }

    /// Shortens a text of more than [`MAX_TEXT`] bytes: its beginning, and pieces at random places.
    pub(crate) fn shorten(&self, text: &str) -> String {
        let Some(drawn) = &self.drawn else { return text.to_owned() };
        let mut end = boundary(text, SHORT_TEXT / 2);
        let mut short = text[..end].to_owned();
        let mut places: Vec<_> = (0..PIECES).map(|piece| end + drawn.hashed(piece, text.len() - end)).collect();
        places.sort_unstable();
        for place in places {
            let start = boundary(text, place).max(end);
            end = boundary(text, start + PIECE);
            let piece = &text[start..end];
            // Parts that are cut would be invalid.
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
    /// Allows this many elements of arrays, until there are so many values.
    pub fn new(elements: usize, values: usize) -> Self {
        Self { elements, values, in_elements: values.saturating_mul(WHOLE) }
    }

    /// Whether the sample may contain the member of an object with this index.
    pub(crate) fn takes_member(&mut self, index: usize) -> bool {
        index < FIRST && self.takes_value()
    }

    /// Whether the sample may contain the element of an array with this index.
    pub(crate) fn takes_element(&mut self, index: usize) -> bool {
        if index == 0 {
            return self.takes_value();
        }
        if index >= FIRST || self.elements == 0 || self.values == 0 || !self.takes_value() {
            return false;
        }
        self.elements -= 1;
        true
    }

    fn takes_value(&mut self) -> bool {
        let is_left = self.in_elements > 0;
        self.values = self.values.saturating_sub(1);
        self.in_elements = self.in_elements.saturating_sub(1);
        is_left
    }

    /// Whether the sample can keep no further value without drawing it.
    pub(crate) fn is_used_up(&self) -> bool {
        self.in_elements == 0
    }

    /// Keeps a part back for what follows the next value.
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
    pub(crate) fn drawn(size: usize, of: Size, elements: usize, seed: u64) -> Draw {
        let mut state = seed;
        Draw::new(size, of, Allowance::new(elements, 32 * size + 4 * elements), |below| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        })
    }

    #[test]
    fn ranges_have_what_is_drawn() {
        let of = Size { values: 1000, numbers: 10, text: 0, length: 0 };
        let draw = drawn(20, of, 0, 1);
        let at = |values, numbers| Position { values, numbers };
        let count = (0..1000).filter(|value| draw.has_any(at(*value, 0)..at(value + 1, 0))).count();
        assert!((15..=20).contains(&count), "{count}");
        assert!(draw.has_any(at(0, 0)..at(1000, 0)) && draw.has_any(at(0, 0)..at(0, 10)));
        assert!(!draw.has_any(at(7, 3)..at(7, 3)) && !draw.has_any(at(1000, 10)..at(2000, 20)));
        let elements = (0..1000).filter(|element: &usize| draw.has_element(element.to_string().as_bytes())).count();
        assert!((5..60).contains(&elements), "{elements}");
        assert_eq!((of.ratio(20), of.ratio(3000), Size { text: 10 * SHORT_TEXT, ..of }.ratio(3000)), (50, 1, 10));
    }

    #[test]
    fn text_keeps_its_beginning_and_whole_parts() {
        let of = Size { values: 1000, text: 20_000, ..Size::default() };
        let valid = "abcd,".repeat(1000);
        let whole = format!("{valid}{}", "é!,".repeat(4000));
        let short = drawn(20, of, 0, 1).shorten(&whole);
        assert!(short.len() <= SHORT_TEXT && short.starts_with(&valid[..SHORT_TEXT / 2]), "{short}");
        assert!(short.matches('é').count() > PIECE / 8, "{short}");
        // Only the beginning can end within a part.
        assert!(short.split(',').filter(|part| !["abcd", "é!", ""].contains(part)).count() <= 1, "{short}");
        let token = "é".repeat(1000);
        assert!(drawn(20, of, 0, 1).shorten(&token).len() > SHORT_TEXT / 2);
        assert_eq!(Draw::all().shorten(&token), token);
    }

    #[test]
    fn few_values_are_large_in_a_long_body() {
        let size = |values, length| Size { values, length, ..Size::default() };
        assert!(!size(150, 5_000).is_large() && !size(500, 20_000).is_large() && !size(20, 3 << 20).is_large());
        assert!(size(1100, 10_000).is_large() && size(340, 100_000).is_large());
        assert!(size(usize::MAX, 2).is_large());
        assert!(Size { text: MAX_TEXT + 1, ..Size::default() }.is_large());
    }
}
