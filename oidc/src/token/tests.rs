use jsonwebtoken::{EncodingKey, encode};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PublicKeyData as _};
use serde_json::json;

use super::*;

const ISSUER: &str = "https://login.example.com";

/// A key of an issuer.
struct Signer {
    key: KeyPair,
    algorithm: Algorithm,
    id: &'static str,
}

impl Signer {
    fn new(algorithm: Algorithm, id: &'static str) -> Self {
        let kind = if algorithm == Algorithm::ES384 { &PKCS_ECDSA_P384_SHA384 } else { &PKCS_ECDSA_P256_SHA256 };
        Self { key: KeyPair::generate_for(kind).unwrap(), algorithm, id }
    }

    fn jwk(&self) -> Value {
        // An uncompressed point (SEC 1 section 2.3.3): 4, x, y.
        let point = self.key.der_bytes();
        let (x, y) = point[1..].split_at((point.len() - 1) / 2);
        let curve = if self.algorithm == Algorithm::ES384 { "P-384" } else { "P-256" };
        let encode = |bytes| URL_SAFE_NO_PAD.encode(bytes);
        json!({"kty": "EC", "crv": curve, "kid": self.id, "x": encode(x), "y": encode(y), "use": "sig"})
    }

    fn sign(&self, id: Option<&str>) -> String {
        let header = Header { kid: id.map(str::to_owned), ..Header::new(self.algorithm) };
        let key = EncodingKey::from_ec_der(self.key.serialized_der());
        encode(&header, &json!({"iss": ISSUER, "sub": "jane"}), &key).unwrap()
    }
}

fn verify(text: &str, keys: &[Value]) -> Result<(), Refused> {
    let keys = KeySet::parse(json!({ "keys": keys })).unwrap();
    let token = Token::of_issuer(text, ISSUER).ok_or(Refused::Issuer)?;
    let header = token.header()?;
    if !keys.has(header.kid.as_deref()) {
        return Err(Refused::UnknownKey);
    }
    let claims = token.verify(&header, &keys)?;
    assert_eq!(claims.text("sub"), Ok("jane"));
    Ok(())
}

#[test]
fn a_signature_is_valid_only_with_its_key() {
    for algorithm in [Algorithm::ES256, Algorithm::ES384] {
        let (own, other) = (Signer::new(algorithm, "a"), Signer::new(algorithm, "b"));
        let keys = [own.jwk(), other.jwk()];
        assert_eq!(verify(&own.sign(Some("a")), &keys), Ok(()));
        assert_eq!(verify(&other.sign(None), &keys), Ok(()), "any key may belong to a token without a key id");
        assert_eq!(verify(&own.sign(Some("b")), &keys), Err(Refused::Signature));
        assert_eq!(verify(&own.sign(Some("c")), &keys), Err(Refused::UnknownKey));
        let mut altered = own.sign(Some("a"));
        let last = altered.pop().unwrap();
        // The last character may have bits that are not part of the signature, so the whole end is replaced.
        altered.truncate(altered.len() - 4);
        altered.push_str(if last == 'A' { "BBBBB" } else { "AAAAA" });
        assert_eq!(verify(&altered, &keys), Err(Refused::Signature));
    }
}

#[test]
fn only_public_keys_for_signatures_count() {
    let own = Signer::new(Algorithm::ES256, "a");
    let token = own.sign(Some("a"));
    for (name, value, expected) in [
        ("use", "enc", Err(Refused::UnknownKey)),
        ("alg", "ES384", Err(Refused::Signature)),
        ("alg", "HS256", Err(Refused::UnknownKey)),
        ("alg", "ES256", Ok(())),
    ] {
        let mut jwk = own.jwk();
        jwk[name] = json!(value);
        assert_eq!(verify(&token, &[jwk]), expected, "{name}: {value}");
    }
    let unknown = json!({"kty": "ML-DSA", "kid": "a", "pub": "AAAA"});
    let secret = json!({"kty": "oct", "kid": "a", "k": "AAAA"});
    // An issuer can withdraw all of its keys.
    assert!(KeySet::parse(json!({ "keys": [unknown, secret] })).unwrap().is_empty());
    assert!(KeySet::parse(json!({"error": "not found"})).is_err());
    assert_eq!(verify(&token, &[unknown, own.jwk()]), Ok(()), "other keys have no effect");
}

#[test]
fn a_token_without_a_real_signature_is_refused() {
    let own = Signer::new(Algorithm::ES256, "a");
    let signed = own.sign(Some("a"));
    let claims = signed.split('.').nth(1).unwrap();
    for header in [r#"{"alg":"none"}"#, r#"{"alg":"HS256"}"#, r#"{"alg":"EdDSA"}"#, r#"{"alg":"ES512"}"#, "{}", "["] {
        let text = format!("{}.{claims}.", URL_SAFE_NO_PAD.encode(header));
        assert_eq!(verify(&text, &[own.jwk()]), Err(Refused::Malformed), "{header}");
    }
    // The public key as the secret of HS256.
    let secret = EncodingKey::from_secret(own.key.der_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let confused = encode(&Header::new(Algorithm::HS256), &json!({"iss": ISSUER}), &secret).unwrap();
    assert_eq!(verify(&confused, &[own.jwk()]), Err(Refused::Malformed));
}

#[test]
fn other_tokens_are_not_those_of_the_issuer() {
    let payload = |claims: Value| format!("e30.{}.", URL_SAFE_NO_PAD.encode(claims.to_string()));
    let google = payload(json!({"iss": "accounts.google.com"}));
    assert!(Token::of_issuer(&google, "https://accounts.google.com").is_some());
    for other in [
        String::new(),
        "opaque".to_owned(),
        "a.b.c".to_owned(),
        payload(json!({"iss": "https://kubernetes.default.svc"})),
        payload(json!({"iss": [ISSUER]})),
        payload(json!({})),
        payload(json!({"iss": ISSUER})) + ".more",
    ] {
        assert!(Token::of_issuer(&other, ISSUER).is_none(), "{other:.40}");
    }
    assert!(Token::of_issuer(&payload(json!({"iss": ISSUER})), ISSUER).is_some());
    // It may be one of the issuer, which neither the agent nor the host must get.
    let long = payload(json!({"iss": ISSUER, "padding": "x".repeat(MAX_TOKEN)}));
    assert!(matches!(Token::of_issuer(&long, ISSUER).unwrap().header(), Err(Refused::Malformed)));
}
