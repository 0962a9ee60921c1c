//! Runs the same kubectl commands on two clusters, and compares the outcomes.
//!
//! A [`Script`] is a text file with commands. [`Pair::run`] runs it on both [`Side`]s concurrently, masks values that
//! always differ (`normal`), and reports a unified diff (`diff`) for each command whose exit code or output differs. A
//! list ([`Known`]) has the differences that have a reason. It must not have stale entries.
//!
//! Reading order: `script`, `act`, `normal`, `pair`.
//!
//! What is *not* here: the scripts, and the start of the two clusters. Both are in the suite that uses this module.

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
