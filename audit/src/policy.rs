//! Which requests are recorded: a `Policy` of `audit.k8s.io/v1`.
//!
//! `document` reads the file, with the checks of kube-apiserver (`pkg/apis/audit/validation` in apiserver), and is stricter:
//! unknown keys are errors. `rule` decides like `pkg/audit/policy/checker.go`: the first rule that matches is used.

mod document;
mod rule;
#[cfg(test)]
mod tests;

pub use document::{Level, Policy, Stage};
pub use rule::{Attributes, Decision, Object, decide};
