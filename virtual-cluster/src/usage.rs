//! What each virtual cluster stores on the host, and its limits: the number of objects of each resource, and bytes.
//!
//! The agent lists and watches each resource that counts once, for all virtual clusters. So it counts what exists, regardless
//! of who has written it: clients, tokens that are used directly at the host, or controllers. It keeps no objects: for each
//! one, it keeps digests of its name and of its version, its size, and, if it is cluster-scoped, its virtual cluster.
//!
//! It also counts the bytes of the versions that were written recently, because etcd still stores them.
//!
//! A ResourceQuota would cost the host a second write for each creation. It cannot count bytes, and it limits one
//! namespace, not a virtual cluster.
//!
//! Reading order: [`Usage`], [`NoRoom`], [`Resource`] (what is counted), `accounts` (the sums), `written` (recent
//! versions), `owners` and `objects` (of one resource), `meter` (which counts them), [`keep`] (all resources), [`declare`] (for the admission policies).

mod accounts;
mod declare;
mod follow;
mod meter;
mod no_room;
mod objects;
mod owners;
mod resource;
mod stored;
mod written;

pub use accounts::Held;
pub use declare::declare;
pub use follow::keep;
pub use no_room::NoRoom;
pub use resource::Resource;
pub use stored::Usage;
