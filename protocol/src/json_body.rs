//! The JSON bodies of requests without a tunnel.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A body. All fields are strings, or lists of strings.
pub trait JsonBody: Serialize + DeserializeOwned {
    /// Parses a body. `None` if it is something else.
    fn decode(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    /// The bytes.
    fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings always serialise")
    }
}
