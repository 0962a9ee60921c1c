//! Paths that are not resources: discovery, health, and paths that virtual clusters do not serve.
//!
//! The first two sets are those of kube-apiserver's default roles `system:public-info-viewer` and `system:discovery`
//! (`plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go`). The rest of the host's paths show the whole host
//! cluster, so a rule of a virtual cluster can allow only a few of them.

use kube_wire::request_info::is_health_check;

/// Which callers may read a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathClass {
    /// All callers, also without authentication: health and version.
    Public,
    /// All authenticated callers: discovery and OpenAPI.
    Authenticated,
    /// Callers with a rule that has the path in `nonResourceURLs`.
    ByRule,
    /// No caller. The path is never sent to the host.
    Never,
}

/// The paths that a rule of a virtual cluster can allow: the list of paths, and the keys of the host's service account
/// issuer, which are meant to be public (`system:service-account-issuer-discovery`).
const BY_RULE: [&str; 3] = ["/", "/.well-known/openid-configuration", "/openid/v1/jwks"];

// === impl PathClass ===

impl PathClass {
    /// Classifies a decoded path without empty or dot segments, as `kube_wire::RequestInfo` makes it. `verb` is the
    /// method in lower case. A path that is not a resource cannot be written.
    pub fn of(verb: &str, path: &str) -> Self {
        if verb != "get" {
            return Self::Never;
        }
        if is_health_check(path) {
            return Self::Public;
        }
        match path.trim_start_matches('/').split('/').next().unwrap_or_default() {
            "version" if matches!(path, "/version" | "/version/") => Self::Public,
            "api" | "apis" | "openapi" => Self::Authenticated,
            _ if BY_RULE.contains(&path) => Self::ByRule,
            _ => Self::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_has_its_class() {
        for (class, paths) in [
            (PathClass::Public, &["/healthz", "/livez/etcd", "/readyz/", "/version", "/version/"][..]),
            (PathClass::Authenticated, &["/api", "/apis/", "/apis/apps/v1", "/openapi/v3/apis/apps/v1"]),
            (PathClass::ByRule, &["/", "/openid/v1/jwks", "/.well-known/openid-configuration"]),
            (
                PathClass::Never,
                &["/metrics", "/metrics/slis", "/logs", "/logs/a", "/debug/pprof/heap", "/configz", "/flagz", ""],
            ),
            (PathClass::Never, &["/healthzz", "/versions", "/version/x", "/apisx", "/openid", "/API", "/statusz"]),
        ] {
            for path in paths {
                assert_eq!(PathClass::of("get", path), class, "{path}");
            }
        }
    }

    #[test]
    fn paths_cannot_be_written() {
        for verb in ["post", "put", "patch", "delete", "head", "GET", ""] {
            assert_eq!(PathClass::of(verb, "/healthz"), PathClass::Never, "{verb}");
        }
    }
}
