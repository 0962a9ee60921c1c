//! Where a page of a list begins.

/// The number of objects per page of a list, unless they are large.
pub(super) const PAGE: u32 = 500;

/// The start of a page, and its maximum number of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// `None` at the beginning of the list.
    pub(super) token: Option<String>,
    pub(super) limit: u32,
    /// The version of the list, if it must be exactly this one. Only at the beginning: the token of a later page contains it.
    pub(super) exact: Option<String>,
}

// === impl Position ===

impl Position {
    /// The first object alone.
    pub(super) fn one() -> Self {
        Self { limit: 1, ..Self::default() }
    }

    /// The limit after a page of at most `limit` objects. If objects are large, the next ones may be large too.
    pub(super) fn after(token: String, limit: u32) -> Self {
        Self { token: Some(token), limit: limit.saturating_mul(2).min(PAGE), exact: None }
    }

    /// The beginning of the list at a version.
    pub(super) fn exactly(version: String) -> Self {
        Self { exact: Some(version), ..Self::default() }
    }
}

#[cfg(any(test, feature = "testing"))]
impl Position {
    /// The position in the list of a host in memory.
    pub fn at(token: &str) -> Self {
        Self::after(token.to_owned(), PAGE)
    }

    /// The continue token.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }
}

impl Default for Position {
    fn default() -> Self {
        Self { token: None, limit: PAGE, exact: None }
    }
}
