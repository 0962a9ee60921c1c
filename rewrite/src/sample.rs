//! Draws the values that a random sample of an object contains.
//!
//! A sample of an object is a smaller object of the same form, which is about as often invalid as the whole: a value that is
//! drawn stays, with everything that contains it. See [`json::sample`](crate::json::sample) and
//! [`protobuf::sample`](crate::protobuf::sample).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

/// The maximum number of members of an object, elements of an array, or occurrences of a field that a sample contains
/// without drawing them. An object of the Kubernetes API with more members is a map.
pub(crate) const FIRST: usize = 64;

/// What a drawn value may contain without drawing, in values. The fields that Kubernetes requires should be there.
pub(crate) const GROWTH: usize = 64;

/// The numbers of values in an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Values that are not counted as `scalars`.
    pub values: usize,
    /// Numbers in protobuf. They are drawn apart, because a list can have a million of them.
    pub scalars: usize,
}

/// The values that a sample contains.
#[derive(Clone, Debug)]
pub struct Draw {
    /// `None` if the sample is the whole.
    drawn: Option<Drawn>,
    /// How many values the sample contains without drawing them, apart from those that come with a drawn one.
    pub(crate) sure: usize,
}

#[derive(Clone, Debug)]
struct Drawn {
    /// In ascending order.
    values: Vec<usize>,
    scalars: Vec<usize>,
    /// Equal strings in lists are drawn together, so that a sample has duplicates if the whole has many.
    seed: u64,
    /// A string in a list is drawn with the probability `size / of`.
    size: usize,
    of: usize,
}

/// A place in the order in which values are numbered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Number {
    pub(crate) value: usize,
    pub(crate) scalar: usize,
}

// === impl Counts ===

impl Counts {
    /// All values.
    pub fn sum(self) -> usize {
        self.values + self.scalars
    }

    /// The number of values of the whole for each drawn one, in a sample of this size. At least one.
    pub fn ratio(self, size: usize) -> usize {
        self.values.max(self.scalars).div_ceil(size.max(1)).max(1)
    }
}

// === impl Draw ===

impl Draw {
    /// Draws `size` values, and as many scalars. `random` returns a random number below its argument.
    pub fn new(size: usize, of: Counts, sure: usize, mut random: impl FnMut(usize) -> usize) -> Self {
        let mut draw = |of: usize| {
            let mut numbers: Vec<_> = (0..size.min(of)).map(|_| random(of)).collect();
            numbers.sort_unstable();
            numbers
        };
        let (values, scalars) = (draw(of.values), draw(of.scalars));
        let seed = random(usize::MAX) as u64;
        Self { drawn: Some(Drawn { values, scalars, seed, size, of: of.values.max(1) }), sure }
    }

    /// Draws everything.
    pub(crate) fn all() -> Self {
        Self { drawn: None, sure: 0 }
    }

    /// Whether a value with a number in the range is drawn.
    pub(crate) fn has_any(&self, range: Range<Number>) -> bool {
        let Some(drawn) = &self.drawn else { return true };
        let has = |numbers: &[usize], range: Range<usize>| {
            let first = numbers.partition_point(|number| *number < range.start);
            numbers.get(first).is_some_and(|number| *number < range.end)
        };
        has(&drawn.values, range.start.value..range.end.value)
            || has(&drawn.scalars, range.start.scalar..range.end.scalar)
    }

    /// Whether an element of a list with this content is drawn.
    pub(crate) fn has_element(&self, content: &[u8]) -> bool {
        let Some(drawn) = &self.drawn else { return true };
        let mut hasher = DefaultHasher::new();
        (drawn.seed, content).hash(&mut hasher);
        hasher.finish() % (drawn.of as u64) < drawn.size as u64
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Draws from a seed.
    pub(crate) fn drawn(size: usize, of: Counts, sure: usize, seed: u64) -> Draw {
        let mut state = seed;
        Draw::new(size, of, sure, |below| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        })
    }

    #[test]
    fn ranges_have_what_is_drawn() {
        let of = Counts { values: 1000, scalars: 10 };
        let draw = drawn(20, of, 0, 1);
        let at = |value, scalar| Number { value, scalar };
        let count = (0..1000).filter(|value| draw.has_any(at(*value, 0)..at(value + 1, 0))).count();
        assert!((15..=20).contains(&count), "{count}");
        assert!(draw.has_any(at(0, 0)..at(1000, 0)) && draw.has_any(at(0, 0)..at(0, 10)));
        assert!(!draw.has_any(at(7, 3)..at(7, 3)) && !draw.has_any(at(1000, 10)..at(2000, 20)));
        let elements = (0..1000).filter(|element: &usize| draw.has_element(element.to_string().as_bytes())).count();
        assert!((5..60).contains(&elements), "{elements}");
        assert_eq!((of.ratio(20), of.ratio(3000), of.sum()), (50, 1, 1010));
    }
}
