//! The rules for writes. Requests and controllers both write to the store with these functions.
//!
//! Reading order: [`create`], [`update`], [`delete`], [`bind`], then what they check and fill in.

mod bind;
mod create;
mod delete;
mod deletion;
mod identity;
mod metadata;
mod update;
mod validate;
mod writer;

pub(crate) use bind::bind;
pub(crate) use create::create;
pub(crate) use delete::{Deleted, delete};
pub(crate) use deletion::Deletion;
pub(crate) use identity::{check_name, check_namespace, check_type};
pub(crate) use update::{Part, update};
pub(crate) use writer::Writer;
