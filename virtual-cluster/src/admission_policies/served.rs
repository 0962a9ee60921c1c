//! The kinds of admission policies that the host serves, and what their expressions may contain.

use serde_json::Value;

use host_client::api::ApiError;
use host_client::api::HostApi;

/// The group, in its versions, newest first.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// The first minor version of Kubernetes 1 that accepts `cidr()` in a new expression. 1.30 introduced it, and a new
/// expression may contain only what the previous version also supports (apiserver/pkg/cel/environment/base.go).
const CIDR: u32 = 31;

/// A version of `admissionregistration.k8s.io` for each kind that is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Served {
    /// `ValidatingAdmissionPolicy` and its binding.
    pub(super) validating: Option<&'static str>,
    /// `MutatingAdmissionPolicy` and its binding.
    pub(super) mutating: Option<&'static str>,
    /// Whether expressions can check that an address is in a range.
    pub(super) has_cidr: bool,
}

pub(super) async fn read(api: &impl HostApi) -> Result<Served, ApiError> {
    let mut served = Served::default();
    for version in VERSIONS {
        let found = match api.get(&format!("/apis/admissionregistration.k8s.io/{version}")).await {
            Ok(found) => found,
            Err(error) if error.is_not_found() => continue,
            Err(error) => return Err(error),
        };
        let has = |name: &str| found["resources"].as_array().is_some_and(|all| all.iter().any(|it| it["name"] == name));
        if served.validating.is_none() && has("validatingadmissionpolicies") {
            served.validating = Some(version);
        }
        if served.mutating.is_none() && has("mutatingadmissionpolicies") {
            served.mutating = Some(version);
        }
    }
    served.has_cidr = match api.get("/version").await {
        Ok(version) => minor(&version).is_some_and(|minor| minor >= CIDR),
        Err(error) if error.is_not_found() => false,
        Err(error) => return Err(error),
    };
    Ok(served)
}

/// Some distributions write `32+`.
fn minor(version: &Value) -> Option<u32> {
    let digits: String = version["minor"].as_str()?.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().filter(|_| version["major"] == "1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn versions_are_read() {
        let read = |major: &str, version: &str| minor(&json!({"major": major, "minor": version}));
        assert_eq!(
            (read("1", "31"), read("1", "32+"), read("2", "0"), read("1", "")),
            (Some(31), Some(32), None, None)
        );
    }
}
