//! Why a token is refused.

/// The maximum length of all groups together. They become headers of requests to the host, which accepts at most 1 MiB.
pub(crate) const MAX_GROUPS: usize = 64 * 1024;

/// Names with this prefix have a meaning in Kubernetes, so an issuer must not assign them.
pub(crate) const RESERVED: &str = "system:";

/// Why a token is refused. A client is not told; the texts are for the log of the operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// It is no JWT, or has an algorithm that is not accepted.
    #[error("the token is malformed, or has an algorithm that is not accepted")]
    Malformed,
    /// No key of the issuer has this id.
    #[error("the issuer has no key with the id of the token")]
    UnknownKey,
    /// The keys cannot be fetched.
    #[error("the keys of the issuer are not available")]
    NoKeys,
    /// None of the keys has signed it.
    #[error("the signature of the token is not valid")]
    Signature,
    /// It is from another issuer.
    #[error("the token is from another issuer")]
    Issuer,
    /// It is for other recipients.
    #[error("the token is not for an audience of the configuration")]
    Audience,
    /// It has expired.
    #[error("the token has expired")]
    Expired,
    /// It is not valid yet.
    #[error("the token is not valid yet")]
    NotYet,
    /// A claim is missing, or has an unexpected type.
    #[error("the claim `{0}` is missing or has another type")]
    Claim(String),
    /// The issuer has not verified the email address.
    #[error("the email address is not verified")]
    Email,
    /// A required claim has another value.
    #[error("the claim `{0}` has another value than required")]
    Required(String),
    /// The name of the user, or of a group, is reserved for Kubernetes.
    #[error("the name of the user or of a group is empty, or begins with `{RESERVED}`")]
    Reserved,
    /// The names of the groups are too long for headers.
    #[error("the names of the groups have more than {} KiB", MAX_GROUPS / 1024)]
    TooManyGroups,
}

// === impl Refused ===

impl Refused {
    /// A word for metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::UnknownKey => "unknown_key",
            Self::NoKeys => "no_keys",
            Self::Signature => "signature",
            Self::Issuer => "issuer",
            Self::Audience => "audience",
            Self::Expired => "expired",
            Self::NotYet => "not_yet_valid",
            Self::Claim(_) => "claim",
            Self::Email => "email_not_verified",
            Self::Required(_) => "required_claim",
            Self::Reserved => "reserved_name",
            Self::TooManyGroups => "too_many_groups",
        }
    }
}
