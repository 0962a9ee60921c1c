//! The number of permissions that the rules of a role grant.

/// The maximum number of permissions that the rules of one role may grant. An API server compares them one by one with
/// those of the caller (`ConfirmNoEscalation` in pkg/registry/rbac/validation), so a role of a few kilobytes could
/// exhaust its memory. The role `admin` of Kubernetes grants some hundreds; `*` counts as one.
pub const MAX_PERMISSIONS: u64 = 10_000;

/// The lengths of the lists of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleLengths {
    /// Of `verbs`.
    pub verbs: usize,
    /// Of `apiGroups`.
    pub groups: usize,
    /// Of `resources`.
    pub resources: usize,
    /// Of `resourceNames`.
    pub names: usize,
    /// Of `nonResourceURLs`.
    pub paths: usize,
}

// === impl RuleLengths ===

impl RuleLengths {
    /// The number of permissions into which an API server expands the rule (`BreakdownRule` in component-helpers'
    /// auth/rbac/validation/policy_comparator.go). A rule that grants nothing counts as one, because it needs memory too.
    pub fn permissions(self) -> u64 {
        let product = |lengths: &[usize]| lengths.iter().fold(1, |product: u64, of| product.saturating_mul(*of as u64));
        let resources = product(&[self.verbs, self.groups, self.resources, self.names.max(1)]);
        resources.saturating_add(product(&[self.verbs, self.paths])).max(1)
    }
}

/// The permissions that the rules of one role grant so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Permissions(u64);

// === impl Permissions ===

impl Permissions {
    /// Adds those of a rule. Returns the sum as an error if it is too large.
    pub(super) fn add(&mut self, rule: RuleLengths) -> Result<(), u64> {
        self.0 = self.0.saturating_add(rule.permissions());
        if self.0 > MAX_PERMISSIONS { Err(self.0) } else { Ok(()) }
    }
}
