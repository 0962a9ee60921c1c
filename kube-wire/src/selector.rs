//! Label and field selectors: `?labelSelector=` and `?fieldSelector=`.
//!
//! Two grammars that look alike and are not: labels have set operators and a fixed alphabet
//! (`k8s.io/apimachinery/pkg/labels`), fields have equality only and backslash escapes
//! (`k8s.io/apimachinery/pkg/fields`). Both are parsed, edited and printed in the canonical form that Kubernetes
//! prints. Which keys exist for a resource is not known here.

mod field;
mod label;

pub use field::{FieldSelector, FieldSelectorError, FieldTerm};
pub use label::{LabelSelector, LabelSelectorError, Requirement, Test};
