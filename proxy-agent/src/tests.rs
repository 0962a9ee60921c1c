//! Requests through the whole agent, from a stream of the tunnel to the host and back.
//!
//! `agent` has an agent in memory, with a tunnel by which a test makes requests. Its host is one of two: `scripted` has a
//! host that follows a script, so a test says what the host gets and what it returns. `dev` has `dev-apiserver`, and all
//! loops of the agent run, so a test says only what clients see. Time is paused where an agent waits.

mod agent;
mod dev;
mod scripted;
