//! The modules of a crate, and which of them names which.
//!
//! syn parses; names are resolved as rustc resolves them (The Rust Reference, "Names"), as far as a path goes: through
//! imports, re-exports and globs to the module that defines the item. What is *not* here: methods that are called on a
//! value and what macros expand to, since neither is written as a path; and code that only tests compile.
//!
//! Reading order: [`unit`](mod@unit) (modules), [`read`](mod@read) (from files), [`condition`] (what only tests compile), [`imports`],
//! [`scope`] (what a name stands for), [`tokens`] (paths in macros), [`uses`](mod@uses) (who names whom), [`inherent`] (methods).

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
