//! Other encodings of the same certificate.
//!
//! ECDSA signatures are malleable: if (r, s) is valid, so is (r, n - s), where n is the order of the curve (SEC 1 version 2.0,
//! section 4.1.6, recovers the same key from both). Whoever has a certificate can replace its signature, without the key of the
//! authority. So a digest of the whole certificate does not identify it.

use super::der;
use super::facts::credential;

/// The orders of the curves P-256, P-384 and P-521 (FIPS 186-5, SP 800-186 section 3.2.1).
const ORDERS: [&[u8]; 3] = [
    &[
        0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6,
        0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
    ],
    &[
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xc7, 0x63, 0x4d, 0x81, 0xf4, 0x37, 0x2d, 0xdf, 0x58, 0x1a, 0x0d, 0xb2,
        0x48, 0xb0, 0xa7, 0x7a, 0xec, 0xec, 0x19, 0x6a, 0xcc, 0xc5, 0x29, 0x73,
    ],
    &[
        0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfa, 0x51, 0x86,
        0x87, 0x83, 0xbf, 0x2f, 0x96, 0x6b, 0x7f, 0xcc, 0x01, 0x48, 0xf7, 0x09, 0xa5, 0xd0, 0x3b, 0xb5, 0xc9, 0xb8,
        0x89, 0x9c, 0x47, 0xae, 0xbb, 0x6f, 0xb7, 0x1e, 0x91, 0x38, 0x64, 0x09,
    ],
];

/// The credential ids of a certificate with the other signature: one for each curve that the authority may use. None if the
/// signature is not ECDSA.
pub(crate) fn equivalents(certificate: &[u8]) -> Vec<String> {
    ORDERS.iter().filter_map(|order| equivalent(certificate, order)).map(|equivalent| credential(&equivalent)).collect()
}

/// The certificate with the other signature, for a curve of this order.
fn equivalent(certificate: &[u8], order: &[u8]) -> Option<Vec<u8>> {
    let (certificate, _) = der::split(certificate)?;
    // Certificate ::= SEQUENCE { tbsCertificate, signatureAlgorithm, signatureValue BIT STRING } (RFC 5280 section 4.1)
    let [to_be_signed, algorithm, signature] = der::children(certificate.content)?[..] else { return None };
    let (signature, _) = der::split(signature.content.strip_prefix(&[0])?)?;
    // Ecdsa-Sig-Value ::= SEQUENCE { r INTEGER, s INTEGER } (RFC 3279 section 2.2.3)
    let [r, s] = der::children(signature.content)?[..] else { return None };
    if r.tag != der::INTEGER || s.tag != der::INTEGER {
        return None;
    }
    let s = der::element(der::INTEGER, &[&difference(order, s.content)?]);
    let signature = der::element(der::SEQUENCE, &[r.raw, &s]);
    let signature = der::element(der::BIT_STRING, &[&[0], &signature]);
    Some(der::element(der::SEQUENCE, &[to_be_signed.raw, algorithm.raw, &signature]))
}

/// `order - value` as the content of a DER INTEGER. `None` if it is not positive.
fn difference(order: &[u8], value: &[u8]) -> Option<Vec<u8>> {
    let value = &value[value.iter().take_while(|byte| **byte == 0).count()..];
    let missing = order.len().checked_sub(value.len())?;
    let mut result = vec![0; order.len()];
    let mut borrow = 0;
    for at in (0..order.len()).rev() {
        let subtrahend = at.checked_sub(missing).map_or(0, |at| value[at]);
        let byte = i16::from(order[at]) - i16::from(subtrahend) - borrow;
        borrow = i16::from(byte < 0);
        result[at] = u8::try_from(byte.rem_euclid(256)).expect("a remainder of 256");
    }
    let zeros = result.iter().take_while(|byte| **byte == 0).count();
    if borrow != 0 || zeros == result.len() {
        return None;
    }
    let mut result = result.split_off(zeros);
    // The first bit of an INTEGER is its sign.
    if result[0] & 0x80 != 0 {
        result.insert(0, 0);
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::pki::{Authority, certificates_from_pem};
    use crate::tls::ClientCa;

    #[test]
    fn a_certificate_with_the_other_signature_is_valid_and_known() {
        let authority = Authority::create("clients", Duration::from_secs(3600)).unwrap();
        let ca = ClientCa::from_pem(authority.certificate_pem().as_bytes()).unwrap();
        // The numbers have different lengths in different signatures.
        for _ in 0..200 {
            let pair = authority.issue_client("jane", &["dev"], Duration::from_secs(60)).unwrap();
            let chain = certificates_from_pem(pair.certificate.as_bytes()).unwrap();
            let original = ca.verify(&chain, SystemTime::now()).unwrap();
            let forged = equivalent(&chain[0], ORDERS[0]).unwrap();
            assert_ne!(forged, chain[0].to_vec());
            assert_eq!(equivalent(&forged, ORDERS[0]).unwrap(), chain[0].to_vec());
            let forged = ca.verify(&[forged.into()], SystemTime::now()).unwrap();
            assert!(
                forged.equivalents.contains(&original.credential) && original.equivalents.contains(&forged.credential)
            );
            assert_ne!(forged.credential, original.credential);
        }
    }

    #[test]
    fn other_bytes_have_no_equivalent() {
        assert!(equivalents(b"hello").is_empty());
        assert_eq!(difference(&[5], &[5]), None);
        assert_eq!(difference(&[5], &[6]), None);
        assert_eq!(difference(&[5], &[1, 0]), None);
        assert_eq!(difference(&[1, 0], &[0, 1]), Some(vec![0, 255]));
        assert_eq!(difference(&[1, 0], &[0, 0xff]), Some(vec![1]));
    }
}
