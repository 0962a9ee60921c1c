//! The claims of a token, read as kube-apiserver reads them.

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};

use crate::refused::Refused;

/// Google's issuer, as its tokens may name it (OpenID Connect Core 1.0 section 15.6.2), and as it is.
const GOOGLE: (&str, &str) = ("accounts.google.com", "https://accounts.google.com");

/// Verified claims.
#[derive(Clone, Debug)]
pub struct Claims(Map<String, Value>);

/// The issuer in the claims.
pub(crate) fn claimed_issuer(claims: &Map<String, Value>) -> Option<&str> {
    match claims.get("iss")?.as_str()? {
        issuer if issuer == GOOGLE.0 => Some(GOOGLE.1),
        issuer => Some(issuer),
    }
}

// === impl Claims ===

impl Claims {
    pub(crate) fn new(claims: Map<String, Value>) -> Self {
        Self(claims)
    }

    /// The issuer.
    pub(crate) fn issuer(&self) -> Option<&str> {
        claimed_issuer(&self.0)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(crate) fn text(&self, name: &str) -> Result<&str, Refused> {
        self.0.get(name).and_then(Value::as_str).ok_or_else(|| Refused::Claim(name.to_owned()))
    }

    /// Whether a claim is this text, or `true` or `false` with this name: `email_verified`, for example.
    pub(crate) fn is(&self, name: &str, expected: &str) -> Result<bool, Refused> {
        match self.flag(name) {
            Ok(flag) => Ok(expected == if flag { "true" } else { "false" }),
            Err(_) => Ok(self.text(name)? == expected),
        }
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool, Refused> {
        self.0.get(name).and_then(Value::as_bool).ok_or_else(|| Refused::Claim(name.to_owned()))
    }

    /// A list of texts. One text is a list, too. `None` if the token has no such claim.
    pub(crate) fn texts(&self, name: &str) -> Result<Option<Vec<&str>>, Refused> {
        let texts = match self.0.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(text)) => Some(vec![text.as_str()]),
            Some(Value::Array(values)) => values.iter().map(Value::as_str).collect(),
            Some(_) => None,
        };
        texts.map(Some).ok_or_else(|| Refused::Claim(name.to_owned()))
    }

    /// A NumericDate (RFC 7519 section 2). `None` if the token has no such claim.
    pub(crate) fn time(&self, name: &str) -> Result<Option<SystemTime>, Refused> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        // Fractions of a second are allowed. Go drops them, too (`jsonTime` of go-oidc).
        let seconds = value.as_f64().filter(|seconds| *seconds >= 0.0).map(Duration::try_from_secs_f64);
        let since = seconds.and_then(Result::ok).map(|since| Duration::from_secs(since.as_secs()));
        let time = since.and_then(|since| SystemTime::UNIX_EPOCH.checked_add(since));
        time.map(Some).ok_or_else(|| Refused::Claim(name.to_owned()))
    }
}
