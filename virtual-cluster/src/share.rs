//! What one virtual cluster may use of what all virtual clusters have in common.
//!
//! [`seats`] are places at the host for streamed responses, [`turns`] limit how many large bodies are processed at a time,
//! and [`heavy`] is the rate limit for bodies that cost the host much.

pub mod heavy;
pub mod seats;
pub mod turns;
