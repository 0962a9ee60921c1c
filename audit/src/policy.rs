//! Which requests are recorded: a `Policy` of `audit.k8s.io/v1`.
//!
//! `document` reads the file, with the checks of kube-apiserver (`pkg/apis/audit/validation` in apiserver), and is stricter:
//! unknown keys are errors. `rule` decides like `pkg/audit/policy/checker.go`: the first rule that matches is used.

mod document;
mod rule;
#[cfg(test)]
mod tests;

use std::path::Path;

use ops::config::ConfigErrors;

use document::{GroupResources, PolicyRule};
pub use document::{Level, Policy, Stage};
pub use rule::{Attributes, Decision, Object};

// === impl Policy ===

impl Policy {
    /// Reads a file. `origin` is its name, for errors.
    pub fn parse(text: &[u8], origin: &Path) -> Result<Self, ConfigErrors> {
        ops::config::parse(&String::from_utf8_lossy(text), origin)
    }
}
