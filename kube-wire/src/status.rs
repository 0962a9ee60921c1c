//! `metav1.Status`: the refusals of the Kubernetes API.
//!
//! Each refusal has a named constructor, whose code, reason, details and message are those of
//! `k8s.io/apimachinery/pkg/api/errors`, so that client-go's `IsNotFound`, `IsConflict`, `IsForbidden`... understand it.
//! [`Status::to_json`] and [`Status::to_protobuf`] write the same bytes as kube-apiserver;
//! [`Status::from_json`] and [`Status::from_protobuf`] read them. [`http_response`] makes the HTTP response.
//!
//! What is not here: which error becomes which refusal.

mod denied;
mod error;
mod field_error;
mod fields;
mod json;
mod protobuf;
mod reason;
mod refusal;
mod response;
#[cfg(test)]
mod tests;
mod try_again;

pub use denied::Denied;
pub use error::NotAStatus;
pub use field_error::FieldError;
pub use fields::{Cause, Details, ListMeta, Outcome};
pub use reason::{CauseType, Reason};
pub use refusal::Status;
pub use response::http_response;
pub use try_again::{TOO_MANY_REQUESTS, TryAgain};
