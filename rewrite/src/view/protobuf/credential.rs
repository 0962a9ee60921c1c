//! Objects in which the host publishes its certificate and names: token Secrets and `kube-root-ca.crt`.

use bytes::Bytes;

use super::super::settings::Settings;
use crate::credential::{ROOT_CERTIFICATE, TOKEN_SECRET};
use crate::mapping::Shown;
use crate::program::Place;

/// Whether the current object is a credential. That is known before its data is read.
#[derive(Default)]
pub(super) struct Credential {
    is_token: bool,
    is_root_certificate: bool,
}

// === impl Credential ===

impl Credential {
    /// The type of a Secret.
    pub(super) fn secret_type(&mut self, text: &[u8]) {
        self.is_token = text == TOKEN_SECRET.as_bytes();
    }

    /// The name of a `ConfigMap`.
    pub(super) fn config_map_name(&mut self, text: &[u8]) {
        self.is_root_certificate = text == ROOT_CERTIFICATE.as_bytes();
    }

    /// The replacement for the value at a place. `None` if it stays unchanged.
    pub(super) fn shown(&self, view: &Settings, place: Place, value: &[u8]) -> Option<Bytes> {
        let certificate = || view.certificate.as_ref().map(|certificate| certificate.pem());
        match place {
            Place::SecretNamespace if self.is_token => match view.mapping.shown(value) {
                Shown::As(name) => Some(name),
                Shown::Unchanged | Shown::Foreign => None,
            },
            Place::SecretCertificate if self.is_token => certificate(),
            Place::ConfigMapCertificate if self.is_root_certificate => certificate(),
            _ => None,
        }
    }
}
