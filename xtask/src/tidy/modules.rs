//! The modules of a crate, and which modules they name.
//!
//! syn parses the code. Paths are resolved as in rustc (The Rust Reference, "Names"): through imports, re-exports and
//! globs to the module that defines the item. What is *not* here: method calls on a value and the expansion of macros,
//! because neither is a path; and code that only tests compile.
//!
//! Reading order: [`unit`](mod@unit) (modules), [`read`](mod@read) (from files), [`condition`] (what only tests compile), [`imports`],
//! [`scope`] (the meaning of names), [`tokens`] (paths in macros), [`uses`](mod@uses) (uses of modules), [`inherent`]
//! (methods).

mod condition;
mod imports;
mod inherent;
mod read;
mod scope;
mod tokens;
mod unit;
mod uses;

pub(crate) use inherent::inherent_impls;
pub(crate) use read::read;
pub(crate) use scope::Scopes;
pub(crate) use unit::{ModuleId, Unit};
pub(crate) use uses::uses;
