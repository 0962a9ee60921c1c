//! Bearer tokens.

use http::HeaderValue;
use ops::secret::Secret;

/// The value of an `Authorization` header with a token. It is never printed (`HeaderValue::set_sensitive`), and never
/// stored in HPACK's table (RFC 7541 section 7.1.3).
#[derive(Clone, Debug)]
pub struct Bearer(HeaderValue);

/// The text is not a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// It is empty or white space, for example while a file is being written.
    #[error("the token is empty")]
    Empty,
    /// It has characters that are not allowed in a header.
    #[error("the token has characters that are not allowed in a header")]
    Characters,
}

// === impl Bearer ===

impl Bearer {
    /// Reads a token, like client-go without surrounding white space (`transport/token_source.go`).
    pub fn read(token: &Secret) -> Result<Self, TokenError> {
        let token = token.expose().trim();
        if token.is_empty() {
            return Err(TokenError::Empty);
        }
        let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| TokenError::Characters)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }

    /// The same for the content of a file.
    pub fn read_file(content: &[u8]) -> Result<Self, TokenError> {
        let text = std::str::from_utf8(content).map_err(|_| TokenError::Characters)?;
        Self::read(&Secret::from(text))
    }

    /// The value of the header.
    pub fn header(&self) -> &HeaderValue {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use crate::*;

    #[test]
    fn a_token_is_trimmed_and_never_printed() {
        let bearer = Bearer::read_file(b" abc.def\n").unwrap();
        assert_eq!(bearer.header().as_bytes(), b"Bearer abc.def");
        assert!(!format!("{bearer:?}").contains("abc"));
    }

    #[test]
    fn a_token_that_cannot_be_sent_is_refused() {
        assert_eq!(Bearer::read_file(b" \n").unwrap_err(), TokenError::Empty);
        assert_eq!(Bearer::read_file(b"a\nb").unwrap_err(), TokenError::Characters);
        assert_eq!(Bearer::read_file(b"\xff").unwrap_err(), TokenError::Characters);
    }
}
