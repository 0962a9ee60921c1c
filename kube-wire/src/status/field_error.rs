//! Errors about fields of an object.

use std::fmt;

use super::reason::CauseType;
use crate::go_quote::GoQuoted;

/// An error about one field of an object, as `field.Error` of apimachinery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The type of the error.
    pub cause: CauseType,
    /// The field's JSON path: `spec.nodeSelector[location]`.
    pub field: String,
    /// The value, if the message contains it, in Go's quotes.
    pub value: Option<String>,
    /// What to do about it. Can be empty.
    pub detail: String,
}

// === impl FieldError ===

impl FieldError {
    /// An invalid value.
    pub fn invalid(field: impl Into<String>, value: impl Into<String>, detail: impl Into<String>) -> Self {
        let value = Some(value.into());
        Self { cause: CauseType::Invalid, field: field.into(), value, detail: detail.into() }
    }

    /// A field that must not be set, or not to this value.
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { cause: CauseType::Forbidden, field: field.into(), value: None, detail: detail.into() }
    }

    /// A field that must be set.
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { cause: CauseType::Required, field: field.into(), value: None, detail: detail.into() }
    }

    /// A list, or the product of its entries, that is longer than `limit` (`TooMany` in apimachinery's
    /// `util/validation/field/errors.go`).
    pub fn too_many(field: impl Into<String>, actual: u64, limit: u64) -> Self {
        let items = if limit == 1 { "item" } else { "items" };
        let detail = format!("must have at most {limit} {items}");
        Self { cause: CauseType::TooMany, field: field.into(), value: Some(actual.to_string()), detail }
    }

    /// A text that is longer than `limit`, in bytes (`TooLong` in the same file).
    pub fn too_long(field: impl Into<String>, limit: usize) -> Self {
        let detail = format!("may not be more than {limit} bytes");
        Self { cause: CauseType::TooLong, field: field.into(), value: None, detail }
    }

    /// Without the field's path.
    pub(super) fn body(&self) -> String {
        let mut body = self.cause.text().to_owned();
        if let Some(value) = &self.value {
            body = match self.cause {
                // A number, which Go prints without quotes.
                CauseType::TooMany => format!("{body}: {value}"),
                _ => format!("{body}: {}", GoQuoted(value)),
            };
        }
        if !self.detail.is_empty() {
            body = format!("{body}: {}", self.detail);
        }
        body
    }
}

/// With the field's path.
impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}
