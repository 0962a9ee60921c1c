//! The rules for the tokens of an issuer, with its keys.

use std::sync::Arc;
use std::time::SystemTime;

use jsonwebtoken::Header;

use crate::issuer::Issuer;
use crate::keys::KeySet;
use crate::refused::Refused;
use crate::rules::{Rules, User};
use crate::token::Token;

/// Verifies the tokens of one issuer.
#[derive(Debug)]
pub struct Authenticator {
    rules: Rules,
    issuer: Arc<Issuer>,
}

/// What a token proves.
#[derive(Clone, Debug)]
pub struct Verified {
    /// The user.
    pub user: User,
    /// The keys with which it was verified.
    keys: Arc<KeySet>,
}

// === impl Authenticator ===

impl Authenticator {
    /// `issuer` is that of the rules.
    pub fn new(rules: Rules, issuer: Arc<Issuer>) -> Self {
        Self { rules, issuer }
    }

    /// The rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The issuer.
    pub fn issuer(&self) -> &Arc<Issuer> {
        &self.issuer
    }

    /// `None` if the text is no token that claims to be one of the issuer.
    pub fn token<'a>(&self, text: &'a str) -> Option<Token<'a>> {
        Token::of_issuer(text, self.rules.issuer.as_str())
    }

    /// Verifies a token with the current keys. `None` if the key of the token is not among them: [`verify`](Self::verify)
    /// fetches them again.
    pub fn verify_now(&self, token: Token<'_>) -> Option<Result<Verified, Refused>> {
        let header = match token.header() {
            Ok(header) => header,
            Err(refused) => return Some(Err(refused)),
        };
        let keys = self.issuer.keys_with(header.kid.as_deref())?;
        Some(self.verify_with(token, &header, keys))
    }

    /// Verifies a token. Fetches the keys again if the key of the token is not among them, unless they are new.
    pub async fn verify(&self, token: Token<'_>) -> Result<Verified, Refused> {
        let header = token.header()?;
        let keys = self.issuer.fetched_keys_with(header.kid.as_deref()).await?;
        self.verify_with(token, &header, keys)
    }

    /// Whether a token that was verified before would be verified again with the same result.
    pub fn is_current(&self, verified: &Verified, now: SystemTime) -> bool {
        now <= verified.user.expires && self.issuer.keys().is_some_and(|keys| Arc::ptr_eq(&keys, &verified.keys))
    }

    fn verify_with(&self, token: Token<'_>, header: &Header, keys: Arc<KeySet>) -> Result<Verified, Refused> {
        let claims = token.verify(header, &keys)?;
        let user = self.rules.user(&claims, SystemTime::now())?;
        Ok(Verified { user, keys })
    }
}
