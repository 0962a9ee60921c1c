//! The reviews that the agent sends to the host: TokenReview, SubjectAccessReview, SelfSubjectRulesReview.
//!
//! Callers of this module use the trait [`Reviews`], so that tests need no API server. [`wire`] has the JSON.
//!
//! Reading order: [`Reviews`], [`rules`], [`wire`], `host` (sends them), `key` (what a cached answer is kept under).

mod host;
pub(crate) mod key;
mod null;
mod question;
mod review_error;
pub mod rules;
mod token_user;
pub mod wire;

pub use question::{Attributes, Decision, Reviews};
pub use review_error::ReviewError;
pub use rules::Rules;
pub use token_user::TokenUser;
