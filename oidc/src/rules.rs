//! Which tokens of an issuer are accepted, and which user they prove.

use std::time::{Duration, SystemTime};

use crate::claims::Claims;
use crate::refused::{MAX_GROUPS, RESERVED, Refused};
use crate::url::HttpsUrl;

/// By how much the clock of an issuer may be ahead. It is the leeway for `nbf` (`Verify` in go-oidc's `verify.go`). There is none for
/// `exp`.
pub const CLOCK_SKEW: Duration = Duration::from_secs(5 * 60);

/// The rules for the tokens of one issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Tokens of this issuer are verified.
    pub issuer: HttpsUrl,
    /// A token must be for one of them.
    pub audiences: Vec<String>,
    /// The name of the user.
    pub username: Prefixed,
    /// The groups of the user.
    pub groups: Option<Prefixed>,
    /// The claim with the uid of the user.
    pub uid: Option<String>,
    /// Claims that a token must have, and their values.
    pub required: Vec<(String, String)>,
}

/// A claim whose value gets a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefixed {
    /// The name of the claim.
    pub claim: String,
    /// The prefix. It may be empty.
    pub prefix: String,
}

/// The user of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// All groups.
    pub groups: Vec<String>,
    /// The uid, if the rules have a claim for it.
    pub uid: Option<String>,
    /// When the token was issued. A token that does not say so counts as old.
    pub issued: SystemTime,
    /// When the token expires.
    pub expires: SystemTime,
}

// === impl Rules ===

impl Rules {
    /// The user that verified claims prove at this time (`AuthenticateToken` in apiserver's
    /// `plugin/pkg/authenticator/token/oidc/oidc.go`).
    pub fn user(&self, claims: &Claims, now: SystemTime) -> Result<User, Refused> {
        if claims.issuer() != Some(self.issuer.as_str()) {
            return Err(Refused::Issuer);
        }
        let audiences = claims.texts("aud")?.unwrap_or_default();
        if !audiences.iter().any(|audience| self.audiences.iter().any(|accepted| accepted == audience)) {
            return Err(Refused::Audience);
        }
        let expires = claims.time("exp")?.ok_or_else(|| Refused::Claim("exp".to_owned()))?;
        if now > expires {
            return Err(Refused::Expired);
        }
        if claims.time("nbf")?.is_some_and(|begins| now + CLOCK_SKEW < begins) {
            return Err(Refused::NotYet);
        }
        let name = self.name(claims)?;
        let groups = self.groups(claims)?;
        if name.is_empty() || [&name].into_iter().chain(&groups).any(|name| name.starts_with(RESERVED)) {
            return Err(Refused::Reserved);
        }
        let uid = self.uid.as_ref().map(|claim| claims.text(claim).map(str::to_owned)).transpose()?;
        for (claim, value) in &self.required {
            if !claims.is(claim, value)? {
                return Err(Refused::Required(claim.clone()));
            }
        }
        let issued = claims.time("iat")?.unwrap_or(SystemTime::UNIX_EPOCH);
        Ok(User { name, groups, uid, issued, expires })
    }

    fn name(&self, claims: &Claims) -> Result<String, Refused> {
        let Prefixed { claim, prefix } = &self.username;
        let name = claims.text(claim)?;
        // OpenID Connect Core 1.0 section 5.1.
        if claim == "email" && claims.has("email_verified") && !claims.flag("email_verified")? {
            return Err(Refused::Email);
        }
        // Unlike in kube-apiserver, a prefix alone is no name.
        if name.is_empty() { Err(Refused::Reserved) } else { Ok(format!("{prefix}{name}")) }
    }

    fn groups(&self, claims: &Claims) -> Result<Vec<String>, Refused> {
        let Some(Prefixed { claim, prefix }) = &self.groups else { return Ok(Vec::new()) };
        let mut groups = claims.texts(claim)?.unwrap_or_default();
        groups.retain(|group| !group.is_empty());
        if groups.iter().map(|group| prefix.len() + group.len()).sum::<usize>() > MAX_GROUPS {
            return Err(Refused::TooManyGroups);
        }
        Ok(groups.into_iter().map(|group| format!("{prefix}{group}")).collect())
    }
}

#[cfg(test)]
mod tests;
