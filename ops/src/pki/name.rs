//! Writes distinguished names (RFC 5280 section 4.1.2.4) into a certificate.
//!
//! rcgen keeps a name as a map, so it can write only one organisation, and it re-encodes the issuer's name. A Kubernetes
//! user has one organisation per group, and an issuer's name must be byte for byte the subject of its CA certificate
//! (RFC 5280 section 7.1 would allow less, but webpki compares bytes). So rcgen writes the certificate, and this module
//! replaces both names before it signs the final version.

use rcgen::{KeyPair, SigningKey};

use super::der::{self, BIT_STRING, OBJECT_IDENTIFIER, SEQUENCE, SET, UTF8_STRING};

/// `id-at-commonName`, 2.5.4.3, as DER content.
pub(super) const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// `id-at-organizationName`, 2.5.4.10, as DER content.
pub(super) const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

/// 1.3.6.1.4.1.57683.2: the uid of a Kubernetes user (KEP-5086), as DER content.
pub(crate) const OID_UID: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x83, 0xc2, 0x53, 0x02];

/// A name that is being built: attributes in the order in which they were added, one per relative distinguished name.
#[derive(Clone, Debug, Default)]
pub(super) struct Name(Vec<u8>);

// === impl Name ===

impl Name {
    /// Adds an attribute as `UTF8String`, which RFC 5280 requires for all new names.
    pub(super) fn with(mut self, oid: &[u8], value: &str) -> Self {
        let oid = der::element(OBJECT_IDENTIFIER, &[oid]);
        let value = der::element(UTF8_STRING, &[value.as_bytes()]);
        let attribute = der::element(SEQUENCE, &[&oid, &value]);
        self.0.extend(der::element(SET, &[&attribute]));
        self
    }

    /// The name as DER.
    pub(super) fn to_der(&self) -> Vec<u8> {
        der::element(SEQUENCE, &[&self.0])
    }
}

/// Replaces the issuer and the subject of a certificate that rcgen wrote, and signs it with `key`. rcgen has already
/// written the algorithm of `key`. `issuer` and `subject` are complete DER names.
pub(super) fn rename_and_sign(
    certificate: &[u8],
    issuer: &[u8],
    subject: &[u8],
    key: &KeyPair,
) -> Result<Vec<u8>, rcgen::Error> {
    // Certificate  ::=  SEQUENCE { tbsCertificate, signatureAlgorithm, signatureValue }
    let (outer, _) = der::split(certificate).ok_or(rcgen::Error::CouldNotParseCertificate)?;
    let outer = der::children(outer.content).ok_or(rcgen::Error::CouldNotParseCertificate)?;
    let [tbs, algorithm, _] = outer.as_slice() else {
        return Err(rcgen::Error::CouldNotParseCertificate);
    };
    // TBSCertificate  ::=  SEQUENCE { version, serialNumber, signature, issuer, validity, subject, ... }
    let mut fields = der::children(tbs.content)
        .ok_or(rcgen::Error::CouldNotParseCertificate)?
        .iter()
        .map(|field| field.raw)
        .collect::<Vec<_>>();
    if fields.len() < 7 {
        return Err(rcgen::Error::CouldNotParseCertificate);
    }
    fields[3] = issuer;
    fields[5] = subject;
    let tbs = der::element(SEQUENCE, &fields);
    let signature = key.sign(&tbs)?;
    // The leading zero means that no bits of the last byte are unused.
    let signature = der::element(BIT_STRING, &[&[0], &signature]);
    Ok(der::element(SEQUENCE, &[&tbs, algorithm.raw, &signature]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use x509_parser::prelude::{FromDer, X509Name};

    proptest! {
        #[test]
        fn another_parser_reads_the_attributes_in_order(
            organizations in proptest::collection::vec(".{0,200}", 0..5),
            common_name in ".{0,200}",
        ) {
            let name = organizations
                .iter()
                .fold(Name::default(), |name, organization| name.with(ORGANIZATION, organization))
                .with(COMMON_NAME, &common_name)
                .to_der();
            let (rest, parsed) = X509Name::from_der(&name).unwrap();
            prop_assert!(rest.is_empty());
            let found = parsed.iter_organization().map(|attribute| attribute.as_str().unwrap()).collect::<Vec<_>>();
            prop_assert_eq!(found, organizations);
            let found = parsed.iter_common_name().map(|attribute| attribute.as_str().unwrap()).collect::<Vec<_>>();
            prop_assert_eq!(found, [common_name]);
        }
    }
}
