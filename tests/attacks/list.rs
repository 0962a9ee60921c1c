//! All attacks.
//!
//! Reading order: [`streams`] (requests that never end, or are never read), [`bodies`] (requests that cost more than their
//! length suggests), [`objects`] (objects that are stored, and requests for them),
//! [`floods`] (ordinary requests, but many).

mod bodies;
mod floods;
mod objects;
mod paths;
mod repeat;
mod streams;

use crate::attack::Attack;

/// All attacks. Those that leave most objects on the host come last.
pub(crate) fn all() -> impl Iterator<Item = &'static Attack> {
    [streams::ATTACKS, bodies::ATTACKS, floods::ATTACKS, objects::ATTACKS].into_iter().flatten()
}
