//! Runs the same kubectl commands on several clusters, and compares the outcomes with those of the first one.
//!
//! A [`Script`] is a text file with commands. [`Comparison::run`] runs it on all [`Side`]s concurrently, masks values that
//! always differ (`normal`), and reports a unified diff (`diff`) for each command whose exit code or output differs. A
//! list ([`Known`]) has the differences that have a reason. It must not have stale entries.
//!
//! Reading order: `script`, `act`, `normal`, `comparison`.
//!
//! What is *not* here: the scripts, and the start of the clusters. Both are in the suite that uses this module.

mod act;
mod comparison;
mod diff;
mod known;
mod normal;
mod script;
mod side;

pub use comparison::{Comparison, Other};
pub use known::Known;
pub use script::Script;
pub use side::Side;
