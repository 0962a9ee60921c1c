//! Authentication: by a client certificate, by the token of a service account, or anonymous.

use std::collections::BTreeMap;
use std::time::SystemTime;

use http::{HeaderMap, header};
use kube_wire::Status;
use ops::tls::{ClientCa, PeerIdentity};
use rustls_pki_types::CertificateDer;

use super::User;
use super::tokens::Tokens;

/// The extra field that names the credential (KEP-4193).
const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";

/// Authenticates the caller. As in kube-apiserver, a certificate has precedence over a token.
pub(crate) fn identify(
    client_ca: &ClientCa,
    tokens: &Tokens,
    chain: &[CertificateDer<'static>],
    headers: &mut HeaderMap,
) -> Result<User, Status> {
    let authorization = headers.remove(header::AUTHORIZATION);
    if !chain.is_empty() {
        let Ok(peer) = client_ca.verify(chain, SystemTime::now()) else {
            return Err(Status::unauthorized("Unauthorized"));
        };
        return Ok(of_certificate(peer));
    }
    let Some(authorization) = authorization else { return Ok(User::anonymous()) };
    let token = authorization.to_str().ok().and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    let user = token.and_then(|token| tokens.user(token));
    user.ok_or_else(|| Status::unauthorized("Unauthorized"))
}

fn of_certificate(peer: PeerIdentity) -> User {
    User {
        name: peer.common_name,
        uid: peer.uid.unwrap_or_default(),
        groups: peer.organizations,
        extra: BTreeMap::from([(CREDENTIAL.to_owned(), vec![peer.credential])]),
    }
    .authenticated()
}
