//! Continue tokens, which hold a name of the host.

/// The function that replaces a continue token.
pub(super) type Seal = Box<dyn FnMut(&str) -> String + Send>;
