//! Values that know their location in the file.

use std::fmt;
use std::num::NonZeroU32;
use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A line and a column of a file, both counted from 1; a column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    line: NonZeroU32,
    column: NonZeroU32,
}

/// A value and its location in the file, so that a mistake found later can still be reported with its line.
///
/// A value that is not from a file (a default, a flag) has no location. Equality compares only the value. Inside an
/// untagged or internally tagged enum, serde loses locations; put the whole enum into a `Located` instead.
#[derive(Clone, Copy, Debug, Default)]
pub struct Located<T> {
    value: T,
    location: Option<Location>,
}

// === impl Location ===

impl Location {
    /// `None` if either number is 0.
    pub fn new(line: u64, column: u64) -> Option<Self> {
        let number = |n: u64| NonZeroU32::new(u32::try_from(n).unwrap_or(u32::MAX));
        Some(Self { line: number(line)?, column: number(column)? })
    }

    /// The library reports an unknown location as line 0.
    pub(super) fn of(location: serde_saphyr::Location) -> Option<Self> {
        Self::new(location.line(), location.column())
    }

    /// The line, from 1.
    pub fn line(self) -> u32 {
        self.line.get()
    }

    /// The column in characters, from 1.
    pub fn column(self) -> u32 {
        self.column.get()
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

// === impl Located ===

impl<T> Located<T> {
    /// A value with its location, if it has one.
    pub fn new(value: T, location: Option<Location>) -> Self {
        Self { value, location }
    }

    /// The location of the value in the file. For an alias (`*name`) this is the alias, not the anchor.
    pub fn location(&self) -> Option<Location> {
        self.location
    }

    /// The value without its location.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Something made from the value, at the same location.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Located<U> {
        Located { value: f(self.value), location: self.location }
    }
}

impl<T> From<T> for Located<T> {
    fn from(value: T) -> Self {
        Self { value, location: None }
    }
}

impl<T> Deref for Located<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: PartialEq> PartialEq for Located<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Eq> Eq for Located<T> {}

impl<T: fmt::Display> fmt::Display for Located<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<T: Serialize> Serialize for Located<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Located<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = serde_saphyr::Spanned::<T>::deserialize(deserializer)?;
        Ok(Self { value: spanned.value, location: Location::of(spanned.referenced) })
    }
}
