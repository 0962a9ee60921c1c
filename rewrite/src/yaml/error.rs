//! Why a document is refused.

use granit_parser::ScanError;

/// A document cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum YamlError {
    /// It is not YAML in UTF-8.
    #[error("{0}")]
    Syntax(String),
    /// A scalar is not a valid value for its tag.
    #[error("cannot decode `{value}` as a {tag}")]
    Tag {
        /// The scalar.
        value: String,
        /// The tag.
        tag: &'static str,
    },
    /// YAML 1.1 and 1.2, or two implementations, differ in this case.
    #[error("{0} is not supported in a virtual cluster; send JSON, or simpler YAML")]
    Ambiguous(&'static str),
    /// The key of a mapping is a mapping, a sequence, null, or a number that is too large.
    #[error("invalid map key")]
    Key,
    /// The merged value is not a mapping.
    #[error("map merge requires map or sequence of maps as the value")]
    Merge,
    /// JSON cannot express the number.
    #[error("unsupported value: {0}")]
    Number(String),
    /// The value of an anchor contains an alias of that anchor.
    #[error("an anchor's value contains itself")]
    Cycle,
    /// Aliases expand the document too much.
    #[error("document contains excessive aliasing")]
    Aliases,
    /// The document is too deep or, with all aliases, too long.
    #[error("the document is too large")]
    TooLarge,
}

impl From<ScanError> for YamlError {
    fn from(error: ScanError) -> Self {
        Self::Syntax(error.to_string())
    }
}
