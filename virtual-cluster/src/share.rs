//! The limits of one virtual cluster for resources that all virtual clusters share.
//!
//! [`in_flight`] limits the number of requests, [`seats`] limits the streamed responses at the host, [`large_objects`]
//! limits how many large objects are processed at a time, [`write_turns`] limits the writes at the host, and [`write_rate`]
//! limits the rate of bodies that cost the host much. [`activity`] tells whether other virtual clusters are active.

pub mod activity;
pub mod in_flight;
pub mod large_objects;
mod one_list;
pub mod seats;
pub mod write_rate;
pub mod write_turns;
