//! The version of the configuration format.

/// The `apiVersion` of every document.
pub const API_VERSION: &str = "atoll.dev/v1alpha1";
