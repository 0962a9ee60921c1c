//! `oidc:` of a cluster: which ID tokens its endpoint accepts. The keys are those of kube-apiserver's
//! `AuthenticationConfiguration`.

use std::collections::HashSet;

use ::oidc::{HttpsUrl, InvalidUrl, Prefixed, Rules};
use ops::config::{FilePath, Located, Problems};
use serde::Deserialize;

/// One entry of `jwt` in kube-apiserver's configuration, without CEL expressions.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Oidc {
    /// Who issues the tokens.
    pub issuer: OidcIssuer,
    /// What a token says about the user.
    pub claim_mappings: ClaimMappings,
    /// Claims that a token must have.
    #[serde(default)]
    pub claim_validation_rules: Vec<ClaimValidationRule>,
}

/// An OpenID provider.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OidcIssuer {
    /// The `iss` of its tokens. Its metadata is below this URL.
    pub url: IssuerUrl,
    /// A token must have one of these as its `aud`.
    pub audiences: Vec<String>,
    /// PEM. The default are the authorities of the system.
    #[serde(default)]
    pub certificate_authority: Option<Located<FilePath>>,
}

/// The URL of an issuer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct IssuerUrl(HttpsUrl);

/// From claims to the user.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ClaimMappings {
    /// The name of the user.
    pub username: PrefixedClaim,
    /// The groups of the user.
    #[serde(default)]
    pub groups: Option<PrefixedClaim>,
    /// The uid of the user.
    #[serde(default)]
    pub uid: Option<UidClaim>,
}

/// A claim, and the prefix of the names from it. The prefix is required, so that nobody forgets it: without one, the names
/// may be those of certificates.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PrefixedClaim {
    /// The name of the claim.
    pub claim: String,
    /// The prefix, or an empty text.
    pub prefix: String,
}

/// The claim with the uid.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct UidClaim {
    /// The name of the claim.
    pub claim: String,
}

/// A claim that a token must have.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimValidationRule {
    /// The name of the claim.
    pub claim: String,
    /// Its value, a text.
    pub required_value: String,
}

/// The maximum number of values in each list.
const MAX_ENTRIES: usize = 64;

pub(super) fn check(oidc: &Located<Oidc>, problems: &mut Problems) {
    let Oidc { issuer, claim_mappings, claim_validation_rules } = &**oidc;
    if issuer.audiences.is_empty() {
        problems
            .at(oidc, "oidc.issuer.audiences needs at least one audience, which is the client ID of your users' tool");
    }
    if issuer.audiences.len() > MAX_ENTRIES || claim_validation_rules.len() > MAX_ENTRIES {
        problems.at(oidc, format_args!("oidc: a list must have at most {MAX_ENTRIES} entries"));
    }
    let ClaimMappings { username, groups, uid } = claim_mappings;
    let prefixed = [("username", Some(username)), ("groups", groups.as_ref())];
    for (key, PrefixedClaim { prefix, .. }) in prefixed.iter().filter_map(|(key, claim)| Some((key, (*claim)?))) {
        if prefix.starts_with("system:") {
            problems.at(oidc, format_args!("oidc.claimMappings.{key}.prefix must not begin with `system:`"));
        }
    }
    let mapped =
        [Some(&username.claim), groups.as_ref().map(|groups| &groups.claim), uid.as_ref().map(|uid| &uid.claim)];
    let required = claim_validation_rules.iter().map(|rule| &rule.claim);
    if mapped.into_iter().flatten().chain(required.clone()).any(String::is_empty) {
        problems.at(oidc, "oidc: a claim must have a name");
    }
    if issuer.audiences.iter().any(String::is_empty) {
        problems.at(oidc, "oidc.issuer.audiences: an audience must not be empty");
    }
    let mut claims = HashSet::new();
    if let Some(twice) = required.into_iter().find(|claim| !claims.insert(*claim)) {
        problems.at(oidc, format_args!("oidc.claimValidationRules: the claim `{twice}` is listed twice"));
    }
}

// === impl Oidc ===

impl Oidc {
    /// The rules for tokens.
    pub fn rules(&self) -> Rules {
        let Self { issuer, claim_mappings, claim_validation_rules } = self;
        let ClaimMappings { username, groups, uid } = claim_mappings;
        let prefixed =
            |PrefixedClaim { claim, prefix }: &PrefixedClaim| Prefixed { claim: claim.clone(), prefix: prefix.clone() };
        let required = claim_validation_rules.iter();
        Rules {
            issuer: issuer.url.0.clone(),
            audiences: issuer.audiences.clone(),
            username: prefixed(username),
            groups: groups.as_ref().map(prefixed),
            uid: uid.as_ref().map(|uid| uid.claim.clone()),
            required: required.map(|rule| (rule.claim.clone(), rule.required_value.clone())).collect(),
        }
    }
}

// === impl IssuerUrl ===

impl IssuerUrl {
    /// The URL.
    pub fn url(&self) -> &HttpsUrl {
        &self.0
    }
}

impl TryFrom<String> for IssuerUrl {
    type Error = InvalidUrl;

    fn try_from(text: String) -> Result<Self, InvalidUrl> {
        HttpsUrl::issuer(&text).map(Self)
    }
}
