//! Label and field selectors: `?labelSelector=` and `?fieldSelector=`.
//!
//! The two grammars look similar but differ: labels have set operators and a fixed alphabet
//! (`k8s.io/apimachinery/pkg/labels`); fields have only equality, and backslash escapes (`k8s.io/apimachinery/pkg/fields`).
//! Both are parsed, edited and printed in the canonical form of Kubernetes. This module does not know which keys a resource
//! has.

mod field;
mod label;

pub use field::{FieldSelector, FieldSelectorError, FieldTerm};
pub use label::{LabelSelector, LabelSelectorError, Requirement, Test};
