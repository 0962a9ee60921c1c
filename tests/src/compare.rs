//! The same kubectl commands on two clusters, and what differs.
//!
//! A [`Script`] is a committed text file of commands. [`Pair::run`] plays it on both [`Side`]s at once, puts what cannot
//! be equal out of sight (`normal`), and reports a unified diff (`diff`) for each command whose exit code or output
//! is not the same. A difference that has a reason stands in a list ([`Known`]) that must not go stale.
//!
//! Reading order: `script`, `act`, `normal`, `pair`.
//!
//! What is *not* here: the commands themselves, and how the two clusters come to be. Both are with the suite that uses
//! this.

mod act;
mod diff;
mod known;
mod normal;
mod pair;
mod script;
mod side;

pub use known::Known;
pub use pair::Pair;
pub use script::Script;
pub use side::Side;
