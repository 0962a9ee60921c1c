//! The driver of watch sharing: one watch of the host for all virtual clusters.
//!
//! A [`Feed`] lists and watches one resource of the host, and keeps its objects in a [`Hub`](hub::Hub). It answers watches
//! *instead of the host*: a [`WatchBody`] consists of the frames that the host would send, without those of other virtual
//! clusters. What a client sees of a frame is decided afterwards, as for a watch of the host itself.
//!
//! Reading order: [`WatchQuery`] (what of a request a feed can answer), [`Clusters`] (numbers of virtual clusters),
//! [`Collection`] (a resource), [`Placement`] (to which clusters an object belongs), `wait_budget` (how long a feed waits
//! for a namespace), `stored` (an object, and its frames), `wanted` (the versions from which watches continue when a feed
//! opens), [`Feed`], `driver` (the task of a feed), `moving` and `reopening` (virtual clusters whose namespaces change),
//! [`Rights`] (when rights must be checked again), [`Permission`] (the right to a watch), `newest` (how new the host is),
//! [`WatchBody`] and [`ListBody`], [`Feeds`] (which feeds are open).

mod clusters;
mod collection;
mod driver;
mod feed;
mod feeds;
mod list_body;
mod moving;
mod newest;
mod permission;
mod placement;
mod reopening;
mod request;
mod rights;
mod stored;
mod wait_budget;
mod wanted;
mod watch_body;

pub use clusters::Clusters;
pub use collection::Collection;
pub use feed::Feed;
pub use feeds::{AtHost, Begun, Feeds};
pub use hub::ClusterId;
pub use list_body::ListBody;
pub use permission::{Check, Permission, ReviewValidity};
pub use placement::{ByNamespace, Membership, Move, Moves, Placed, Placement};
pub use request::{Bypass, ListQuery, WatchQuery};
pub use rights::Rights;
pub use watch_body::WatchBody;
