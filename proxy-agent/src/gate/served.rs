//! Which kinds of admission policies the host serves.

use crate::clusters::host_api::HostApi;
use crate::host::api::ApiError;

/// The group, in its versions, newest first.
const VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// A version of `admissionregistration.k8s.io` for each kind that is served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Served {
    /// `ValidatingAdmissionPolicy` and its binding.
    pub(super) validating: Option<&'static str>,
    /// `MutatingAdmissionPolicy` and its binding.
    pub(super) mutating: Option<&'static str>,
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
    Ok(served)
}
