//! One pass over everything that makes a cluster a member. Corrects what differs.

use ops::pki::Authority;

use super::api::{Api, ApiError, Route};
use super::member::{self, MemberError, Prepared};
use super::objects::{Credentials, Member};
use super::plane::{Found, Plane, Taken};

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
    /// Another Cluster is in the way.
    #[error(transparent)]
    Taken(#[from] Taken),
}

/// Compares, and writes what differs. With `anew`, it always writes, so that fields that are no longer wanted are
/// removed.
pub(super) async fn pass<M: Route, P: Route>(
    in_member: &Api<M>,
    plane: &Plane<P>,
    member: &Member,
    authority: &Authority,
    anew: bool,
) -> Result<Done, PassError> {
    let id = member::identify(in_member).await?;
    // Before anything is created in the member: no account is needed for a Cluster that belongs to somebody else.
    let found = plane.look(member, &id).await.map_err(PassError::Plane)?;
    if let Found::Taken(taken) = found {
        return Err(taken.into());
    }
    let Prepared { token, impersonator } = member::prepare(in_member, &member.name).await?;
    // Not the `ca.crt` beside the token, which is what the agent knows: the endpoint may have a newer CA.
    let authority = authority.certificate_pem().to_owned();
    let credentials = Credentials { id, token, impersonator, authority };
    let uid = match found {
        Found::Ours { uid, is_current } => {
            let secrets = plane.secrets_are_current(member, &credentials, &uid).await.map_err(PassError::Plane)?;
            if is_current && secrets && !anew {
                return Ok(Done::Nothing);
            }
            Some(uid)
        }
        Found::None | Found::Taken(_) => None,
    };
    plane.write(member, &credentials, uid.as_deref()).await.map_err(PassError::Plane)?;
    Ok(Done::Written)
}

// === impl PassError ===

impl PassError {
    /// No agent serves the cluster. The tunnel will be restored elsewhere.
    pub(super) fn is_absence(&self) -> bool {
        match self {
            Self::Member(MemberError::Api(error) | MemberError::NotReady(error)) => error.is_absence(),
            _ => false,
        }
    }

    /// An operator must decide.
    pub(super) fn taken(&self) -> Option<&Taken> {
        match self {
            Self::Taken(Taken::Leaving(_)) => None,
            Self::Taken(taken) => Some(taken),
            _ => None,
        }
    }
}
