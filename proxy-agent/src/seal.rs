//! `continue` tokens that say nothing to their bearer.
//!
//! A token of the API server holds the key at which the next page begins (`EncodeContinue` in apiserver's
//! `storage/continue.go`), so on an all-namespace list it would tell the host name of somebody's namespace, and a client
//! could make one that begins wherever it likes. So it is encrypted, bound to the cluster and to the list it is for.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Seals and opens tokens; a key of this process. After a restart old tokens are expired, which every client of
/// Kubernetes handles: a compaction does the same to them.
#[derive(Debug)]
pub(crate) struct Seal {
    key: RandomizedNonceKey,
}

/// The token was not sealed here, or for another list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the provided continue parameter is too old or was made for another list; start over without it")]
pub(crate) struct Expired;

// === impl Seal ===

impl Seal {
    /// A new key.
    pub(crate) fn new() -> Result<Self, aws_lc_rs::error::Unspecified> {
        let mut key = [0; 32];
        aws_lc_rs::rand::fill(&mut key)?;
        Ok(Self { key: RandomizedNonceKey::new(&AES_256_GCM, &key)? })
    }

    /// Encrypts a token of the host's. `list` is what it belongs to.
    pub(crate) fn seal(&self, token: &str, list: &str) -> String {
        let mut text = token.as_bytes().to_vec();
        let nonce = self.key.seal_in_place_append_tag(Aad::from(list), &mut text).expect("a token is far below 64 GiB");
        let mut sealed = nonce.as_ref().to_vec();
        sealed.append(&mut text);
        URL_SAFE_NO_PAD.encode(sealed)
    }

    /// Decrypts a token of a client's.
    pub(crate) fn open(&self, sealed: &str, list: &str) -> Result<String, Expired> {
        let sealed = URL_SAFE_NO_PAD.decode(sealed).map_err(|_| Expired)?;
        let (nonce, text) = sealed.split_at_checked(NONCE_LEN).ok_or(Expired)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Expired)?;
        let mut text = text.to_vec();
        let token = self.key.open_in_place(nonce, Aad::from(list), &mut text).map_err(|_| Expired)?;
        String::from_utf8(token.to_vec()).map_err(|_| Expired)
    }
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
        assert_eq!(seal.open(&sealed, "ke-hangzhou /api/v1/pods"), Err(Expired));
        assert_eq!(seal.open(&sealed, "ke-beijing /api/v1/secrets"), Err(Expired));
        assert_eq!(Seal::new().unwrap().open(&sealed, "ke-beijing /api/v1/pods"), Err(Expired));
    }

    #[test]
    fn what_was_never_sealed() {
        let seal = Seal::new().unwrap();
        for forged in ["", "eyJ2IjoibWV0YSJ9", "!!!", &"A".repeat(4000)] {
            assert_eq!(seal.open(forged, ""), Err(Expired), "{forged}");
        }
    }
}
