//! Encrypts `continue` tokens.
//!
//! A token of the API server contains the key at which the next page begins (`EncodeContinue` in apiserver's
//! `storage/continue.go`). For a list of all namespaces, it would disclose the host name of another owner's namespace,
//! and a client could forge a token that begins at any key. So the agent encrypts the token, and binds it to the
//! cluster and to the list.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, URL_SAFE_NO_PAD};

/// Seals and opens tokens with a key of this process. After a restart, old tokens are expired. Every client of
/// Kubernetes handles that, because a compaction has the same effect.
#[derive(Debug)]
pub(crate) struct Seal {
    key: RandomizedNonceKey,
}

/// Why a token cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unopened {
    /// It was sealed for another list or by another process, or it may come from an API server.
    Expired,
    /// No server has created it. The host may get it, so that the client gets the host's error.
    Nonsense,
}

/// The prefix of every sealed token. It distinguishes a sealed token from an invalid one. No token of an API server has
/// it, because those are JSON.
const MAGIC: &[u8] = b"atoll\x01";

// === impl Seal ===

impl Seal {
    /// Generates a new key.
    pub(crate) fn new() -> Result<Self, aws_lc_rs::error::Unspecified> {
        let mut key = [0; 32];
        aws_lc_rs::rand::fill(&mut key)?;
        Ok(Self { key: RandomizedNonceKey::new(&AES_256_GCM, &key)? })
    }

    /// Encrypts a token of the host. `list` identifies the list that it belongs to.
    pub(crate) fn seal(&self, token: &str, list: &str) -> String {
        let mut text = token.as_bytes().to_vec();
        let nonce = self.key.seal_in_place_append_tag(Aad::from(list), &mut text).expect("a token is far below 64 GiB");
        URL_SAFE_NO_PAD.encode([MAGIC, nonce.as_ref(), &text].concat())
    }

    /// Decrypts a token of a client.
    pub(crate) fn open(&self, sealed: &str, list: &str) -> Result<String, Unopened> {
        let Some(sealed) = decoded(sealed) else { return Err(Unopened::Nonsense) };
        let Some(sealed) = sealed.strip_prefix(MAGIC) else {
            let first = sealed.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
            return Err(if first == Some(&b'{') { Unopened::Expired } else { Unopened::Nonsense });
        };
        self.decrypted(sealed, list).ok_or(Unopened::Expired)
    }

    fn decrypted(&self, sealed: &[u8], list: &str) -> Option<String> {
        let (nonce, text) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = text.to_vec();
        let token = self.key.open_in_place(nonce, Aad::from(list), &mut text).ok()?;
        String::from_utf8(token.to_vec()).ok()
    }
}

/// Accepts at least what Go's `base64.RawURLEncoding` accepts, which ignores line breaks and trailing bits.
fn decoded(token: &str) -> Option<Vec<u8>> {
    const LAX: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let token: String = token.chars().filter(|character| !matches!(character, '\r' | '\n')).collect();
    GeneralPurpose::new(&URL_SAFE, LAX).decode(token).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_opens_for_its_own_list_only() {
        let seal = Seal::new().unwrap();
        let token = r#"{"v":"meta.k8s.io/v1","rv":42,"start":"edge-ke-hangzhou/x"}"#;
        let sealed = seal.seal(token, "ke-beijing /api/v1/pods");
        assert!(!sealed.contains("edge"));
        assert_eq!(seal.open(&sealed, "ke-beijing /api/v1/pods").as_deref(), Ok(token));
        assert_eq!(seal.open(&sealed, "ke-hangzhou /api/v1/pods"), Err(Unopened::Expired));
        assert_eq!(seal.open(&sealed, "ke-beijing /api/v1/secrets"), Err(Unopened::Expired));
        assert_eq!(Seal::new().unwrap().open(&sealed, "ke-beijing /api/v1/pods"), Err(Unopened::Expired));
    }

    #[test]
    fn invalid_tokens_are_distinguished() {
        let seal = Seal::new().unwrap();
        for nonsense in ["", "nonsense", "!!!", "bnVsbA", &"A".repeat(4000)] {
            assert_eq!(seal.open(nonsense, ""), Err(Unopened::Nonsense), "{nonsense}");
        }
        // Tokens that a host might accept: `{"v":"meta"}`, with leading white space, and in a form that only Go
        // accepts.
        for hosts in ["eyJ2IjoibWV0YSJ9", "IHsidiI6Im1ldGEifQ", "eyJ2Ijoi\nbWV0YSJ9", "e31"] {
            assert_eq!(seal.open(hosts, ""), Err(Unopened::Expired), "{hosts}");
        }
        assert_eq!(seal.open(&URL_SAFE_NO_PAD.encode("atoll\x01short"), ""), Err(Unopened::Expired));
    }
}
