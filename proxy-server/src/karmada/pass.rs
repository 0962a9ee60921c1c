//! One pass over all objects of a member, in the cluster and in Karmada. Corrects what differs.

use ops::pki::Authority;

use super::api::{Api, ApiError, Route};
use super::member::{self, MemberError, Prepared};
use super::objects::{Credentials, Member};
use super::plane::{Conflict, Found, Plane};

/// The result of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// Nothing differed.
    Nothing,
    /// Something was written to Karmada.
    Written,
}

/// A pass failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum PassError {
    /// In the member.
    #[error(transparent)]
    Member(#[from] MemberError),
    /// In Karmada.
    #[error("Karmada: {0}")]
    Plane(#[source] ApiError),
    /// The Cluster must not be written.
    #[error(transparent)]
    Conflict(#[from] Conflict),
}

/// Compares the objects, and writes those that differ. With `force`, it always writes, so that fields that are no longer
/// desired are removed.
pub(super) async fn pass<M: Route, P: Route>(
    in_member: &Api<M>,
    plane: &Plane<P>,
    member: &Member,
    authority: &Authority,
    force: bool,
) -> Result<Done, PassError> {
    let id = member::identify(in_member).await?;
    // Before anything is created in the member, because a conflict needs no accounts there.
    let found = plane.compare(member, &id).await.map_err(PassError::Plane)?;
    if let Found::Conflict(conflict) = found {
        return Err(conflict.into());
    }
    let Prepared { token, impersonator } = member::prepare(in_member, &member.name).await?;
    // Not the `ca.crt` beside the token, which comes from the agent: the endpoint may have a newer CA.
    let authority = authority.certificate_pem().to_owned();
    let credentials = Credentials { id, token, impersonator, authority };
    let uid = match found {
        Found::Ours { uid, is_current } => {
            let secrets = plane.secrets_are_current(member, &credentials, &uid).await.map_err(PassError::Plane)?;
            if is_current && secrets && !force {
                return Ok(Done::Nothing);
            }
            Some(uid)
        }
        Found::None | Found::Conflict(_) => None,
    };
    plane.write(member, &credentials, uid.as_deref()).await.map_err(PassError::Plane)?;
    Ok(Done::Written)
}

// === impl PassError ===

impl PassError {
    /// Whether no agent serves the cluster, so that a retry is the only remedy.
    pub(super) fn is_absence(&self) -> bool {
        match self {
            Self::Member(MemberError::Api(error) | MemberError::NotReady(error)) => error.is_absence(),
            _ => false,
        }
    }

    /// Whether the cluster answers that it is not ready. A new virtual cluster is not ready until the agent has provisioned it.
    pub(super) fn is_unready(&self) -> bool {
        matches!(self, Self::Member(MemberError::NotReady(ApiError::Refused { .. })))
    }

    /// The conflict, if only an operator can resolve it.
    pub(super) fn conflict(&self) -> Option<&Conflict> {
        match self {
            Self::Conflict(Conflict::Leaving(_)) => None,
            Self::Conflict(conflict) => Some(conflict),
            _ => None,
        }
    }
}
