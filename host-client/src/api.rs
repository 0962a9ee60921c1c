//! Typed JSON calls for the agent's own control loops: one object, a list, and its changes.
//!
//! Requests of clients are streamed and never parsed as a whole: they use [`Host::send`]. Here, bodies are read into
//! memory, so each call is limited in size and time. Objects are `serde_json::Value`, because the agent reads a few
//! fields and must keep the others. For objects that clients can make large, it reads only a smaller type, because a
//! `Value` may need twenty times the memory of its JSON.
//!
//! Reading order: [`Api`], [`Selection`], [`Source`] (a list and watch, before anything is parsed), [`Reflector`] (a list
//! that is kept up to date), [`ApiError`].

mod calls;
mod error;
mod host_api;
mod object;
mod partial;
mod patch_kind;
mod pending_call;
mod position;
mod reflector;
mod response;
mod selection;
mod source;

pub use calls::Api;
pub use error::ApiError;
pub use host_api::{Following, HostApi, Object, Pages};
pub use partial::{ObjectMeta, Partial};
pub use patch_kind::PatchKind;
pub use position::Position;
pub use reflector::{Change, Reflector};
pub use response::Page;
pub use selection::{Selection, Shape};
pub use source::{Read, Source};

#[cfg(doc)]
use crate::Host;

#[cfg(test)]
mod tests;
