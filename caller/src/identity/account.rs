//! The user name of a service account: `system:serviceaccount:<namespace>:<name>`.

use std::fmt;

use rewrite::name::is_label;

/// `ServiceAccountUsernamePrefix` of `k8s.io/apiserver/pkg/authentication/serviceaccount/util.go`.
const PREFIX: &str = "system:serviceaccount:";
/// The maximum length of a DNS subdomain (RFC 1123), such as the name of a service account.
const MAX_NAME: usize = 253;

/// A service account. Its namespace is a host name or a virtual name, depending on the use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Account<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

// === impl Account ===

impl<'a> Account<'a> {
    /// Parses a user name, as `SplitUsername` (ibidem) does. Names in any other form are ordinary names.
    pub(crate) fn parse(user: &'a str) -> Option<Self> {
        let (namespace, name) = user.strip_prefix(PREFIX)?.split_once(':')?;
        let is_subdomain = name.len() <= MAX_NAME && name.split('.').all(is_subdomain_part);
        (is_label(namespace.as_bytes()) && is_subdomain).then_some(Self { namespace, name })
    }
}

/// Unlike a label of its own, a part of a subdomain has no limit of 63 in Kubernetes (`IsDNS1123Subdomain`).
fn is_subdomain_part(part: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !part.is_empty() && part.bytes().all(inner) && !part.starts_with('-') && !part.ends_with('-')
}

impl fmt::Display for Account<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}:{}", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_form_is_a_service_account() {
        for good in ["system:serviceaccount:edge:bob", "system:serviceaccount:1:a.b-c.d"] {
            assert_eq!(Account::parse(good).unwrap().to_string(), good);
        }
        for bad in [
            "system:serviceaccount:edge",
            "system:serviceaccount:edge:",
            "system:serviceaccount::bob",
            "system:serviceaccount:edge:bob:x",
            "system:serviceaccount:Edge:bob",
            "system:serviceaccount:edge:b_b",
            "system:serviceaccount:edge:a..b",
            "system:serviceaccount:edge:-b",
            " system:serviceaccount:edge:bob",
            "system:serviceaccounts:edge:bob",
            "bob",
        ] {
            assert_eq!(Account::parse(bad), None, "{bad}");
        }
    }
}
