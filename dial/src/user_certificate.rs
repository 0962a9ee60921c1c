//! Certificates for users of the virtual clusters of this agent.
//!
//! See [`protocol::user_certificate`] for the exchange. What is *not* here: what is done with them, and when to renew.

use std::sync::Arc;

use ops::pki::NewKey;
use ops::secret::Secret;
use protocol::user_certificate::{USER_PATH, User, UserCertificate, UserCertificateRequest};
use protocol::{Authority, ClusterName, JsonBody as _};
use rustls::ClientConfig;

use crate::egress::Egress;
use crate::enrol::{EnrolError, exchange, post};

/// A new key of a user, with its certificate.
#[derive(Clone, Debug)]
pub struct UserCredentials {
    /// In PEM, PKCS#8.
    pub key: Secret,
    /// What the proxy-server has issued.
    pub issued: UserCertificate,
}

/// Gets a certificate for a user of a virtual cluster that this agent has added. `tls` has the identity of the agent.
pub async fn certify_user(
    tls: &Arc<ClientConfig>,
    server: &Authority,
    egress: &Egress,
    cluster: &ClusterName,
    user: &User,
) -> Result<UserCredentials, EnrolError> {
    let NewKey { key, request } = NewKey::create().map_err(EnrolError::Key)?;
    let body = UserCertificateRequest { cluster: cluster.clone(), user: user.clone(), request }.encode();
    let body = exchange(tls, server, egress, post(USER_PATH, server, None, body)).await?;
    let issued = UserCertificate::decode(&body).ok_or_else(|| EnrolError::NotAtoll(server.clone()))?;
    Ok(UserCredentials { key, issued })
}
