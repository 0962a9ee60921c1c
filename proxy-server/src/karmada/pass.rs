//! One look at everything that makes a cluster a member, and what is not as it should be made so.

use ops::pki::Authority;

use super::api::{Api, ApiError, Way};
use super::member::{self, MemberError, Prepared};
use super::objects::{Credentials, Member};
use super::plane::{Found, Plane, Taken};

/// How a look ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// All was well.
    Nothing,
    /// Something was written into Karmada.
    Written,
}

/// A look that did not end well.
#[derive(Debug, thiserror::Error)]
pub(super) enum PassError {
    /// In the member.
    #[error(transparent)]
    Member(#[from] MemberError),
    /// In Karmada.
    #[error("Karmada: {0}")]
    Plane(#[source] ApiError),
    /// The place is taken.
    #[error(transparent)]
    Taken(#[from] Taken),
}

/// Looks, and writes where something differs; always if `anew`, so that what is not wanted any more goes.
pub(super) async fn pass<M: Way, P: Way>(
    in_member: &Api<M>,
    plane: &Plane<P>,
    member: &Member,
    authority: &Authority,
    anew: bool,
) -> Result<Done, PassError> {
    let id = member::identify(in_member).await?;
    // Before anything is made in the member: nobody is let in for a place that is taken.
    let found = plane.look(member, &id).await.map_err(PassError::Plane)?;
    if let Found::Taken(taken) = found {
        return Err(taken.into());
    }
    let Prepared { token, impersonator } = member::prepare(in_member, &member.name).await?;
    // Not the `ca.crt` beside the token, which is what the agent knows of us: this is what the endpoint shows now.
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
    /// Nobody is there to be asked, which is for the tunnel to mend.
    pub(super) fn is_absence(&self) -> bool {
        match self {
            Self::Member(MemberError::Api(error) | MemberError::NotReady(error)) => error.is_absence(),
            _ => false,
        }
    }

    /// Somebody has to decide.
    pub(super) fn taken(&self) -> Option<&Taken> {
        match self {
            Self::Taken(Taken::Leaving(_)) => None,
            Self::Taken(taken) => Some(taken),
            _ => None,
        }
    }
}
